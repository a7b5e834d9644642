"""Leases as callers see them: what an acquire gives, dead letters, and how many of both there are. Pure values."""

from typing import Any

from msgspec import Struct

from ...adts.log import Dead, DeadReason, LeaseCounts, Leased
from ...api_specs.values import from_value


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


__all__ = ["DeadLetter", "Lease", "LeaseCounts", "dead_letter_of", "lease_of"]
