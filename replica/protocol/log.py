"""What the replica machine asks of its store, and what it tells it to write. Pure: one real store, one simulated.

Who holds what: the store holds objects and logs; the machine decides on one request at a time from what it reads
through `Log`, and returns the writes as effects; the store applies them in the transaction of the whole batch. Effects are no part of a
cycle, so the garbage collector need not look at them (`gc=False`).
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from ...adts.log import NOTHING, Entry, Summary
from ...api_specs.messages import Row
from ...gc.collection import ended_at
from ...timestamps.ballot import NO_BALLOT, Ballot
from ...timestamps.timestamp import ZERO, Timestamp


class ObjectState(Struct, frozen=True, gc=False, omit_defaults=True):
    """All that a replica has promised for one object, besides its log.

    Rows at or below `collected` are history: no view needs them; they stay for the retry window and are then deleted.
    `floor` is the store's when it came to know the object: decisions of terms at or below it are of a forgotten life.
    `decided_by` is the arrival number by which it heard of the decision that made its horizon, or, where it came to nothing, of the latest one;
    0 for one of long ago.
    Of entries at or below `made_upto` that are not known to be complete it has rows from others, in place of a lost store, which may have
    had them or refused them.
    """

    name: str
    fence: Timestamp = ZERO
    promised: Timestamp = ZERO
    accepted: Ballot = NO_BALLOT
    summary: Summary = NOTHING
    committed: Ballot = NO_BALLOT
    horizon: Timestamp = ZERO
    collected: Timestamp = ZERO
    floor: Timestamp = ZERO
    decided_by: int = 0
    made_upto: Timestamp = ZERO

    def ended(self) -> Timestamp | None:
        """When it came to nothing, by what was accepted last; None where it is something."""
        return ended_at(self.name, self.summary, self.accepted)


def is_newly_ended(before: ObjectState | None, after: ObjectState) -> bool:
    """Whether the object came to nothing by what was accepted or decided now; what else changes, as who may decide next, ends nothing."""
    if (ended := after.ended()) is None:
        return False
    return before is None or (before.ended(), before.decided_by) != (ended, after.decided_by)


class Reservation(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a replica holds under an idempotency key: the ids and timestamps of its entries, accepted under `ballot` (ZERO:
    taken as the first to come); and the highest ballot that it has promised for the key."""

    promised: Timestamp = ZERO
    ballot: Timestamp = ZERO
    entries: tuple[Entry, ...] = ()


NOT_RESERVED: Final = Reservation()


class Log(Protocol):
    """Reads of one replica's store, within a transaction that also holds all effects applied before.

    `arrival` numbers rise by at least one with every row put and every decision that is committed, over all objects.
    """

    rollbacks: int
    """How many transactions were undone, whose numbers are given again."""

    @property
    def highest(self) -> Timestamp:
        """At or above every timestamp in the store, and in another replica's as far as that has told; never falls."""

    def state(self, name: str) -> ObjectState | None:
        """The object's state, or None when the store does not know it."""

    def floor(self) -> Timestamp:
        """Fence and promise of every object that the store does not know (what it forgot is at or below)."""

    def stored(self, name: str, timestamps: Sequence[Timestamp]) -> set[Timestamp]:
        """Those of `timestamps` that have a row, history included."""

    def arrivals(
        self, name: str, after: Timestamp, upto: Timestamp, since: int, limit: int, room: int | None = None
    ) -> list[tuple[int, Row]]:
        """Rows in (after, upto] with an arrival number above `since`, by arrival number, at most `limit`.

        Here and below, `room` ends the reading behind the row with which payloads fill a page of so many bytes
        (`quorate.replica.protocol.pages`).
        """

    def rows(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        """Rows above `after`, by timestamp, at most `limit`."""

    def newest(self, name: str, after: Timestamp, limit: int, room: int | None = None) -> list[Row]:
        """The newest rows above `after`, by timestamp, at most `limit`; where `room` cuts, the oldest are left out."""

    def nth(self, name: str, after: Timestamp, n: int) -> Timestamp | None:
        """The timestamp of the n-th row above `after` (of the last one when there are fewer; None without any)."""

    def below(self, name: str, timestamp: Timestamp) -> Timestamp | None:
        """The greatest timestamp of a row below `timestamp`."""

    def wanted(self, name: str, timestamps: Sequence[Timestamp], room: int | None = None) -> list[Row]:
        """The rows with these timestamps, which ascend or descend, in their order; history included, with payloads. As many as
        there is room for."""

    def arrival(self) -> int:
        """The arrival number of the latest row put, or of the latest decision committed if that came later."""

    def changed(self, since: int, above: int, limit: int) -> list[tuple[int, str]]:
        """Objects that a row was put to, or a decision committed of, after arrival number `since` (others may be among them):
        number and name, by number, those above `above`, at most `limit`."""

    def arrived(self, name: str, since: int, upto: int, limit: int) -> list[tuple[int, Timestamp]]:
        """Arrival number and timestamp of the object's rows that arrived after `since`, up to `upto`; newest first, at most
        `limit`."""

    def events(self, name: str, limit: int | None = None) -> list[tuple[Timestamp, str]]:
        """The newest decided events that the log keeps, by timestamp, at most `limit` (None: all)."""

    def names(self, prefix: str, after: str, limit: int) -> list[str]:
        """Names of known objects that start with `prefix`, above `after`, in order."""

    def reservation(self, name: str, key: str) -> Reservation:
        """What is held under the key of an operation on the object; NOT_RESERVED when there is nothing."""

    def reservations(self) -> int:
        """How many keys the store holds something under, of all objects."""


class PutReservation(Struct, frozen=True, gc=False):
    """Replace what is held under the key of an operation on the object."""

    name: str
    key: str
    held: Reservation


class PutRows(Struct, frozen=True, gc=False):
    """Add rows to the object's log, in this order; their timestamps differ, and are not there yet."""

    name: str
    entries: tuple[Entry, ...]


class PutState(Struct, frozen=True, gc=False):
    """Replace the object's state."""

    state: ObjectState


class PutEvent(Struct, frozen=True, gc=False):
    """Keep a decided event in the object's log."""

    name: str
    t: Timestamp
    event: str


class MarkComplete(Struct, frozen=True, gc=False):
    """Mark the rows with these timestamps as complete, where they exist."""

    name: str
    timestamps: tuple[Timestamp, ...]


class Forget(Struct, frozen=True, gc=False):
    """Delete the object and its log, and raise the store's floor to `floor`."""

    name: str
    floor: Timestamp


class Claim(Struct, frozen=True, gc=False):
    """What was put tells of this timestamp: the store's clock is not below it."""

    t: Timestamp


Effect = PutRows | PutState | PutEvent | MarkComplete | Forget | Claim | PutReservation
PROMISES: Final = frozenset((PutRows, PutState, PutReservation))
"""The effects that must not be forgotten."""
