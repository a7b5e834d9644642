"""Leases of a queue while a decision changes them: what is handed out, settled, or becomes a dead letter. Pure.

Owns every change of `Summary.leases`, `dead` and `settled`, and their bounds. Must not know how entries come to the front:
the caller passes the waiting ones, and lets the horizon pass those that were taken in here. Times decide only *when* an item
is handed out again; who may settle it is told by its token alone, so that no clock can have it accepted twice.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from quorate.adts.log import Dead, DeadReason, Ending, Entry, Leased, Seen, Settled, Summary
from quorate.adts.times import Times
from quorate.api_specs.limits import DEAD_MAX, LEASES_MAX, SETTLED_MAX
from quorate.api_specs.values import payload_bytes
from quorate.api_specs.wishes import Lend, Tend, Tended
from quorate.client_sdk.effects import Failed
from quorate.client_sdk.keys import digest
from quorate.timestamps.timestamp import Timestamp, wall_us

TOO_MANY_LEASES: Final = Failed(
    "refused",
    f"the queue has as many items handed out, or waiting to be, as it may ({LEASES_MAX}, and a bound on their payloads): "
    "settle some, or try again when some are due",
    definite=True,
)
TOO_MANY_DEAD: Final = Failed(
    "refused",
    f"the queue has as many dead letters as it may ({DEAD_MAX}, and a bound on their payloads): requeue or discard some, or "
    "reject without a dead letter",
    definite=True,
)


class Clear(Struct, frozen=True):
    """Clear these dead letters away, all if none is named: for good, or (`is_requeued`) to be handed out again.

    Result: how many."""

    ids: tuple[str, ...]
    is_requeued: bool


class Context(Struct, frozen=True):
    """What a change of leases needs to know."""

    earliest_us: int
    """True time is not before this, in microseconds since 1970: what deadlines are held against."""
    latest_us: int
    """True time is not after this: what spans are counted from."""
    leases_bytes_max: int


class Ledger:
    """The leases of one summary. `is_changed`: they are no longer what they were."""

    def __init__(self, summary: Summary, context: Context) -> None:
        self.is_changed = False
        self._context: Final = context
        self._records: Final = {record.entry.id: record for record in summary.leases}
        self._dead: Final = list(summary.dead)
        self._settled: Final = list(summary.settled)
        self._bytes = payload_bytes(record.entry for record in summary.leases)
        self._dead_bytes = payload_bytes(dead.entry for dead in summary.dead)

    @property
    def leases(self) -> tuple[Leased, ...]:
        """As a summary keeps them."""
        return tuple(self._records.values())

    @property
    def dead(self) -> tuple[Dead, ...]:
        """As a summary keeps them."""
        return tuple(self._dead)

    def settled_since(self, oldest: Timestamp) -> tuple[Settled, ...]:
        """How leases ended, but for what nobody repeats any more and what there is no room for."""
        oldest_us = wall_us(oldest)
        kept: list[Settled] = []
        room = SETTLED_MAX
        for each in reversed(self._settled):
            room -= len(each.tokens)
            if each.at_us < oldest_us or (kept and room < 0):
                break
            kept.append(each)
        return tuple(reversed(kept))

    def lend(
        self, wish: Lend, waiting: list[Seen], take: Callable[[Seen], None]
    ) -> tuple[Leased, ...] | Failed | None:
        """Hand out what the wish asks for; None when there is nothing now. `take` is called for each head of `waiting` that
        is kept here from now on. What comes before its time is kept until then, what comes too late is a dead letter."""
        given = self._lend_again(wish)
        while waiting and len(given) < wish.items_max:
            met = self._meet(waiting[0].entry, wish)
            if met is None:
                return tuple(given) or TOO_MANY_LEASES
            take(waiting.pop(0))
            given += [met] if met.is_held else []
        return tuple(given) or None

    def _lend_again(self, wish: Lend) -> list[Leased]:
        """Hand out items that were met before, in the order in which they were enqueued; bury those that are past it."""
        given: list[Leased] = []
        for record in sorted(self._records.values(), key=lambda record: record.entry.t):
            if len(given) == wish.items_max:
                break
            is_due = record.until_us < self._context.earliest_us
            if record.is_held and not is_due:
                continue
            if self._is_past(record.expires_us):
                self._bury(record, "expired")
            elif is_due and 0 < wish.deliveries_max <= record.deliveries - record.excused:
                self._bury(record, "deliveries")
            elif is_due:
                given.append(self._hand_out(record, wish))
        return given

    def _meet(self, entry: Entry, wish: Lend) -> Leased | None:
        """Take in the entry at the front, if there is room: handed out, or until it is due. None where there is none."""
        times = Times.of(entry.id)
        record = Leased(entry, times.due_us, expires_us=times.expires_us)
        if self._is_past(times.expires_us) and self._has_room_for_dead([entry]):
            self._bury(record, "expired")
            return record
        if not self._has_room_for(entry):
            return None
        if self._is_past(times.expires_us) or times.due_us >= self._context.earliest_us:
            self._put(record)
            return record
        return self._hand_out(record, wish)

    def _hand_out(self, record: Leased, wish: Lend) -> Leased:
        until_us = self._context.latest_us + wish.lease_us
        held = replace(record, until_us=until_us, deliveries=record.deliveries + 1, is_held=True)
        self._put(held)
        return held

    def tend(self, wish: Tend) -> Tended | Failed:
        """End or renew the leases that these tokens name, as far as they are still held."""
        held = {record.token: record for record in self._records.values() if record.is_held}
        tokens = dict.fromkeys(wish.tokens)
        if wish.how == "reject":
            rejected = [held[token].entry for token in tokens if token in held]
            if rejected and not self._has_room_for_dead(rejected):
                return TOO_MANY_DEAD
        until_us = self._context.latest_us + wish.span_us
        lost: list[str] = []
        ended: list[str] = []
        for token in tokens:
            if token not in held:
                lost += [token] if self._ending_of(token) != wish.how else []
            elif wish.how == "renew":
                self._put(replace(held[token], until_us=until_us))
            else:
                self._end(held[token], wish, until_us)
                ended.append(digest(token))
        if ended and wish.how != "renew":
            self._settled.append(Settled(self._context.latest_us, wish.how, tuple(ended)))
        return Tended(tuple(lost), until_us)

    def _end(self, record: Leased, wish: Tend, until_us: int) -> None:
        if wish.how == "release":
            self._put(replace(record, until_us=until_us if wish.span_us else 0, is_held=False))
        elif wish.how == "reject":
            self._bury(record, "rejected")
        else:
            self._drop(record)

    def _ending_of(self, token: str) -> Ending | None:
        """How that lease ended, if it was lately."""
        sought = digest(token)
        return next((each.how for each in self._settled if sought in each.tokens), None)

    def clear(self, wish: Clear) -> int | Failed:
        """Clear dead letters away; one that is requeued starts afresh, and expires no more."""
        cleared = [dead for dead in self._dead if not wish.ids or dead.entry.id in wish.ids]
        for number, dead in enumerate(cleared):
            if wish.is_requeued:
                if not self._has_room_for(dead.entry):
                    return number or TOO_MANY_LEASES
                self._put(Leased(dead.entry, deliveries=dead.deliveries, excused=dead.deliveries))
            self._dead.remove(dead)
            self._dead_bytes -= payload_bytes((dead.entry,))
            self.is_changed = True
        return len(cleared)

    def _is_past(self, time_us: int) -> bool:
        return 0 < time_us < self._context.earliest_us

    def _put(self, record: Leased) -> None:
        self._drop(record)
        self._records[record.entry.id] = record
        self._bytes += payload_bytes((record.entry,))

    def _drop(self, record: Leased) -> None:
        if (known := self._records.pop(record.entry.id, None)) is not None:
            self._bytes -= payload_bytes((known.entry,))
        self.is_changed = True

    def _bury(self, record: Leased, reason: DeadReason) -> None:
        """Make it a dead letter; while there is no room for one, it stays what it is, and is handed out to nobody."""
        if self._has_room_for_dead([record.entry]):
            self._drop(record)
            self._dead.append(Dead(record.entry, reason, record.deliveries))
            self._dead_bytes += payload_bytes((record.entry,))

    def _has_room_for(self, entry: Entry) -> bool:
        number, size = len(self._records) + 1, self._bytes + payload_bytes((entry,))
        return _fits(number, size, LEASES_MAX, self._context.leases_bytes_max)

    def _has_room_for_dead(self, entries: list[Entry]) -> bool:
        number, size = len(self._dead) + len(entries), self._dead_bytes + payload_bytes(entries)
        return _fits(number, size, DEAD_MAX, self._context.leases_bytes_max // 2)


def _fits(number: int, size: int, number_max: int, bytes_max: int) -> bool:
    """Whether so many may be kept; a single one may, whatever it weighs."""
    return number <= 1 or (number <= number_max and size <= bytes_max)


def is_too_heavy(summary: Summary, bytes_max: int) -> bool:
    """Whether the payloads of a summary's leases weigh more than they may, now that all are at hand."""
    leased = [record.entry for record in summary.leases]
    dead = [each.entry for each in summary.dead]
    return not (
        _fits(len(leased), payload_bytes(leased), LEASES_MAX, bytes_max)
        and _fits(len(dead), payload_bytes(dead), DEAD_MAX, bytes_max // 2)
    )
