"""The front end as a driver sees it: calls in, effects out; what ends an operation, and what is left when one is given up."""

from collections.abc import Sequence

import pytest

from quorate.adts.log import Summary, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.limits import PLACES_MAX
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    BatchReply,
    Collect,
    Collected,
    Commit,
    Refused,
    Reply,
    Request,
    Reserved,
    Scanned,
    Status,
)
from quorate.client_sdk.protocol.completion_notices import CELL_WAIT_S
from quorate.client_sdk.protocol.configurations import joint, moved, settled
from quorate.client_sdk.protocol.core.answer_times import RESEND_S_FIRST, RESEND_S_MAX
from quorate.client_sdk.protocol.core.rounds import SOON_S
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    CompareAndSet,
    Dequeue,
    Done,
    Effects,
    Enqueue,
    Failed,
    Finish,
    Items,
    Operation,
    Outcome,
    Peek,
    Read,
    Send,
    Spans,
    Unanswered,
    Write,
)
from quorate.client_sdk.protocol.decisions.pending import COMMANDS_MAX
from quorate.client_sdk.protocol.front_end import NOT_BEGUN, FrontEnd
from quorate.client_sdk.protocol.operations import observe
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    EXACT,
    REPLICAS,
    START_US,
    ballot,
    complete,
    entry,
    shown,
)
from tests.unit.client_sdk.scripted import document_of

CELL, QUEUE = "register/x", "queue/q"
X = Value("1")
STORED = Appended(Status(), (True,))
LOST = Unanswered("connection reset")


class Driven:
    """A front end at a time that stands still but for `tick`; what its effects were."""

    def __init__(self, own: str | None = None, *, may_forward: bool = False) -> None:
        document = document_of(*REPLICAS, clock=EXACT)
        self.front = FrontEnd(document, site="a", seed=1, own=own, may_forward=may_forward)
        self.now = Now(0.0, START_US)
        self.sends: list[Send] = []
        """All that was sent and wants an answer."""
        self.lazies: list[Send] = []
        self.outcomes: dict[int, Outcome] = {}
        self.wake_at_s: float | None = None
        self._sent: dict[int, Now] = {}

    def start(self, *operations: Operation) -> list[int]:
        """The numbers of operations that begin at one moment."""
        numbers, effects = self.front.start_all(operations, self.now, DEADLINE_S)
        self.obey(effects)
        return numbers

    def deliver(
        self, send: Send, *replies: Reply, incarnation: str = "i", clock_us: int | None = None
    ) -> None:
        """The replica's replies to this send; its clock stood there, else where the front end's stands now."""
        clock_us = self.now.wall_us if clock_us is None else clock_us
        reply = BatchReply(send.replica, incarnation, ZERO, clock_us, replies)
        tokens = [send.token for _ in send.requests]
        self.obey(self.front.deliver(send.replica, tokens, reply, self._sent[send.token], self.now))

    def lose(self, send: Send, why: Unanswered = LOST) -> None:
        """What was sent got no answer."""
        self.obey(self.front.deliver(send.replica, [send.token], why, self.now, self.now))

    def tick(self, mono_s: float) -> None:
        """It is this late."""
        self.now = Now(mono_s, START_US + int(mono_s * 1e6))
        self.obey(self.front.tick(self.now))

    def cancel(self, number: int) -> None:
        """The caller of this one has gone away."""
        self.obey(self.front.cancel(number, self.now))

    def leave(self, number: int) -> None:
        """The same of one that is to end when it is certain."""
        self.obey(self.front.leave(number, self.now))

    def look(self, first: int) -> None:
        """Two replicas answer the collects that were sent from this place on, and have nothing."""
        for send in self.sends[first : first + 2]:
            assert isinstance(send.request, Collect)
            self.deliver(send, shown(fence=send.request.fence))

    def requests(self) -> list[Request]:
        """All that was sent first in each send."""
        return [send.request for send in self.sends]

    def obey(self, effects: Effects) -> None:
        """Note what the front end wants done."""
        self.sends += [send for send in effects.sends if not send.lazy]
        self._sent.update((send.token, self.now) for send in effects.sends)
        self.lazies += [send for send in effects.sends if send.lazy]
        for finish in effects.finished:
            assert finish.number not in self.outcomes, f"{finish.number} ends twice"
            self.outcomes[finish.number] = finish.outcome
        self.wake_at_s = effects.wake_at_s


