"""The days by which error budgets are burnt."""

from quorate.spark_reports.model.aggregates import Span
from quorate.spark_reports.model.days import DAY_US, DAYS_MAX, Days, date_of, days_of, span_of_dates

NOVEMBER_US = 1_793_491_200_000_000
HOUR_US = 3_600_000_000


def test_days_are_those_of_utc() -> None:
    days = days_of(Span(NOVEMBER_US + 12 * HOUR_US, NOVEMBER_US + 3 * DAY_US), 1)
    assert [
        days.name(days.number(NOVEMBER_US + at)) for at in (12 * HOUR_US, DAY_US - 1, DAY_US, 71 * HOUR_US)
    ] == [
        "2026-11-01",
        "2026-11-01",
        "2026-11-02",
        "2026-11-03",
    ]


def test_of_a_scaled_run_they_are_the_plans() -> None:
    """Of a plan of a second for an hour, a day is 24 s."""
    days = days_of(Span(NOVEMBER_US + 5, NOVEMBER_US + 5 + 168_000_000), 3600)
    assert [days.name(days.number(NOVEMBER_US + 5 + at)) for at in (0, 23_999_999, 24_000_000)] == [
        "day 1",
        "day 1",
        "day 2",
    ]


def test_of_a_trace_that_counts_from_zero_they_begin_with_it() -> None:
    days = days_of(Span(7 * HOUR_US, 80 * HOUR_US), 1)
    assert (days.name(days.number(30 * HOUR_US)), days.name(days.number(31 * HOUR_US))) == ("day 1", "day 2")


def test_an_interval_is_parted_at_midnight() -> None:
    days = Days(100, 10, is_dated=False)
    assert list(days.parts(105, 131)) == [(0, 5), (1, 10), (2, 10), (3, 1)]
    assert list(days.parts(110, 120)) == [(1, 10)]
    assert list(days.parts(110, 110)) == []


def test_of_very_many_days_several_are_taken_together() -> None:
    longest = days_of(Span(0, 10**11 * 1_000_000), 1)
    assert longest.number(10**11 * 1_000_000) <= DAYS_MAX
    assert longest.length_us % DAY_US == 0
    scaled = days_of(Span(0, 200_000_000), 1e11)
    assert scaled.number(200_000_000) <= DAYS_MAX


def test_dates_and_numbers_of_days_since_1970() -> None:
    assert [date_of(day) for day in (0, 59, 20_758)] == ["1970-01-01", "1970-03-01", "2026-11-01"]
    assert span_of_dates("2026-11-01", "2026-11-02") == Span(NOVEMBER_US, NOVEMBER_US + 2 * DAY_US)
