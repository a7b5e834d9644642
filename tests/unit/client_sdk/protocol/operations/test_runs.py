"""Each operation as the protocol runs it: the command that it asks for, the outcome that it makes of the verdict, and its failures."""

from collections.abc import Generator
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from quorate.adts.log import Leased, Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    PeekCommand,
    SettleCommand,
    SettleResult,
)
from quorate.api_specs.messages import Row
from quorate.client_sdk.errors import OutcomeUnknown, error_of
from quorate.client_sdk.protocol.core.pacing import LOOK_S_FIRST
from quorate.client_sdk.protocol.core.rounds import Event, Expired
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    ClearDeadLetters,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Operation,
    Peek,
    PurgeDelayed,
    PutIfAbsent,
    Read,
    Repair,
    Serve,
    Settle,
)
from quorate.client_sdk.protocol.decisions.idempotency import TOO_MANY_TAKEN
from quorate.client_sdk.protocol.decisions.lease_table import ClearCommand, PurgeDelayedCommand
from quorate.client_sdk.protocol.decisions.transitions import Command, RepairCommand
from quorate.client_sdk.protocol.operations import runs
from quorate.client_sdk.protocol.operations.context import OperationFailed, OutcomeSteps
from tests.support.own_types import Cart
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, Stage, entry, shown

QUEUE, CELL, KEY = "queue/q", "register/x", "dictionary/d/k"
CART = PlainClass(Cart)
X, Y = Value("1"), Value("2")
ONE = entry(1)
LENT = (Leased(ONE, deliveries=1, is_held=True),)
SETTLED, LOST = SettleResult(until_us=5), SettleResult(lost=("t",))
UNKNOWN = Failed("unknown", "it may have", definite=False, answered=frozenset({"r1"}))


def running(operation: Operation, stage: Stage | None = None) -> Stage:
    stage = stage or Stage()
    stage.play(runs.run(operation, stage.task, stage))
    return stage


CASES: list[tuple[Operation, Command, Any, Any, str]] = [
    (Dequeue(QUEUE, 3), DequeueCommand(3), (ONE,), ("1",), "Deq/Ok"),
    (Dequeue(QUEUE, key="k"), DequeueCommand(1, "Deq k"), (), (), "Deq/Empty"),
    (Acquire(QUEUE, 2, 1.5, 0.0, 7), AcquireCommand(2, 1_500_000, 7, "s"), LENT, LENT, "Acquire/Ok"),
    (Acquire(QUEUE, 2, 1.5, holder="h"), AcquireCommand(2, 1_500_000, 0, "h"), (), (), "Acquire/Empty"),
    (
        Settle(QUEUE, "renew", ("t",), 2.0),
        SettleCommand("renew", ("t",), 2_000_000),
        SETTLED,
        SETTLED,
        "Renew/Ok",
    ),
    (Settle(QUEUE, "ack", ("t",)), SettleCommand("accept", ("t",)), LOST, LOST, "Ack/Lost"),
    (ClearDeadLetters(QUEUE, ("i",), True), ClearCommand(("i",), True), 1, 1, "ClearDead/Ok"),
    (PurgeDelayed(QUEUE, 1.5), PurgeDelayedCommand(1_500_000), 1, 1, "PurgeDelayed/Ok"),
    (CompareAndSet(CELL, X, Y, "k"), CompareAndSetCommand(X, Y, key="Cas k"), True, True, "Cas/Ok"),
    (CompareAndSet(CELL, X, Y), CompareAndSetCommand(X, Y), False, False, "Cas/Fail"),
    (
        PutIfAbsent(KEY, X, "k"),
        CompareAndSetCommand(None, X, only_absent=True, key="PutIfAbsent k"),
        True,
        True,
        "PutIfAbsent/Ok",
    ),
    (
        PutIfAbsent(KEY, X),
        CompareAndSetCommand(None, X, only_absent=True),
        False,
        False,
        "PutIfAbsent/Present",
    ),
    (Serve(QUEUE, PeekCommand()), PeekCommand(), (ONE,), (ONE,), "Serve/Ok"),
]


@pytest.mark.parametrize(
    ("operation", "command", "verdict", "result", "event_class"), CASES, ids=[case[4] for case in CASES]
)
def test_a_deciding_operation_asks_for_its_command_and_tells_what_was_decided(
    operation: Operation, command: Command, verdict: Any, result: Any, event_class: str
) -> None:
    stage = running(operation)
    assert [asked.command for asked in stage.commands] == [command]
    assert stage.commands[0].is_here is isinstance(operation, Serve), (
        "only what was forwarded goes no further"
    )
    stage.decide(verdict)
    assert stage.result == Done(result, event_class, frozenset({"r1", "r2"}))


def test_a_repair_goes_by_the_limits_of_this_cluster() -> None:
    stage = running(Repair(QUEUE))
    assert [asked.command for asked in stage.commands] == [RepairCommand(stage.limits)]


def test_a_repair_begins_anew_once_and_then_looks_for_more() -> None:
    """Its second decision would forget what ran since."""
    stage = running(Repair("cart/ann", CART, is_anew=True))
    assert [asked.command for asked in stage.commands] == [RepairCommand(stage.limits, CART, is_anew=True)]
    stage.decide(("the state of a new object, in place of 17",))
    assert [asked.command for asked in stage.commands] == [RepairCommand(stage.limits, CART)]
    stage.decide(())
    assert stage.result.result == ("the state of a new object, in place of 17",)


def test_a_repair_that_meets_a_bound_in_the_middle_is_no_error_that_says_that_nothing_was_done() -> None:
    """Of a bound that is met the error is always definite."""
    stage = running(Repair("cart/ann", CART))
    stage.decide(("taken out of the log: 17",))
    stage.decide(TOO_MANY_TAKEN)
    error = error_of(stage.result)
    assert (type(error), error.definite) == (OutcomeUnknown, False)
    assert str(error).endswith("Done before:\ntaken out of the log: 17")


