"""Pages of a log: as many rows as their payloads leave room for. Pure.

Owns where a page ends. What reads rows stops there, so that a page costs what it brings, and not what the log holds.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...adts.log import Value
from ...api_specs.messages import Row
from ...api_specs.values import text_bytes

_Row = TypeVar("_Row")


def read_until_full(
    rows: Iterable[_Row], value_of: Callable[[_Row], object], bytes_max: int | None
) -> list[_Row]:
    """The first of `rows`, up to the one for which a page of so many bytes has no room: that one is the last, and says that there
    are more. The first one always has room; without `bytes_max`, all have."""
    if bytes_max is None:
        return list(rows)
    found: list[_Row] = []
    size = 0
    for row in rows:
        found.append(row)
        size += _size(value_of(row))
        if size > bytes_max and len(found) > 1:
            break
    return found


def page_of(rows: Iterable[Row], bytes_max: int) -> list[Row]:
    """The first of `rows`, as many as a page of so many bytes has room for, but at least one."""
    found = read_until_full(rows, value_in, bytes_max)
    return found[:-1] if len(found) > 1 and payloads_bytes(found) > bytes_max else found


def payloads_bytes(rows: Iterable[Row]) -> int:
    """Bytes of the payloads together."""
    return sum(map(_size, map(value_in, rows)))


def value_in(row: Row) -> object:
    """The payload of a row."""
    return row.entry.value


def _size(value: object) -> int:
    return text_bytes(Value(value)) if isinstance(value, str) else 0