def test_a_caller_with_many_dequeues_leaves_room_in_the_first_decision() -> None:
    driven = Driven()
    begun = [Dequeue(QUEUE, 1)] * (COMMANDS_MAX + 1)
    turns = ["many"] * COMMANDS_MAX + ["one"]
    numbers, effects = driven.front.start_all(begun, driven.now, DEADLINE_S, turns)
    served = driven.front.served_by(effects.sends[0].token)
    assert len(served) == COMMANDS_MAX - 7, (
        "of half of the places the first took eight more, for an object that was not seen yet"
    )
    assert numbers[-1] in served


def _acquires(driven: Driven, turn: str, count: int, first: int = 0) -> None:
    """So many of 512 items at one moment by one caller, each on a queue of its own."""
    begun = [Acquire(f"queue/{turn}{first + number}", 512, 1.0) for number in range(count)]
    driven.obey(driven.front.start_all(begun, driven.now, DEADLINE_S, [turn] * count)[1])


def _asked(driven: Driven, turn: str) -> set[str]:
    """The queues of this caller of which replicas were asked for something."""
    names = {request.object for request in driven.requests() if isinstance(request, Collect)}
    return {name for name in names if name.startswith(f"queue/{turn}")}


def test_a_caller_that_acquires_on_many_queues_leaves_others_their_turn() -> None:
    """Seven hundred acquires of 512 items, each on a queue of its own, made another caller's write wait for 24 seconds."""
    driven = Driven()
    _acquires(driven, "many", 700)
    share = len(_asked(driven, "many"))
    assert share * 17 >= PLACES_MAX // 2 > (share - 1) * 17, (
        "each takes nine places, and eight for an object that was not seen yet"
    )
    driven.look(0)
    driven.look(3)
    assert len(_asked(driven, "many")) == share + 2
    _acquires(driven, "one", 1)
    assert len(_asked(driven, "one")) == 1


def test_after_an_error_of_its_own_nobody_waits_for_places_of_before() -> None:
    driven = Driven()
    _acquires(driven, "many", 100)
    before = len(_asked(driven, "many"))
    driven.front.start_over()
    _acquires(driven, "many", 100, first=100)
    assert len(_asked(driven, "many")) == 2 * before


def test_a_caller_that_gives_up_leaves_its_places_to_the_next() -> None:
    driven = Driven()
    numbers, effects = driven.front.start_all(
        [Acquire(f"queue/a{number}", 512, 1.0) for number in range(100)], driven.now, DEADLINE_S, ["a"] * 100
    )
    driven.obey(effects)
    before = len(_asked(driven, "a"))
    driven.cancel(numbers[0])
    assert len(_asked(driven, "a")) == before + 1


def _refuse(driven: Driven, sends: Sequence[Send], arrived_s: float, ahead_s: float) -> None:
    """Replicas whose clocks are so far ahead found the stamp of second 0 behind when the messages arrived."""
    behind_us = int((arrived_s + ahead_s) * 1e6)
    for send in sends:
        refused = Refused("clock-behind", "one of the two is wrong", -behind_us)
        driven.deliver(send, refused, clock_us=START_US + behind_us)


