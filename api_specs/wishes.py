"""Wishes: what operations want a decision to do. Pure values; those here may be handed to another front end.

A wish that carries a key is decided by the front end that was called, and by no other: see `Ask`.
"""

from msgspec import Struct

from quorate.adts.log import Value


class Take(Struct, frozen=True, tag="take", omit_defaults=True, forbid_unknown_fields=True):
    """Take up to `items_max` from the front. Result: the entries, in order."""

    items_max: int
    key: str = ""


class Front(Struct, frozen=True, tag="front", forbid_unknown_fields=True):
    """The entry at the front, settled there: no other can come before it any more. Result: none or one entry."""


class Swap(Struct, frozen=True, tag="swap", omit_defaults=True, forbid_unknown_fields=True):
    """Set `new` if the value is `old`; or, `only_absent`, if the key is absent. Result: whether it was set."""

    old: Value | None
    new: Value | None
    only_absent: bool = False
    key: str = ""
