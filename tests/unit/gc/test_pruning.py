"""When rows are due to be deleted, over the simulation's store in memory. With SQLite: tests/unit/replica/upkeep."""

from quorate.adts.log import Entry, Value
from quorate.gc.pruning import AGAIN, Pruning
from quorate.gc.tombstones import Tombstones
from quorate.replica.protocol.log import ObjectState, PutRows, PutState
from quorate.simulation.world.store import MemoryStore
from quorate.timestamps.timestamp import ZERO, Timestamp, make

LAG_S, WINDOW_S = 10.0, 30.0
QUEUE, CELL = "queue/q", "dictionary/d/k"


def at(number: int) -> Timestamp:
    return make(number, 0, "a")


def started() -> tuple[Pruning, MemoryStore]:
    """At time 0, with nothing stored."""
    pruning, store = Pruning(Tombstones(), lag_s=LAG_S, window_s=WINDOW_S), MemoryStore()
    step(pruning, store, 0)
    return pruning, store


def step(pruning: Pruning, store: MemoryStore, mono_s: float) -> None:
    pruning.round(store, mono_s)
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
    assert store.row_count(QUEUE) == 1
    step(pruning, store, 31)
    assert store.row_count(QUEUE) == 0


def test_what_is_not_collected_stays() -> None:
    pruning, store = started()
    put(store, QUEUE, Value("1"))
    for second in range(1, 200, 10):
        step(pruning, store, second)
    assert store.row_count(QUEUE) == 1


def test_a_deletion_is_given_out_once_a_window_later_and_again_after_another() -> None:
    pruning, store = started()
    put(store, CELL, None)
    step(pruning, store, 1)
    step(pruning, store, 30.9)
    assert pruning.deleted(store, 30.9, 9) == []
    step(pruning, store, 31)
    assert pruning.deleted(store, 31, 9) == [CELL]
    assert pruning.deleted(store, 31, 9) == []
    pruning.again(store, CELL, 31)
    assert pruning.deleted(store, 31 + 30 * AGAIN - 0.1, 9) == []
    assert pruning.deleted(store, 31 + 30 * AGAIN, 9) == [CELL]
