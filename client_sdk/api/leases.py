"""Leases as callers see them: what an acquire or a loop gives, dead letters, and how many of both there are. Pure values."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ...adts.log import Dead, DeadReason, LeaseCounts, Leased
from ...api_specs.values import from_value
from ..protocol.core.values import How
from .calls import spans


class Lease(Struct, frozen=True):
    """An item that is delivered: nobody else is given it before `deadline` (seconds since 1970) has certainly passed.

    `id` names the item, however often it is delivered; `token` this delivery, and no other. `deliveries` counts them,
    this one included; `redelivered`: it is not the first, so somebody may have done part of the work.
    """

    value: Any
    id: str
    token: str
    deliveries: int
    deadline: float

    @property
    def redelivered(self) -> bool:
        """Whether the item was delivered before."""
        return self.deliveries > 1


class Delivery(Lease, frozen=True, eq=False):
    """A lease in a loop (`consume`), which renews it until the caller says what becomes of the item, or leaves the loop.

    Say it once for each item, in any thread of the process, in any order. The methods return at once; one call tells the replicas
    of all that has gathered. A lease that was lost raises LeaseLost: here where that is known, else at the next step of the loop.
    `deadline` is that of the first lease.
    """

    _end: Callable[[How, float], None]

    def ack(self) -> None:
        """The item is done with."""
        self._end("ack", 0.0)

    def release(self, *, delay_s: float = 0) -> None:
        """The item is delivered again, to whoever asks first, after `delay_s` seconds."""
        self._end("release", spans(delay_s, None).delay_s)

    def reject(self, *, dead_letter: bool = True) -> None:
        """The item is not to be delivered again: it becomes a dead letter, or (`dead_letter` False) is dropped."""
        self._end("reject" if dead_letter else "drop", 0.0)


class DeadLetter(Struct, frozen=True):
    """An item that is not delivered any more: "rejected", delivered too often ("deliveries"), or "expired"."""

    value: Any
    id: str
    reason: DeadReason
    deliveries: int


def lease_of(record: Leased) -> Lease:
    """What the caller gets of a record; its payload must be there."""
    assert isinstance(record.entry.value, str)
    value = from_value(record.entry.value)
    return Lease(value, record.entry.id, record.token, record.deliveries, record.until_us / 1e6)


def dead_letter_of(dead: Dead) -> DeadLetter:
    """What the caller gets of a dead letter."""
    assert isinstance(dead.entry.value, str)
    return DeadLetter(from_value(dead.entry.value), dead.entry.id, dead.reason, dead.deliveries)


__all__ = ["DeadLetter", "Delivery", "Lease", "LeaseCounts", "dead_letter_of", "lease_of"]
