"""When rows are due to be deleted, over the simulation's store in memory. With SQLite: tests/unit/replica/upkeep."""

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.gc import pruning as pruning_module
from quorate.gc.pruning import AGAIN, SOON, Pruning, ended_here
from quorate.gc.tombstones import Tombstones
from quorate.replica.protocol.log import ObjectState, PutRows, PutState
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO, Timestamp, make

LAG_S, WINDOW_S = 10.0, 30.0
QUEUE, CELL = "queue/q", "dictionary/d/k"


def at(number: int) -> Timestamp:
    return make(number, 0, "a")


def then(mono_s: float) -> Now:
    """By clocks of which the one that may step shows what `at` takes for microseconds, as seconds."""
    return Now(mono_s, int(mono_s * 1e6))


def started() -> tuple[Pruning, MemoryStore]:
    """At time 0, with nothing stored."""
    pruning, store = Pruning(Tombstones(), lag_s=LAG_S, window_s=WINDOW_S), MemoryStore()
    step(pruning, store, 0)
    return pruning, store


def step(pruning: Pruning, store: MemoryStore, mono_s: float) -> None:
    pruning.round(store, then(mono_s))
    store.commit()


def put(store: MemoryStore, name: str, value: Value | None, collected: Timestamp = ZERO) -> None:
    store.apply(PutRows(name, (Entry(at(1), at(1), value),)))
    store.apply(PutState(ObjectState(name, collected=collected)))
    store.commit()


def test_history_goes_a_window_after_it_arrived() -> None:
    pruning, store = started()
    put(store, QUEUE, Value("1"), collected=at(1))
    step(pruning, store, 1)
    step(pruning, store, 30.9)
    assert store.length(QUEUE) == 1
    step(pruning, store, 31)
    assert store.length(QUEUE) == 0


def test_what_is_not_collected_stays() -> None:
    pruning, store = started()
    put(store, QUEUE, Value("1"))
    for second in range(1, 200, 10):
        step(pruning, store, second)
    assert store.length(QUEUE) == 1


def test_a_deletion_is_given_out_once_a_window_later_and_again_after_another() -> None:
    pruning, store = started()
    put(store, CELL, None)
    step(pruning, store, 1)
    due_s = 1 + 30 * AGAIN
    step(pruning, store, due_s - 0.1)
    assert pruning.ended(store, due_s - 0.1, 9) == []
    step(pruning, store, due_s)
    assert pruning.ended(store, due_s, 9) == [CELL]
    assert pruning.ended(store, due_s, 9) == []
    pruning.again(store, CELL, 45, 1 / 2)
    assert pruning.ended(store, 59.9, 9) == []
    assert pruning.ended(store, 60, 9) == [CELL]


def test_what_is_to_keep_its_events_is_never_given_out() -> None:
    store = MemoryStore()
    pruning = Pruning(Tombstones(), lag_s=LAG_S, window_s=WINDOW_S, is_kept=lambda name: name == CELL)
    put(store, CELL, None)
    put(store, "dictionary/d/other", None)
    step(pruning, store, 1)
    step(pruning, store, 100)
    assert pruning.ended(store, 100, 9) == ["dictionary/d/other"]


def test_what_is_to_keep_its_events_takes_no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 10)
    store = MemoryStore()
    pruning = Pruning(Tombstones(), lag_s=LAG_S, window_s=WINDOW_S, is_kept=lambda name: name != CELL)
    for number in range(50):
        put(store, f"dictionary/kept/{number}", None)
    put(store, CELL, None)
    for second in (1, 100, 200):
        step(pruning, store, second)
    assert pruning.ended(store, 200, 9) == [CELL]


def test_history_of_a_life_before_does_not_hide_that_nothing_was_decided_since() -> None:
    """The others had forgotten the key, where this replica had only collected its put."""
    _, store = started()
    put(store, CELL, Value("1"), collected=at(1))
    store.apply(PutState(ObjectState(CELL, accepted=make_ballot(at(9), 1), collected=at(1))))
    store.commit()
    assert ended_here(store, CELL) == at(9)


def decided(name: str, deletion: Timestamp, promised: Timestamp = ZERO) -> PutState:
    decision = make_ballot(deletion, 1)
    return PutState(
        ObjectState(name, promised=promised, accepted=decision, summary=Summary(deletion), horizon=deletion)
    )


