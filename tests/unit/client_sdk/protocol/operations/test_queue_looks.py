"""Looks at a whole queue: what two of them must agree on, and what is done about what they do not show for certain."""

import pytest

from quorate.adts.log import Dead, Entry, Leased, Summary
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Append, Appended, Collect, Collected, Row, Status
from quorate.client_sdk.protocol.core.rounds import SOON_S, Expired
from quorate.client_sdk.protocol.core.values import Done, LeaseBook, QueueInfo, QueueSize, ReadLeases
from quorate.client_sdk.protocol.decisions.transitions import ConfirmCommand, Fate, RecoverCommand
from quorate.client_sdk.protocol.operations import queue_looks
from quorate.client_sdk.protocol.operations.blind import HEDGE_S
from quorate.client_sdk.protocol.operations.queue_looks import LOOKS_FREE, leases, peek, queue_size
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, Stage, at, ballot, complete, entry, shown

NAME = "queue/q"
ONE, TWO = entry(1), entry(2)
STORED, FENCED = Appended(Status(), (True,)), Appended(Status(), (False,))
SAME = Collected(Status(), summary=None)


def sizing(items_max: int = 0) -> Stage:
    stage = Stage()
    stage.play(queue_size(QueueSize(NAME, items_max), stage.task, stage))
    return stage


def look_at(stage: Stage, reply: Collected, *replicas: str) -> None:
    """One look, which these replicas answer."""
    assert all(isinstance(stage.open_to(replica), Collect) for replica in replicas)
    stage.answer_all(reply, *replicas)


def test_a_size_is_what_a_look_shows_that_a_second_one_finds_undecided() -> None:
    stage = sizing()
    assert not stage.open_to("r1").window.payload
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    assert not stage.is_over
    look_at(stage, SAME, "r1", "r3")
    assert stage.result.result == QueueInfo(2, ZERO)
    assert (stage.result.event_class, stage.result.answered) == ("Size/Ok", {"r1", "r3"})


def test_many_entries_are_gone_through_some_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes meanwhile is not counted; a decision made meanwhile has it look again."""
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    for is_decided in (False, True):
        stage = sizing()
        look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
        sent = len(stage.sends)
        stage.answer("r3", shown(*complete(ONE, TWO, entry(3))))
        if is_decided:
            stage.cache_of(NAME).learn_decided(ballot(9))
        for _ in range(2):
            assert len(stage.sends) == sent, "no look before this one is gone through"
            stage.sleep(SOON_S)
        if is_decided:
            assert len(stage.commands) == 0
            look_at(stage, shown(decided=ballot(9), horizon=ONE.t, summary=Summary(ONE.t)), "r1", "r2")
            assert not stage.is_over
        else:
            look_at(stage, SAME, "r1", "r2")
            assert stage.result.result == QueueInfo(2, ZERO)


@pytest.mark.parametrize(("wanted", "first"), [(0, ()), (1, (1,)), (2, (1, 2)), (9, (1, 2, 3))])
def test_the_first_items_of_a_long_queue_are_the_oldest(
    wanted: int, first: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they came, and in whatever parts they are gone through."""
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 2)
    stage = sizing(wanted)
    three = entry(3)
    look_at(stage, shown(*complete(three, ONE, TWO)), "r1", "r2")
    for _ in range(
        3 if 0 < wanted < 3 else 2
    ):  # What waits is gone through, the front looked for, and what may not be in force.
        stage.sleep(SOON_S)
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result.size == 3
    assert stage.result.result.first == tuple(
        each.value for each in (ONE, TWO, three) if int(str(each.value)) in first
    )


def test_long_queues_are_counted_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty at once took four seconds from others, and four gigabytes."""
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    stage, ahead = sizing(), Stage().task
    stage.walks.append(ahead)
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    stage.sleep(1.0)
    assert stage.walks == [ahead, stage.task], "it waits for its turn"
    stage.walks.remove(ahead)
    for _ in range(3):
        stage.sleep(SOON_S)
    assert not stage.walks
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result.size == 2


def test_what_is_dropped_while_a_count_waits_has_it_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another operation on the queue may forget what replicas alone have shown that do not answer it."""
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    stage, ahead = sizing(), Stage().task
    stage.walks.append(ahead)
    stage.answer("r1", shown(*complete(ONE)))
    stage.answer("r2", shown(*complete(ONE, TWO)))
    assert stage.cache_of(NAME).drop_shown_by(frozenset({"r2"}), [TWO.t])
    stage.walks.remove(ahead)
    stage.sleep(1.0)
    look_at(stage, shown(*complete(ONE, TWO)), "r2", "r3")
    stage.sleep(1.0)
    assert not stage.is_over, "what the first look has shown is not all"
    look_at(stage, SAME, "r2", "r3")
    assert stage.result.result.size == 2