@pytest.mark.parametrize("ahead_s", [0.0, 1.9])
def test_a_write_that_waited_on_its_way_is_sent_again(ahead_s: float) -> None:
    """A wait of 3.8 s for large messages of others ended with an unknown outcome, and the clocks were blamed."""
    driven = Driven()
    (number,) = driven.start(Write(CELL, X))
    first = list(driven.sends)
    driven.tick(3.8)
    again = driven.sends[len(first) :]
    assert {send.request.attempt for send in again if isinstance(send.request, Append)} == {"first"}
    _refuse(driven, first, 3.8, ahead_s)
    sent = len(driven.sends)
    _refuse(driven, again, 3.8, ahead_s)
    driven.tick(3.801)
    last = driven.sends[sent:]
    assert {send.replica for send in last} == set(REPLICAS)
    assert {send.request.attempt for send in last if isinstance(send.request, Append)} == {"again"}
    for send in last:
        driven.deliver(send, STORED)
    driven.tick(driven.now.mono_s + 0.001)
    assert isinstance(driven.outcomes[number], Done)


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_write_by_a_wrong_clock_is_not_taken_when_it_is_sent_again(*, is_lost: bool) -> None:
    """Its front end stands still before it reads that its clock is 4 s behind; or the first messages are lost. It was believed, and what it had written
    hidden behind what was written before."""
    driven = Driven()
    (number,) = driven.start(Write(CELL, X))
    first = list(driven.sends)
    driven.tick(3.8)
    again = driven.sends[len(first) :]
    if not is_lost:
        _refuse(driven, first, 0.0, 4.0)
    _refuse(driven, again, 3.8, 4.0)
    answered = len(first) + len(again)
    for at_s in (5.0, 6.0, 8.0, 10.0):
        driven.tick(at_s)
        for send in driven.sends[answered:]:
            assert isinstance(send.request, Append)
            assert send.request.attempt == "first"
            behind = Refused("clock-behind", "4 s at least", -4_000_000)
            driven.deliver(send, behind, clock_us=driven.now.wall_us + 4_000_000)
            answered += 1
    assert isinstance(outcome := driven.outcomes[number], Failed)
    assert outcome.definite == (not is_lost)


def test_an_operation_asks_all_replicas_and_ends_once_under_its_own_number() -> None:
    driven = Driven()
    first, second = driven.start(Enqueue("queue/a", (X,)))[0], driven.start(Enqueue("queue/b", (X,)))[0]
    assert [send.replica for send in driven.sends] == [*REPLICAS, *REPLICAS]
    assert len({send.token for send in driven.sends}) == len(driven.sends)
    for send in driven.sends[3:]:
        driven.deliver(send, STORED)
    driven.tick(0.001)
    assert driven.outcomes.keys() == {second}
    assert first != second


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    driven = Driven()
    driven.start(Enqueue(QUEUE, (X,)))
    sent = driven.sends[0]
    driven.deliver(sent, STORED)
    driven.deliver(sent, STORED)
    driven.tick(0.001)
    assert driven.outcomes == {}
    driven.deliver(driven.sends[1], STORED)
    driven.tick(0.002)
    assert isinstance(driven.outcomes[1], Done)


@pytest.mark.parametrize(("beyond_us", "ends_as"), [(0, Done), (1, Failed)])
def test_an_operation_is_late_by_the_wall_clock_too_unless_that_may_have_been_set_right(
    beyond_us: int, ends_as: type
) -> None:
    """The other clock stands still while a machine is suspended; two clocks that are right differ by twice `offset_max_s`."""
    driven = Driven()
    (number,) = driven.start(Read(CELL))
    late_us = int((DEADLINE_S + 2 * EXACT.offset_max_s) * 1e6)
    driven.now = Now(0.0, START_US + late_us + beyond_us)
    driven.look(0)
    assert isinstance(driven.outcomes[number], ends_as)


