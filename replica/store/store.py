"""The store of a replica: objects and logs in its database, read through `Log`, changed by effects.

Owns what is on disk and the caches over it. Must not know why something is written, nor any protocol rule. One thread
uses it. Everything between two commits is one transaction; if it fails, the caches go with it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from ...adts.log import t_of
from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import in_force
from ...api_specs.messages import Row
from ...gc.collection import holds_promises_alone
from ...timestamps.ballot import term_of
from ...timestamps.timestamp import INFINITY, ZERO, Timestamp, risen
from ..protocol.capacity import Use
from ..protocol.log import (
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
from . import statements
from .cached_object import CachedObject, ObjectCache
from .changed_objects import ChangedObjects
from .commit_counter import Mark
from .configuration import chosen_in, follow, note, note_before, note_types
from .database import Database, StorageFailed
from .peer_records import AboutOthers
from .records import blob_of, columns_of_row, listed, row_of, rows_of, state_of, with_sum, without_sum
from .reservations import Reservations, digest
from .usage import StoreUse

_decided: Final = attrgetter("accepted", "committed", "decided_by", "horizon", "summary")
"""What a state says of decisions: the rest of it are promises, and what was collected."""


class Store:
    """The real twin of `quorate.replica.protocol.log.Log`, which says what most of its methods answer, and the writer of its effects.

    Raises StorageFailed from any method; the caller must then `rollback`. `collected` (up to where), `ended`, `promised` and
    `undecided` name the objects that got history, a deletion, promises alone, or an accept without its commit, in transactions since upkeep last
    emptied them.
    """

    def __init__(self, opened: Database) -> None:
        self._database: Final = opened
        self._objects: Final = ObjectCache()
        self._rows: list[tuple[Any, ...]] = []
        self._marks: dict[tuple[int, Timestamp], None] = {}
        self._states: dict[str, tuple[CachedObject, ObjectState]] = {}
        self._collected: dict[str, Timestamp] = {}
        self._ended: dict[str, None] = {}
        self._promised: dict[str, None] = {}
        self._undecided: dict[str, None] = {}
        self.collected: dict[str, Timestamp] = {}
        self.ended: dict[str, None] = {}
        self.promised: dict[str, None] = {}
        self.undecided: dict[str, None] = {}
        self.rows_put, self.rollbacks = 0, 0
        """Log entries that were put since it was opened, and transactions that were undone."""
        self.others: Final = AboutOthers(opened)
        """What it remembers of other replicas' stores, as part of its transactions."""
        self._mark: Final = Mark(opened.path)
        self.held = Reservations(opened)
        self._use: Final = StoreUse(opened)
        self._load_counters()

    def _load_counters(self) -> None:
        counters = without_sum("its counters", self._database.one(statements.GET_COUNTERS))
        self._arrival, _, self._floor, self._commits = counters
        self._clock = Timestamp(counters[1])
        self._counters = (self._arrival, self._clock, self._floor)
        self.others.load()
        (self._last_number,) = self._database.one(statements.LAST_OBJECT)
        self._changed = ChangedObjects(self._arrival, self._database)
        self._database.commit()

    @property
    def clock(self) -> Timestamp:
        """At or above every timestamp in the store; higher after each promise."""
        return self._clock

    @property
    def highest(self) -> Timestamp:
        return max(self._clock, self.others.highest)

    def note_configuration(self, document: ClusterDocument) -> None:
        """Remember under which members and quorum choices it votes, as part of the transaction."""
        note(self._database, document)

    def document_in_force(self, file: ClusterDocument) -> ClusterDocument:
        """The cluster file with the configuration that it notes, where that was chosen while the cluster ran."""
        chosen = chosen_in(self._database)
        return file if chosen is None else in_force(file, chosen)

    def follow_configuration(self, document: ClusterDocument) -> None:
        """Remember in which configuration it is from now on, as part of the transaction."""
        follow(self._database, document)

    def note_before(self, document: ClusterDocument) -> None:
        """Remember that the replica becomes a member after this configuration, as part of the transaction."""
        note_before(self._database, document)

    def note_types(self, document: ClusterDocument) -> None:
        """Remember which data types were added since, as part of the transaction."""
        note_types(self._database, document)

    def state(self, name: str) -> ObjectState | None:
        return self._object(name).state

    def floor(self) -> Timestamp:
        return Timestamp(self._floor)

    def stored(self, name: str, timestamps: Sequence[Timestamp]) -> set[Timestamp]:
        here = self._object(name)
        if not timestamps or min(timestamps) > here.newest:
            return set()
        found = set(filter(here.has, timestamps))
        old = [timestamp for timestamp in timestamps if timestamp <= here.recent_above]
        if old:
            found.update(row[0] for row in self._ask(statements.STORED, here, listed(old)))
        return found

    def arrivals(
        self, name: str, after: Timestamp, upto: Timestamp, since: int, limit: int, room: int | None = None
    ) -> list[tuple[int, Row]]:
        here = self._object(name)
        if since >= here.arrived:
            return []
        found = self._ask(statements.ARRIVALS, here, since, after, upto, limit, room=room)
        return [(row[1], row_of(here.number, row)) for row in found]

    def rows(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        here = self._object(name)
        if after >= here.recent_above and (not here.recent or here.recent[-1] <= after):
            return []
        return rows_of(here.number, self._ask(statements.ABOVE, here, after, limit, room=room))

    def newest(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        here = self._object(name)
        return rows_of(here.number, reversed(self._ask(statements.NEWEST, here, after, limit, room=room)))

    def nth(self, name: str, after: Timestamp, n: int) -> Timestamp | None:
        here = self._object(name)
        if after >= here.recent_above:
            first = bisect_right(here.recent, after)
            return here.recent[min(first + n, len(here.recent)) - 1] if first < len(here.recent) else None
        found = self._ask(statements.NTH, here, after, n - 1) or self._ask(statements.LAST_ABOVE, here, after)
        return None if found[0][0] is None else Timestamp(found[0][0])

    def below(self, name: str, timestamp: Timestamp) -> Timestamp | None:
        here = self._object(name)
        place = bisect_left(here.recent, timestamp)
        if place > 0 or here.recent_above == ZERO:
            return here.recent[place - 1] if place else None
        found = self._ask(statements.BELOW, here, timestamp)[0][0]
        return None if found is None else Timestamp(found)

    def wanted(self, name: str, timestamps: Sequence[Timestamp], room: int | None = None) -> list[Row]:
        here = self._object(name)
        descends = bool(timestamps) and timestamps[0] > timestamps[-1]
        sql = statements.WANTED_NEWEST_FIRST if descends else statements.WANTED
        return rows_of(here.number, self._ask(sql, here, listed(timestamps), room=room))

    def arrival(self) -> int:
        return int(self._arrival)

    def changed(self, since: int, above: int, limit: int) -> list[tuple[int, str]]:
        self._flush()
        return self._changed.since(since, above, limit)

    def arrived(self, name: str, since: int, upto: int, limit: int) -> list[tuple[int, Timestamp]]:
        found = self._ask(statements.ARRIVED, self._object(name), since, upto, limit)
        return [(arrival, Timestamp(t)) for arrival, t in found]

    def events(self, name: str, limit: int | None = None) -> list[tuple[Timestamp, str]]:
        newest = self._ask(statements.NEWEST_EVENTS, self._object(name), limit)
        found = [without_sum(f"an event of {name}", row) for row in reversed(newest)]
        return [(Timestamp(t), event) for _, t, event in found]

    def names(self, prefix: str, after: str, limit: int) -> list[str]:
        self._flush()
        end = prefix + "\U0010ffff"
        return [name for (name,) in self._database.all(statements.NAMES, (after, prefix, end, limit))]

    def reservation(self, name: str, key: str) -> Reservation:
        return self.held.at(digest(name, key))

    def reservations(self) -> int:
        return self.held.count

    def forget_reservations(self, upto: int, limit: int) -> int:
        """See `Reservations.forget`."""
        return self.held.forget(upto, limit)

    def length(self, name: str) -> int:
        """Rows of the object's log, history included."""
        here = self._object(name)
        known = self._use.length(here.number)
        if known is None and here.number:
            known = self._use.counted(here.number, self._ask(statements.COUNT_LOG, here)[0][0])
        return known or 0

    def above(self, name: str, after: Timestamp) -> tuple[int, int]:
        """See `quorate.replica.protocol.capacity.Holds`."""
        here = self._object(name)
        if here.counted is None or here.counted[0] != after:
            found = self._ask(statements.WORK_ABOVE, here, after)
            here.counted = (after, *found[0]) if found else (after, 0, 0)
        return here.counted[1], here.counted[2]

    def use(self) -> Use:
        """How much it holds."""
        return self._use.now()

    def states(self, after: int, limit: int) -> list[tuple[int, ObjectState]]:
        """Objects numbered above `after`, in that order; the numbers mean nothing else."""
        self._flush()
        found = self._database.all(statements.STATES, (after, limit))
        states = [(number, state_of(number, name, blob)) for number, name, blob in found]
        self.undecided.update({state.name: None for _, state in states if state.accepted > state.committed})
        return states

    def _object(self, name: str) -> CachedObject:
        if name == self._objects.last_name:
            return self._objects.last
        if (here := self._objects.get(name)) is not None:
            return here
        found = self._database.one(statements.GET_OBJECT, (name,))
        if found is None:
            here = CachedObject(0, None, ZERO)
        else:
            number, blob, newest = found
            state = state_of(number, name, blob)
            here = CachedObject(number, state, newest or ZERO, self._arrival, len(blob))
        self._objects.put(name, here)
        if self._objects.is_full:
            self._flush()
            self._objects.shrink()
        return here

    def _ask(self, sql: str, here: CachedObject, *params: Any, room: int | None = None) -> Sequence[Any]:
        """A query on one object's rows, which sees what the transaction put before."""
        if here.number == 0:
            return statements.NO_ROWS.get(sql, ())
        if self._rows or self._marks:
            self._flush_rows()
        return self._database.all(sql, (here.number, *params), room)

    # Writes

    def apply(self, effects: Iterable[Effect]) -> None:
        """Make the effects part of the transaction. The clock rises with each promise, also with one whose timestamps are below it,
        as all are for long after clocks were ahead: by the clock others tell an older copy of the store (`protocol.witness`)."""
        before, promises = self._clock, False
        for effect in effects:
            kind = type(effect)
            _WRITERS[kind](self, effect)
            promises = promises or kind in PROMISES
        if promises and self._clock == before:
            self._clock = risen(before)

    def _put_rows(self, put: PutRows) -> None:
        entries, here = put.entries, self._numbered(put.name)
        number, arrival = here.number, self._arrival
        if self._marks and any((number, entry.t) in self._marks for entry in entries):
            self._flush_rows()  # A mark says nothing about a row that came after it.
        size = 0
        for entry in entries:
            arrival += 1
            self._rows.append(columns_of_row(number, arrival, entry))
            if isinstance(entry.value, str):
                size += len(entry.value)
            elif entry.value is None:
                self._ended[put.name] = None
        self._arrival = here.arrived = arrival
        self._note(max(map(t_of, entries)))
        self.rows_put += len(entries)
        self._use.put(number, len(entries), size)
        self._changed.note(number, put.name, arrival)
        self._objects.add(here, entries)

    def _mark_complete(self, mark: MarkComplete) -> None:
        number = self._object(mark.name).number
        for t in mark.timestamps:
            self._marks[number, t] = None

    def _put_event(self, put: PutEvent) -> None:
        here = self._numbered(put.name)
        self._note(put.t)
        self._database.write(statements.PUT_EVENT, with_sum(here.number, put.t, put.event))

    def _put_reservation(self, put: PutReservation) -> None:
        self.put_held(digest(put.name, put.key), put.held)

    def put_held(self, digested: bytes, held: Reservation) -> None:
        """Hold this under the digest of a key; its timestamps move the store's clock."""
        self._arrival += 1
        self._note(max((held.promised, *(entry.t for entry in held.entries))))
        self.held.put(digested, held, self._arrival)

    def _put_state(self, put: PutState) -> None:
        state = put.state
        here = self._numbered(state.name)
        before = here.state or ObjectState(state.name)
        if state.collected > before.collected:
            self._collected[state.name] = state.collected
        if holds_promises_alone(state) and here.newest == ZERO:
            self._promised[state.name] = None
        if state.accepted > state.committed:
            self._undecided[state.name] = None
        if _decided(state) != _decided(before):
            self._note_decision(here, before, state)
        here.state = state
        self._states[state.name] = (here, state)
        self._note(state.fence)  # INFINITY while an object is being forgotten: it must not hide the rest.
        self._note(state.promised)

    def _note_decision(self, here: CachedObject, before: ObjectState, state: ObjectState) -> None:
        """What the state says of decisions has changed."""
        if state.committed > before.committed:
            self._arrival += 1
            self._changed.note(here.number, state.name, self._arrival)
        if is_newly_ended(here.state, state):
            self._ended[state.name] = None
        summary, term = state.summary, term_of(max(state.accepted, state.committed))
        self._note(max(term, summary.horizon, state.horizon, *map(t_of, summary.adopted)))

    def _numbered(self, name: str) -> CachedObject:
        here = self._object(name)
        if here.number == 0:
            self._last_number += 1
            here.number = self._last_number
            self._use.made(here.number)
        return here

    def _note(self, timestamp: Timestamp) -> None:
        if self._clock < timestamp < INFINITY:
            self._clock = timestamp

    def forget(self, name: str, floor: Timestamp) -> None:
        """Delete the object and its log, if the store knows it, and raise the floor."""
        self._flush()
        number = self._object(name).number
        self.raise_floor(floor)
        if not number:
            return
        for sql in (statements.DELETE_OBJECT, statements.DELETE_LOG, statements.DELETE_EVENTS):
            self._database.write(sql, (number,))
        self._changed.forget(number)
        self._use.forgot(number)
        self._objects.pop(name)

    def raise_floor(self, floor: Timestamp) -> None:
        """Make `floor` the least fence and promise of objects that the store does not know."""
        self._floor = max(self._floor, floor)
        self._note(floor)

    def _flush_rows(self) -> None:
        if self._rows:
            self._database.write(statements.PUT_ROW, *self._rows)
            self._rows = []
        if self._marks:
            self._database.write(statements.MARK_COMPLETE, *self._marks)
            self._marks = {}

    def _flush(self) -> None:
        self._flush_rows()
        if self._states:
            self._database.write(statements.PUT_OBJECT, *self._changed_states())
            self._states = {}
        self.held.flush()

    def _changed_states(self) -> list[tuple[int, str, bytes]]:
        """The states that changed, as they are stored; what they take is counted."""
        changed = []
        for name, (here, state) in self._states.items():
            blob = blob_of(here.number, state)
            self._objects.weigh(here, len(blob))
            changed.append((here.number, name, blob))
        return changed

    def delete_upto(self, name: str, upto: Timestamp, limit: int, by: int) -> tuple[int, bool]:
        """Delete the object's oldest rows up to `upto` that arrived by number `by`, at most `limit`: how many; if any stay."""
        here = self._object(name)
        if here.number == 0:
            return 0, False
        cut = self._ask(statements.NTH_UPTO, here, upto, by, limit - 1)
        last = Timestamp(cut[0][0]) if cut else upto
        deleted = self._database.write(statements.DELETE_UPTO, (here.number, last, by))
        self._use.deleted(here.number, deleted)
        self._objects.drop(here, last)
        return deleted, bool(cut)

    def commit(self) -> None:
        """Make everything since the last commit durable; returns when it is on disk."""
        self._flush()
        if self._objects.is_full:
            self._objects.shrink()
        counters = (self._arrival, self._clock, self._floor)
        if not self._database.wrote and counters == self._counters:
            self._database.commit()  # It has only read.
            self._mark.write(self._commits)
            return
        self.touch()
        self._database.commit()
        self._use.commit()
        self.held.commit()
        self._counters = counters
        self._mark.write(self._commits)
        if self._collected or self._ended or self._promised or self._undecided:
            self._pass_on()

    def _pass_on(self) -> None:
        """To upkeep, what the transaction has noted for it."""
        passed_on: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
            (self._collected, self.collected),
            (self._ended, self.ended),
            (self._promised, self.promised),
            (self._undecided, self.undecided),
        )
        for noted, told in passed_on:
            if noted:
                told.update(noted)
                noted.clear()

    def touch(self) -> None:
        """Make the transaction one that writes, if only that there was one more."""
        self._commits += 1
        counters = (self._arrival, self._clock, self._floor, self._commits)
        self._database.write(statements.PUT_COUNTERS, with_sum(*counters))

    def rollback(self) -> None:
        """Undo everything since the last commit, and trust no cache."""
        self.rollbacks += 1
        self._rows, self._marks, self._states = [], {}, {}
        self._collected, self._ended, self._promised, self._undecided = {}, {}, {}, {}
        self._objects.clear()
        self.held.rollback()  # What is in memory first: the database may fail.
        self._database.rollback()
        self._load_counters()
        self._use.load()

    def give_back_space(self) -> None:
        """Return some free pages of the file, if there are many, to the file system."""
        self._database.give_back_space()

    def sizes(self) -> dict[str, int]:
        """Bytes of the files."""
        return self._database.sizes()

    @property
    def commits(self) -> int:
        """Transactions committed that had written something."""
        return self._database.commits

    def close(self) -> None:
        """Close the files; what was not committed is undone."""
        self._mark.close()
        self._database.rollback()
        self._database.close()


_WRITERS: Final[dict[type[Effect], Callable[[Store, Any], None]]] = {
    PutRows: Store._put_rows,
    PutState: Store._put_state,
    MarkComplete: Store._mark_complete,
    PutEvent: Store._put_event,
    Forget: lambda store, effect: store.forget(effect.name, effect.floor),
    Claim: lambda store, effect: store._note(effect.t),
    PutReservation: Store._put_reservation,
}
"""What writes each kind of effect."""

__all__ = ["StorageFailed", "Store"]
