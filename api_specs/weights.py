"""About how many bytes a reply takes, and the values in a request, without encoding them. Pure."""

from typing import Final

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
    Scanned,
)
from .values import payload_bytes, text_bytes

REPLY_BYTES: Final = 200
"""What a reply weighs besides its entries."""
CHANGE_BYTES: Final = 50
"""What a changed object weighs besides its name, and what arrived there."""
TIMESTAMP_BYTES: Final = 30
HELD_BYTES: Final = 300
"""What is held under a key weighs besides its entries: the key, and ballots."""


def weight(reply: Reply) -> int:
    """About how many bytes a reply takes."""
    if isinstance(reply, Scanned):
        return REPLY_BYTES + sum(weight(collected) for _, collected in reply.objects)
    if isinstance(reply, Accepted) and reply.then is not None:
        return REPLY_BYTES + weight(reply.then)
    if isinstance(reply, Reserved):
        return REPLY_BYTES + sum(HELD_BYTES + len(held.entries) * ENTRY_BYTES for held in reply.other)
    if isinstance(reply, Changed):
        names = sum(CHANGE_BYTES + len(change.object) for change in reply.objects)
        return REPLY_BYTES + names + TIMESTAMP_BYTES * sum(len(change.arrived) for change in reply.objects)
    if not isinstance(reply, Collected):
        return REPLY_BYTES
    rows = len(reply.rows) * ENTRY_BYTES + payload_bytes(row.entry for row in reply.rows)
    events = sum(ENTRY_BYTES + len(event) for _, event in reply.events)
    return REPLY_BYTES + rows + events + (0 if reply.summary is None else summary_bytes(reply.summary))


def summary_bytes(summary: Summary) -> int:
    """About how many bytes a summary takes."""
    entries = [*summary.adopted, *summary.kept()]
    for decision in summary.recent:
        entries += decision.taken
    others = len(summary.ambiguous) + len(summary.recent) + len(summary.terms) + len(summary.settled)
    value = 0 if summary.value is None else text_bytes(summary.value)
    return value + payload_bytes(entries) + (len(entries) + others) * ENTRY_BYTES


def carried_bytes(request: Request) -> int:
    """About how many bytes the values take that a request has with it."""
    match request:
        case Append():
            return payload_bytes(request.entries)
        case Accept() | Commit() if request.summary is not None:
            return summary_bytes(request.summary)
    return 0
