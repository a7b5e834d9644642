"""An enqueue on a queue with outboxes is done when one replica keeps it; it goes on at the next, under the same key."""

from typing import Final

import pytest

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.adts.times import digest_in
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.messages import (
    Append,
    Appended,
    Collect,
    Collected,
    Held,
    Reserved,
    Row,
    Status,
    Window,
)
from quorate.api_specs.outboxes import Record, record_of
from quorate.client_sdk.protocol.core.rounds import Task
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Operation,
    Outcome,
    Spans,
    Unanswered,
)
from quorate.client_sdk.protocol.decisions.read_window import CELL_ROWS
from quorate.client_sdk.protocol.decisions.transitions import RecoverCommand
from quorate.client_sdk.protocol.operations.enqueue_round import EnqueueRound
from quorate.client_sdk.protocol.operations.outboxes import PATIENCE_S, refuse_outbox
from quorate.client_sdk.protocol.operations.runs import run
from quorate.client_sdk.protocol.operations.shared_round import Alone
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    REPLICAS,
    START_US,
    Stage,
    at,
    ballot,
    entry,
    shown,
)

QUEUE: Final = "queue/mail"
KEPT: Final = ChoiceRule("queue/mail*", outbox=True)
X, Y = Value('"x"'), Value('{"y":2}')
STORED: Final = Appended(Status(), (True,))


class Enqueuing(Stage):
    """One enqueue."""

    def __init__(self, *values: Value, limits: Limits = DEFAULTS, name: str = QUEUE, **more: object) -> None:
        super().__init__(KEPT, limits=limits)
        self.play(run(Enqueue(name, values or (X,), **more), self.task, self))  # type: ignore[arg-type]

    def records(self) -> list[Record]:
        """What the replica is asked to keep that is asked now, and no other one is."""
        (replica,) = self.waiting
        request = self.open_to(replica)
        assert isinstance(request, Append)
        assert request.object == f"{QUEUE}@{replica}"
        return [record_of(Value(str(entry.value))) for entry in request.entries]


def test_it_is_done_when_one_replica_keeps_it() -> None:
    enqueuing = Enqueuing(X, Y)
    first, second = enqueuing.records()
    assert (first.value, second.value) == (X, Y)
    assert first.key != second.key
    enqueuing.answer("r1", Appended(Status(), (True, True)))
    enqueuing.sleep(0.001)
    assert enqueuing.result == Done(None, "Enq/Ok", frozenset({"r1"}))


def test_where_one_certainly_has_it_not_the_next_is_asked() -> None:
    enqueuing = Enqueuing()
    before = enqueuing.records()
    enqueuing.answer("r1", Unanswered("r1: no room", refused=True, definite=True))
    assert enqueuing.waiting == {"r2"}
    assert enqueuing.records() == before
    enqueuing.answer("r2", STORED)
    enqueuing.sleep(0.001)
    assert isinstance(enqueuing.result, Done)
    assert enqueuing.counted["outboxes tried in vain"] == 1


def test_one_that_is_silent_has_its_time_and_may_have_it_under_the_same_key() -> None:
    enqueuing = Enqueuing()
    before = enqueuing.records()
    enqueuing.sleep(PATIENCE_S - 0.01)
    assert enqueuing.waiting == {"r1"}
    enqueuing.sleep(0.02)
    assert "r2" in enqueuing.waiting
    request = enqueuing.open_to("r2")
    assert [record_of(Value(str(entry.value))) for entry in request.entries] == before
    enqueuing.answer("r2", STORED)
    enqueuing.sleep(0.001)
    assert isinstance(enqueuing.result, Done)


def test_nobody_knows_whether_it_is_kept_where_one_was_silent() -> None:
    enqueuing = Enqueuing()
    enqueuing.sleep(DEADLINE_S)
    assert isinstance(enqueuing.result, Failed)
    assert (enqueuing.result.reason, enqueuing.result.definite) == ("unknown", False)


def test_nor_where_one_refused_it_and_others_were_silent() -> None:
    enqueuing = Enqueuing()
    enqueuing.answer("r1", Unanswered("no room", refused=True, definite=True))
    enqueuing.sleep(DEADLINE_S)
    assert isinstance(enqueuing.result, Failed)
    assert (enqueuing.result.reason, enqueuing.result.definite) == ("unknown", False)