@pytest.mark.parametrize(
    ("mono_s", "wall_s", "is_begun"),
    [
        (DEADLINE_S - 0.001, DEADLINE_S, True),
        (DEADLINE_S, DEADLINE_S, False),
        (0.0, DEADLINE_S + 2 * EXACT.offset_max_s, True),  # As where the clock has been set right.
        (0.0, DEADLINE_S + 2 * EXACT.offset_max_s + 0.001, False),  # As where the machine was suspended.
    ],
)
@pytest.mark.parametrize(
    "operations",
    [(Read(CELL),), (Dequeue(QUEUE, 1),), (Enqueue(QUEUE, (X,), "k"), Enqueue(QUEUE, (X,), "l"))],
)
def test_what_was_asked_for_long_ago_is_not_begun(
    operations: tuple[Operation, ...], mono_s: float, wall_s: float, *, is_begun: bool
) -> None:
    """The process may have been stopped since, and a repeat elsewhere be forgotten."""
    driven = Driven()
    asked, driven.now = driven.now, Now(mono_s, START_US + int(wall_s * 1e6))
    numbers, effects = driven.front.start_all(operations, driven.now, DEADLINE_S, asked=asked)
    driven.obey(effects)
    assert bool(driven.sends) is is_begun
    if not is_begun:
        assert [driven.outcomes[number] for number in numbers] == [NOT_BEGUN] * len(operations)
        assert NOT_BEGUN.definite


def test_what_is_begun_late_is_late_as_early_as_if_it_had_not_been() -> None:
    driven = Driven()
    asked, driven.now = driven.now, Now(0.0, START_US + int(DEADLINE_S * 1e6))
    numbers, effects = driven.front.start_all((Read(CELL),), driven.now, DEADLINE_S, asked=asked)
    driven.obey(effects)
    driven.now = Now(0.0, START_US + int((DEADLINE_S + 2 * EXACT.offset_max_s) * 1e6) + 1)
    driven.look(0)
    assert isinstance(driven.outcomes[numbers[0]], Failed)


def test_what_came_too_late_is_not_known_to_later_operations() -> None:
    """What it shows may have been deleted and forgotten since."""
    driven = Driven()
    driven.start(Read(CELL))
    driven.now = Now(0.0, START_US + int((DEADLINE_S + 2 * EXACT.offset_max_s) * 1e6) + 1)
    driven.deliver(driven.sends[0], shown(*complete(entry(-1)), decided=ballot(-9)))
    driven.start(Read(CELL))
    again = driven.sends[3].request
    assert isinstance(again, Collect)
    assert again.known == NO_BALLOT
    assert again.window is not None
    assert again.window.since == 0


def test_what_an_answer_shows_is_known_to_operations_that_begin_later() -> None:
    driven = Driven()
    driven.start(Read(CELL))
    for send in driven.sends[:2]:
        driven.deliver(send, shown(*complete(entry(-1)), decided=ballot(-9)))
    driven.start(Read(CELL))
    again = driven.sends[3].request
    assert isinstance(again, Collect)
    assert again.known == ballot(-9)
    assert again.window is not None
    assert again.window.since == 1


@pytest.mark.parametrize("operation", [Read(CELL), Dequeue(QUEUE)], ids=["beside others", "alone"])
def test_a_replica_that_started_anew_is_asked_for_its_whole_log(operation: Operation) -> None:
    driven = Driven()
    looked = Collected(Status(), summary=None, since=7)
    driven.start(operation)
    for send in driven.sends[:3]:
        driven.deliver(send, looked)
    driven.start(operation)
    anew = driven.sends[3].replica
    for send in driven.sends[3:5]:
        driven.deliver(send, looked, incarnation="another" if send.replica == anew else "i")
    driven.start(operation)
    asked = {send.replica: send.request for send in driven.sends[5:]}
    windows = {replica: each.window for replica, each in asked.items() if isinstance(each, Collect)}
    since = {replica: window.since for replica, window in windows.items() if window is not None}
    assert since.pop(anew) == 0
    assert list(since.values()) == [7]


