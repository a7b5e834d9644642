"""About how many bytes a reply takes, and the values in a request. Pure.

Rows and values are counted where they stand, which is quick however long they are. What else a summary lists is encoded: there
is no bound to how long its parts are but that of a body, and to look at each in Python takes longer.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..adts.log import Summary
from .limits import ENTRY_BYTES
from .messages import (
    Accept,
    Accepted,
    Append,
    Changed,
    Collected,
    Commit,
    Reply,
    Request,
    Reserved,
    Row,
    Scanned,
)
from .values import BRACKET_BYTES, payload_bytes, text_bytes

REPLY_BYTES: Final = 200
"""What a reply weighs besides its entries."""
CHANGE_BYTES: Final = 50
"""What a changed object weighs besides its name, and what arrived there."""
TIMESTAMP_BYTES: Final = 30
_encode: Final = msgspec.msgpack.Encoder().encode


def weight(reply: Reply) -> int:
    """About how many bytes a reply takes."""
    if type(reply) is Collected:
        summary = 0 if reply.summary is None else summary_bytes(reply.summary)
        rows = _rows_bytes(reply.rows) if reply.rows else 0
        events = sum(ENTRY_BYTES + text_bytes(event) for _, event in reply.events) if reply.events else 0
        return REPLY_BYTES + rows + events + summary
    if type(reply) is Scanned:
        return REPLY_BYTES + sum(weight(collected) for _, collected in reply.objects)
    if type(reply) is Accepted and reply.then is not None:
        return REPLY_BYTES + weight(reply.then)
    if type(reply) is Reserved:
        return REPLY_BYTES + _encoded_bytes(reply.other)
    if type(reply) is Changed:
        names = sum(CHANGE_BYTES + text_bytes(change.object) for change in reply.objects)
        return REPLY_BYTES + names + TIMESTAMP_BYTES * sum(len(change.arrived) for change in reply.objects)
    return REPLY_BYTES


def summary_bytes(summary: Summary) -> int:
    """About how many bytes a summary takes."""
    return weighed(summary)[0]


def weighed(summary: Summary) -> tuple[int, int]:
    """About how many bytes a summary takes, and how much work it is to check and write what it carries, as `work_bytes` counts that."""
    value, rest = summary.value or "", _encode(replace(summary, value=None) if summary.value else summary)
    size = text_bytes(value) + _with_fields(rest)
    brackets = value.count("[") + value.count("{") + rest.count(b"[") + rest.count(b"{")
    return size, size + BRACKET_BYTES * brackets


def _encoded_bytes(part: Any) -> int:
    return _with_fields(_encode(part))


def _with_fields(encoded: bytes) -> int:
    """How many bytes it takes as MessagePack, and a fifth more, which JSON needs around each field."""
    return len(encoded) * 6 // 5


def _rows_bytes(rows: Sequence[Row]) -> int:
    """About how many bytes the entries of rows take. Of an id, a timestamp is part of what any entry weighs."""
    size = ENTRY_BYTES * len(rows)
    for row in rows:
        entry = row.entry
        value, id = entry.value, entry.id
        if isinstance(value, str):
            size += len(value) if value.isascii() else len(value.encode())
        size += max(0, (len(id) if id.isascii() else len(id.encode())) - TIMESTAMP_BYTES)
    return size


def carried_bytes(request: Request) -> int:
    """About how many bytes the values take that a request has with it."""
    match request:
        case Append():
            return payload_bytes(request.entries)
        case Accept() | Commit() if request.summary is not None:
            return summary_bytes(request.summary)
    return 0
