"""Commands that wait for a decision: in which batches they go, and what a failure says of one that another front end may do."""

import pytest
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Entry, Leased, Seen, Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    PeekCommand,
    SettleCommand,
    SettleResult,
)
from quorate.client_sdk.protocol.core.log_cache import NOTHING_KNOWN, LogCache
from quorate.client_sdk.protocol.core.rounds import SOON_S
from quorate.client_sdk.protocol.core.values import Failed
from quorate.client_sdk.protocol.decisions import pending
from quorate.client_sdk.protocol.decisions.pending import (
    COMMANDS_MAX,
    HELD_S_MAX,
    HELD_S_STEP,
    RUN_BYTES_MAX,
    Batches,
    CommandResult,
    PendingCommand,
    places_of,
)
from quorate.client_sdk.protocol.decisions.transitions import Command, ConfirmCommand, InvokeCommand
from tests.support.own_types import Cart
from tests.unit.client_sdk.protocol.stage import Stage, at

REFUSED = Failed("refused", "no quorum would", definite=True, answered=frozenset({"r1"}))


class Waiting:
    """The commands of some callers, and their batches."""

    def __init__(self, callers: int, name: str = "queue/q") -> None:
        self.stage = Stage()
        self.commands = [self.command(number) for number in range(callers)]
        self.cache: LogCache = self.stage.cache_of(name)
        self.cache.known["r1"] = NOTHING_KNOWN
        self.batches = Batches(self.commands, self.cache)

    def command(self, number: int, command: Command = DequeueCommand(1)) -> PendingCommand:  # noqa: B008 - a frozen value
        return PendingCommand(command, self.stage.caller(number))

    def next(self) -> Stage:
        self.stage.play(self.batches.next(self.stage.task))
        return self.stage


def test_a_batch_is_of_the_oldest_and_bounded() -> None:
    waiting = Waiting(COMMANDS_MAX + 1)
    assert waiting.next().result == waiting.commands[:COMMANDS_MAX]
    assert waiting.batches.numbers() == list(range(COMMANDS_MAX))


def test_callers_take_turns_and_each_keeps_its_order() -> None:
    """Three hundred dequeues of one token held up another one's for seconds, on a queue that both use."""
    waiting = Waiting(COMMANDS_MAX + 40)
    for asked in waiting.commands[:COMMANDS_MAX]:
        asked.task.turn = "many"
    for place, turn in ((COMMANDS_MAX + 2, "b"), (COMMANDS_MAX + 5, "c"), (COMMANDS_MAX + 7, "b")):
        waiting.commands[place].task.turn = turn
    commands = waiting.commands
    batch = waiting.next().result
    assert batch[:6] == [
        commands[0],
        commands[COMMANDS_MAX],
        commands[COMMANDS_MAX + 2],
        commands[COMMANDS_MAX + 5],
        commands[1],
        commands[COMMANDS_MAX + 1],
    ]
    assert len(batch) == COMMANDS_MAX
    assert [each for each in batch if each.task.turn == "many"] == commands[: COMMANDS_MAX - 40]


@pytest.mark.parametrize(
    ("command", "places"),
    [
        (DequeueCommand(1), 1),
        (PeekCommand(), 1),
        (AcquireCommand(512, 1), 9),
        (DequeueCommand(1000), 16),
        (SettleCommand("accept", ("t",) * 512), 9),
        (CompareAndSetCommand(None, Value("x" * 1024 * 1024)), 257),
    ],
)
def test_what_takes_longer_takes_more_places(command: Command, places: int) -> None:
    assert places_of(command, Waiting(0).cache) == places


def test_a_compare_and_set_takes_places_for_the_state_that_was_decided() -> None:
    cache = Waiting(0, "register/r").cache
    cache.summary = replace(NOTHING, value=Value("x" * 1024 * 1024))
    assert places_of(CompareAndSetCommand(Value("1"), Value("2")), cache) == 257
    assert places_of(DequeueCommand(1), cache) == 1