def test_once_all_were_asked_the_first_has_half_of_the_time_that_is_left() -> None:
    enqueuing = Enqueuing()
    enqueuing.sleep(3 * PATIENCE_S + (DEADLINE_S - 3 * PATIENCE_S) / 2 - 0.1)
    asked = {entry.id for send in enqueuing.sends for entry in getattr(send.request, "entries", ())}
    assert len(asked) == 4, "each try has a stamp of its own"


def test_it_is_certainly_not_kept_where_all_refused_it() -> None:
    enqueuing = Enqueuing()
    for _ in range(2):
        for replica in ("r1", "r2", "r3"):
            enqueuing.answer(replica, Unanswered("no room", refused=True, definite=True))
    assert isinstance(enqueuing.result, Failed)
    assert (enqueuing.result.reason, enqueuing.result.definite) == ("refused", True)
    assert all(f"{replica} (no room)" in enqueuing.result.detail for replica in ("r1", "r2", "r3"))


def test_a_repeat_under_a_key_keeps_the_same_records() -> None:
    kept = [Enqueuing(X, Y, key="order-1").records() for _ in range(2)]
    assert kept[0] == kept[1] == [Record("order-1/0", X), Record("order-1/1", Y)]


def test_times_count_from_when_it_was_enqueued() -> None:
    """Several clocks tell when that is: an enqueue through one outbox after the other would hear of one, which may be wrong."""
    enqueuing = Enqueuing(spans=Spans(5.0, 60.0))
    assert {type(enqueuing.open_to(replica)) for replica in ("r1", "r2", "r3")} == {Collect}
    enqueuing.answer("r1", shown())
    enqueuing.answer("r3", shown())
    assert enqueuing.waiting == {"r2"}
    enqueuing.answer("r2", shown())
    (record,) = enqueuing.records()
    assert (record.delay_s, record.expires_s) == (5.0, 60.0)
    assert 0 <= record.since_us - START_US < 1_000_000


def test_it_does_not_wait_for_its_place_in_the_order() -> None:
    """With clocks as bad as that it would be stored at one replica after the other."""
    stage = Stage(KEPT, clock=ClockSettings(front_end_error_s=1.0, offset_max_s=9.0))
    stage.play(run(Enqueue(QUEUE, (X,)), stage.task, stage))
    stage.answer("r1", STORED)
    assert isinstance(stage.result, Done)


def test_half_of_the_time_is_the_first_replicas_where_it_is_short() -> None:
    stage = Stage(KEPT, deadline_s=0.4)
    stage.play(run(Enqueue(QUEUE, (X,)), stage.task, stage))
    stage.sleep(0.19)
    assert stage.waiting == {"r1"}
    stage.sleep(0.02)
    assert "r2" in stage.waiting
    stage.sleep(0.4)
    assert isinstance(stage.result, Failed)


def test_a_name_that_leaves_no_room_for_that_of_a_replica_is_refused() -> None:
    for chars, is_refused in ((200 - len("@r1"), False), (200 - len("@r1") + 1, True)):
        enqueuing = Enqueuing(name="queue/mail" + "x" * (chars - len("mail")))
        assert bool(enqueuing.result) == is_refused
        if is_refused:
            assert "the name of a queue with outboxes has at most 197 characters" in enqueuing.result.detail


def test_what_comes_from_an_outbox_goes_to_the_queue() -> None:
    stage = Stage(KEPT)
    stage.play(run(Enqueue(QUEUE, (X,), from_outbox=True), stage.task, stage))
    assert {stage.open_to(replica).object for replica in stage.waiting} == {QUEUE}
    assert stage.waiting == {"r1", "r2", "r3"}


def test_what_was_agreed_on_long_ago_is_decided() -> None:
    stage = Stage(KEPT)
    stage.play(run(Enqueue(QUEUE, (X,), "k/0", from_outbox=True), stage.task, stage))
    reserve = stage.open_to("r1")
    ((entry,),) = (each.entries for each in reserve.proposals)
    old = at(-10_000 * 1_000_000)
    held = Held("Enq k/0", ZERO, (Entry(f"{old}/{digest_in(entry.id)}", old),), reserve.ballot)
    stage.answer_all(Reserved((held,)), "r1", "r2", "r3")
    assert [type(asked.command) for asked in stage.commands] == [RecoverCommand]


