"""The simulated twin of a replica's store.

Owns one replica's objects and logs, with a durable part and a transaction that a crash loses. It must not know what the
rows mean: every decision is the replica machine's (`quorate.replica.protocol.acceptor.handle`), run by `quorate.simulation.memory.replica`.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...api_specs.messages import Row
from ...api_specs.values import payload_work
from ...gc.collection import holds_promises_alone
from ...replica.protocol.capacity import Use
from ...replica.protocol.log import (
    NOT_RESERVED,
    PROMISES,
    Claim,
    Effect,
    Forget,
    MarkComplete,
    ObjectState,
    PutEvent,
    PutReservation,
    PutRows,
    PutState,
    Reservation,
    is_newly_ended,
)
from ...replica.protocol.pages import read_until_full, value_in
from ...timestamps.ballot import NO_BALLOT, term_of
from ...timestamps.timestamp import INFINITY, ZERO, Timestamp, risen

DISK_FREE = 1 << 60
"""Bytes: a simulated disk is never full, though a store may have as many objects and entries as it may."""


class _Object:
    """One object: its state, its rows by timestamp, and the order in which they arrived."""

    def __init__(self) -> None:
        self.state: ObjectState | None = None
        self.rows: dict[Timestamp, tuple[int, Row]] = {}
        self.order: list[Timestamp] = []
        self.arrived: list[tuple[int, Timestamp]] = []
        self.events: dict[Timestamp, str] = {}
        self.number = 0


class MemoryStore:
    """`quorate.replica.protocol.log.Log` in memory. `apply` writes into the open transaction; `commit` makes it durable."""

    def __init__(self) -> None:
        self._objects: dict[str, _Object] = {}
        self._arrival = 0
        self._last_number = 0
        self._floor = ZERO
        self._clock = ZERO
        self.witnessed = ZERO
        """How far another replica said that its store had come; it is on disk when this is set."""
        self.rollbacks = 0
        """Transactions that were undone."""
        self._held: dict[tuple[str, str], tuple[int, Reservation]] = {}
        self._undo: list[Callable[[], object]] = []
        self.version = 0
        """Another number after each change of an object or a log."""
        self.collected: dict[str, Timestamp] = {}
        """Up to where logs became history, and objects that got a deletion, promises alone, or an accept without its commit, for upkeep."""
        self.ended: dict[str, None] = {}
        self.promised: dict[str, None] = {}
        self.undecided: dict[str, None] = {}

    @property
    def clock(self) -> Timestamp:
        """At or above every timestamp that the store holds; a transaction that is undone takes its part back."""
        return self._clock

    @property
    def highest(self) -> Timestamp:
        """See Log."""
        return max(self._clock, self.witnessed)

    def state(self, name: str) -> ObjectState | None:
        """See Log."""
        found = self._objects.get(name)
        return None if found is None else found.state

    def floor(self) -> Timestamp:
        """See Log."""
        return self._floor

    def stored(self, name: str, timestamps: Sequence[Timestamp]) -> set[Timestamp]:
        """See Log."""
        found = self._objects.get(name)
        return set() if found is None else {t for t in timestamps if t in found.rows}

    def arrivals(
        self, name: str, after: Timestamp, upto: Timestamp, since: int, limit: int, room: int | None = None
    ) -> list[tuple[int, Row]]:
        """See Log."""
        found = self._objects.get(name)
        if found is None:
            return []
        rows: list[tuple[int, Row]] = []
        for number, t in found.arrived[bisect_left(found.arrived, (since + 1, ZERO)) :]:
            if after < t <= upto and found.rows.get(t, (0,))[0] == number:
                rows.append(found.rows[t])
                if len(rows) == limit:
                    break
        return read_until_full(rows, lambda each: value_in(each[1]), room)

    def rows(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        """See Log."""
        found = self._objects.get(name)
        if found is None:
            return []
        start = bisect_right(found.order, after)
        return read_until_full((found.rows[t][1] for t in found.order[start : start + limit]), value_in, room)

    def newest(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        """See Log."""
        found = self._objects.get(name)
        if found is None:
            return []
        start = max(bisect_right(found.order, after), len(found.order) - limit)
        return read_until_full((found.rows[t][1] for t in reversed(found.order[start:])), value_in, room)[
            ::-1
        ]

    def nth(self, name: str, after: Timestamp, n: int) -> Timestamp | None:
        """See Log."""
        rows = self.rows(name, after, n)
        return rows[-1].entry.t if rows else None

    def below(self, name: str, timestamp: Timestamp) -> Timestamp | None:
        """See Log."""
        found = self._objects.get(name)
        index = 0 if found is None else bisect_left(found.order, timestamp)
        return None if found is None or index == 0 else found.order[index - 1]

    def wanted(self, name: str, timestamps: Sequence[Timestamp], room: int | None = None) -> list[Row]:
        """See Log."""
        found = self._objects.get(name)
        rows = [] if found is None else [found.rows[t][1] for t in timestamps if t in found.rows]
        return read_until_full(rows, value_in, room)

    def arrival(self) -> int:
        """See Log."""
        return self._arrival

    def changed(self, since: int, above: int, limit: int) -> list[tuple[int, str]]:
        """See Log. All that it knows: those without a change are no harm."""
        known = [
            (found.number, name)
            for name, found in self._objects.items()
            if found.state is not None and found.number > above
        ]
        return sorted(known)[:limit]

    def arrived(self, name: str, since: int, upto: int, limit: int) -> list[tuple[int, Timestamp]]:
        """See Log."""
        found = self._objects.get(name)
        if found is None or since >= upto:
            return []
        rows = [(number, t) for t, (number, _) in found.rows.items() if since < number <= upto]
        return sorted(rows, reverse=True)[:limit]

    def events(self, name: str, limit: int | None = None) -> list[tuple[Timestamp, str]]:
        """See Log."""
        found = self._objects.get(name)
        kept = [] if found is None else sorted(found.events.items())
        return kept if limit is None else kept[max(0, len(kept) - limit) :]

    def names(self, prefix: str, after: str, limit: int) -> list[str]:
        """See Log."""
        known = (name for name, found in self._objects.items() if found.state is not None)
        return sorted(name for name in known if name.startswith(prefix) and name > after)[:limit]

    def reservation(self, name: str, key: str) -> Reservation:
        """See Log."""
        return self._held.get((name, key), (0, NOT_RESERVED))[1]

    def reserved(self) -> Iterable[tuple[str, str]]:
        """The objects and keys under which it holds something."""
        return self._held.keys()

    def reservations(self) -> int:
        """See Log."""
        return len(self._held)

    def forget_reservations(self, upto: int, limit: int) -> int:
        """Forget keys whose latest change has a number up to this one, at most `limit`, oldest first: how many."""
        old = sorted((number, at) for at, (number, _) in self._held.items() if number <= upto)[:limit]
        for _, at in old:
            self._undo.append(partial(self._held.__setitem__, at, self._held.pop(at)))
        return len(old)

    def holds_what(self, other: "MemoryStore") -> bool:
        """Whether it holds all that another one holds and that an acknowledgement may rest on; for checkers."""
        return all(self._holds(name, other) for name in other.objects()) and all(
            held[1].ballot <= self.reservation(*at).ballot
            and held[1].entries == self.reservation(*at).entries
            for at, held in other._held.items()
        )

    def _holds(self, name: str, other: "MemoryStore") -> bool:
        theirs, ours = other.state(name), self.state(name)
        assert theirs is not None, "names are those of objects with a state"
        latest = NO_BALLOT if ours is None else max(ours.accepted, ours.committed)
        rows = other.rows(name, theirs.collected, other.length(name))
        times = [row.entry.t for row in rows]
        return max(theirs.accepted, theirs.committed) <= latest and self.stored(name, times) == set(times)

    def objects(self) -> list[str]:
        """The names of all objects that the store knows; for checkers."""
        return self.names("", "", len(self._objects))

    def length(self, name: str) -> int:
        """See `quorate.replica.protocol.capacity.Holds`: how many rows the object has, history included."""
        found = self._objects.get(name)
        return 0 if found is None else len(found.rows)

    def above(self, name: str, after: Timestamp) -> tuple[int, int]:
        """See `quorate.replica.protocol.capacity.Holds`."""
        found = self._objects.get(name)
        entries = [] if found is None else [found.rows[t][1].entry for t in found.order if t > after]
        return len(entries), payload_work(entries)

    def use(self) -> Use:
        """See `quorate.replica.protocol.capacity.Holds`."""
        known = [found for found in self._objects.values() if found.state is not None]
        longest = max((len(found.rows) for found in known), default=0)
        return Use(objects=len(known), disk_bytes=0, disk_free=DISK_FREE, longest=longest)

    def apply(self, *effects: Effect) -> None:
        """Write what a request effects into the open transaction; the clock rises with each promise."""
        before = self._clock
        for effect in effects:
            self._apply(effect)
        if self._clock == before and not PROMISES.isdisjoint(map(type, effects)):
            self._note(risen(before))

    def _apply(self, effect: Effect) -> None:
        self.version += 1
        match effect:
            case PutRows(name, entries):
                for entry in entries:
                    self._arrival += 1
                    self._put(name, Row(entry), self._arrival)
                    self._undo.append(partial(self._take_back, name, entry.t))
                self._note(*(entry.t for entry in entries))
            case PutState(state):
                self._put_state(state.name, state)
                self._note_state(state)
            case PutEvent(name, t, event):
                self._note(t)
                self._put_event(name, t, event)
            case MarkComplete(name, timestamps):
                self._mark(name, timestamps)
            case PutReservation(name, key, held):
                self._arrival += 1
                self._reserve((name, key), held, self._arrival)
                self._note(held.promised, *(entry.t for entry in held.entries))
            case Forget(name, floor):
                self.forget(name, floor)
            case Claim(t):
                self._note(t)

    def commit(self) -> None:
        """Make all that was applied durable."""
        self._undo.clear()

    def crash(self) -> None:
        """Lose what was applied since the last commit."""
        self.version += 1
        self.rollbacks += 1
        while self._undo:
            self._undo.pop()()

    def states(self, after: int, limit: int) -> list[tuple[int, ObjectState]]:
        """The states of known objects, each with its number, from the one after `after` on."""
        known = [found.state for found in self._objects.values() if found.state is not None]
        self.undecided.update({state.name: None for state in known if state.accepted > state.committed})
        return list(enumerate(known, 1))[after : after + limit]

    def delete_upto(self, name: str, upto: Timestamp, limit: int, by: int) -> tuple[int, bool]:
        """See `Store`."""
        assert not self._undo, "pruning is a transaction of its own"
        self.version += 1
        found = self._objects.get(name)
        if found is None:
            return 0, False
        history = sorted(t for number, t in found.arrived if t <= upto and number <= by)
        for t in history[:limit]:
            self._drop(name, t)
        found.arrived = [(number, t) for number, t in found.arrived if t in found.rows]
        return len(history[:limit]), len(history) > limit

    def _object(self, name: str) -> _Object:
        found = self._objects.setdefault(name, _Object())
        if found.number == 0:
            self._last_number += 1
            found.number = self._last_number
        return found

    def _note_state(self, state: ObjectState) -> None:
        summary = state.summary
        terms = (state.promised, term_of(state.accepted), term_of(state.committed))
        adopted = (entry.t for entry in summary.adopted)
        self._note(*terms, state.fence, summary.horizon, state.horizon, *adopted)

    def _note(self, *timestamps: Timestamp) -> None:
        before = self._clock
        for t in timestamps:
            if self._clock < t < INFINITY:
                self._clock = t

        def undo() -> None:
            self._clock = before

        if self._clock > before:
            self._undo.append(undo)

    def _put(self, name: str, row: Row, number: int) -> None:
        found = self._object(name)
        assert row.entry.t not in found.rows, "the machine puts a timestamp once"
        found.rows[row.entry.t] = (number, row)
        insort(found.order, row.entry.t)
        found.arrived.append((number, row.entry.t))
        if row.entry.value is None:
            self.ended[name] = None

    def _put_event(self, name: str, t: Timestamp, event: str) -> None:
        events = self._object(name).events
        before = events.get(t)
        events[t] = event

        def undo() -> None:
            if before is None:
                del events[t]
            else:
                events[t] = before

        self._undo.append(undo)

    def _take_back(self, name: str, t: Timestamp) -> None:
        """The row that was put last was never there."""
        self._drop(name, t)
        self._objects[name].arrived.pop()

    def _drop(self, name: str, t: Timestamp) -> None:
        found = self._objects[name]
        del found.rows[t]
        del found.order[bisect_left(found.order, t)]

    def _put_state(self, name: str, state: ObjectState | None) -> None:
        found = self._object(name)
        before = found.state
        found.state = state
        if state is not None and state.committed > (NO_BALLOT if before is None else before.committed):
            self._arrival += 1
        if state is not None and state.collected > (ZERO if before is None else before.collected):
            self.collected[name] = state.collected
        if state is not None and is_newly_ended(before, state):
            self.ended[name] = None
        if state is not None and holds_promises_alone(state) and not found.rows:
            self.promised[name] = None
        if state is not None and state.accepted > state.committed:
            self.undecided[name] = None

        def undo() -> None:
            found.state = before

        self._undo.append(undo)

    def _reserve(self, at: tuple[str, str], held: Reservation, number: int) -> None:
        before = self._held.get(at)
        self._held[at] = (number, held)

        def undo() -> None:
            del self._held[at]
            if before is not None:
                self._held[at] = before

        self._undo.append(undo)

    def _mark(self, name: str, timestamps: Sequence[Timestamp]) -> None:
        found = self._objects.get(name)
        if found is None:
            return
        for t in timestamps:
            if t in found.rows and not found.rows[t][1].complete:
                number, row = found.rows[t]
                found.rows[t] = (number, Row(row.entry, complete=True))

                def undo(t: Timestamp = t, kept: tuple[int, Row] = (number, row)) -> None:
                    found.rows[t] = kept

                self._undo.append(undo)

    def forget(self, name: str, floor: Timestamp) -> None:
        """See `Store`."""
        self.version += 1
        before, floor_before = self._objects.pop(name, None), self._floor
        self._floor = max(self._floor, floor)
        self._note(floor)

        def undo() -> None:
            self._floor = floor_before
            self._objects.pop(name, None)
            if before is not None:
                self._objects[name] = before

        self._undo.append(undo)
