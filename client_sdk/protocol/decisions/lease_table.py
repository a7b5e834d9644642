"""Leases of a queue while a decision changes them: what is delivered, settled, or becomes a dead letter. Pure.

Owns every change of `Summary.leases`, `dead` and `settled`, and their bounds. Must not know how entries come to the front:
the caller passes the waiting ones, and lets the horizon pass those that were taken in here. Times decide only *when* an item
is delivered again; who may settle it is told by its token alone, so that no clock can have it acknowledged twice.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ....adts.log import Dead, DeadReason, Ending, Entry, Leased, Seen, Settled, Summary
from ....adts.times import Times
from ....api_specs.commands import AcquireCommand, SettleCommand, SettleResult
from ....api_specs.limits import DEAD_MAX, DELIVERIES_MAX, LEASE_S_MAX, LEASES_MAX, SETTLED_MAX
from ....api_specs.values import payload_bytes
from ....timestamps.ballot import Ballot
from ..core.values import Failed
from .idempotency import digest

DIFFER_S_MAX: Final = 3600.0
"""How much later than one front end another one may take the present time to be, with a margin: a day without a clock that drifts takes
seconds, and replicas refuse stamps that are further ahead."""
TOO_MANY_LEASES: Final = Failed(
    "too-many-leases",
    f"the queue has as many items delivered, or waiting to be, as it may ({LEASES_MAX}, and a bound on their payloads), or "
    "this caller holds as many as are left for others",
    definite=True,
)
TOO_MANY_DEAD: Final = Failed(
    "too-many-dead-letters",
    f"the queue has as many dead letters as it may ({DEAD_MAX}, and a bound on their payloads)",
    definite=True,
)


class ClearCommand(Struct, frozen=True):
    """Clear these dead letters away, all if none is named: for good, or (`is_requeued`) to be delivered again.

    Result: how many."""

    ids: tuple[str, ...]
    is_requeued: bool


class PurgeDelayedCommand(Struct, frozen=True):
    """Purge the items that wait here and are due in so long or later (microseconds; 0: all that are not due). Result: how many."""

    due_after_us: int


class Context(Struct, frozen=True):
    """What a change of leases needs to know."""

    ballot: Ballot
    """Of the decision."""
    earliest_us: int
    """True time is not before this, in microseconds since 1970: what deadlines are held against."""
    latest_us: int
    """True time is not after this: what spans are counted from."""
    leases_bytes_max: int


def aged_parts(listed: Sequence[Ballot], old: Collection[Ballot]) -> int:
    """How many parts of a list, oldest first, are old: all up to the last one whose ballot a replica calls old.

    A ballot that is not in the list says nothing, though it be higher than others: it may have lost to them, which were
    decided later. Whoever lists the ballot goes on from the summary that was proposed under it, and so lists what stood before.
    """
    return max((place for place, ballot in enumerate(listed, 1) if ballot in old), default=0)


class Ledger:
    """The leases of one summary. `is_changed`: they are no longer what they were."""

    def __init__(self, summary: Summary, context: Context) -> None:
        self.is_changed = False
        self._context: Final = context
        self._records: Final = {record.entry.id: record for record in summary.leases}
        self._dead: Final = list(summary.dead)
        self._settled: Final = list(summary.settled)
        self._room, self._dead_room = _rooms(summary, context.leases_bytes_max)
        self._holder: str | None = None
        self._share = _Room(0, LEASES_MAX, 0, context.leases_bytes_max)
        """What of the room `_holder` has, the caller to whom items are being delivered."""

    @property
    def leases(self) -> tuple[Leased, ...]:
        """As a summary keeps them."""
        return tuple(self._records.values())

    @property
    def dead(self) -> tuple[Dead, ...]:
        """As a summary keeps them."""
        return tuple(self._dead)

    def settled_since(self, old: Collection[Ballot]) -> tuple[Settled, ...]:
        """How leases ended, but for what nobody repeats any more (up to one of `old`) and what there is no room for."""
        first = aged_parts([each.ballot for each in self._settled], old)
        kept: list[Settled] = []
        room = SETTLED_MAX
        for each in reversed(self._settled[first:]):
            room -= len(each.tokens)
            if kept and room < 0:
                break
            kept.append(each)
        return tuple(reversed(kept))

    def lend(
        self, command: AcquireCommand, waiting: list[Seen], take: Callable[[Seen], None]
    ) -> tuple[Leased, ...] | Failed | None:
        """Deliver what the command asks for; None when there is nothing now. `take` is called for each head of `waiting` that
        is taken from it. What comes before its time is kept until then, what comes too late is a dead letter or gone."""
        self._look_at(command.holder)
        given, is_withheld = self._acquire_again(command)
        while waiting and len(given) < command.items_max:
            met = self._meet(waiting[0].entry, command)
            if met is None:
                return tuple(given) or TOO_MANY_LEASES
            take(waiting.pop(0))
            given += [met] if met.is_held else []
        return tuple(given) or (TOO_MANY_LEASES if is_withheld else None)

    def _acquire_again(self, command: AcquireCommand) -> tuple[list[Leased], bool]:
        """Deliver items that were met before, in the order in which they were enqueued; make dead letters of those that are past it. And
        whether there are some for which the caller has no share left."""
        given: list[Leased] = []
        is_withheld = False
        for record in sorted(self._records.values(), key=lambda record: record.entry.t):
            if len(given) == command.items_max:
                break
            if self._is_running(record):
                continue
            is_due = record.is_held or record.until_us < self._context.earliest_us
            if self._is_expired(record):
                self._make_dead(record, "expired")
            elif is_due and self._is_spent(record, command):
                self._make_dead(record, "deliveries")
            elif is_due and self._may_hold(record):
                given.append(self._deliver(record, command))
            else:
                is_withheld = is_withheld or is_due
        return given, is_withheld

    def _look_at(self, holder: str) -> None:
        """Items are about to be delivered to this caller."""
        held = [record.entry for record in self._records.values() if record.holder == holder]
        self._holder, self._share = holder, _Room(0, LEASES_MAX, 0, self._context.leases_bytes_max).kept(held)

    def _may_hold(self, record: Leased) -> bool:
        """Whether the caller may hold this item, too: one in any case, and no more places and bytes than are left then for
        others (a threshold that moves: Choudhury and Hahne 1998). So no caller can have all, however long its leases last."""
        if record.holder == self._holder:
            return True
        share = self._share.kept((record.entry,))
        room = self._room if record.entry.id in self._records else self._room.kept((record.entry,))
        fits = share.number - 1 <= room.number_max - room.number and share.size <= room.bytes_max - room.size
        return share.number <= 1 or fits

    def _is_spent(self, record: Leased, command: AcquireCommand) -> bool:
        """Whether it was delivered as often as it may. The count itself has an end, for its messages have bounds."""
        counted = record.deliveries - record.excused
        return record.deliveries >= DELIVERIES_MAX or 0 < command.deliveries_max <= counted

    def _meet(self, entry: Entry, command: AcquireCommand) -> Leased | None:
        """Take in the entry at the front, if there is room: delivered, or until it is due. None where there is none."""
        times = Times.of(entry.id)
        record = Leased(entry, times.due_us, expires_us=times.expires_us)
        if self._is_past(times.expires_us):
            self._make_dead(record, "expired")
            return record
        if not self._room.kept((entry,)).is_enough:
            return None
        if times.due_us >= self._context.earliest_us:
            self._put(record)
            return record
        return self._deliver(record, command) if self._may_hold(record) else None

    def _deliver(self, record: Leased, command: AcquireCommand) -> Leased:
        until_us = self._context.latest_us + command.lease_us
        deliveries = record.deliveries + 1
        held = replace(record, until_us=until_us, deliveries=deliveries, is_held=True, holder=command.holder)
        self._put(held)
        return held

    def settle(self, command: SettleCommand) -> SettleResult | Failed:
        """End or renew the leases that these tokens name, as far as they are still held."""
        held = {record.token: record for record in self._records.values() if record.is_held}
        tokens = dict.fromkeys(command.tokens)
        if command.how == "reject":
            rejected = [held[token].entry for token in tokens if token in held]
            if rejected and not self._make_dead_room(rejected):
                return TOO_MANY_DEAD
        until_us = self._context.latest_us + command.span_us
        lost: list[str] = []
        ended: list[str] = []
        for token in tokens:
            if token not in held:
                lost += [token] if self._ending_of(token) != command.how else []
            elif command.how == "renew":
                self._put(replace(held[token], until_us=until_us))
            else:
                self._end(held[token], command, until_us)
                ended.append(digest(token))
        if ended and command.how != "renew":
            self._settled.append(Settled(self._context.ballot, command.how, tuple(ended)))
        return SettleResult(tuple(lost), until_us)

    def _end(self, record: Leased, command: SettleCommand, until_us: int) -> None:
        if command.how == "release":
            self._put(replace(record, until_us=until_us if command.span_us else 0, is_held=False))
        elif command.how == "reject":
            self._make_dead(record, "rejected")
        else:
            self._drop(record)

    def _ending_of(self, token: str) -> Ending | None:
        """How that lease ended, if it was lately."""
        sought = digest(token)
        return next((each.how for each in self._settled if sought in each.tokens), None)

    def clear(self, command: ClearCommand) -> int | Failed:
        """Clear dead letters away; one that is requeued starts afresh, and expires no more. Those that find no room stay."""
        named = [dead for dead in self._dead if not command.ids or dead.entry.id in command.ids]
        expired = [record for record in self._records.values() if self._is_expired(record)]
        cleared = 0
        for dead in named:
            if command.is_requeued and not self._make_room(dead.entry, expired):
                continue
            cleared += 1
            self._dead.remove(dead)
            self._dead_room = self._dead_room.left((dead.entry,))
            self.is_changed = True
            if command.is_requeued:
                self._put(Leased(dead.entry, deliveries=dead.deliveries, excused=dead.deliveries))
        return cleared if cleared or not named else TOO_MANY_LEASES

    def purge_delayed(self, command: PurgeDelayedCommand) -> int:
        """Drop items that nobody holds before they are due: else those of one caller could keep all room for as long as a delay may
        be. What was a dead letter is due at once, and stays."""
        from_us = self._context.earliest_us + command.due_after_us
        found = [each for each in self._records.values() if not each.is_held and each.until_us >= from_us]
        for record in found:
            self._drop(record)
        return len(found)

    def _make_room(self, letter: Entry, expired: list[Leased]) -> bool:
        """Make room among the leases for a dead letter: expired items, which nobody will be given, are gone. Whether there is."""
        if not self._room.left([record.entry for record in expired]).kept((letter,)).is_enough:
            return False
        while not self._room.kept((letter,)).is_enough:
            self._drop(expired.pop(0))
        return True

    def _is_expired(self, record: Leased) -> bool:
        """Whether it is past its expiry, and nobody's lease of it runs."""
        return self._is_past(record.expires_us) and not self._is_running(record)

    def _is_running(self, record: Leased) -> bool:
        """Whether it is held under a lease that is not over. One with more time left than leases are given for was given when
        clocks were ahead: it counts as over, or nobody would be handed the item until time has caught up. By how much two front
        ends may differ about the present time is no more time."""
        latest_us = self._context.latest_us + int((LEASE_S_MAX + DIFFER_S_MAX) * 1e6)
        return record.is_held and self._context.earliest_us <= record.until_us <= latest_us

    def _is_past(self, time_us: int) -> bool:
        return 0 < time_us < self._context.earliest_us

    def _put(self, record: Leased) -> None:
        self._drop(record)
        self._records[record.entry.id] = record
        self._room = self._room.kept((record.entry,))
        if record.holder == self._holder:
            self._share = self._share.kept((record.entry,))

    def _drop(self, record: Leased) -> None:
        if (known := self._records.pop(record.entry.id, None)) is not None:
            self._room = self._room.left((known.entry,))
            if known.holder == self._holder:
                self._share = self._share.left((known.entry,))
        self.is_changed = True

    def _make_dead(self, record: Leased, reason: DeadReason) -> None:
        """Make it a dead letter. Where others leave no room, an item that is expired is gone, or those would come to stop the queue; any other
        stays what it is, and is delivered to nobody."""
        if self._make_dead_room((record.entry,)):
            self._drop(record)
            self._dead.append(Dead(record.entry, reason, record.deliveries))
            self._dead_room = self._dead_room.kept((record.entry,))
        elif reason == "expired":
            self._drop(record)

    def _make_dead_room(self, entries: Collection[Entry]) -> bool:
        """Make room for these dead letters: the oldest that are there because they expired give way. Whether there is; else all stay."""
        gone: list[Dead] = []
        room = self._dead_room.kept(entries)
        expired = (dead for dead in self._dead if dead.reason == "expired")
        while not room.is_enough:
            if (oldest := next(expired, None)) is None:
                return False
            gone.append(oldest)
            room = room.left((oldest.entry,))
        for dead in gone:
            self._dead.remove(dead)
        self._dead_room = self._dead_room.left([dead.entry for dead in gone])
        return True