def test_nobody_enqueues_on_an_outbox() -> None:
    enqueuing = Enqueuing(name="queue/mail@r1")
    assert enqueuing.sends == []
    assert enqueuing.result == Failed(
        "refused", "queue/mail@r1 is the outbox of queue/mail at r1: use queue/mail", definite=True
    )


def test_three_hundred_bytes_are_room_enough_for_the_rest() -> None:
    spans = Spans(delay_s=100_000.123456, expires_s=200_000.123456)
    stage = Stage(KEPT, limits=Limits(value_bytes_max=1000))
    value = Value(f'"{"x" * 698}"')
    stage.play(run(Enqueue(QUEUE, (value,) * 10, key="k" * 200, spans=spans), stage.task, stage))
    stage.answer_all(shown(), "r1", "r2", "r3")
    assert isinstance(stage.open_to("r1"), Append)


@pytest.mark.parametrize("chars", [90, 98])
def test_a_value_that_an_outbox_has_no_room_for_is_refused(chars: int) -> None:
    enqueuing = Enqueuing(Value(f'"{"x" * chars}"'), limits=Limits(value_bytes_max=100))
    assert enqueuing.sends == []
    assert isinstance(enqueuing.result, Failed)
    assert enqueuing.result.definite
    assert "with what an outbox keeps beside the value" in enqueuing.result.detail


class Together(Stage):
    """Several enqueues that begin together."""

    def __init__(self, *begun: Enqueue, limits: Limits = DEFAULTS) -> None:
        super().__init__(KEPT, limits=limits)
        self.outcomes: dict[int, Outcome] = {}
        self.play(EnqueueRound(list(enumerate(begun)), self.task, self, self).run())

    def finish(self, number: int, outcome: Outcome) -> None:
        """See Host."""
        self.outcomes[number] = outcome

    def go_alone(self, number: int, operation: Operation, shared: Task, alone: Alone) -> None:
        """See Host."""
        raise AssertionError(f"{number} need not")


def test_what_begins_together_is_kept_by_one_append_but_for_what_has_no_room() -> None:
    large = Value(f'"{"x" * 90}"')
    begun = (Enqueue(QUEUE, (X,)), Enqueue(QUEUE, (large,)), Enqueue(QUEUE, (Y, X), key="k"))
    together = Together(*begun, limits=Limits(value_bytes_max=100))
    assert together.outcomes.keys() == {1}
    (replica,) = together.waiting
    request = together.open_to(replica)
    assert [record_of(Value(str(entry.value))).value for entry in request.entries] == [X, Y, X]
    together.answer(replica, Appended(Status(), (True, True, True)))
    assert isinstance(together.outcomes[1], Failed)
    assert all(isinstance(together.outcomes[number], Done) for number in (0, 2))


def test_what_comes_from_an_outbox_together_goes_to_the_queue() -> None:
    together = Together(*[Enqueue(QUEUE, (X,), from_outbox=True)] * 2)
    assert {together.open_to(replica).object for replica in together.waiting} == {QUEUE}


def test_nor_do_several_enqueue_on_an_outbox() -> None:
    together = Together(*[Enqueue("queue/mail@r1", (X,))] * 2)
    assert together.sends == []
    assert all(isinstance(each, Failed) for each in together.outcomes.values())
    assert together.outcomes.keys() == {0, 1}


def test_one_look_at_the_clocks_is_enough_for_all_that_are_due_later() -> None:
    together = Together(*[Enqueue(QUEUE, (X,), spans=Spans(delay)) for delay in (1.0, 2.0)])
    together.answer_all(shown(), "r1", "r2", "r3")
    assert [type(send.request).__name__ for send in together.sends] == ["Collect"] * 3 + ["Append"]


def test_who_stood_still_beyond_its_deadline_sends_nothing_more() -> None:
    """What it sent may have been relayed, and forgotten, since: under a new stamp nobody would know it."""
    enqueuing = Enqueuing()
    (record,) = enqueuing.open_to("r1").entries
    enqueuing.sleep_alone(3600.0)
    enqueuing.sleep(0.0)
    assert isinstance(enqueuing.result, Failed)
    assert enqueuing.result.reason == "unknown"
    assert {send.replica for send in enqueuing.sends} == {"r1"}
    assert {entry for send in enqueuing.sends for entry in getattr(send.request, "entries", ())} == {record}


EXACT: Final = ChoiceRule("queue/mail*", outbox=True, exact_empty=True)
NOTHING: Final = shown()


