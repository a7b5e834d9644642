"""Operations that ask every replica: forgetting what came to nothing, and finishing what vanished clients left."""

from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Decision, Summary, Value
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.messages import (
    NOT_AGED,
    Aged,
    Append,
    Appended,
    Collect,
    Collected,
    Commit,
    Committed,
    Row,
    Status,
)
from quorate.client_sdk.protocol.core.rounds import Expired, Task
from quorate.client_sdk.protocol.core.values import LONG, YOUNG, Carry, CollectTombstone, Done, ReadRepair
from quorate.client_sdk.protocol.decisions.transitions import (
    ConfirmCommand,
    Fate,
    FoldCommand,
    RecoverCommand,
)
from quorate.client_sdk.protocol.operations.blind import HEDGE_S
from quorate.client_sdk.protocol.operations.everywhere import (
    REST,
    REST_S_MAX,
    ROWS_BESIDE,
    carry,
    collect_tombstone,
    read_repair,
)
from quorate.timestamps.ballot import NO_BALLOT, Ballot, term_of
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    REPLICAS,
    Stage,
    ballot,
    complete,
    entry,
    shown,
)

CELL, KEY, QUEUE = "register/x", "dictionary/d/k", "queue/q"
OLD, NEW = entry(-20), entry(-10)
EMPTY = shown()


LONG_AGO = -10_000 * 1_000_000
DELETION = entry(LONG_AGO, None)


def burying(name: str = KEY) -> Stage:
    stage = Stage()
    stage.play(collect_tombstone(CollectTombstone(name), stage.task, stage))
    return stage


DECIDED_BY = ballot(LONG_AGO + 1)
DELETED = Summary(horizon=DELETION.t)


def holding(*, is_old: bool, **more: Any) -> Collected:
    """What a replica shows that holds the decided deletion, for a window where it is old."""
    aged = Aged(ended=DELETION.t) if is_old else NOT_AGED
    return shown(decided=DECIDED_BY, horizon=DELETION.t, summary=DELETED, aged=aged, **more)


FORGOTTEN = Collected(
    Status(fence=term_of(DECIDED_BY), promised=term_of(DECIDED_BY), floor=term_of(DECIDED_BY))
)


def test_a_deletion_that_all_have_held_for_a_window_is_forgotten() -> None:
    stage = burying()
    stage.answer_all(holding(is_old=True), "r1", "r2")
    assert isinstance(stage.open_to("r3"), Collect), "a quorum is not enough"
    stage.answer("r3", FORGOTTEN)
    assert stage.open_to("r1") == Commit(KEY, DECIDED_BY, DELETION.t, tombstone=DELETION.t)
    stage.answer_all(Committed(Status()), *REPLICAS)
    assert (stage.result.result, stage.result.event_class) == (True, "Collect/Ok")


def test_where_a_replica_has_something_newer_by_then_the_deletion_is_kept() -> None:
    stage = burying()
    stage.answer_all(holding(is_old=True), *REPLICAS)
    stage.answer_all(Committed(Status()), "r1", "r2")
    stage.answer("r3", Committed(Status(accepted=ballot(LONG_AGO + 2))))
    assert (stage.result.result, stage.result.event_class) == (False, "Collect/Kept")


def test_a_deletion_that_is_in_the_log_is_decided_first() -> None:
    stage = burying()
    stage.answer_all(shown(*complete(DELETION)), *REPLICAS)
    assert [asked.command for asked in stage.commands] == [FoldCommand(forgets=True)]
    stage.decide(None)
    stage.answer_all(holding(is_old=False), "r1", "r2")
    stage.answer("r3", shown(*complete(DELETION)))
    assert stage.open_to("r3") == Commit(KEY, DECIDED_BY, DELETION.t, DELETED)
    stage.answer("r3", Committed(Status()))
    assert stage.result.event_class == "Collect/Kept"


