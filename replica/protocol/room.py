"""A request at a replica whose capacity is bounded: what it does where there is room, and what instead where there is none. Pure.

Owns the order of the two rules: whether there is room (`quorate.replica.protocol.capacity`), and what the machine does with or without it
(`quorate.replica.protocol.acceptor`). Must not know how use is counted, nor who asks.
"""

from typing import Protocol

from msgspec.structs import replace

from ...api_specs.limits import Capacity
from ...api_specs.messages import Append, Appended, Request
from .acceptor import Handled, handle, without_room
from .capacity import Holds, refused, refused_call, with_room
from .log import Log
from .refusals import Bounds


class Store(Log, Holds, Protocol):
    """A store that knows how much it holds."""


def handle_within(
    capacity: Capacity, request: Request, store: Store, now_us: int, bounds: Bounds, *, keeps_events: bool
) -> Handled:
    """The reply and its effects, as of `handle`; a refusal, or what is done instead, where the replica has as much as it may."""
    full = refused(request, store, capacity)
    if full is None and bounds.own_types:
        full = refused_call(request, store, bounds)
    if full is None:
        return handle(request, store, now_us, bounds, keeps_events)
    if isinstance(request, Append) and request.attempt == "repair":
        return _written_back(capacity, request, store, now_us, bounds, keeps_events=keeps_events) or (
            full,
            [],
        )
    instead = None if keeps_events else without_room(request, store, now_us, bounds)
    return (full, []) if instead is None else instead


def _written_back(
    capacity: Capacity, request: Append, store: Store, now_us: int, bounds: Bounds, *, keeps_events: bool
) -> Handled | None:
    """Entries that are written back are stored as far as the log has room, each for itself; None where it has none for any. Who writes back concludes
    nothing from an entry that is not stored, and has it decided."""
    if not (some := with_room(request, store, capacity)):
        return None
    reply, effects = handle(replace(request, entries=some), store, now_us, bounds, keeps_events)
    if isinstance(reply, Appended):
        here = {entry.t for entry, is_stored in zip(some, reply.stored, strict=True) if is_stored}
        reply = replace(reply, stored=tuple(entry.t in here for entry in request.entries))
    return reply, effects