def test_a_call_takes_places_for_its_state_and_for_one_that_was_not_seen_yet() -> None:
    """Of objects that nobody had asked for lately, hundreds of large states were worked on at once."""
    found = PlainClass(Cart)
    call, cache = InvokeCommand(found, found.call("content")), Waiting(0, "own/x").cache
    assert places_of(call, cache) == 33
    cache.summary = replace(NOTHING, value=Value("x" * 256 * 1024))
    assert places_of(call, cache) == 65
    cache.summary = replace(NOTHING, value=Value("[]" * 8 * 1024))
    assert places_of(call, cache) == 37, "an array counts for 16 bytes more"
    cache.summary = replace(NOTHING, value=Value("{}"))
    assert places_of(call, cache) == 1


@pytest.mark.parametrize(("item", "places"), [("x" * 1000, 17), ("[" * 500 + "]" * 500, 129)])
def test_who_asks_first_takes_places_for_what_each_decision_carries(item: str, places: int) -> None:
    """Four hundred peeks at queues that keep a megabyte each for leases held others up for 19 s."""
    cache = Waiting(0).cache
    kept = tuple(Leased(Entry(at(number), at(number), Value(item))) for number in range(1024))
    cache._replace_summary(replace(NOTHING, leases=kept))
    assert places_of(PeekCommand(), cache) == pytest.approx(places, rel=0.2)
    cache.asking = 1
    assert places_of(PeekCommand(), cache) == 1


def test_what_an_object_carries_is_guessed_before_the_first_look() -> None:
    cache = Waiting(0).cache
    cache.known.clear()
    assert places_of(PeekCommand(), cache) == 9


def test_where_nobody_asks_the_batch_is_empty_at_once() -> None:
    assert Waiting(0).next().result == []


def test_those_of_a_batch_that_were_just_told_may_ask_again_before_the_next() -> None:
    waiting = Waiting(2)
    waiting.next()
    waiting.commands.clear()
    stage = waiting.next()
    assert not stage.is_over
    waiting.commands.append(waiting.command(7))
    stage.sleep(SOON_S)
    assert stage.result == waiting.commands


def test_those_who_are_let_go_first_are_the_next_batch_as_far_as_they_still_wait() -> None:
    waiting = Waiting(3)
    gone, last = waiting.commands[1:]
    waiting.batches.first = [last, gone]
    waiting.commands.remove(gone)
    assert waiting.next().result == [last]
    assert waiting.next().result == waiting.commands


def test_after_a_batch_of_one_nobody_is_waited_for() -> None:
    waiting = Waiting(1)
    waiting.next()
    assert waiting.next().is_over


@pytest.mark.parametrize("holds", [True, False])
def test_only_where_a_caller_is_about_to_look_the_next_batch_is_left_for_a_moment(holds: bool) -> None:
    waiting = Waiting(1)
    confirm = waiting.command(9, ConfirmCommand(holds=holds))
    waiting.batches.hold_for([(waiting.commands[0], ()), (confirm, None)], 0.0)
    stage = waiting.next()
    assert stage.is_over is not holds
    stage.sleep(HELD_S_MAX - HELD_S_STEP)
    assert stage.is_over is not holds
    stage.sleep(HELD_S_STEP)
    assert stage.is_over


def test_where_nobody_asks_any_more_a_hold_keeps_nobody() -> None:
    waiting = Waiting(0)
    waiting.cache.held_until_s = HELD_S_MAX
    assert waiting.next().result == []


def test_a_hold_that_is_over_early_is_noticed_within_a_step() -> None:
    waiting = Waiting(1)
    waiting.cache.held_until_s = HELD_S_MAX
    stage = waiting.next()
    waiting.cache.held_until_s = 0.0
    stage.sleep(HELD_S_STEP)
    assert stage.result == waiting.commands


def test_the_failure_of_a_command_that_another_front_end_may_do_says_nothing_for_certain() -> None:
    failed = CommandResult(failed=REFUSED).doubted().failed
    assert failed == Failed("unknown", REFUSED.detail, definite=False, answered=REFUSED.answered)


def test_a_lease_that_another_front_end_may_have_ended_is_not_called_lost() -> None:
    failed = CommandResult(SettleResult(lost=("1/t",))).doubted().failed
    assert failed is not None
    assert (failed.reason, failed.definite) == ("unknown", False)
    done = CommandResult(SettleResult(until_us=5))
    assert done.doubted() is done


