"""Which rows and deletions are due to be forgotten, when, and in which order. Pure: the store and the time come in.

Owns the waiting lists: history is deleted once it was collected for the lag *and* arrived so long ago as must be remembered, by elapsed time, and
what came to nothing, as deleted keys do, is collected once that is older than the retry window. What holds promises alone is forgotten then, by this
replica for itself: an operation that found nothing, and did nothing, has left them. Nothing here looks at live rows. The lists are in memory;
at the start, and when they overflowed, a walk over the objects (not their rows) fills them again.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ..adts.log import Entry, Summary
from ..adts.types.catalogue import adt_of
from ..timestamps.clock import Now
from ..timestamps.timestamp import INFINITY, ZERO, Timestamp, make
from .arrivals import NUMBERS, Arrivals
from .collection import Promises, ended_at, holds_promises_alone
from .due_list import DueList
from .tombstones import Tombstones

ROWS_MAX: Final = 2000
"""Rows deleted in one transaction; other work waits that long."""
OBJECTS_MAX: Final = 200
"""Objects looked at in one transaction."""
WAITING_MAX: Final = 200_000
"""Objects in each list."""
LOOKS_MAX: Final = 100
"""Tombstones at a time that are looked at again, whether they still are some."""


AGAIN: Final = 1 + 2 / NUMBERS
"""Windows from a decision until what came to nothing by it is given out: `Arrivals` calls it old so much later, at most."""
SOON: Final = 1 / 4
"""Windows until it is given out again where another replica has not held it for a window yet."""

ANY_ARRIVAL: Final = (1 << 63) - 1
"""No row arrived under a higher number."""


class State(Promises, Protocol):
    """What is asked of an object's state."""

    @property
    def name(self) -> str:
        """The object's name."""

    @property
    def summary(self) -> Summary:
        """The summary that was accepted last."""


class Row(Protocol):
    """What is asked of a row."""

    @property
    def entry(self) -> Entry:
        """Its entry."""


class Store(Protocol):
    """What is asked of a store. It works in the transaction of its caller."""

    collected: dict[str, Timestamp]
    """By object: up to where rows have become history since the latest round."""
    ended: dict[str, None]
    """Objects that came to nothing since the latest round, or of which that was decided."""
    promised: dict[str, None]
    """Objects without rows of which something was promised since the latest round, and nothing accepted."""
    rollbacks: int
    """How many transactions were undone."""

    def state(self, name: str) -> State | None:
        """The object's state, or None when the store does not know it."""

    def states(self, after: int, limit: int) -> Sequence[tuple[int, State]]:
        """Objects numbered above `after`, in that order."""

    def below(self, name: str, timestamp: Timestamp) -> Timestamp | None:
        """The greatest timestamp of a row below `timestamp`."""

    def wanted(self, name: str, timestamps: Sequence[Timestamp]) -> Sequence[Row]:
        """The rows with these timestamps."""

    def arrival(self) -> int:
        """The number of what arrived last."""

    def delete_upto(self, name: str, upto: Timestamp, limit: int, by: int) -> tuple[int, bool]:
        """Delete the oldest rows up to `upto` that arrived by number `by`, at most `limit`: how many; if any stay."""

    def forget(self, name: str, floor: Timestamp) -> None:
        """Delete the object and its log, and make `floor` the least fence and promise of objects that the store does not know."""

    def reservations(self) -> int:
        """How many keys the store holds something under."""

    def forget_reservations(self, upto: int, limit: int) -> int:
        """Forget keys last heard of by that number, at most `limit`: how many."""