def test_it_names_the_time_at_which_it_is_to_be_called_and_sends_again_then() -> None:
    driven = Driven()
    assert driven.wake_at_s is None
    driven.start(Enqueue(QUEUE, (X,)))
    first = list(driven.sends)
    for _ in range(100):
        assert driven.wake_at_s is not None
        driven.tick(driven.wake_at_s)
        if len(driven.sends) > len(first):
            break
    assert driven.now.mono_s == RESEND_S_FIRST
    assert [send.repeats for send in driven.sends[3:]] == [send.token for send in first]


def test_a_listing_of_many_keys_goes_on_in_turns_of_the_driver_and_others_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observe, "KEYS_AT_ONCE", 1)
    driven = Driven()
    listed, read = driven.start(Items("dictionary/d"))[0], driven.start(Read(CELL))[0]
    cells = tuple((f"dictionary/d/{key}", shown(*complete(entry(-1)))) for key in "ab")
    for first in (0, 6):
        for send in driven.sends[first : first + 2]:
            driven.deliver(send, Scanned(cells))
        assert listed not in driven.outcomes
        assert len(driven.sends) == 6 + first / 2, "it has not gone on"
        assert driven.wake_at_s == driven.now.mono_s + SOON_S
        if first == 0:
            for send in driven.sends[3:5]:
                driven.deliver(send, shown())
            assert isinstance(driven.outcomes[read], Done)
        driven.tick(driven.now.mono_s + SOON_S)
    outcome = driven.outcomes[listed]
    assert isinstance(outcome, Done)
    assert outcome.result.items == {"a": "-1", "b": "-1"}


def test_when_nothing_is_under_way_it_wants_to_be_called_by_nobody() -> None:
    driven = Driven()
    driven.start(Peek(QUEUE))
    for send in driven.sends[:2]:
        driven.deliver(send, shown())
    assert isinstance(driven.outcomes[1], Done)
    assert driven.wake_at_s is None


def test_callers_of_one_object_share_its_proposer_and_a_decision() -> None:
    driven = Driven()
    numbers = driven.start(Dequeue(QUEUE), Dequeue(QUEUE))
    assert [type(each) for each in driven.requests()] == [Collect] * len(REPLICAS)
    for send in driven.sends[:2]:
        driven.deliver(send, shown())
    assert [driven.outcomes[number].result for number in numbers] == [(), ()]  # type: ignore[union-attr]


def test_who_is_cancelled_has_no_outcome_and_its_command_is_not_decided() -> None:
    driven = Driven()
    gone, stays = driven.start(CompareAndSet(CELL, None, X), CompareAndSet(CELL, None, Value("2")))
    driven.cancel(gone)
    driven.look(0)
    accept = driven.sends[3].request
    assert isinstance(accept, Accept)
    assert accept.summary.value == "2"
    for send in driven.sends[3:5]:
        driven.deliver(send, Accepted(Status(accepted=accept.ballot)))
    assert driven.outcomes.keys() == {stays}
    told = [(send.replica, send.token, type(send.request)) for send in driven.lazies]
    assert told == [(replica, 0, Commit) for replica in REPLICAS]


def test_who_leaves_before_anything_was_proposed_took_nothing_for_certain() -> None:
    driven = Driven()
    (number,) = driven.start(Dequeue(QUEUE, wait_s=5.0))
    driven.leave(number)
    outcome = driven.outcomes[number]
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("unavailable", True)


def test_how_operations_fail_is_counted() -> None:
    driven = Driven()
    driven.start(Read(CELL))
    for send in list(driven.sends):
        driven.deliver(send, Refused("clock-ahead", "set the clock"))
    assert driven.front.counts.events == {"outcomes refused": 1}


def test_starting_over_forgets_all_but_goes_on_with_numbers_tokens_and_timestamps() -> None:
    driven = Driven()
    (number,) = driven.start(Enqueue(QUEUE, (X,)))
    before = list(driven.sends)
    driven.front.start_over()
    (later,) = driven.start(Enqueue(QUEUE, (X,)))
    assert later > number
    for send in before:
        driven.deliver(send, STORED)
    driven.tick(DEADLINE_S / 2)
    assert driven.outcomes == {}
    driven.tick(DEADLINE_S)
    driven.leave(number)
    assert driven.outcomes.keys() == {later}
    after = driven.sends[3:6]
    assert min(send.token for send in after) > max(send.token for send in before)
    assert _stamp(after) > _stamp(before)


