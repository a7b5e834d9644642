"""History goes once it was collected for the lag and is older than the retry window; live rows are not looked at."""

from collections.abc import Callable

import pytest

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import Limits
from quorate.gc import pruning as pruning_module
from quorate.gc.pruning import AGAIN, Pruning
from quorate.gc.tombstones import Tombstones, Waiting
from quorate.replica.protocol.log import Forget, ObjectState, PutReservation, PutRows, PutState, Reservation
from quorate.replica.store.store import Store
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO, Timestamp, make

# Rows are remembered for 30 s: the window, and twice what an accepted clock may be off.
DOCUMENT = ClusterDocument(
    "test",
    (ReplicaInfo("r1", "http://127.0.0.1:7001"),),
    clock=ClockSettings(offset_max_s=1.0),
    limits=Limits(retry_window_s=18.0, deadline_s_max=10.0, wait_s_max=5.0, consumed_lag_s=10.0),
)
ONE = Value("1")
START_US = 1_000_000_000


def pruning_of(tombstones: Tombstones) -> Pruning:
    return Pruning(tombstones, lag_s=DOCUMENT.limits.consumed_lag_s, window_s=DOCUMENT.memory_s)


def at(second: float) -> Timestamp:
    return make(START_US + int(second * 1e6), 0, "a")


def then(mono_s: float) -> Now:
    """The moment at which `at` is made."""
    return Now(mono_s, START_US + int(mono_s * 1e6))


def put(store: Store, second: float, name: str = "queue/q", value: Value | None = ONE) -> None:
    store.apply([PutRows(name, (Entry(at(second), at(second), value),)), PutState(ObjectState(name))])


def collect(store: Store, second: float, name: str = "queue/q") -> None:
    store.apply([PutState(ObjectState(name, collected=at(second)))])
    store.commit()


@pytest.fixture
def run(store: Store) -> Callable[[Pruning, float], bool]:
    def one_round(pruning: Pruning, second: float) -> bool:
        is_more = pruning.round(store, then(second))
        store.commit()
        return is_more

    return one_round


def times(store: Store, name: str = "queue/q") -> list[Timestamp]:
    return [row.entry.t for row in store.rows(name, ZERO, 10_000)]