def test_a_deletion_is_given_out_a_window_after_its_latest_decision_and_once() -> None:
    """An attempt to collect it has it decided: were each change listed, there would be ever more attempts."""
    pruning, store = started()
    given_out = list[int]()
    for second in range(1, 300):
        if second in (1, 5, 9):
            store.apply(PutRows(CELL, (Entry(at(second), at(second), None),)))
            store.apply(PutState(ObjectState(CELL)))
            store.commit()
        step(pruning, store, second)
        for name in pruning.ended(store, second, 9):
            given_out.append(second)
            for change in (1, 2):
                store.apply(decided(name, at(100 * second + change)))
                store.commit()
                step(pruning, store, second + change)
            pruning.again(store, name, second + 2, SOON)
    assert given_out == [41, 75, 109, 143, 177, 211, 245, 279]


def test_who_asks_without_end_puts_off_no_deletion() -> None:
    """A compare-and-set that fails has replicas promise something, and changes nothing that was decided."""
    pruning, store = started()
    store.apply(decided(CELL, at(1)))
    for second in range(1, 40):
        step(pruning, store, second)
        store.apply(decided(CELL, at(1), promised=at(second)))
        store.commit()
    assert pruning.ended(store, 40, 9) == [CELL]


def test_walks_without_end_put_off_no_deletion() -> None:
    """Each time that the janitor met an error."""
    pruning, store = started()
    put(store, CELL, None)
    for second in range(1, 40):
        pruning.walk_again()
        step(pruning, store, second)
    assert pruning.ended(store, 40, 9) == [CELL]


def test_of_many_that_were_put_off_some_are_gone_through_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for the store meanwhile."""
    monkeypatch.setattr(pruning_module, "OBJECTS_MAX", 10)
    pruning, store = started()
    for number in range(25):
        put(store, f"{CELL}{number}", None)
    step(pruning, store, 1)
    put(store, CELL, None)
    step(pruning, store, 2)
    while pruning.round(store, then(33)):
        store.commit()
    for number in range(25):
        store.apply(decided(f"{CELL}{number}", at(2)))
    store.commit()
    while pruning.round(store, then(34)):
        store.commit()
    assert pruning.ended(store, 34, 30) == []
    assert pruning.ended(store, 34, 30) == []
    assert pruning.ended(store, 34, 30) == [CELL]


def promise(store: MemoryStore, name: str, second: float) -> None:
    """As to an operation that finds nothing, and does nothing."""
    t = at(int(second * 1e6))
    store.apply(PutState(ObjectState(name, fence=t, promised=t)))
    store.commit()


@pytest.mark.parametrize("name", [CELL, QUEUE])
def test_promises_alone_go_a_window_after_the_last_one_and_raise_the_floor(name: str) -> None:
    pruning, store = started()
    promise(store, name, 1)
    step(pruning, store, 1)
    promise(store, name, 20)
    step(pruning, store, 20)
    step(pruning, store, 20 + WINDOW_S)
    assert store.state(name) is not None
    step(pruning, store, 20.1 + WINDOW_S * AGAIN)
    assert store.state(name) is None
    assert store.floor() == at(20_000_000), "it refuses what they refused"


@pytest.mark.parametrize("name", [CELL, QUEUE])
@pytest.mark.parametrize("has_row", [True, False])
def test_what_holds_more_than_promises_stays(name: str, *, has_row: bool) -> None:
    pruning, store = started()
    promise(store, name, 1)
    step(pruning, store, 1)
    if has_row:
        put(store, name, Value("1"))
    else:
        value = Summary(at(1), value=Value("1"))
        store.apply(PutState(ObjectState(name, accepted=make_ballot(at(1), 1), summary=value)))
    store.commit()
    for second in range(2, 200):
        if second % 50 == 0:
            pruning.walk_again()
        step(pruning, store, second)
    assert store.state(name) is not None
    assert store.floor() == ZERO


def test_promises_ahead_of_time_wait_for_it_lest_the_floor_of_all_be_ahead() -> None:
    pruning, store = started()
    promise(store, CELL, 500)
    for second in range(1, 530, 5):
        step(pruning, store, second)
        assert store.state(CELL) is not None
    for second in range(530, 550):
        step(pruning, store, second)
    assert store.state(CELL) is None


def test_promises_of_a_key_that_waited_as_a_deletion_go_as_well() -> None:
    pruning, store = started()
    store.apply(decided(CELL, at(1)))
    step(pruning, store, 1)
    step(pruning, store, 40)
    store.forget(CELL, at(1))
    promise(store, CELL, 40)
    step(pruning, store, 40)
    assert pruning.ended(store, 80, 9) == []
    step(pruning, store, 80)
    assert store.state(CELL) is None


def test_promises_of_before_a_restart_are_met_on_the_walk() -> None:
    store = MemoryStore()
    promise(store, CELL, 1)
    store.promised = {}
    pruning = Pruning(Tombstones(), lag_s=LAG_S, window_s=WINDOW_S)
    step(pruning, store, 100)
    step(pruning, store, 129)
    assert store.state(CELL) is not None
    step(pruning, store, 133)
    assert store.state(CELL) is None


def test_keys_that_are_set_as_soon_as_they_are_asked_for_take_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else who sets ever new keys by comparing leaves deletions no place."""
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 100)
    pruning, store = started()
    for second in range(1, 100):
        for number in range(20):
            name, t = f"dictionary/d/{second}-{number}", at(second * 1_000_000 + number)
            promise(store, name, second)
            value = Summary(t, value=Value("1"))
            store.apply(PutState(ObjectState(name, promised=t, accepted=make_ballot(t, 1), summary=value)))
        if second == 20:
            store.apply(decided(CELL, at(20)))
        store.commit()
        step(pruning, store, second)
    assert pruning.ended(store, 100, 9) == [CELL]


