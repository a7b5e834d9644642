"""How old what arrived is, where a transaction was undone that the janitor's round was part of: its disk was full, say."""

from quorate.adts.log import Entry
from quorate.gc.tombstones import Tombstones
from quorate.replica.protocol.log import NOT_RESERVED, PutReservation, Reservation
from quorate.replica.store.store import Store
from tests.unit.replica.upkeep.test_pruning import DOCUMENT, at, collect, pruning_of, put, then, times

QUEUE, KEY = "queue/q", "Enq k"


def reserve(store: Store, second: float, key: str = KEY) -> None:
    stamp = at(second)
    store.apply([PutReservation(QUEUE, key, Reservation(stamp, entries=(Entry(stamp, stamp),)))])


def test_a_key_is_remembered_for_its_window_though_its_number_was_given_before_in_vain(store: Store) -> None:
    pruning = pruning_of(Tombstones())
    reserve(store, 0, "in vain")
    pruning.round(store, then(0.0))  # In one transaction with the request, …
    store.rollback()  # … for which the disk has no room.
    window_s = int(DOCUMENT.memory_s)
    for second in range(1, window_s):
        pruning.round(store, then(float(second)))
        store.commit()
    reserve(store, window_s)
    store.commit()
    for now_s in (float(window_s), window_s + 0.5):
        pruning.round(store, then(now_s))
        store.commit()
        assert store.reservation(QUEUE, KEY) != NOT_RESERVED, f"forgotten after {now_s - window_s} s"


def test_a_consumed_row_is_kept_for_its_window_though_its_number_was_given_before_in_vain(
    store: Store,
) -> None:
    pruning = pruning_of(Tombstones())
    reserve(store, 0, "in vain")
    pruning.round(store, then(0.0))
    store.rollback()
    window_s, lag_s = int(DOCUMENT.memory_s), int(DOCUMENT.limits.consumed_lag_s)
    for second in range(1, window_s - lag_s):
        pruning.round(store, then(float(second)))
        store.commit()
    put(store, window_s - lag_s)
    collect(store, window_s - lag_s)
    for second in range(window_s - lag_s, window_s + 1):
        pruning.round(store, then(float(second)))
        store.commit()
        assert times(store), f"deleted {second - window_s + lag_s} s after it arrived, of {window_s}"
