"""A request at a replica whose capacity is bounded: what it does where there is room, and what instead where there is none. Pure.

Owns the order of the two rules: whether there is room (`quorate.replica.protocol.capacity`), and what the machine does with or without it
(`quorate.replica.protocol.acceptor`). Must not know how use is counted, nor who asks.
"""

from typing import Protocol

from ...api_specs.limits import Capacity
from ...api_specs.messages import Request
from .acceptor import Handled, handle, without_room
from .capacity import Holds, refused, refused_call
from .log import Log
from .refusals import Bounds


class Store(Log, Holds, Protocol):
    """A store that knows how much it holds."""


def handle_within(
    capacity: Capacity, request: Request, store: Store, now_us: int, bounds: Bounds, *, keeps_events: bool
) -> Handled:
    """The reply and its effects, as of `handle`; a refusal, or what is done instead, where the replica has as much as it may."""
    full = refused(request, store, capacity) or refused_call(request, store, bounds)
    if full is None:
        return handle(request, store, now_us, bounds, keeps_events)
    instead = None if keeps_events else without_room(request, store, now_us, bounds)
    return (full, []) if instead is None else instead