@pytest.mark.parametrize(
    "lacking",
    [
        shown(*complete(DELETION)),
        shown(fence=INFINITY),
        Collected(Status(fence=DELETION.t, promised=DELETION.t, floor=DELETION.t)),
    ],
    ids=["only in its log", "a fence above it", "a floor below the decision"],
)
def test_who_lacks_the_decided_deletion_is_told_of_it_and_nothing_is_forgotten(lacking: Collected) -> None:
    """A fence keeps out neither what is complete, nor a decision of a higher term; a floor below the decision keeps out no other one."""
    stage = burying()
    stage.answer_all(holding(is_old=True), "r1", "r2")
    stage.answer("r3", lacking)
    assert stage.open_to("r3") == Commit(KEY, DECIDED_BY, DELETION.t, DELETED)
    assert stage.waiting == {"r3"}
    stage.answer("r3", Committed(Status()))
    assert stage.result.event_class == "Collect/Kept"


def test_a_deletion_that_one_has_held_for_less_than_a_window_is_kept() -> None:
    stage = burying()
    stage.answer_all(holding(is_old=True), "r1", "r2")
    stage.answer("r3", holding(is_old=False))
    assert (stage.result.result, stage.result.event_class) == (False, YOUNG)


@pytest.mark.parametrize(
    ("newest", "why"),
    [(Row(entry(LONG_AGO, "1")), "Collect/Kept"), (Row(entry(-20, None)), YOUNG)],
    ids=["a value", "a deletion that retries may still overtake"],
)
def test_what_is_no_deletion_or_a_young_one_is_kept(newest: Row, why: str) -> None:
    stage = burying()
    stage.answer_all(shown(newest), *REPLICAS)
    assert (stage.result.result, stage.result.event_class) == (False, why)
    assert len(stage.sends) == len(REPLICAS)


def test_while_one_replica_is_silent_nothing_is_forgotten() -> None:
    stage = burying()
    stage.answer_all(shown(Row(DELETION)), "r1", "r2")
    with pytest.raises(Expired) as caught:
        stage.sleep(DEADLINE_S)
    assert caught.value.answered == {"r1", "r2"}


NOTHING_AT = ballot(LONG_AGO)


def nothing_decided(at: Ballot, *, is_old: bool, committed: Ballot | None = None) -> Collected:
    """What a replica shows that has accepted, for an operation that did nothing, that the object is nothing."""
    aged = Aged(ended=term_of(at)) if is_old else NOT_AGED
    status = Status(promised=term_of(at), accepted=at, committed=at if committed is None else committed)
    return Collected(status, summary=NOTHING, aged=aged)


@pytest.mark.parametrize("name", [KEY, QUEUE])
def test_what_was_decided_on_nothing_is_forgotten_once_all_have_held_that_for_a_window(name: str) -> None:
    stage = burying(name)
    stage.answer_all(nothing_decided(NOTHING_AT, is_old=True), *REPLICAS)
    assert stage.open_to("r1") == Commit(name, NOTHING_AT, tombstone=term_of(NOTHING_AT))
    stage.answer_all(Committed(Status()), *REPLICAS)
    assert (stage.result.result, stage.result.event_class) == (True, "Collect/Ok")


@pytest.mark.parametrize(
    ("lacking", "is_told"),
    [
        (Collected(Status()), True),
        (nothing_decided(ballot(LONG_AGO - 1), is_old=True), True),
        (nothing_decided(NOTHING_AT, is_old=False, committed=NO_BALLOT), True),
        (nothing_decided(NOTHING_AT, is_old=False), False),
    ],
    ids=["nothing", "an earlier one", "not that it is decided", "it for less than a window"],
)
def test_where_one_has_not_held_that_nothing_was_decided_all_keep_it(
    lacking: Collected, *, is_told: bool
) -> None:
    stage = burying(QUEUE)
    stage.answer_all(nothing_decided(NOTHING_AT, is_old=True), "r1", "r2")
    stage.answer("r3", lacking)
    if is_told:
        assert stage.open_to("r3") == Commit(QUEUE, NOTHING_AT, ZERO, NOTHING)
        stage.answer("r3", Committed(Status()))
    assert stage.result.event_class == ("Collect/Kept" if is_told else YOUNG)