class Emptied(Stage):
    """A dequeue whose decision finds nothing; or another operation that does."""

    def __init__(self, operation: Operation | None = None, rule: ChoiceRule = EXACT) -> None:
        super().__init__(rule)
        self.play(run(operation or Dequeue(QUEUE), self.task, self))
        self.decide(())

    def look(self, **replies: Collected) -> None:
        """All replicas tell of their outboxes; nothing is there but where it is given."""
        for replica in REPLICAS:
            assert self.open_to(replica).object == f"{QUEUE}@{replica}"
            self.answer(replica, replies.get(replica, NOTHING))


def relayed(us: int, *rows: Row, **more: object) -> Collected:
    """What an outbox shows whose items up to that time were relayed, by a decision of then."""
    summary = Summary(horizon=at(us), **more)  # type: ignore[arg-type]
    return Collected(Status(accepted=ballot(us)), summary=summary, rows=rows)


@pytest.mark.parametrize("operation", [Dequeue(QUEUE), Acquire(QUEUE, 1, 5.0)])
def test_nothing_is_found_between_two_looks_that_find_no_item_in_any_outbox(operation: Operation) -> None:
    emptied = Emptied(operation)
    emptied.look(r1=relayed(5), r3=relayed(9))
    assert emptied.waiting == set()
    emptied.decide(())
    emptied.look(r1=relayed(5), r3=relayed(9))
    assert isinstance(emptied.result, Done)
    assert emptied.result.result == ()
    assert emptied.result.answered == {"r1", "r2", "r3"}
    assert emptied.counted["outboxes looked at again"] == 0


@pytest.mark.parametrize(
    "taking",
    [Dequeue("queue/mail@r1"), Dequeue("queue/mail@r1", key="k"), Acquire("queue/mail@r1", 1, 604_800.0)],
    ids=["dequeue", "keyed", "acquire"],
)
def test_only_its_relay_takes_from_an_outbox(taking: Dequeue | Acquire) -> None:
    """A lease of another caller's, over an item as heavy as all leases together, kept all others waiting for a week."""
    refused, relayed = Stage(KEPT), Stage(KEPT)
    refused.play(run(taking, refused.task, refused))
    assert (refused.sends, refused.commands) == ([], [])
    assert refused.result == refuse_outbox("queue/mail@r1")
    relayed.play(run(Acquire("queue/mail@r1", 64, 12.0, by_relay=True), relayed.task, relayed))
    relayed.decide(())
    assert relayed.result.event_class == "Acquire/Empty"


def test_other_queues_are_empty_by_a_decision() -> None:
    assert Emptied(Dequeue("queue/other")).is_over
    assert Emptied(Dequeue(QUEUE), KEPT).is_over


def test_what_is_found_meanwhile_is_given() -> None:
    emptied = Emptied()
    emptied.look()
    emptied.decide((entry(3),))
    assert emptied.result.result == (Value("3"),)
    assert emptied.sends[3:] == []


WAITING: Final = [
    relayed(5, Row(entry(7))),
    Collected(Status(), rows=(Row(entry(7)),)),
    relayed(5, adopted=(entry(3),)),
    relayed(5, leases=(Leased(entry(4), START_US, 1, is_held=True),)),
    Collected(Status(), more=True),
    Collected(Status(), upto=at(5)),
]


@pytest.mark.parametrize("shows", WAITING)
def test_an_outbox_in_which_an_item_waits_is_not_empty_however_often_it_shows_it(shows: Collected) -> None:
    emptied = Emptied()
    for _ in range(3):
        emptied.look(r2=shows)
        if not emptied.commands:
            emptied.sleep(0.1)
        emptied.decide(())
        assert emptied.pacing._waiting == {emptied.task.turn: 1}, "it shares looks with others that wait"
    emptied.pacing.is_hurried = True
    emptied.look(r2=shows)
    assert emptied.result.detail.endswith("outboxes: r2 (items wait in its outbox)")
    assert not emptied.pacing._waiting


@pytest.mark.parametrize("shows", WAITING)
@pytest.mark.parametrize("is_first", [True, False])
def test_where_an_item_may_wait_in_an_outbox_it_goes_on(shows: Collected, is_first: bool) -> None:
    emptied = Emptied()
    emptied.look(**({"r2": shows} if is_first else {}))
    emptied.decide(())
    emptied.look(**({} if is_first else {"r2": shows}))
    assert not emptied.is_over
    assert emptied.counted["outboxes looked at again"] == 1
    emptied.sleep(0.1)
    emptied.decide((entry(7),))
    assert emptied.result.result == (Value("7"),)


