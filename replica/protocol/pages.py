"""Pages of a log: as many rows as their payloads leave room for. Pure.

Owns where a page ends. What reads rows stops there, so that a page costs what it brings, and not what the log holds.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, TypeVar

from ...api_specs.messages import Row
from ...api_specs.values import payload_bytes

_Row = TypeVar("_Row")

value_in: Final[Callable[[Row], Any]] = attrgetter("entry.value")
"""The payload of a row."""


def read_until_full(
    rows: Iterable[_Row], value_of: Callable[[_Row], Any], bytes_max: int | None
) -> list[_Row]:
    """The first of `rows`, up to the one for which a page of so many bytes has no room: that one is the last, and says that there
    are more. The first one always has room; without `bytes_max`, all have."""
    return list(rows) if bytes_max is None else _until_full(rows, value_of, bytes_max)[0]


def page_of(rows: Iterable[Row], bytes_max: int) -> list[Row]:
    """The first of `rows`, as many as a page of so many bytes has room for, but at least one."""
    found, size = _until_full(rows, value_in, bytes_max)
    return found[:-1] if len(found) > 1 and size > bytes_max else found


def payloads_bytes(rows: Iterable[Row]) -> int:
    """Bytes of the payloads together."""
    return payload_bytes(row.entry for row in rows)


def _until_full(
    rows: Iterable[_Row], value_of: Callable[[_Row], Any], bytes_max: int
) -> tuple[list[_Row], int]:
    """What `read_until_full` finds, and the bytes of its payloads. It calls nothing of ours for a row: replicas read each item several
    times."""
    found: list[_Row] = []
    size = 0
    for row in rows:
        found.append(row)
        value = value_of(row)
        if isinstance(value, str):
            size += len(value) if value.isascii() else len(value.encode())
        if size > bytes_max and len(found) > 1:
            break
    return found, size