def test_what_one_alone_has_accepted_is_decided_first() -> None:
    stage = burying(QUEUE)
    stage.answer("r1", nothing_decided(NOTHING_AT, is_old=False, committed=NO_BALLOT))
    stage.answer_all(Collected(Status()), "r2", "r3")
    assert [asked.command for asked in stage.commands] == [ConfirmCommand(forgets=True)]


def test_what_was_decided_on_nothing_stays_while_an_item_waits() -> None:
    stage = burying(QUEUE)
    stage.answer_all(nothing_decided(NOTHING_AT, is_old=True), "r1", "r2")
    stage.answer("r3", shown(Row(entry(-20))))
    assert (stage.result.result, stage.result.event_class) == (False, "Collect/Kept")
    assert len(stage.sends) == len(REPLICAS)


def repairing(operation: ReadRepair, limits: Limits = DEFAULTS) -> Stage:
    stage = Stage(limits=limits)
    stage.play(read_repair(operation, stage.task, stage))
    return stage


def test_entries_that_a_final_quorum_stores_are_marked_complete() -> None:
    stage = repairing(ReadRepair(QUEUE, (OLD, NEW)))
    assert stage.open_to("r3") == Append(QUEUE, (OLD, NEW), "repair"), "as who read them would"
    stage.answer_all(Appended(Status(), (True, True)), "r1", "r2")
    assert stage.result.event_class == "ReadRepair/Ok"
    assert stage.complete == [(QUEUE, (OLD.t, NEW.t))]
    assert not stage.commands, "nothing is decided for that"


def test_entries_are_written_back_as_many_at_a_time_as_a_replica_takes() -> None:
    entries = tuple(entry(-number) for number in range(5, 0, -1))
    stage = repairing(ReadRepair(QUEUE, entries), Limits(batch_items_max=2))
    for some in (entries[:2], entries[2:4], entries[4:]):
        assert stage.open_to("r1") == Append(QUEUE, some, "repair")
        stage.answer_all(Appended(Status(), (True,) * len(some)), "r1", "r2")
    assert stage.result.result == 5
    assert stage.complete == [(QUEUE, tuple(each.t for each in entries))]


def test_what_was_stored_before_the_deadline_is_marked_though_others_were_not() -> None:
    entries = tuple(entry(-number) for number in range(3, 0, -1))
    stage = repairing(ReadRepair(QUEUE, entries), Limits(batch_items_max=2))
    stage.answer_all(Appended(Status(), (True, True)), "r1", "r2")
    with pytest.raises(Expired):
        stage.sleep(DEADLINE_S)
    assert stage.complete == [(QUEUE, tuple(each.t for each in entries[:2]))]


@pytest.mark.parametrize("is_empty", [True, False])
def test_nobody_is_told_of_what_is_not_known_to_be_decided(is_empty: bool) -> None:
    stage = repairing(ReadRepair(CELL))
    if not is_empty:
        status = Status(accepted=ballot(-5))
        stage.cache_of(CELL).absorb("r1", "i", Collect(CELL), Collected(status, summary=Summary(NEW.t)))
    stage.decide(None)
    assert stage.result.result == 0
    assert not stage.sends


def test_an_entry_that_fences_keep_from_its_final_quorum_is_taken_up_by_a_decision() -> None:
    """Its client was not told that it is done, so it may take effect now. Left as it was, all others asked for it for ever, and a learner got no vote."""
    stage = repairing(ReadRepair(QUEUE, (OLD, NEW)))
    stage.answer("r1", Appended(Status(), (True, True)))
    stage.answer("r2", Appended(Status(), (False, True)))
    stage.answer("r3", Appended(Status(), (False, False)))
    stage.sleep(HEDGE_S)
    assert stage.complete == [(QUEUE, (NEW.t,))]
    assert [asked.command for asked in stage.commands] == [RecoverCommand(OLD, may_be_complete=True)]
    stage.decide(Fate.IN_FORCE)
    assert stage.result.result == 2


def test_where_one_decision_takes_up_no_more_the_rest_stays_as_it_is() -> None:
    stage = repairing(ReadRepair(QUEUE, (OLD, NEW)))
    stage.answer_all(Appended(Status(), (False, False)), *REPLICAS)
    stage.sleep(HEDGE_S)
    stage.decide(Fate.UNKNOWN)
    assert not stage.commands
    assert stage.result.result == 0