def test_an_item_that_passed_through_an_outbox_between_the_looks_may_wait_in_the_queue() -> None:
    emptied = Emptied()
    emptied.look(r2=relayed(5))
    emptied.decide(())
    emptied.look(r2=relayed(6))
    assert [type(asked.command).__name__ for asked in emptied.commands] == ["DequeueCommand"], (
        "without a pause"
    )
    emptied.decide(())
    emptied.look(r2=relayed(6))
    assert emptied.result.event_class == "Deq/Empty"


def test_where_items_wait_or_pass_all_the_time_it_rests_for_longer_and_longer() -> None:
    emptied = Emptied()
    emptied.look(r2=relayed(1))
    rests = list[float]()
    for us in range(2, 9):
        emptied.decide(())
        emptied.look(r2=relayed(us))
        rests.append(round(emptied.wake_s - emptied.task.now.mono_s, 3) if not emptied.commands else 0.0)
        emptied.sleep(0.1)
    assert rests == [0.0, 0.0, 0.02, 0.04, 0.08, 0.1, 0.1]
    emptied.decide(())
    emptied.pacing.is_hurried = True
    emptied.look(r2=relayed(99))
    assert isinstance(emptied.result, Failed)
    assert emptied.result.detail.endswith("no two looks found them empty and unchanged")


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_a_decision_is_not_begun_again_where_less_time_is_left_than_the_last_one_took(share: float) -> None:
    """It would be cut off at the deadline, and nobody would know what it took (seeds 4250002443 and 4270142765 of worlds `outbox`)."""
    emptied = Emptied()
    emptied.look(r2=relayed(1))
    emptied.sleep(share * DEADLINE_S)
    emptied.decide(())
    emptied.look(r2=relayed(2))
    if share < 0.5:
        assert len(emptied.commands) == 1
        return
    assert emptied.commands == []
    assert isinstance(emptied.result, Failed)
    assert (emptied.result.reason, emptied.result.definite) == ("unavailable", True)


def test_where_one_waits_in_an_outbox_the_next_look_is_later() -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.decide(())
    emptied.look(r2=WAITING[0])
    assert emptied.commands == []
    emptied.sleep(0.1)
    assert len(emptied.commands) == 1


@pytest.mark.parametrize(
    "failed", [Failed("refused", "no", definite=True), Failed("unknown", "?", definite=False)]
)
def test_a_decision_that_fails_otherwise_says_why(failed: Failed) -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.decide(failed)
    assert emptied.result == failed


def test_one_that_fails_for_want_of_a_quorum_says_that_too() -> None:
    failed = Failed("unavailable", "no decision", definite=True, answered=frozenset({"r1"}))
    for shows, told in ((WAITING[0], "r2 (items wait in its outbox); no decision"), (NOTHING, "no decision")):
        emptied = Emptied()
        emptied.look(r2=shows)
        emptied.decide(failed)
        assert isinstance(emptied.result, Failed)
        assert emptied.result.detail.endswith(told)
        assert ("outboxes" in emptied.result.detail) == (shows is WAITING[0])


def test_one_that_did_not_answer_the_last_look_is_named_with_what_it_said_before() -> None:
    emptied = Emptied()
    emptied.look(r3=WAITING[0])
    emptied.pacing.is_hurried = True
    emptied.decide(())
    emptied.answer("r1", NOTHING)
    emptied.sleep(PATIENCE_S)
    assert isinstance(emptied.result, Failed)
    assert emptied.result.detail.endswith("r2 (no answer to the last look); r3 (items wait in its outbox)")


def test_who_was_not_seen_before_is_not_said_to_have_changed() -> None:
    emptied = Emptied()
    emptied.answer_all(NOTHING, "r1", "r2")
    emptied.answer("r3", Unanswered("refused", definite=True))
    emptied.pacing.is_hurried = True
    emptied.decide(())
    emptied.look()
    assert isinstance(emptied.result, Failed)
    assert emptied.result.detail.endswith("no two looks found them empty and unchanged")


def test_one_whose_caller_has_left_does_not_look_again() -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.decide(())
    emptied.task.is_left = True
    emptied.look(r2=WAITING[0])
    assert isinstance(emptied.result, Failed)