class Pruning:
    """The waiting lists of one store, which tell `tombstones`. Used in the writer thread only. `is_kept`: whether an object is to keep its
    events, and is never forgotten."""

    def __init__(
        self,
        tombstones: Tombstones,
        *,
        lag_s: float,
        window_s: float,
        is_kept: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._lag_s: Final = lag_s
        self._window_s: Final = window_s
        self._tombstones: Final = tombstones
        self._is_kept: Final = is_kept
        self._history: list[tuple[float, str, Timestamp, float]] = []
        """Collected rows: when they are due, of which object, up to where, and from when on all of them are old."""
        self._young: Final = DueList()
        """What came to nothing, and must still be remembered. A decision puts that off: it must have been held for a window."""
        self._ripe: Final = DueList()
        """What of it is to be collected. Each object is in one of the two lists."""
        self._promised: Final = DueList()
        """Promises alone that must still be remembered: a list of their own, for to forget them takes no other replica."""
        self._walked: int | None = 0
        self._is_ended_left_out = self._is_promised_left_out = False
        """Whether there was no room in these lists for something that was met."""
        self._rollbacks = 0
        self._arrivals: Final = Arrivals(window_s)
        self._forgotten_upto = -1
        """Reservations up to this number are gone."""

    def round(self, store: Store, now: Now) -> bool:
        """Note what is new, delete what is due, within bounds. Whether more is due already."""
        mono_s = now.mono_s
        if store.rollbacks != self._rollbacks:  # A round before may have been undone with its transaction.
            self._rollbacks = store.rollbacks
            self._forgotten_upto = -1
            self.walk_again()
        self._walk(store, mono_s)
        self._note(store, mono_s)
        old = self._arrivals.old(store, mono_s)
        is_more_history = self._delete_history(store, mono_s, old)
        is_more_reserved = self._forget_reservations(store, old)
        is_more_ripe = self._ripen(store, mono_s)
        is_more_promised = self._forget_promises(store, now)
        return self._can_walk() or is_more_ripe or is_more_promised or is_more_history or is_more_reserved

    def _delete_history(self, store: Store, mono_s: float, old: int) -> bool:
        """Delete rows that were collected for the lag and arrived a window ago; and the younger ones, met again, once all of them
        did. Whether there are more."""
        rows_left, objects_left = ROWS_MAX, OBJECTS_MAX
        while self._history and self._history[0][0] <= mono_s and rows_left > 0 and objects_left > 0:
            due_s, name, upto, old_s = heapq.heappop(self._history)
            objects_left -= 1
            state = store.state(name)
            upto = min(upto, ZERO if state is None else state.collected)
            by = ANY_ARRIVAL if old_s <= mono_s else old
            deleted, is_more = store.delete_upto(name, upto, rows_left, by)
            rows_left -= deleted
            if is_more:
                heapq.heappush(self._history, (due_s, name, upto, old_s))
            elif old_s > mono_s and upto > ZERO:
                heapq.heappush(self._history, (old_s, name, upto, old_s))
        return bool(self._history and self._history[0][0] <= mono_s)

    def _note_collected(self, name: str, upto: Timestamp, mono_s: float) -> None:
        """All of these rows have arrived by now."""
        heapq.heappush(self._history, (mono_s + self._lag_s, name, upto, mono_s + self._window_s))

    def _forget_reservations(self, store: Store, upto: int) -> bool:
        """Forget keys whose window has passed since they were last heard of. Whether there are more."""
        if upto <= self._forgotten_upto or not store.reservations():
            return False
        if store.forget_reservations(upto, ROWS_MAX) == ROWS_MAX:
            return True
        self._forgotten_upto = upto
        return False

    def walk_again(self) -> None:
        """Meet everything again that was taken off the lists by a round that came to nothing."""
        self._walked = 0

    def ended(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects that have been nothing, as they are now, for a retry window; each is given out once."""
        for name in self._tombstones.longest_unseen(LOOKS_MAX):
            self._look(store, name)  # Another replica may have collected it.
        due: list[str] = []
        for _ in range(OBJECTS_MAX):
            if len(due) == limit or not self.is_due(mono_s):
                break
            ripe = self._ripe.pop(mono_s)
            if ripe is not None and self._look(store, ripe):
                due.append(ripe)
        return due

    def is_due(self, mono_s: float) -> bool:
        """Whether there may be more to give out."""
        return self._ripe.is_due(mono_s)

    def again(self, store: Store, name: str, mono_s: float, windows: float) -> None:
        """Give the object out again after so many retry windows, unless it is gone or changes before."""
        if self._look(store, name) and name not in self._young and name not in self._ripe:
            self._ripe.push(name, mono_s + windows * self._window_s)

    def _look(self, store: Store, name: str) -> bool:
        ended = ended_here(store, name)
        self._tombstones.note(name, ended)
        return ended is not None

    def _ripen(self, store: Store, mono_s: float) -> bool:
        """Count what came to nothing and whose window has passed, within bounds. Whether there are more."""
        for _ in range(OBJECTS_MAX):
            if not self._young.is_due(mono_s):
                return False
            name = self._young.pop(mono_s)
            if name is not None and self._look(store, name):
                self._ripe.push(name, mono_s)
        return True

    def _forget_promises(self, store: Store, now: Now) -> bool:
        """Forget what still holds promises alone after the window, within bounds; it waits on where they are ahead of time: the floor of all objects
        would be ahead as well. Whether there are more."""
        old = make(max(0, now.before(self._window_s).wall_us), 0, "0")
        for _ in range(OBJECTS_MAX):
            if not self._promised.is_due(now.mono_s):
                return False
            name = self._promised.pop(now.mono_s)
            floor = None if name is None else promised_upto(store, name)
            if name is None or floor is None:
                continue
            if floor < old:
                store.forget(name, floor)
            else:
                self._promised.push(name, now.mono_s + SOON * self._window_s)
        return True

    def _note(self, store: Store, mono_s: float) -> None:
        collected, store.collected = store.collected, {}
        ended, store.ended = store.ended, {}
        promised, store.promised = store.promised, {}
        if len(self._history) + len(collected) > WAITING_MAX:
            self._walked = 0  # Those left out are met again on the walk.
        else:
            for name, upto in collected.items():
                self._note_collected(name, upto, mono_s)
        for name in ended:
            self._note_ended(name, mono_s)
        for name in promised:
            # Most operations that ask for a new object set it at once.
            if promised_upto(store, name) is not None:
                self._note_promised(name, mono_s)

    def _note_ended(self, name: str, mono_s: float) -> None:
        """A dead replica may fill these lists for long, which must not hold up the others."""
        if self._is_kept(name):
            return
        waits = self._ripe if name in self._ripe else self._young
        if name in waits or len(self._young) + len(self._ripe) < WAITING_MAX:
            waits.push(name, mono_s + self._window_s * AGAIN)
        else:
            self._is_ended_left_out = True

    def _note_promised(self, name: str, mono_s: float) -> None:
        if name in self._promised or len(self._promised) < WAITING_MAX:
            self._promised.push(name, mono_s + self._window_s * AGAIN)
        else:
            self._is_promised_left_out = True

    def _can_walk(self) -> bool:
        """Whether a walk is under way, and the history has room for what it meets: some more once it was deleted."""
        return self._walked is not None and len(self._history) <= WAITING_MAX // 2

    def _walk(self, store: Store, mono_s: float) -> None:
        has_room = len(self._young) + len(self._ripe) <= WAITING_MAX // 2
        is_ended_due = self._is_ended_left_out and has_room
        is_promised_due = self._is_promised_left_out and len(self._promised) <= WAITING_MAX // 2
        if is_ended_due or is_promised_due:
            self._walked, self._is_ended_left_out, self._is_promised_left_out = 0, False, False
        if self._walked is None or not self._can_walk():
            return
        found = store.states(self._walked, OBJECTS_MAX)
        for _, state in found:
            if state.collected > ZERO:
                self._note_collected(state.name, state.collected, mono_s)
            self._note_met(store, state, mono_s)
        self._walked = found[-1][0] if len(found) == OBJECTS_MAX else None

    def _note_met(self, store: Store, state: State, mono_s: float) -> None:
        """One that is listed has not changed: each walk would put it off, perhaps for ever."""
        name = state.name
        if holds_promises_alone(state) and promised_upto(store, name) is not None:
            if name not in self._promised:
                self._note_promised(name, mono_s)
        elif name not in self._young and name not in self._ripe and ended_here(store, name) is not None:
            self._note_ended(name, mono_s)


def ended_here(store: Store, name: str) -> Timestamp | None:
    """When the object came to nothing, by the newest that this store has of it: of a dictionary's key that may be an entry which deletes it."""
    state, is_key = store.state(name), adt_of(name) == "dictionary"
    if state is None:
        return None
    ended = ended_at(name, state.summary, state.accepted)
    if ended is None and not is_key:
        return None
    newest = store.below(name, INFINITY)
    if newest is None or newest <= max(state.summary.horizon, state.collected):
        return ended
    return newest if is_key and store.wanted(name, [newest])[0].entry.value is None else None


def promised_upto(store: Store, name: str) -> Timestamp | None:
    """Up to where the store has promised to take nothing of the object, if that is all that it holds of it."""
    state = store.state(name)
    if state is None or not holds_promises_alone(state) or store.below(name, INFINITY) is not None:
        return None
    return max(state.fence, state.promised)
