"""Timestamps: the total order of entries, decisions and fences. Pure: text in, text out.

A timestamp is kept everywhere in its text form `WALL.COUNTER.SITE` (14 and 4 hexadecimal digits, then the site id),
because that form sorts as the timestamp does: in Python, in SQLite and in a user's own tools alike.
"""

import re
from functools import lru_cache
from typing import Final, NewType

Timestamp = NewType("Timestamp", str)

WALL_US_MAX: Final = (1 << 56) - 1
COUNTER_MAX: Final = (1 << 16) - 1

# Characters that sort below every digit and letter are kept out of a site id: a site id that is a prefix of another
# would otherwise sort differently inside a ballot, where "/" follows it.
SITE_PATTERN: Final = r"[a-z0-9]{1,32}"
TIMESTAMP_PATTERN: Final = rf"[0-9a-f]{{14}}\.[0-9a-f]{{4}}\.{SITE_PATTERN}"

_SITE = re.compile(SITE_PATTERN)
_TIMESTAMP = re.compile(TIMESTAMP_PATTERN)

ZERO: Final = Timestamp("00000000000000.0000.0")
"""Below every timestamp that a clock gives: the horizon and the fence of an object nobody has touched."""

INFINITY: Final = Timestamp("ffffffffffffff.ffff.zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz")
"""Above every timestamp that a clock gives: the end of a window that reaches to the end of a log."""


def make(wall_us: int, counter: int, site: str) -> Timestamp:
    """The timestamp of `wall_us` (microseconds since 1970), `counter` and `site`; ValueError names the part out of range."""
    if not 0 <= wall_us <= WALL_US_MAX:
        raise ValueError(f"wall_us {wall_us} is outside 0..{WALL_US_MAX}: check the clock")
    if not 0 <= counter <= COUNTER_MAX:
        raise ValueError(f"counter {counter} is outside 0..{COUNTER_MAX}")
    if not _is_site(site):
        raise ValueError(f"site id {site!r} does not match {SITE_PATTERN}")
    return Timestamp(f"{wall_us:014x}.{counter:04x}.{site}")


@lru_cache(maxsize=64)
def _is_site(text: str) -> bool:
    return _SITE.fullmatch(text) is not None


def parse(text: str) -> Timestamp:
    """`text` as a timestamp; ValueError when it is not the text form of one."""
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(
            f"{text[:80]!r} is not a timestamp: 14 hex digits, '.', 4 hex digits, '.', a site id"
        )
    return Timestamp(text)


def wall_us(timestamp: Timestamp) -> int:
    """Microseconds since 1970 that `timestamp` names."""
    return int(timestamp[:14], 16)


def counter(timestamp: Timestamp) -> int:
    """The logical part of `timestamp`."""
    return int(timestamp[15:19], 16)


def site(timestamp: Timestamp) -> str:
    """The site whose clock gave `timestamp`."""
    return timestamp[20:]


def risen(timestamp: Timestamp) -> Timestamp:
    """The next one above `timestamp` of the same site; itself where there is none."""
    if (passed := counter(timestamp)) < COUNTER_MAX:
        return Timestamp(f"{timestamp[:15]}{passed + 1:04x}{timestamp[19:]}")
    above_us = min(wall_us(timestamp) + 1, WALL_US_MAX)
    return max(timestamp, make(above_us, 0, site(timestamp)))