def test_an_outbox_that_was_forgotten_between_the_looks_is_another_one() -> None:
    emptied = Emptied()
    emptied.look()
    emptied.decide(())
    emptied.look(r2=Collected(Status(floor=at(9))))
    assert not emptied.is_over


def test_a_look_leaves_out_what_was_relayed_before_whoever_was_told_so() -> None:
    """A replica shows its log above the decision that it was told of."""
    emptied = Emptied()
    assert emptied.open_to("r2") == Collect("queue/mail@r2", window=Window(limit=CELL_ROWS, payload=False))
    old = tuple(Row(entry(us)) for us in range(CELL_ROWS))
    emptied.look(
        r2=Collected(Status(accepted=ballot(9)), summary=Summary(horizon=at(9)), rows=old, more=True)
    )
    emptied.decide(())
    assert emptied.open_to("r2").window == Window(at(9), limit=CELL_ROWS, payload=False)
    assert emptied.open_to("r1").window == Window(limit=CELL_ROWS, payload=False)
    emptied.look(r2=relayed(9))
    emptied.sleep(0.1)
    emptied.decide(())
    emptied.look(r2=relayed(9))
    assert emptied.result.event_class == "Deq/Empty"


def test_a_store_that_is_behind_what_it_showed_is_not_empty() -> None:
    """It may hold items in the part that was not asked for."""
    emptied = Emptied()
    emptied.look(r2=relayed(9))
    emptied.decide(())
    emptied.look()
    emptied.sleep(0.1)
    emptied.decide(())
    emptied.look()
    assert not emptied.is_over
    emptied.decide(())
    assert emptied.open_to("r2").window.after == ZERO
    emptied.look()
    assert emptied.result.event_class == "Deq/Empty"


def test_without_one_replica_nobody_knows_and_it_says_who_is_missing() -> None:
    emptied = Emptied()
    for _ in range(2000):
        if emptied.is_over:
            break
        for replica in emptied.waiting - {"r3"}:
            emptied.answer(replica, NOTHING)
        if emptied.commands:
            emptied.decide(())
        else:
            emptied.sleep(0.01)
    assert emptied.result == Failed(
        "unavailable",
        "nothing was found in queue/mail, but items may wait in outboxes: r3 (no answer)",
        definite=True,
        answered=frozenset({"r1", "r2"}),
    )


def test_where_the_deadline_cuts_a_look_off_it_goes_by_the_one_before() -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.sleep(DEADLINE_S - 0.001)
    emptied.decide(())
    emptied.sleep(0.001)
    assert isinstance(emptied.result, Failed)
    assert emptied.result.detail.endswith(
        "outboxes: r1 (no answer to the last look); r2 (items wait in its outbox); r3 (no answer to the last look)"
    )
    assert emptied.result.answered == {"r1", "r2", "r3"}


def test_it_says_so_too_where_the_last_decision_comes_too_late() -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.sleep(DEADLINE_S)
    assert isinstance(emptied.result, Failed)
    assert "items may wait in outboxes: r2 (items wait in its outbox)" in emptied.result.detail


def test_one_that_may_have_taken_items_does_not_say_that_there_are_none() -> None:
    emptied = Emptied()
    emptied.look(r2=WAITING[0])
    emptied.commands[0].is_proposed = True
    emptied.sleep(DEADLINE_S)
    assert isinstance(emptied.result, Failed)
    assert (emptied.result.reason, emptied.result.definite) == ("unknown", False)


def test_one_that_cannot_be_reached_is_not_waited_for() -> None:
    emptied = Emptied()
    emptied.answer("r1", NOTHING)
    emptied.answer("r2", NOTHING)
    assert emptied.commands == []
    emptied.answer("r3", Unanswered("connection refused", definite=True))
    assert len(emptied.commands) == 1
    emptied.pacing.is_hurried = True
    emptied.decide(())
    emptied.answer_all(NOTHING, "r1", "r2")
    emptied.answer("r3", Unanswered("r3: r3: connection refused", definite=True))
    assert emptied.result.detail.endswith("outboxes: r3 (connection refused)")


def test_a_front_end_that_is_closed_does_not_wait_for_it() -> None:
    emptied = Emptied()
    emptied.pacing.is_hurried = True
    emptied.look(r2=WAITING[0])
    emptied.decide(())
    emptied.look(r2=WAITING[0])
    assert isinstance(emptied.result, Failed)
    assert "r2 (items wait in its outbox)" in emptied.result.detail
