"""The time that a report is asked for: from one moment to another, or the last stretch of what there is. Pure.

A row counts if its time lies within: `from_us` itself does, `to_us` does not, so that one month ends where the next begins.
Nothing else of the input does, neither figures nor rows kept aside.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import floor, isfinite
from re import fullmatch
from typing import Any, Final

from .aggregates import Span, microseconds
from .contract import TIME_S_MAX
from .days import DAY_US
from .errors import ReportError
from .phrases import moment
from .run_document import Run

END_US: Final = microseconds(TIME_S_MAX) + 1
"""After every time that a row may have."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS: Final = r"[0-9]{1,12}(\.[0-9]{1,6})?"
_ISO_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """The time whose rows count, in microseconds since 1970 (UTC); None where it is open."""

    from_us: int | None
    to_us: int | None

    @property
    def start_us(self) -> int:
        """The first moment whose rows count."""
        return 0 if self.from_us is None else self.from_us

    @property
    def end_us(self) -> int:
        """The moment after the last whose rows count."""
        return END_US if self.to_us is None else self.to_us

    @property
    def around_s(self) -> tuple[int, int]:
        """Whole seconds that hold all of it, before any rounding: what Parquet is asked for."""
        return floor(self.start_us / 1e6) - 1, floor(self.end_us / 1e6) + 2

    @property
    def around_days(self) -> tuple[date, date]:
        """The first and last day (UTC) whose folder of Parquet is looked into; one more at both ends, for days of other time zones."""
        first, last = map(_day, self.around_s)
        return first - timedelta(days=first > date.min), last + timedelta(days=last < date.max)

    def holds(self, time_s: Any) -> bool:
        """Whether a time as a row has it, in seconds, lies within; what is no plausible time does not."""
        return (
            isinstance(time_s, int | float)
            and isfinite(time_s)
            and 0 <= time_s <= TIME_S_MAX
            and self.start_us <= microseconds(time_s) < self.end_us
        )

    def cut(self, start_us: int, end_us: int) -> tuple[int, int] | None:
        """The part of an interval that lies within; None for one that lies outside."""
        outside = start_us >= self.end_us or (end_us <= self.start_us and start_us < self.start_us)
        return None if outside else (max(start_us, self.start_us), min(end_us, self.end_us))

    def may_hold_day(self, day: str) -> bool:
        """Whether a folder of Parquet named for a day is looked into; one whose name is no day always is."""
        try:
            named = date.fromisoformat(day) if fullmatch(_ISO_DAY, day) else None
        except ValueError:
            named = None
        return named is None or self.around_days[0] <= named <= self.around_days[1]

    def is_of_whole_days(self) -> bool:
        """Whether it begins and ends with days (UTC)."""
        return not any(each is not None and each % DAY_US for each in (self.from_us, self.to_us))

    def __str__(self) -> str:
        """In words: `from 2026-11-01 00:00:00 UTC to 2026-12-01 00:00:00 UTC`, or one of both."""
        said = [] if self.from_us is None else [f"from {moment(self.from_us)}"]
        said += [] if self.to_us is None else [f"to {moment(self.to_us)}"]
        return " ".join(said)


def _day(time_s: int) -> date:
    """The day (UTC) of a time, or the nearest that can be written."""
    days = max(0, time_s) // 86_400
    return date.fromordinal(min(date(1970, 1, 1).toordinal() + days, date.max.toordinal()))


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: one moment, or both, or the `last_us` microseconds before `to_us`, or before the end of what there is.

    Raises:
        ReportError: there is no time between the moments, or too much is said.
    """

    from_us: int | None = None
    to_us: int | None = None
    last_us: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no time is."""
        if self.last_us is not None and self.from_us is not None:
            raise ReportError("--last says where the time begins, and so does --from: leave one of them out")
        if self.last_us is not None and self.last_us <= 0:
            raise ReportError("--last is no time; give more than 0, as 30d")
        if self.from_us is not None and self.to_us is not None and self.from_us >= self.to_us:
            raise ReportError(
                f"--from, {moment(self.from_us)}, is not before --to, {moment(self.to_us)}; --to is the moment after the last "
                "that counts"
            )

    def period(self, known: Callable[[], Span | None]) -> ReportPeriod | None:
        """The time whose rows count; None for all. `known` gives the time that the input speaks of, and is called if need be."""
        if self.last_us is not None:
            return self._last(self.to_us, known)
        return None if self == EVERYTHING else ReportPeriod(self.from_us, self.to_us)

    def _last(self, to_us: int | None, known: Callable[[], Span | None]) -> ReportPeriod | None:
        if to_us is None:
            span = known()
            if span is None:
                return None
            to_us = span.end_us
        assert self.last_us is not None
        return ReportPeriod(max(0, to_us - self.last_us), to_us)


EVERYTHING: Final = Asked()
"""All time that the input speaks of."""


def run_within(run: Run, period: ReportPeriod | None) -> Run:
    """The run with its window cut to the period.

    Raises:
        ReportError: they have no time in common.
    """
    if period is None or run.window is None:
        return run
    cut = period.cut(*run.window)
    if cut is None or cut[0] >= cut[1]:
        raise nothing_within("the run", period, run.window)
    return replace(run, window=Span(*cut))


def nothing_within(what: object, period: ReportPeriod, known: Span | None) -> ReportError:
    """Give the error for a period without data. `known` is the time that there is."""
    if known is None:
        return ReportError(f"{what} has nothing {period}, nor at any other time that can be told")
    return ReportError(
        f"{what} has nothing {period}: it speaks of the time from {moment(known.start_us)} to {moment(known.end_us)}"
    )


def read_moment(text: str) -> int:
    """Microseconds since 1970 of a date, a time, both as ISO 8601 writes them, or of plain seconds; UTC where no offset is given.

    >>> read_moment("2026-11-01") == read_moment("2026-11-01T01:00+01:00") == read_moment("1793491200")
    True

    Raises:
        ValueError: it is none of them; the message goes on from "write".
    """
    if fullmatch(_SECONDS, text):
        found = microseconds(float(text))
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("a date or time (UTC), as 2026-11-01 or 2026-11-30T12:00Z") from None
        found = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    if not 0 <= found < END_US:
        raise ValueError("a time from 1970 on")
    return found