def test_rows_stay_for_the_lag_and_for_the_retry_window(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    put(store, 0)
    run(pruning, 5)
    put(store, 25)
    put(store, 26)
    collect(store, 25)
    run(pruning, 28)
    run(pruning, 37)
    assert len(times(store)) == 3, "the first arrived long enough ago, but is not collected for the lag"
    run(pruning, 39)
    assert times(store) == [at(25), at(26)], "the second did not arrive long enough ago"
    run(pruning, 57)
    assert times(store) == [at(25), at(26)]
    run(pruning, 58)
    assert times(store) == [at(26)], "what is not collected stays"


def test_a_row_is_kept_for_the_retry_window_since_it_arrived_whatever_its_stamp(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    """Clocks stepped ahead since it was stamped, or were behind: a repeat of its append must still find it."""
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    put(store, -90)
    collect(store, -90)
    run(pruning, 1)
    run(pruning, 30)
    assert times(store) == [at(-90)]
    run(pruning, 31)
    assert times(store) == []


def test_history_of_an_earlier_run_is_found_again(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    put(store, 0)
    collect(store, 0)
    store.collected = {}  # As after a restart.
    pruning = pruning_of(Tombstones())
    run(pruning, 100)
    run(pruning, 111)
    assert times(store) == [at(0)], "when it arrived is not known any more"
    run(pruning, 130)
    assert times(store) == []


def test_round_is_bounded_and_says_that_more_is_due(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_module, "ROWS_MAX", 10)
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    for number in range(25):
        put(store, number / 100)
    collect(store, 1)
    run(pruning, 1)
    assert run(pruning, 100)
    assert len(times(store)) == 15
    assert run(pruning, 100)
    assert not run(pruning, 100)
    assert times(store) == []


def test_round_without_history_asks_the_database_nothing(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        put(store, number)
    store.commit()
    pruning = pruning_of(Tombstones())
    run(pruning, 0)

    def asked(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(store._database, "all", asked)
    monkeypatch.setattr(store._database, "one", asked)
    assert not pruning.round(store, then(1000))


def test_a_walk_that_has_no_room_does_not_hold_up_the_burials_that_make_some(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart with very many deletions that a dead replica holds up."""
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 20)
    monkeypatch.setattr(pruning_module, "OBJECTS_MAX", 5)
    for number in range(30):
        put(store, number / 100, f"dictionary/d/k{number:02}", None)
    store.commit()
    store.ended = {}  # As after a restart.
    pruning = pruning_of(Tombstones())
    for second in (0, 100):
        rounds = 0
        while run(pruning, second):
            rounds += 1
            assert rounds < 100, "the janitor's next step, to collect some, is never reached"
    assert sum(len(pruning.ended(store, 100, 50)) for _ in range(4)) >= 10


def test_deletions_that_fill_their_list_do_not_hold_up_the_history(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead replica holds up more deletions than the list has room for; queues go on."""
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 20)
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    for number in range(30):
        put(store, 0, f"dictionary/d/k{number:02}", None)
        store.commit()
        run(pruning, 0)
    put(store, 1)
    collect(store, 1)
    run(pruning, 1)
    run(pruning, 100)
    assert times(store) == [], "the history is gone"

    met: set[str] = set()
    for second in range(100, 300, 10):
        while run(pruning, second):
            pass
        for name in pruning.ended(store, second, 50):
            met.add(name)
            store.apply([Forget(name, ZERO)])
            store.commit()
    assert len(met) == 30, "those left out are met again once there is room"


def test_list_that_overflows_is_filled_again_by_walking(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 4)
    for number in range(10):
        put(store, 0, f"queue/q{number}")
        collect(store, 0, f"queue/q{number}")
    for second in range(1, 200, 11):
        run(pruning, second)
    assert [times(store, f"queue/q{number}") for number in range(10)] == [[]] * 10


def test_deletions_are_given_out_after_the_retry_window_unless_overwritten(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    put(store, 0, "dictionary/d/gone", None)
    put(store, 0, "dictionary/d/back", None)
    put(store, 1, "dictionary/d/back")
    store.commit()
    run(pruning, 2)
    run(pruning, 33)
    assert pruning.ended(store, 33, 10) == []
    run(pruning, 34)
    assert pruning.ended(store, 34, 10) == ["dictionary/d/gone"]
    assert pruning.ended(store, 99, 10) == []


def test_tombstones_count_from_the_end_of_the_retry_window_until_they_are_gone(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    tombstones = Tombstones()
    pruning = pruning_of(tombstones)
    run(pruning, 0)
    for second, key in enumerate(("forgotten", "revived", "kept")):
        put(store, second, f"dictionary/d/{key}", None)
    store.commit()
    run(pruning, 2)
    run(pruning, 33)
    assert tombstones.waiting() == Waiting(0, None, None, ())
    run(pruning, 34)
    tombstones.asked(frozenset({"r3"}))
    assert tombstones.waiting() == Waiting(3, at(0), at(2), ("r3",))
    store.apply([Forget("dictionary/d/forgotten", at(0))])
    put(store, 34, "dictionary/d/revived")
    store.commit()
    assert pruning.ended(store, 34, 10) == ["dictionary/d/kept"]
    assert tombstones.waiting() == Waiting(1, at(2), at(2), ("r3",))
    pruning.again(store, "dictionary/d/kept", 34, AGAIN)
    again_s = 34 + DOCUMENT.memory_s * AGAIN
    assert pruning.ended(store, again_s - 1, 10) == []
    assert pruning.ended(store, again_s, 10) == ["dictionary/d/kept"], "it is tried again a window later"
    store.apply([Forget("dictionary/d/kept", at(2))])
    pruning.again(store, "dictionary/d/kept", 64, AGAIN)
    assert tombstones.waiting() == Waiting(0, None, None, ()), "nothing waits, so nobody holds anything up"


def test_tombstones_of_an_earlier_run_count_too(store: Store, run: Callable[[Pruning, float], bool]) -> None:
    put(store, 0, "dictionary/d/old", None)
    store.commit()
    store.ended = {}  # As after a restart.
    tombstones = Tombstones()
    pruning = pruning_of(tombstones)
    run(pruning, 100)
    run(pruning, 132)
    assert tombstones.waiting() == Waiting(1, at(0), at(0), ())


def test_round_looks_at_a_bounded_number_of_tombstones(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_module, "OBJECTS_MAX", 10)
    monkeypatch.setattr(pruning_module, "LOOKS_MAX", 4)
    tombstones = Tombstones()
    pruning = pruning_of(tombstones)
    while run(pruning, 0):
        pass
    for number in range(25):
        put(store, 0, f"dictionary/d/{number}", None)
    store.commit()
    run(pruning, 1)
    assert run(pruning, 40)
    assert tombstones.waiting().keys == 10
    assert run(pruning, 40)
    assert not run(pruning, 40)
    assert tombstones.waiting().keys == 25
    for number in range(25):
        store.apply([Forget(f"dictionary/d/{number}", at(0))])
    store.commit()
    assert pruning.ended(store, 40, 0) == []
    assert tombstones.waiting().keys == 21


def test_what_a_lost_transaction_deleted_is_deleted_again(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    """As when the disk is full, or other work of the same transaction fails: the writer undoes it."""
    pruning = pruning_of(Tombstones())
    run(pruning, 0)
    put(store, 0)
    collect(store, 0)
    run(pruning, 1)
    for second in (100, 200, 300):
        pruning.round(store, then(second))
        assert times(store) == []
        store.rollback()
        assert times(store) == [at(0)]
        while run(pruning, second):
            pass
        assert times(store) == [at(0)], "met again, and due a little later"
    while run(pruning, 400):
        pass
    assert times(store) == []


def reserve(store: Store, second: float, key: str) -> None:
    held = Reservation(at(second), at(second), (Entry(at(second), at(second)),))
    store.apply([PutReservation("queue/q", key, held)])
    store.commit()


def test_keys_are_forgotten_by_elapsed_time(store: Store) -> None:
    pruning = pruning_of(Tombstones())

    def held_after(mono_s: float) -> int:
        pruning.round(store, then(mono_s))
        store.commit()
        return store.reservations()

    assert held_after(0) == 0
    reserve(store, 1, "a")
    assert held_after(1) == 1
    assert held_after(3) == 1
    reserve(store, 93, "b")
    assert held_after(30) == 2
    assert held_after(32) == 1, "the first was heard of 31 s ago"
    reserve(store, 93, "b")
    assert held_after(33) == 1
    assert held_after(62) == 1, "it was heard of again 30 s ago"
    assert held_after(64) == 0


@pytest.mark.parametrize("step_s", [90, -90])
def test_no_step_of_the_clock_makes_keys_older_or_younger(store: Store, step_s: int) -> None:
    """The clock steps one second after the key came: it is forgotten 30 s after it came."""
    pruning = pruning_of(Tombstones())
    pruning.round(store, then(0))
    reserve(store, 1, "a")
    pruning.round(store, then(1))
    for mono_s, left in ((2, 1), (29, 1), (32, 0)):
        pruning.round(store, Now(mono_s, then(mono_s + step_s).wall_us))
        store.commit()
        assert store.reservations() == left


def test_a_restart_begins_the_time_of_keys_anew(store: Store) -> None:
    reserve(store, 0, "a")
    pruning = pruning_of(Tombstones())
    for mono_s, left in ((1000, 1), (1029, 1), (1031, 0)):
        pruning.round(store, then(mono_s))
        assert store.reservations() == left


def test_keys_are_forgotten_in_bounded_rounds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning_module, "ROWS_MAX", 10)
    for number in range(25):
        reserve(store, 0, f"k{number}")
    pruning = pruning_of(Tombstones())
    pruning.round(store, then(0))
    assert [pruning.round(store, then(31)) for _ in range(4)] == [True, True, False, False]
    assert store.reservations() == 0