def _stamp(sends: Sequence[Send]) -> str:
    request = sends[0].request
    assert isinstance(request, Append)
    return request.entries[0].t


def test_that_a_cell_is_complete_is_said_lazily_and_at_the_latest_when_it_ends() -> None:
    for is_ending in (False, True):
        driven = Driven()
        driven.start(Write(CELL, X))
        for send in driven.sends[:2]:
            driven.deliver(send, STORED)
        assert driven.lazies == []
        driven.tick(0.001)
        assert isinstance(driven.outcomes[1], Done)
        if not is_ending:
            assert driven.wake_at_s == CELL_WAIT_S
            driven.tick(CELL_WAIT_S)
        said = driven.front.last_sends() if is_ending else tuple(driven.lazies)
        assert [send.replica for send in said] == list(REPLICAS)
        assert all((send.token, type(send.request)) == (0, Commit) for send in said)


def test_one_answer_ends_all_operations_that_share_its_send() -> None:
    driven = Driven()
    numbers = driven.start(Write(CELL, X), Write("register/y", X))
    for send in driven.sends[:2]:
        driven.deliver(send, STORED, STORED)
    driven.tick(0.001)
    assert [type(driven.outcomes[number]) for number in numbers] == [Done, Done]


def test_it_tells_for_which_operations_a_request_was_sent() -> None:
    driven = Driven()
    numbers = driven.start(Write(CELL, X), Write("register/y", X), Enqueue(QUEUE, (X,)))
    served = {tuple(driven.front.served_by(send.token)) for send in driven.sends}
    assert served == {tuple(numbers[:2]), (numbers[2],)}


def test_once_it_is_known_how_quick_all_are_a_quorum_is_asked_and_the_other_told_later() -> None:
    driven = Driven()
    driven.start(Write(CELL, X))
    for send in driven.sends[:3]:
        driven.deliver(send, STORED)
    asked, told = len(driven.sends), len(driven.lazies)
    driven.start(Write(CELL, Value('"z"')))
    first = driven.sends[asked:]
    assert len(first) == 2
    for send in first:
        driven.deliver(send, STORED)
    (other,) = set(REPLICAS) - {send.replica for send in first}
    later = [send for send in driven.lazies[told:] if isinstance(send.request, Append)]
    assert [(send.replica, send.request.entries) for send in later if isinstance(send.request, Append)] == [
        (other, first[0].request.entries if isinstance(first[0].request, Append) else ())
    ]


def test_payloads_are_asked_of_a_replica_that_answers() -> None:
    driven = Driven(own="r2")
    assert driven.front.payload_source(QUEUE) == "r2"
    driven.start(Enqueue(QUEUE, (X,)))
    driven.lose(driven.sends[1])
    driven.deliver(driven.sends[0], STORED)
    assert driven.front.payload_source(QUEUE) in ("r1", "r3")


def test_effects_are_told_once() -> None:
    driven = Driven()
    _, effects = driven.front.start(Read(CELL), driven.now, DEADLINE_S)
    assert len(effects.sends) == len(REPLICAS)
    replies = [
        driven.front.deliver(send.replica, [send.token], _reply(send), driven.now, driven.now)
        for send in effects.sends[:2]
    ]
    assert [each.finished for each in replies] == [(), (Finish(1, replies[1].finished[0].outcome),)]
    after = driven.front.tick(driven.now)
    assert (after.sends, after.finished) == ((), ())


def _reply(send: Send) -> BatchReply:
    return BatchReply(send.replica, "i", ZERO, START_US, (shown(),))