def test_what_was_accepted_last_is_decided_and_all_are_told() -> None:
    stage = repairing(ReadRepair(CELL))
    (asked,) = stage.commands
    assert isinstance(asked.command, ConfirmCommand)
    summary = Summary(horizon=NEW.t, value=Value("1"))
    cache = stage.cache_of(CELL)
    cache.absorb("r1", "i", Collect(CELL), shown(decided=ballot(-5), horizon=NEW.t, summary=summary))
    stage.decide(None)
    for replica in REPLICAS:
        assert stage.open_to(replica) == Commit(CELL, ballot(-5), NEW.t, summary), "also who had accepted it"
    stage.answer_all(Committed(Status()), "r1", "r2")
    assert not stage.is_over
    stage.answer("r3", Committed(Status()))
    assert stage.result.event_class == "ReadRepair/Ok"


def carrying(name: str, *rows: Row) -> Stage:
    """What is carried to r1, r4 and r5, once replicas of both have shown their logs, r1 and r2 with these rows."""
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(name), stage.task, stage))
    if name == QUEUE:
        stage.answer_all(EMPTY, "r1", "r2", "r4")  # Its log is not long.
    look(stage, *rows)
    return stage


def look(stage: Stage, *rows: Row) -> None:
    for replica in ("r1", "r2"):
        stage.answer(replica, shown(*rows, decided=ballot(-30)))
    assert not stage.commands, "no majority of the new members has answered"
    stage.answer("r4", EMPTY)


def test_the_newest_value_of_a_cell_is_carried_by_a_decision() -> None:
    stage = carrying(CELL, *complete(NEW))
    (asked,) = stage.commands
    assert asked.command == FoldCommand(carries=True)
    stage.decide(None)
    assert stage.result == Done(0, "Carry/Ok", frozenset())


def test_items_that_quorums_of_both_do_not_hold_are_stored_by_them_be_they_marked_complete() -> None:
    stage = carrying(QUEUE, *complete(OLD, NEW))
    (asked,) = stage.commands
    assert asked.command == ConfirmCommand(carries=True)
    stage.decide(None)
    look(stage, *complete(OLD, NEW))
    assert stage.open_to("r4") == Append(QUEUE, (OLD, NEW), "repair")
    stage.answer_all(Appended(Status(), (True, True)), "r1", "r2")
    assert not stage.is_over, "no majority of the new members stores them"
    stage.answer("r4", Appended(Status(), (True, True)))
    assert stage.result == Done(0, "Carry/Ok", frozenset())


def test_an_item_that_a_fence_keeps_out_of_new_members_becomes_part_of_the_summary() -> None:
    stage = carrying(QUEUE, *complete(OLD))
    stage.decide(None)
    look(stage, *complete(OLD))
    stage.answer_all(Appended(Status(fence=NEW.t), (False,)), "r4", "r5")
    stage.sleep(HEDGE_S)
    (asked,) = stage.commands
    assert asked.command == RecoverCommand(OLD, may_be_complete=True)
    stage.cache_of(QUEUE).summary = Summary(adopted=(OLD,))
    stage.decide(Fate.IN_FORCE)
    stage.answer("r1", shown(Row(NEW)))  # It came later: its own operation has it stored.
    stage.answer_all(shown(), "r2", "r4")
    assert stage.result == Done(0, "Carry/Ok", frozenset())


@pytest.mark.parametrize("is_long", [False, True])
def test_beside_others_a_long_log_is_left_alone(is_long: bool) -> None:
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(QUEUE, beside_others=True), stage.task, stage))
    asked = stage.open_to("r1")
    assert isinstance(asked, Collect)
    assert asked.window is not None
    assert asked.window.limit == ROWS_BESIDE
    stage.answer_all(EMPTY, "r1", "r4")
    stage.answer("r2", replace(shown(*complete(OLD)), more=is_long))
    if is_long:
        assert stage.result == Done(0, LONG, frozenset())
        return
    look(stage, *complete(OLD))
    (decided,) = stage.commands
    assert decided.command == ConfirmCommand(carries=True)


TOOK_S = 0.01