def test_promises_without_end_leave_deletions_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing compare-and-sets on ever new keys; and who forgets promises alone needs no other replica, so they wait for none."""
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 100)
    pruning, store = started()
    for number in range(150):
        store.apply(decided(f"{CELL}{number}", at(1)))
    store.commit()
    for second in range(1, 200):
        for number in range(2):
            promise(store, f"dictionary/d/{second}-{number}", second)
        step(pruning, store, second)
    assert len(pruning.ended(store, 200, 200)) == 100
    assert len(store.objects()) <= 150 + 2 * 33, "those of a window are left"


@pytest.mark.parametrize("name", [CELL, QUEUE])
def test_what_was_decided_on_nothing_is_given_out_as_a_deletion_is(name: str) -> None:
    """An operation under an idempotency key has found nothing: what ends an earlier attempt must go everywhere, or nowhere."""
    pruning, store = started()
    for second in (1, 5):
        store.apply(PutState(ObjectState(name, promised=at(second), accepted=make_ballot(at(second), 1))))
        store.commit()
        step(pruning, store, second)
    step(pruning, store, 4.9 + WINDOW_S * AGAIN)
    assert pruning.ended(store, 4.9 + WINDOW_S * AGAIN, 9) == []
    step(pruning, store, 5 + WINDOW_S * AGAIN)
    assert pruning.ended(store, 5 + WINDOW_S * AGAIN, 9) == [name]
    pruning.walk_again()
    step(pruning, store, 200)
    assert store.state(name) is not None, "and no replica forgets it alone"
    step(pruning, store, 240)
    assert pruning.ended(store, 240, 9) == [name]


def test_what_was_decided_on_nothing_stays_with_what_lies_in_its_log() -> None:
    pruning, store = started()
    put(store, QUEUE, Value("1"))
    store.apply(PutState(ObjectState(QUEUE, promised=at(5), accepted=make_ballot(at(5), 1))))
    store.commit()
    for second in range(1, 100):
        step(pruning, store, second)
        assert pruning.ended(store, second, 9) == []


def test_what_found_no_place_is_met_on_the_walk_though_it_waits_for_its_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 4)
    pruning, store = started()
    for number in range(4):
        store.apply(decided(f"{CELL}{number}", at(1)))
    store.commit()
    step(pruning, store, 1)
    promise(store, QUEUE, 20)
    step(pruning, store, 20)
    store.apply(PutState(ObjectState(QUEUE, promised=at(21), accepted=make_ballot(at(21), 1))))
    store.commit()
    step(pruning, store, 21)
    step(pruning, store, 40)
    for name in pruning.ended(store, 40, 9):
        store.forget(name, ZERO)
    given_out = list[str]()
    for second in range(41, 200):
        step(pruning, store, second)
        given_out += pruning.ended(store, second, 9)
    assert given_out == [QUEUE]
