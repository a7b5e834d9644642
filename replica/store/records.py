"""What a replica stores as the columns of its tables, each record with a check sum. Pure.

Damage on the disk must not become an answer: SQLite checks its pages only in the write-ahead log, and a bit that flips
inside a value changes nothing that it would see. CRC-32 finds every burst of up to 32 bits and all but one in four
thousand million of the rest; it is no defence against malice. Must not know which statement the columns are for.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from ...adts.log import Entry
from ...api_specs.messages import Row
from ...timestamps.timestamp import Timestamp
from ..protocol.log import ObjectState, Reservation
from .database import StorageFailed
from .statements import COMPLETE

_STATE_SUM_BYTES: Final = 4
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ObjectState).decode
_decode_held = msgspec.msgpack.Decoder(Reservation).decode


def with_sum(*columns: Any) -> tuple[Any, ...]:
    """The columns of an entry, an event or the counters, and their sum."""
    return (*columns, _sum(columns))


def columns_of_row(number: int, arrival: int, entry: Entry) -> tuple[Any, ...]:
    """A row of object `number` as it is stored, not marked complete."""
    t, entry_id, value = entry.t, entry.id, entry.value
    return number, t, arrival, entry_id, value, _sum_of_row(number, t, arrival, entry_id, value)


def row_of(number: int, columns: Sequence[Any]) -> Row:
    """The row of object `number` from its columns; StorageFailed when it is damaged."""
    t, arrival, entry_id, value, complete, found = columns
    # Marking a row complete raises its sum by as much (in SQL, where no sum can be computed).
    if _sum_of_row(number, t, arrival, entry_id, value) + complete * COMPLETE != found:
        raise damaged(f"the entry at {t}")
    return Row(Entry(entry_id, Timestamp(t), value), bool(complete))


def rows_of(number: int, found: Iterable[Sequence[Any]]) -> list[Row]:
    """The rows of object `number` from the columns of each; StorageFailed when one is damaged."""
    return [row_of(number, columns) for columns in found]


def without_sum(what: str, columns: Sequence[Any]) -> Sequence[Any]:
    """The columns but for their sum; StorageFailed, which names `what`, when they are damaged."""
    if _sum(columns[:-1]) != columns[-1]:
        raise damaged(what)
    return columns[:-1]


def blob_of(number: int, state: ObjectState) -> bytes:
    """The state of object `number` as it is stored, its sum in front."""
    encoded = _encode(state)
    return _state_sum(number, state.name, encoded) + encoded


def state_of(number: int, name: str, blob: bytes) -> ObjectState:
    """The state that was stored; StorageFailed when it is damaged."""
    encoded = blob[_STATE_SUM_BYTES:]
    if _state_sum(number, name, encoded) != blob[:_STATE_SUM_BYTES]:
        raise damaged(f"the state of {name}")
    return _decode(encoded)


def columns_of(number: int, key: bytes, held: Reservation) -> tuple[Any, ...]:
    """What is held under the digest of a key, as it is stored."""
    encoded = _encode(held)
    return number, key, encoded, _held_sum(number, key, encoded)


def held_of(columns: Sequence[Any]) -> Reservation:
    """What was held under the digest of a key; StorageFailed when it is damaged."""
    number, key, encoded, found = columns
    if _held_sum(number, key, encoded) != found:
        raise damaged("what is held under an idempotency key")
    return _decode_held(encoded)


def listed(timestamps: Sequence[Timestamp]) -> str:
    """Timestamps as the one parameter of a statement that looks for them."""
    return msgspec.json.encode(list(timestamps)).decode()


def progress_name(replica: str) -> str:
    """The name under which is kept how far the other replica's changes were looked at."""
    return f"caught-up {replica}"


def progress_text(replica: str, store: str, since: int) -> str:
    """How far, as text with a sum: the other one's store and the number of its change."""
    return f"{store} {since} {_sum((replica, store, since))}"


def progress_of(replica: str, text: str | None) -> tuple[str, int] | None:
    """What the text says; None without one, and for a damaged one: then all is looked at again."""
    parts = (text or "").split(" ")
    if len(parts) != 3 or not parts[1].isdecimal():
        return None
    store, since = parts[0], int(parts[1])
    return (store, since) if progress_text(replica, store, since) == text else None


def damaged(what: str) -> StorageFailed:
    """The error that says so."""
    return StorageFailed(f"the database is damaged: {what} is not as it was written")


def _sum(columns: Sequence[Any]) -> int:
    return crc32("\n".join(map(str, columns)).encode())


def _sum_of_row(number: int, t: str, arrival: int, entry_id: str, value: object) -> int:
    """The same as `_sum` of these, in half of its time: there is one for each item."""
    return crc32(f"{number}\n{t}\n{arrival}\n{entry_id}\n{value}".encode())


def _state_sum(number: int, name: str, encoded: bytes) -> bytes:
    return crc32(encoded, crc32(f"{number}\n{name}".encode())).to_bytes(_STATE_SUM_BYTES, "big")


def _held_sum(number: int, key: bytes, encoded: bytes) -> int:
    return crc32(encoded, crc32(key, number & 0xFFFFFFFF))
