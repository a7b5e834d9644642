"""Which rows and deletions the janitor deals with, and when. No I/O of its own, no clock: both come in.

Owns the waiting list: history is deleted once it was collected for the lag *and* is older than what must be remembered, and
deletions are buried once they are older than the retry window. Nothing here looks at live rows. The list is in memory;
at the start, and when it overflowed, a walk over the objects (not their rows) fills it again.
"""

import heapq
from typing import Final

from quorate.adts.catalogue import adt_of
from quorate.api_specs.cluster import ClusterDocument
from quorate.replica.store import Store
from quorate.timestamps.timestamp import ZERO, Timestamp, make, wall_us

ROWS_MAX: Final = 2000
"""Rows deleted in one transaction; other work waits that long."""
OBJECTS_MAX: Final = 200
"""Objects looked at in one transaction."""
WAITING_MAX: Final = 200_000
"""Objects in the list."""


class Pruning:
    """The waiting list of one store. Used in the writer thread only."""

    def __init__(self, document: ClusterDocument) -> None:
        self._lag_s: Final = document.limits.consumed_lag_s
        self._window_s: Final = document.memory_s
        self._history: list[tuple[float, str, Timestamp]] = []
        self._deleted: list[tuple[float, str]] = []
        self._walked: int | None = 0

    def round(self, store: Store, mono_s: float, now_us: int) -> bool:
        """Note what is new, delete what is due, within bounds. Whether more is due already."""
        self._walk(store, mono_s)
        self._note(store, mono_s)
        oldest_us = max(0, now_us - int(self._window_s * 1e6))
        cutoff = make(oldest_us, 0, "0")
        rows_left, objects_left = ROWS_MAX, OBJECTS_MAX
        while self._history and self._history[0][0] <= mono_s and rows_left > 0 and objects_left > 0:
            _, name, upto = heapq.heappop(self._history)
            objects_left -= 1
            state = store.state(name)
            upto = min(upto, ZERO if state is None else state.collected)
            deleted, is_more = store.delete_upto(name, min(upto, cutoff), rows_left)
            rows_left -= deleted
            if is_more:
                heapq.heappush(self._history, (mono_s, name, upto))
            elif upto > cutoff:
                wait_s = (
                    wall_us(upto) - oldest_us + 1
                ) / 1e6  # Until the cutoff is above `upto`, counter and all.
                heapq.heappush(self._history, (mono_s + wait_s, name, upto))
        return self._walked is not None or bool(self._history and self._history[0][0] <= mono_s)

    def deleted(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects that hold a deletion since a retry window ago; each is given out once."""
        due: list[str] = []
        while self._deleted and self._deleted[0][0] <= mono_s and len(due) < limit:
            _, name = heapq.heappop(self._deleted)
            if is_deleted(store, name):
                due.append(name)
        return due

    def again(self, name: str, mono_s: float) -> None:
        """Give the deletion out again, a retry window later."""
        heapq.heappush(self._deleted, (mono_s + self._window_s, name))

    def _note(self, store: Store, mono_s: float) -> None:
        collected, store.collected = store.collected, {}
        deleted, store.deleted = store.deleted, {}
        if len(self._history) + len(collected) + len(self._deleted) + len(deleted) > WAITING_MAX:
            self._walked = 0  # Those left out are met again on the walk.
            return
        for name, upto in collected.items():
            heapq.heappush(self._history, (mono_s + self._lag_s, name, upto))
        for name in deleted:
            self.again(name, mono_s)

    def _walk(self, store: Store, mono_s: float) -> None:
        if self._walked is None or len(self._history) + len(self._deleted) > WAITING_MAX // 2:
            return
        found = store.states(self._walked, OBJECTS_MAX)
        for _, state in found:
            if state.collected > ZERO:
                heapq.heappush(self._history, (mono_s + self._lag_s, state.name, state.collected))
            if adt_of(state.name) == "dictionary" and is_deleted(store, state.name):
                self.again(state.name, mono_s)
        self._walked = found[-1][0] if len(found) == OBJECTS_MAX else None


def is_deleted(store: Store, name: str) -> bool:
    """Whether the newest value that this store has of a cell is a deletion."""
    state = store.state(name)
    if state is None:
        return False
    newest = store.below(name, _END)
    if newest is None or newest <= state.summary.horizon:
        return state.summary.horizon > ZERO and state.summary.value is None
    return store.wanted(name, [newest])[0].entry.value is None


_END: Final = Timestamp("g")
"""Above every timestamp."""