class _Room(Struct, frozen=True):
    """What a summary keeps of one kind, and how much of it at most."""

    number: int
    number_max: int
    size: int
    """Of the payloads, in bytes."""
    bytes_max: int

    @property
    def is_enough(self) -> bool:
        """Whether so much may be kept; a single entry may, whatever it weighs."""
        return self.number <= 1 or (self.number <= self.number_max and self.size <= self.bytes_max)

    def kept(self, entries: Collection[Entry]) -> "_Room":
        return replace(self, number=self.number + len(entries), size=self.size + payload_bytes(entries))

    def left(self, entries: Collection[Entry]) -> "_Room":
        return replace(self, number=self.number - len(entries), size=self.size - payload_bytes(entries))


def _rooms(summary: Summary, bytes_max: int) -> tuple[_Room, _Room]:
    """Of the leases, and of the dead letters."""
    room, dead_room = _Room(0, LEASES_MAX, 0, bytes_max), _Room(0, DEAD_MAX, 0, bytes_max // 2)
    return room.kept([record.entry for record in summary.leases]), dead_room.kept(
        [d.entry for d in summary.dead]
    )


def is_too_heavy(summary: Summary, bytes_max: int) -> bool:
    """Whether the payloads of a summary's leases weigh more than they may, now that all are at hand."""
    return not all(room.is_enough for room in _rooms(summary, bytes_max))


def is_share_exceeded(summary: Summary, holders: Collection[str], bytes_max: int) -> bool:
    """Whether one of these callers, who are about to be delivered items, holds more bytes than are left for others, now that all
    payloads are at hand. Also where it was within its share when others of the same batch took theirs: then the plan that is made
    anew is the same."""
    left = bytes_max - payload_bytes([record.entry for record in summary.leases])
    held = ([record.entry for record in summary.leases if record.holder == holder] for holder in holders)
    return any(len(entries) > 1 and payload_bytes(entries) > left for entries in held)
