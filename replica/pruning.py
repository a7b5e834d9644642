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

_Due = tuple[float, str, Timestamp]
"""From when (monotonic seconds), of which object, up to where."""


class Pruning:
    """The waiting list of one store. Used in the writer thread only."""

    def __init__(self, document: ClusterDocument) -> None:
        self._lag_s: Final = document.limits.consumed_lag_s
        self._window_s: Final = document.memory_s
        self._history: list[_Due] = []
        self._taken: list[_Due] = []
        self._later: list[_Due] = []
        """What the latest round took from the list, and what it left for another one, until its transaction is on disk."""
        self._rollbacks = 0
        self._deleted: list[tuple[float, str]] = []
        self._given: dict[str, None] = {}
        self._walked: int | None = 0

    def round(self, store: Store, mono_s: float, now_us: int) -> bool:
        """Note what is new, delete what is due, within bounds. Whether more is due already."""
        self._settle(store)
        self._walk(store, mono_s)
        self._note(store, mono_s)
        oldest_us = max(0, now_us - int(self._window_s * 1e6))
        cutoff = make(oldest_us, 0, "0")
        rows_left = ROWS_MAX
        while self._is_due(self._history[:1], mono_s) and rows_left > 0 and len(self._taken) < OBJECTS_MAX:
            _, name, upto = taken = heapq.heappop(self._history)
            self._taken.append(taken)
            state = store.state(name)
            upto = min(upto, ZERO if state is None else state.collected)
            deleted, is_more = store.delete_upto(name, min(upto, cutoff), rows_left)
            rows_left -= deleted
            if is_more:
                self._later.append((mono_s, name, upto))
            elif upto > cutoff:
                self._later.append((mono_s + (wall_us(upto) - oldest_us) / 1e6, name, upto))
        return self._walked is not None or self._is_due([*self._later, *self._history[:1]], mono_s)

    def _settle(self, store: Store) -> None:
        """What the latest round took is done with; but when a transaction was undone since, it may be that one, and to
        delete again does no harm."""
        for due in self._later if store.rollbacks == self._rollbacks else self._taken:
            heapq.heappush(self._history, due)
        self._taken, self._later, self._rollbacks = [], [], store.rollbacks

    @staticmethod
    def _is_due(some: list[_Due], mono_s: float) -> bool:
        return any(due_s <= mono_s for due_s, _, _ in some)

    def deleted(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects that hold a deletion since a retry window ago; each is given out until it is put off
        with `again`."""
        while self._deleted and self._deleted[0][0] <= mono_s and len(self._given) < limit:
            _, name = heapq.heappop(self._deleted)
            if is_deleted(store, name):
                self._given[name] = None
        return list(self._given)

    def again(self, name: str, mono_s: float) -> None:
        """Give the deletion out again, a retry window later."""
        self._given.pop(name, None)
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
