"""When an item of a queue may be delivered under a lease: not before it is due, not after it has expired. Pure.

The times are part of the entry's id, `STAMP/DIGEST/DUE-EXPIRES` (microseconds since 1970, 0 for none): so they go wherever
the entry goes, named without its payload or reserved under an idempotency key, and an item without times costs nothing.
Plain dequeues take no notice of them.
"""

import re
from typing import Final

from msgspec import Struct

_TIMES: Final = re.compile(r"[^/]*/[^/]*/([0-9]{1,17})-([0-9]{1,17})")


class Times(Struct, frozen=True):
    """When an item is due, and when it expires; 0 stands for at once, and for never."""

    due_us: int = 0
    expires_us: int = 0

    @classmethod
    def of(cls, entry_id: str) -> "Times":
        """The times that an entry's id tells of."""
        found = _TIMES.fullmatch(entry_id)
        return NO_TIMES if found is None else cls(int(found[1]), int(found[2]))


NO_TIMES: Final = Times()


def entry_id(stamp: str, digest: str, times: Times) -> str:
    """The id of an entry first stamped `stamp`; `digest` says what is added, under an idempotency key."""
    if times != NO_TIMES:
        return f"{stamp}/{digest}/{times.due_us}-{times.expires_us}"
    return f"{stamp}/{digest}" if digest else stamp


def digest_in(entry_id: str) -> str:
    """The digest that an id holds; empty where there is none."""
    return entry_id.split("/")[1] if "/" in entry_id else ""
