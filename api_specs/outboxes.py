"""Outboxes: where enqueues wait at one replica until that relays them to their queue (a transactional outbox with its message relay). Pure.

The outbox of the queue `queue/mail` at r1 is itself a queue, `queue/mail@r1`, of which r1 alone is a quorum. Its items are records: what is to be
enqueued, under which idempotency key. So a record that is relayed twice, or was stored in two outboxes, is one item while the key is remembered.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from ..adts.log import Entry, Value
from ..adts.types.catalogue import adt_of
from ..timestamps.timestamp import parse, wall_us
from .limits import DELAY_S_MAX
from .messages import Accept, Append, Commit

MARK: Final = "@"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,220}")
"""A caller's idempotency key, or a timestamp, and which of its items it is."""
_decode: Final = msgspec.json.Decoder(tuple[str, int, float, float, msgspec.Raw]).decode


class BadRecord(ValueError):
    """An item of an outbox that is no record, or one that no enqueue leaves there: somebody else has enqueued it."""


class Outbox(NamedTuple):
    """Whose outbox it is, and at which replica."""

    queue: str
    replica: str

    @property
    def name(self) -> str:
        """The object's."""
        return f"{self.queue}{MARK}{self.replica}"


class Record(NamedTuple):
    """What is to be enqueued: a value, under a key. It is due after `delay_s`, and expires after `expires_s`, counted from `since_us`: a repeat says the
    same, or it would be another enqueue under the same key."""

    key: str
    value: Value
    since_us: int = 0
    delay_s: float = 0.0
    expires_s: float = 0.0

    def text(self) -> Value:
        """As an outbox keeps it."""
        rest = msgspec.json.encode((self.key, self.since_us, self.delay_s, self.expires_s)).decode()
        return Value(f"{rest[:-1]},{self.value}]")


def outbox_named(name: str) -> Outbox | None:
    """The outbox that an object of this name is, if its queue has outboxes."""
    queue, mark, replica = name.rpartition(MARK)
    return Outbox(queue, replica) if mark and adt_of(queue) == "queue" and "/" in queue else None


def record_of(text: Value) -> Record:
    """The record that an outbox keeps as this text; BadRecord where it is none."""
    try:
        key, since_us, delay_s, expires_s, value = _decode(text)
    except msgspec.DecodeError as error:
        raise BadRecord(str(error)) from None
    if not _KEY.fullmatch(key):
        raise BadRecord("its key is none that an enqueue has")
    if since_us < 0 or not (0 <= delay_s <= DELAY_S_MAX and 0 <= expires_s <= DELAY_S_MAX):
        raise BadRecord("its times are none that an enqueue has")
    return Record(key, Value(bytes(value).decode()), since_us, delay_s, expires_s)


def check_records(request: Append | Accept | Commit, offset_max_s: float) -> None:
    """Raises BadRecord unless the entries that the request brings to an outbox are records as enqueues leave them there: its relay could do nothing
    with others, and has room for few of them. Clocks are apart by that much at most."""
    for place, entry in _brought(request):
        try:
            _check_record(entry, offset_max_s)
        except BadRecord as error:
            raise BadRecord(
                f"{place}: {request.object} keeps what its queue's enqueues leave there: {error}"
            ) from None


def _brought(request: Append | Accept | Commit) -> Iterator[tuple[str, Entry]]:
    """What the relay would meet, and where in the request it stands. A dead letter it does not."""
    if isinstance(request, Append):
        yield from ((f"entries[{place}]", entry) for place, entry in enumerate(request.entries))
    elif request.summary is not None:
        yield from ((f"adopted[{place}]", entry) for place, entry in enumerate(request.summary.adopted))
        for place, lease in enumerate(request.summary.leases):
            yield f"leases[{place}]", lease.entry


def _check_record(entry: Entry, offset_max_s: float) -> None:
    """An enqueue has its times in the record: one with times in its id would wait here until then, or become a dead letter."""
    try:
        parse(entry.id)
    except ValueError:
        raise BadRecord("its id is none that an enqueue gives, which is a timestamp") from None
    if (
        isinstance(entry.value, str)
        and record_of(entry.value).since_us > wall_us(entry.t) + 2e6 * offset_max_s
    ):
        raise BadRecord("it counts its times from later than it is stored")