def test_a_queue_is_exact_if_its_rule_says_so_and_its_outboxes_are_no_such_queues() -> None:
    """Their relays would else ask for the outboxes of outboxes."""
    rules = (ChoiceRule("queue/mail*", outbox=True, exact_empty=True), ChoiceRule("queue/post", outbox=True))
    front = FrontEnd(document_of(*REPLICAS, choices=rules, clock=EXACT), site="a", seed=1)
    names = ("queue/mail", "queue/mail@r1", "queue/post", "queue/other")
    assert [front.has_exact_empty(name) for name in names] == [True, False, False, False]
    assert sorted(front.outboxes_of("queue/mail")) == ["queue/mail@r1", "queue/mail@r2", "queue/mail@r3"]


class Changing(Driven):
    """A front end whose cluster begins to change to r1, r4 and r5."""

    def __init__(self, *, may_forward: bool = False) -> None:
        super().__init__(may_forward=may_forward)
        self.before = document_of(*REPLICAS, clock=EXACT)
        self.both = joint(self.before, document_of("r1", "r4", "r5", clock=EXACT))

    def change(self) -> list[Send]:
        """It hears that both are in force; what it sends then."""
        first = len(self.sends)
        self.obey(self.front.reconfigure(self.both, self.now))
        return self.sends[first:]


def test_enqueues_that_ask_for_clocks_together_ask_again_where_a_member_moves() -> None:
    """The front end met an error of its own, and forgot all that was under way."""
    driven = Driven()
    before = document_of(*REPLICAS, choices=(ChoiceRule(QUEUE, outbox=True),), clock=EXACT)
    driven.front = FrontEnd(before, site="a", seed=1)
    numbers = driven.start(*[Enqueue(QUEUE, (X,), spans=Spans(delay_s)) for delay_s in (1.0, 2.0)])
    first = len(driven.sends)
    driven.obey(driven.front.reconfigure(moved(before, {"r2": "http://127.0.0.1:1/elsewhere"}), driven.now))
    again = driven.sends[first:]
    assert [(send.replica, type(send.request)) for send in again] == [(each, Collect) for each in REPLICAS]
    for send in again:
        driven.deliver(send, shown())
    kept = driven.sends[-1]
    assert isinstance(kept.request, Append)
    driven.deliver(kept, Appended(Status(), (True, True)))
    assert {number: type(outcome) for number, outcome in driven.outcomes.items()} == dict.fromkeys(
        numbers, Done
    )


def test_what_was_under_way_asks_members_of_both_and_late_answers_of_before_count_for_nothing() -> None:
    driven = Changing()
    driven.start(Read(CELL))
    late = list(driven.sends)
    again = driven.change()
    assert {send.replica for send in again} == {"r1", "r2", "r3", "r4", "r5"}
    assert driven.front._tokens.keys() == {send.token for send in again}, "nothing of before is kept"
    for send in late:
        driven.deliver(send, shown())
    assert not driven.outcomes
    for send in again[:3]:
        driven.deliver(send, shown())
    assert not driven.outcomes, "of the new members one alone has answered"
    driven.deliver(next(send for send in again if send.replica == "r4"), shown())
    assert [outcome.result for outcome in driven.outcomes.values() if isinstance(outcome, Done)] == [None]


def test_a_write_goes_on_with_its_entry_and_gets_no_new_timestamp() -> None:
    driven = Changing()
    driven.start(Write(CELL, X))
    assert isinstance(driven.sends[0].request, Append)
    (sent,) = driven.sends[0].request.entries
    again = driven.change()
    assert {send.request for send in again} == {Append(CELL, (sent,), "first")}
    for send in again:
        driven.deliver(send, Appended(Status(fence=sent.t), (False,)))
    last = driven.sends[-1].request
    assert isinstance(last, Collect)
    assert last.ballot is not None, "a decision is to say what became of it"