@pytest.mark.parametrize("is_left", [False, True])
def test_whoever_waits_for_its_turn_until_its_deadline_or_leaves_gives_it_up(
    is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    stage, ahead = Stage(), Stage().task
    stage.walks.append(ahead)
    steps = queue_size(QueueSize(NAME), stage.task, stage)
    stage.play(steps)
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    assert len(stage.walks) == 2
    if is_left:
        steps.close()
    else:
        with pytest.raises(Expired, match="after those who asked before"):
            stage.sleep(DEADLINE_S + 1)
    assert stage.walks == [ahead]
    assert stage.cache_of(NAME).pins == 0


def test_a_count_ends_though_the_front_end_has_started_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    stage = Stage()
    steps = queue_size(QueueSize(NAME), stage.task, stage)
    stage.play(steps)
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    stage.walks.clear()
    steps.close()
    assert not stage.walks


def test_a_short_queue_is_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 2)
    stage = sizing()
    stage.walks.append(Stage().task)
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result.size == 2


def test_a_decision_between_two_looks_makes_it_look_again() -> None:
    stage = sizing()
    look_at(stage, shown(*complete(ONE, TWO)), "r1", "r2")
    taken = shown(decided=ballot(9), horizon=ONE.t, summary=Summary(ONE.t))
    look_at(stage, taken, "r1", "r2")
    assert not stage.is_over
    look_at(stage, SAME, "r1", "r2")
    assert not stage.is_over, "its first look began before the decision was known"
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result == QueueInfo(1, ONE.t)


def test_a_summary_that_may_not_be_decided_is_confirmed_first() -> None:
    stage = sizing()
    look_at(stage, Collected(Status(accepted=ballot(9)), summary=Summary(ONE.t)), "r1")
    look_at(stage, shown(), "r2")
    assert [asked.command for asked in stage.commands] == [ConfirmCommand()]


def test_after_some_looks_in_vain_decisions_are_held_off() -> None:
    stage = sizing()
    for number in range(LOOKS_FREE):
        decided = shown(decided=ballot(9 + number), horizon=at(number), summary=Summary(at(number)))
        look_at(stage, decided, "r1", "r2")
    assert [asked.command for asked in stage.commands] == [ConfirmCommand(holds=True)]
    cache = stage.cache_of(NAME)
    cache.held_until_s = 5.0
    stage.decide(None)
    look_at(stage, SAME, "r1", "r2")
    look_at(stage, SAME, "r1", "r2")
    assert stage.is_over
    assert cache.held_until_s == 0.0, "others need not wait any longer"


@pytest.mark.parametrize("is_decided", [True, False])
@pytest.mark.parametrize("is_held_by_another", [True, False])
def test_a_look_in_vain_lets_decisions_go_on_unless_another_look_holds_them_off(
    is_decided: bool, is_held_by_another: bool
) -> None:
    """Its own next question waited for a tenth of a second, and so did all other callers of that front end."""
    stage = sizing()
    for number in range(LOOKS_FREE):
        decided = shown(decided=ballot(9 + number), horizon=at(number), summary=Summary(at(number)))
        look_at(stage, decided, "r1", "r2")
    cache = stage.cache_of(NAME)
    cache.held_until_s = 5.0
    stage.decide(None)
    if is_held_by_another:
        cache.held_until_s = 6.0
    status = Status(accepted=ballot(20), committed=ballot(20) if is_decided else NO_BALLOT)
    look_at(stage, Collected(status, summary=Summary(at(20))), "r1")
    look_at(stage, shown(), "r2")
    assert [asked.command for asked in stage.commands] == [ConfirmCommand(holds=is_decided)]
    assert cache.held_until_s == (6.0 if is_held_by_another else 0.0)


def test_an_entry_that_may_not_be_complete_is_written_back_before_it_counts() -> None:
    stage = sizing()
    look_at(stage, shown(Row(ONE)), "r1")
    look_at(stage, shown(), "r2")
    request = stage.open_to("r2")
    assert request == Append(NAME, (ONE,), "repair")
    stage.answer_all(STORED, "r1", "r2")
    assert stage.complete == [(NAME, (ONE.t,))]
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result.size == 1