def test_a_repair_that_has_changed_something_says_so_where_the_clocks_of_new_members_cannot_be_read() -> None:
    """It was told that nothing was done, and what it had taken out was not told."""
    stage = Stage(clock=ClockSettings())
    stage.follow(replace(stage.document, types={"cart": "shop:Cart"}))
    stage.show_clocks(0.0)
    running(Repair("cart/ann", CART), stage)
    stage.reconfigure("r1", "r4", "r5", "r6", "r7")
    stage.decide(("taken out of the log: 17",))
    assert not stage.is_over
    stage.sleep(DEADLINE_S)
    assert (stage.result.reason, stage.result.definite) == ("unavailable", False)
    assert stage.result.detail.endswith("Done before:\ntaken out of the log: 17")


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "late"])
def test_a_repair_of_unknown_outcome_tells_what_it_takes_out(is_told: bool) -> None:
    """Its messages were lost, and came later: an item was taken out that nobody ever printed, and the next repair found nothing wrong."""
    stage = running(Repair(QUEUE))
    stage.commands[0].is_proposed, stage.commands[0].would_be = True, ('taken out of leases: "iron"',)
    if is_told:
        stage.decide(UNKNOWN)
    else:
        stage.sleep(DEADLINE_S)
    assert (stage.result.reason, stage.result.definite) == ("unknown", False)
    assert stage.result.detail.endswith('. If it was done, this was:\ntaken out of leases: "iron"')


def test_a_repair_of_unknown_outcome_that_would_have_failed_has_no_change_to_tell() -> None:
    """It was decided beside others, who changed something. Its message could not be written, and the front end forgot all that was under way."""
    stage = running(Repair("cart/ann", CART))
    stage.commands[0].is_proposed, stage.commands[0].would_be = True, TOO_MANY_TAKEN
    stage.sleep(DEADLINE_S)
    assert (stage.result.reason, stage.result.definite) == ("unknown", False)
    assert "If it was done" not in stage.result.detail


def test_a_repair_that_was_certainly_not_done_tells_of_no_change() -> None:
    stage = running(Repair(QUEUE))
    stage.commands[0].would_be = ("taken out of leases",)
    stage.sleep(DEADLINE_S)
    assert stage.result.definite
    assert "taken out" not in stage.result.detail


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_peek_needs_a_decision_only_where_something_has_happened(is_empty: bool) -> None:
    stage = running(Peek(QUEUE))
    stage.answer_all(shown() if is_empty else shown(Row(ONE)), *(["r1", "r2"] if is_empty else ["r1"]))
    if not is_empty:
        stage.decide((ONE,))
    assert (stage.result.result, stage.result.event_class) == (
        ((), "Peek/Empty") if is_empty else (("1",), "Peek/Ok")
    )


def test_every_operation_has_a_run_of_its_own() -> None:
    assert runs._RUNS.keys() == set(get_args(Operation))


def test_who_waits_for_items_looks_again_until_there_are_some() -> None:
    stage = running(Dequeue(QUEUE, wait_s=1.0))
    stage.decide(())
    assert not stage.commands
    stage.sleep(LOOK_S_FIRST)
    stage.decide((ONE,))
    assert stage.result.result == ("1",)


def test_after_the_time_to_wait_the_queue_is_empty() -> None:
    stage = running(Acquire(QUEUE, 1, 30.0, wait_s=LOOK_S_FIRST / 2))
    stage.decide(())
    stage.sleep(LOOK_S_FIRST / 2)
    stage.decide(())
    assert stage.result.event_class == "Acquire/Empty"


def test_who_is_hurried_or_whose_caller_has_gone_ends_with_what_it_found_last() -> None:
    stage = running(Dequeue(QUEUE, wait_s=1.0))
    stage.pacing.is_hurried = True
    stage.decide(())
    assert stage.result.event_class == "Deq/Empty"
    stage = running(Dequeue(QUEUE, wait_s=1.0))
    stage.commands[0].is_proposed = True
    stage.leave()
    stage.decide(())
    assert stage.result.event_class == "Deq/Empty"


def failing(error: Exception) -> OutcomeSteps:
    """Steps that end so."""

    def steps() -> Generator[float, Event, Any]:
        yield 0.0
        raise error

    return steps()


@pytest.mark.parametrize("operation", [Read(CELL), Dequeue(QUEUE)])
def test_a_round_without_a_quorum_leaves_no_doubt_unless_somebody_says_so(operation: Operation) -> None:
    stage = Stage()
    stage.play(runs.ended(operation, failing(Expired("silence", {"r1"}))))
    assert stage.result == Failed("unavailable", "silence", definite=True, answered=frozenset({"r1"}))


@pytest.mark.parametrize(
    ("operation", "is_certain"), [(Read(CELL), True), (Peek(QUEUE), True), (Dequeue(QUEUE), False)]
)
def test_what_only_observes_has_no_unknown_outcome(operation: Operation, is_certain: bool) -> None:
    """Nobody could tell its having run from its not having run."""
    stage = Stage()
    stage.play(runs.ended(operation, failing(OperationFailed(UNKNOWN))))
    certain = Failed("unavailable", UNKNOWN.detail, definite=True, answered=UNKNOWN.answered)
    assert stage.result == (certain if is_certain else UNKNOWN)


def test_an_enqueue_that_nobody_answered_by_its_deadline_may_have_taken_effect() -> None:
    stage = running(Enqueue(QUEUE, (X,)))
    stage.sleep(DEADLINE_S)
    assert (stage.result.reason, stage.result.definite) == ("unknown", False)
