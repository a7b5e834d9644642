"""Commands: what operations want a decision to do. Pure values; those here may be handed to another front end.

A command that carries a key is decided by the front end that was called, and by no other: see `ForwardedRequest`.
"""

from typing import Final, Literal

from msgspec import Struct

from ..adts.log import Value

IDEMPOTENCY_KEY_PATTERN: Final = r"[\x21-\x7e]{1,200}"
"""Printable ASCII without spaces: what a header holds as it is."""


class DequeueCommand(Struct, frozen=True, tag="dequeue", omit_defaults=True, forbid_unknown_fields=True):
    """Take up to `items_max` from the front. Result: the entries, in order."""

    items_max: int
    key: str = ""


class PeekCommand(Struct, frozen=True, tag="peek", forbid_unknown_fields=True):
    """The entry at the front, settled there: no other can come before it any more. Result: none or one entry."""


class AcquireCommand(Struct, frozen=True, tag="acquire", omit_defaults=True, forbid_unknown_fields=True):
    """Deliver up to `items_max` items under leases of `lease_us`: first those whose lease is over, then from the front.

    What was delivered `deliveries_max` times (0: no maximum) becomes a dead letter instead. `holder` names the caller: the
    tag of its token, or its front end. Result: the `Leased`.
    """

    items_max: int
    lease_us: int
    deliveries_max: int = 0
    holder: str = ""


class SettleCommand(Struct, frozen=True, tag="settle", omit_defaults=True, forbid_unknown_fields=True):
    """End these leases, or renew them. A repeat changes nothing and has the same result, a `SettleResult`. A renewal is the exception: each sets
    the deadline anew, even to an earlier one.

    * "accept": the items are acknowledged, done with. "reject": they become dead letters; "drop": they are gone.
    * "release": they wait to be delivered again, after `span_us`. "renew": the leases last `span_us` from now.
    """

    how: Literal["accept", "release", "reject", "drop", "renew"]
    tokens: tuple[str, ...]
    span_us: int = 0


class SettleResult(Struct, frozen=True, omit_defaults=True):
    """The tokens of those leases that were lost, so that nothing was done, and the deadline that others were renewed to."""

    lost: tuple[str, ...] = ()
    until_us: int = 0


class CompareAndSetCommand(
    Struct, frozen=True, tag="compare-and-set", omit_defaults=True, forbid_unknown_fields=True
):
    """Set `new` if the value is `old`; or, `only_absent`, if the key is absent. Result: whether it was set."""

    old: Value | None
    new: Value | None
    only_absent: bool = False
    key: str = ""


ForwardableCommand = DequeueCommand | PeekCommand | AcquireCommand | SettleCommand | CompareAndSetCommand
"""What may be forwarded."""
