"""The cell: one current value, the newest. Registers and dictionary entries are cells; they differ in words only."""

from collections.abc import Mapping

from ..timestamps.timestamp import Timestamp
from .log import Seen, Summary, Value


def current(summary: Summary, seen: Mapping[str, Seen]) -> tuple[Timestamp, Value | None, Seen | None]:
    """Timestamp and value of the newest of summary and entries; the entry too, when the value comes from one.

    Values must be present in `seen`.
    """
    newest = max(seen.values(), key=lambda found: found.entry.t, default=None)
    if newest is None or newest.entry.t <= summary.horizon:
        return summary.horizon, summary.value, None
    value = newest.entry.value
    assert value is None or isinstance(value, str), "a cell's entries come with their values"
    return newest.entry.t, value, newest
