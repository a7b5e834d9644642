"""The days that error budgets are burnt by: those of UTC, or those of the plan where a run's time was scaled. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from .aggregates import Span
from .phrases import EARLIEST_S, LATEST_S

DAY_US: Final = 86_400_000_000
DAYS_MAX: Final = 3660
"""Ten years. Of more days, as many are taken together as it needs to be no more."""


EPOCH: Final = date(1970, 1, 1)


def date_of(day: int) -> str:
    """The date of a day by its number since 1970 (UTC).

    >>> date_of(20758)
    '2026-11-01'
    """
    return (EPOCH + timedelta(days=day)).isoformat()


def span_of_dates(first: str, last: str) -> Span:
    """From the first moment of one date to the end of another.

    Raises:
        ValueError: one of them is no date.
    """
    start, end = (((date.fromisoformat(each) - EPOCH).days) * DAY_US for each in (first, last))
    return Span(start, end + DAY_US)


@dataclass(frozen=True, slots=True)
class Days:
    """Stretches of one length from one moment on; `is_dated` if they can be named by dates."""

    origin_us: int
    length_us: int
    is_dated: bool

    def number(self, time_us: int) -> int:
        """The number of the day that holds a moment."""
        return (time_us - self.origin_us) // self.length_us

    def name(self, number: int) -> str:
        """The date of a day; `day 1` for the first where times are no dates."""
        if not self.is_dated:
            return f"day {number + 1}"
        start_s = (self.origin_us + number * self.length_us) / 1e6
        return f"{datetime.fromtimestamp(start_s, tz=UTC):%Y-%m-%d}"

    def parts(self, start_us: int, end_us: int) -> Iterator[tuple[int, int]]:
        """Each day that an interval touches, and how long."""
        for number in range(self.number(start_us), self.number(end_us - 1) + 1):
            day_us = self.origin_us + number * self.length_us
            yield number, min(end_us, day_us + self.length_us) - max(start_us, day_us)


def days_of(span: Span, time_scale: float) -> Days:
    """The days of a measurement: those of the plan where a run's time was scaled. Days that are no dates begin with the window."""
    if time_scale != 1:
        length_us = max(1, round(DAY_US / time_scale))
        return Days(span.start_us, length_us * _together(span, length_us), is_dated=False)
    is_dated = span.start_us >= EARLIEST_S * 1e6 and span.end_us < LATEST_S * 1e6
    return Days(
        span.start_us // DAY_US * DAY_US if is_dated else span.start_us,
        DAY_US * _together(span, DAY_US),
        is_dated,
    )


def _together(span: Span, length_us: int) -> int:
    return (span.end_us - span.start_us) // (length_us * DAYS_MAX) + 1