@pytest.mark.parametrize(
    ("is_proposed", "may_be_done", "is_in_doubt"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_a_command_is_in_doubt_once_it_was_proposed_here_or_may_be_done_elsewhere(
    is_proposed: bool, may_be_done: bool, is_in_doubt: bool
) -> None:
    command = Waiting(1).commands[0]
    command.is_proposed, command.may_be_done = is_proposed, may_be_done
    assert command.is_in_doubt is is_in_doubt


def test_calls_of_ones_own_types_go_together_as_far_as_their_states_are_small() -> None:
    """A hundred and twenty calls on a state of 240 KB, run in one turn of the event loop, silenced a replica for 23 seconds."""
    found = PlainClass(Cart)
    call = InvokeCommand(found, found.call("content"))
    for state_bytes, together in ((0, COMMANDS_MAX), (RUN_BYTES_MAX // 4, 4), (2 * RUN_BYTES_MAX, 1)):
        waiting = Waiting(0, "cart/ann")
        waiting.commands += [waiting.command(number, call) for number in range(COMMANDS_MAX)]
        waiting.cache.summary = replace(NOTHING, value=Value("x" * state_bytes))
        assert len(waiting.next().result) == together


@pytest.mark.parametrize("where", ["old", "new", "decided", "written", "argument"])
def test_what_is_compared_or_run_together_is_bounded_by_all_that_is_looked_at(where: str) -> None:
    """Sixty compare-and-sets of 28 bytes, on a value of a megabyte with fractions, silenced a replica for seconds; so did twelve calls with a
    megabyte of nested arguments."""
    large = Value("x" * (RUN_BYTES_MAX // 4 - 8))
    waiting = Waiting(0, "bag/b" if where == "argument" else "register/r")
    found = PlainClass(Cart)
    commands: dict[str, Command] = {
        "old": CompareAndSetCommand(large, Value("1")),
        "new": CompareAndSetCommand(Value("1"), large),
        "argument": InvokeCommand(found, found.call("keep", large)),
    }
    command = commands.get(where, CompareAndSetCommand(Value("1"), Value("2")))
    if where == "decided":
        waiting.cache.summary = replace(NOTHING, value=large)
    if where == "written":
        waiting.cache.seen[at(1)] = Seen(Entry("e", at(1), large))
    waiting.commands += [waiting.command(number, command) for number in range(9)]
    assert len(waiting.next().result) == 4


def test_the_work_of_a_batch_is_that_of_its_commands_and_of_the_calls_in_the_log() -> None:
    waiting, found = Waiting(0, "bag/b"), PlainClass(Cart)
    waiting.commands += [
        waiting.command(number, InvokeCommand(found, found.call("content"))) for number in (0, 1)
    ]
    waiting.cache.summary = replace(NOTHING, value=Value("x" * 100_000))
    waiting.cache.seen = {at(t): Seen(Entry(str(t), at(t), Value("[]"))) for t in (1, 2, 3)}
    waiting.next()
    assert waiting.batches.work() == 100_000 * (2 + 3 + 1)
    waiting.cache.seen = {at(t): Seen(Entry(str(t), at(t), Value("[]"))) for t in range(1, 99)}
    assert waiting.batches.work() == RUN_BYTES_MAX
    waiting.cache.summary = replace(NOTHING, value=Value("x" * 3 * RUN_BYTES_MAX))
    assert waiting.batches.work() == 3 * RUN_BYTES_MAX


def test_the_state_is_measured_once_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache may know of thousands of writes: to look at all of them for each of 256 commands took a second."""
    waiting = Waiting(0, "register/r")
    waiting.commands += [
        waiting.command(number, CompareAndSetCommand(Value("1"), Value("2")))
        for number in range(COMMANDS_MAX)
    ]
    looks: list[object] = []

    def measured(cache: LogCache) -> int:
        looks.append(cache)
        return 1

    monkeypatch.setattr(pending, "_state_work", measured)
    assert len(waiting.next().result) == COMMANDS_MAX
    assert looks == [waiting.cache]


def test_what_looks_at_no_state_goes_together_with_one_that_does() -> None:
    waiting = Waiting(3)
    large = CompareAndSetCommand(Value("x" * RUN_BYTES_MAX), None)
    waiting.commands += [waiting.command(5, large), waiting.command(6, large), waiting.command(7)]
    assert waiting.next().result == waiting.commands[:4]