def test_one_that_fences_keep_from_being_written_back_is_recovered_and_all_is_looked_at_anew() -> None:
    stage = sizing()
    look_at(stage, shown(Row(ONE)), "r1")
    look_at(stage, shown(), "r2")
    stage.answer_all(FENCED, "r1", "r2")
    stage.sleep(HEDGE_S)
    assert [asked.command for asked in stage.commands] == [RecoverCommand(ONE, may_be_complete=True)]
    stage.decide(Fate.IN_FORCE)
    look_at(stage, shown(*complete(ONE)), "r1", "r2")
    assert not stage.is_over
    look_at(stage, SAME, "r1", "r2")
    assert stage.result.result.size == 1


def test_a_look_that_a_decision_has_passed_is_no_reason_to_write_anything_back() -> None:
    stage = sizing()
    look_at(stage, shown(Row(TWO), decided=ballot(9), horizon=ONE.t, summary=Summary(ONE.t)), "r1")
    look_at(stage, shown(), "r2")
    assert isinstance(stage.open_to("r1"), Collect)


def test_the_first_items_are_listed_with_their_payloads_and_nothing_is_trimmed_meanwhile() -> None:
    stage = sizing(items_max=1)
    bare = [Entry(each.id, each.t) for each in (ONE, TWO)]
    look_at(stage, shown(*complete(*bare)), "r1", "r2")
    assert stage.cache_of(NAME).pins == 1
    look_at(stage, SAME, "r1", "r2")
    assert stage.open_to("r3").wanted == (ONE.t,)
    stage.answer("r3", shown(Row(ONE)))
    assert stage.result.result == QueueInfo(2, ZERO, ("1",))  # type: ignore[arg-type]
    assert stage.cache_of(NAME).pins == 0


BOOK = Summary(TWO.t, leases=(Leased(ONE, deliveries=1, is_held=True),), dead=(Dead(TWO, "rejected"),))


@pytest.mark.parametrize("is_decided", [True, False])
def test_leases_are_those_of_a_summary_once_it_is_decided(is_decided: bool) -> None:
    stage = Stage()
    stage.play(leases(ReadLeases(NAME), stage.task, stage))
    newest = Collected(Status(accepted=ballot(9)), summary=BOOK)
    look_at(stage, newest, "r1")
    look_at(stage, newest if is_decided else shown(), "r2")
    if not is_decided:
        assert [asked.command for asked in stage.commands] == [ConfirmCommand()]
        stage.decide(None)
        assert stage.open_to("r1").known == ballot(9)
        look_at(stage, Collected(Status(accepted=ballot(9), committed=ballot(9)), summary=None), "r1", "r3")
    assert stage.result.result == LeaseBook(BOOK.leases, BOOK.dead)


def test_with_eventual_consistency_one_look_of_one_replica_is_the_size_and_what_is_first() -> None:
    """Though nobody else may hold what it shows, and more may be decided."""
    weak = ChoiceRule("queue/*", consistency="eventual")
    stage = Stage(weak)
    stage.play(queue_size(QueueSize(NAME), stage.task, stage))
    look_at(stage, shown(Row(ONE), Row(TWO)), "r3")
    assert stage.result == Done(QueueInfo(2, ZERO), "Size/Ok", frozenset({"r3"}), is_weak=True)
    for entries, values in (((TWO, ONE), ("1",)), ((), ())):
        stage = Stage(weak)
        stage.play(peek(NAME, stage.task, stage))
        look_at(stage, shown(*map(Row, entries)), "r1")
        event = "Peek/Ok" if values else "Peek/Empty"
        assert stage.result == Done(values, event, frozenset({"r1"}), is_weak=True)


def test_a_peek_whose_quorum_a_rule_names_asks_that_one() -> None:
    sizes = {"Peek/Ok": (3, 0), "Peek/Empty": (3, 0)}
    stage = Stage(ChoiceRule("queue/*", sizes, consistency="eventual"))
    stage.play(peek(NAME, stage.task, stage))
    look_at(stage, shown(Row(ONE)), "r1", "r2")
    assert not stage.is_over
    look_at(stage, shown(Row(ONE)), "r3")
    assert stage.result.result == ("1",)


def test_with_eventual_consistency_it_looks_again_where_what_was_shown_was_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_looks, "ENTRIES_AT_ONCE", 1)
    stage = Stage(ChoiceRule("queue/*", consistency="eventual"))
    stage.play(queue_size(QueueSize(NAME), stage.task, stage))
    look_at(stage, shown(Row(ONE), Row(TWO)), "r3")
    stage.cache_of(NAME).lives += 1
    for _ in range(2):
        stage.sleep(SOON_S)
    assert not stage.is_over
    look_at(stage, shown(Row(TWO)), "r3")
    for _ in range(2):
        stage.sleep(SOON_S)
    assert stage.result.is_weak