def test_an_accept_that_is_due_again_is_not_sent_in_another_configuration() -> None:
    """This process stood still meanwhile: what it hears first is that there is another one."""
    driven = Changing()
    driven.start(Dequeue(QUEUE, 1), CompareAndSet(CELL, None, X))
    for send in list(driven.sends):
        assert isinstance(send.request, Collect)
        driven.deliver(send, shown(fence=send.request.fence))
    assert any(isinstance(each, Accept) for each in driven.requests())
    driven.now = Now(RESEND_S_MAX, START_US + int(RESEND_S_MAX * 1e6))
    assert {type(send.request) for send in driven.change()} == {Collect}


@pytest.mark.parametrize("keys", ["k", "kl"])
def test_what_was_agreed_under_keys_two_configurations_ago_is_decided_be_it_of_one_enqueue_or_of_several(
    keys: str,
) -> None:
    """It was sent to nobody; but who repeats it elsewhere may have stored it. Of two that began together this was forgotten: they took new timestamps. A change
    that waits for keys of before does not come so soon; a schedule by hand does."""
    driven = Changing()
    driven.start(*[Enqueue(QUEUE, (X,), key=key) for key in keys])
    for send in list(driven.sends):
        driven.deliver(send, Reserved())
    appends = [send for send in driven.sends if isinstance(send.request, Append)]
    latest = max(each.t for send in appends for each in send.request.entries)  # type: ignore[union-attr]
    for send in appends:
        driven.lose(send, Unanswered("it is in configuration 2", definite=True, epoch=2))
    first = len(driven.sends)
    driven.obey(driven.front.reconfigure(settled(driven.both), driven.now))
    asked = driven.sends[first:]
    assert {type(send.request) for send in asked} == {Collect}
    for send in asked:
        driven.deliver(
            send, shown(fence=latest, decided=ballot(1), horizon=latest, summary=Summary(horizon=latest))
        )
    assert [
        (each.reason, each.definite) for each in driven.outcomes.values() if isinstance(each, Failed)
    ] == [("unknown", False)] * len(keys)


def test_marks_of_completeness_go_to_members_of_now() -> None:
    driven = Changing()
    driven.change()
    driven.start(Write(CELL, X))
    for send in driven.sends:
        driven.deliver(send, STORED)
    driven.tick(2 * CELL_WAIT_S)
    assert {send.replica for send in driven.lazies} == {"r1", "r2", "r3", "r4", "r5"}


def test_a_term_ends_with_its_configuration() -> None:
    driven = Changing()
    driven.start(Dequeue(QUEUE, 1))
    before = {each.ballot for each in driven.requests() if isinstance(each, Collect)}
    driven.look(0)
    assert driven.outcomes, "it has a term"
    driven.change()
    first = len(driven.sends)
    driven.start(Dequeue(QUEUE, 1))
    asked = {each.ballot for each in driven.requests()[first:] if isinstance(each, Collect)}
    assert len(asked) == 1
    assert not asked & (before | {None})


@pytest.mark.parametrize(
    ("epoch", "is_asked"), [(None, False), (0, False), (1, True)], ids=["no answer", "behind", "ahead"]
)
def test_who_refused_for_the_configuration_that_is_in_force_now_decides_on_as_before(
    epoch: int | None, is_asked: bool
) -> None:
    """Where all were taken for replicas that are away, callers would decide for themselves, each against all others."""
    driven = Changing(may_forward=True)
    driven.start(Read(CELL))
    late, (again, *_) = list(driven.sends), driven.change()
    driven.deliver(again, shown())
    coordinator = driven.front.coordinator_of(QUEUE)
    assert coordinator == again.replica
    driven.lose(
        next(send for send in late if send.replica == coordinator),
        Unanswered("another", refused=True, epoch=epoch),
    )
    assert (driven.front.coordinator_of(QUEUE) == coordinator) is is_asked


def test_an_earlier_configuration_is_not_gone_back_to() -> None:
    driven = Changing()
    driven.change()
    driven.obey(driven.front.reconfigure(driven.before, driven.now))
    assert driven.front.epoch == 1