def limit_of(stage: Stage) -> int:
    """How many entries r1 is asked for."""
    asked = stage.open_to("r1")
    assert isinstance(asked, Collect)
    assert asked.window is not None
    return asked.window.limit


@pytest.mark.parametrize("took_s", [TOOK_S, 1.0])
def test_a_long_log_is_shown_a_little_at_a_time_with_rests_in_between(took_s: float) -> None:
    """Of three times as long as a look took, but no longer than that of replicas which are near."""
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(QUEUE), stage.task, stage))
    rest_s = min(REST * took_s, REST_S_MAX)
    assert limit_of(stage) == ROWS_BESIDE
    stage.sleep_alone(took_s)
    stage.answer_all(EMPTY, "r2", "r4")
    stage.answer("r1", replace(shown(*complete(OLD)), more=True))
    sent = len(stage.sends)
    stage.sleep(0.9 * rest_s)
    assert len(stage.sends) == sent, "it rests"
    stage.sleep(0.2 * rest_s)
    assert len(stage.sends) > sent
    assert limit_of(stage) == ROWS_BESIDE
    stage.answer_all(EMPTY, "r1", "r2", "r4")
    look(stage)
    (decided,) = stage.commands
    assert decided.command == ConfirmCommand(carries=True)


def test_what_half_of_the_time_was_not_enough_for_is_shown_at_once() -> None:
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(QUEUE), stage.task, stage))
    stage.sleep_alone(0.6 * DEADLINE_S)
    stage.answer_all(EMPTY, "r2", "r4")
    stage.answer("r1", replace(shown(*complete(OLD)), more=True))
    stage.sleep(REST_S_MAX)
    assert limit_of(stage) == stage.limits.page_entries_max


def test_what_nothing_is_seen_of_is_decided_as_well() -> None:
    """One replica alone may have accepted something under a term that a quorum of the new members does not know."""
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(CELL), stage.task, stage))
    stage.answer_all(EMPTY, "r1", "r2", "r4")
    (asked,) = stage.commands
    assert asked.command == FoldCommand(carries=True)
    stage.decide(None)
    assert stage.result == Done(0, "Carry/Ok", frozenset())


def test_what_those_alone_have_shown_who_do_not_answer_any_more_is_not_carried() -> None:
    """It is not complete, and nobody may be able to tell its value (seed 4400100874 of `queues`)."""
    stage = Stage()
    stage.reconfigured("r1", "r4", "r5")
    stage.play(carry(Carry(QUEUE), stage.task, stage))
    stage.answer_all(EMPTY, "r1", "r2", "r4")
    stage.answer("r3", shown(Row(OLD)))
    stage.answer_all(EMPTY, "r1", "r4")
    (asked,) = stage.commands
    assert asked.command == ConfirmCommand(carries=True)
    stage.decide(None)
    assert OLD.t in stage.cache_of(QUEUE).seen
    stage.answer_all(EMPTY, "r1", "r2", "r4")
    assert stage.result == Done(0, "Carry/Ok", frozenset())


def test_dequeues_that_may_be_repeated_count_though_what_was_known_is_thrown_away_meanwhile() -> None:
    """What they took may be at members alone that leave."""
    stage = carrying(QUEUE, *complete(OLD))
    cache = stage.cache_of(QUEUE)
    cache.summary = Summary(recent=(Decision("Deq k", ballot(-20), (OLD,)),))
    stage.decide(None)
    cache.start_over()
    look(stage)
    stage.answer_all(EMPTY, "r1", "r2", "r4")
    assert stage.result == Done(1, "Carry/Ok", frozenset())


def test_a_carry_whose_time_is_over_begins_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all answer at once, nothing else would end it."""
    stage = carrying(QUEUE, *complete(OLD))
    stage.decide(None)
    for replica in ("r1", "r2"):
        stage.answer(replica, shown(*complete(OLD), decided=ballot(-30)))
    monkeypatch.setattr(Task, "is_late", property(lambda _: True))
    before = len(stage.sends)
    with pytest.raises(Expired, match="its entries are not stored yet"):
        stage.answer("r4", EMPTY)
    assert len(stage.sends) == before
