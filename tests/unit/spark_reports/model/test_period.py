"""The time that a report is asked for."""

from datetime import date

import pytest

from quorate.spark_reports.model.aggregates import Span
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.period import (
    EVERYTHING,
    Asked,
    ReportPeriod,
    nothing_within,
    read_moment,
    run_within,
)
from quorate.spark_reports.model.run_document import Run

NOVEMBER_S = 1_793_491_200
NOVEMBER_US = NOVEMBER_S * 1_000_000
DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("2026-11-01", NOVEMBER_US),
        ("2026-11-01T00:00", NOVEMBER_US),
        ("2026-11-01 00:00:00Z", NOVEMBER_US),
        ("2026-11-01T02:00+02:00", NOVEMBER_US),
        ("2026-11-01T00:00:00.000001", NOVEMBER_US + 1),
        (str(NOVEMBER_S), NOVEMBER_US),
        ("90.5", 90_500_000),
        ("0", 0),
    ],
)
def test_a_moment_is_a_date_a_time_or_seconds(text: str, time_us: int) -> None:
    assert read_moment(text) == time_us


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "", "1969-12-31", "-5", "999999999999"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a (date or )?time"):
        read_moment(text)


def test_the_first_moment_counts_and_the_last_does_not() -> None:
    period = ReportPeriod(10_000_000, 20_000_000)
    assert [period.holds(time_s) for time_s in (9.999999, 10, 10.0, 19.999999, 20.0)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not any(map(period.holds, (None, float("nan"), float("inf"), "15", -1.0)))
    assert not ReportPeriod(None, None).holds(1e11 + 1)
    assert ReportPeriod(None, None).holds(1e11)


def test_an_interval_is_cut_to_the_period() -> None:
    period = ReportPeriod(10, 20)
    assert [period.cut(*ends) for ends in ((0, 10), (0, 11), (12, 15), (19, 30), (20, 30), (5, 40))] == [
        None,
        (10, 11),
        (12, 15),
        (19, 20),
        None,
        (10, 20),
    ]
    assert period.cut(10, 10) == (10, 10), "a row that speaks of no time at that moment is one of the period"
    assert ReportPeriod(None, 20).cut(0, 30) == (0, 20)


def test_folders_of_the_days_and_of_one_more_at_both_ends_are_looked_into() -> None:
    period = ReportPeriod(NOVEMBER_US, NOVEMBER_US + DAY_US)
    assert period.around_days == (date(2026, 10, 30), date(2026, 11, 3)), (
        "a second around it is in the days before and after"
    )
    days = ("2026-10-29", "2026-10-31", "2026-11-01", "2026-11-03", "2026-11-04", "7", "2026-99-99")
    assert [period.may_hold_day(day) for day in days] == [False, True, True, True, False, True, True]
    assert ReportPeriod(None, None).may_hold_day("5138-11-16")


def test_the_last_days_are_counted_back_from_what_there_is_or_from_the_end_that_is_asked_for() -> None:
    week = Asked(last_us=7 * DAY_US)
    assert week.period(lambda: Span(0, 30 * DAY_US)) == ReportPeriod(23 * DAY_US, 30 * DAY_US)
    assert week.period(lambda: Span(0, DAY_US)) == ReportPeriod(0, DAY_US)
    assert week.period(lambda: None) is None
    assert Asked(to_us=10 * DAY_US, last_us=DAY_US).period(unasked) == ReportPeriod(9 * DAY_US, 10 * DAY_US)


def unasked() -> Span | None:
    raise AssertionError("nobody need look through the input for its end")


def test_nothing_asked_is_everything() -> None:
    assert EVERYTHING.period(unasked) is None
    assert Asked(from_us=5).period(unasked) == ReportPeriod(5, None)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"from_us": 5, "last_us": 5}, "leave one of them out"),
        ({"last_us": 0}, "--last is no time"),
        ({"from_us": NOVEMBER_US, "to_us": NOVEMBER_US}, "2026-11-01 00:00:00 UTC, is not before --to"),
    ],
)
def test_what_no_time_is_is_refused(asked: dict[str, int], sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        Asked(**asked)


def test_the_window_of_a_run_is_cut_and_must_have_time_in_common() -> None:
    run = Run(votes={"r1": 1}, window=Span(100, 200))
    assert run_within(run, ReportPeriod(150, None)).window == Span(150, 200)
    assert run_within(run, None) is run
    with pytest.raises(ReportError, match=r"nothing from 0.0002 s: .* from 0.0001 s to 0.0002 s"):
        run_within(run, ReportPeriod(200, None))


def test_the_sentence_names_the_time_that_there_is() -> None:
    said = str(
        nothing_within(
            "up.csv", ReportPeriod(NOVEMBER_US, None), Span(NOVEMBER_US - 2 * DAY_US, NOVEMBER_US - DAY_US)
        )
    )
    assert said == (
        "up.csv has nothing from 2026-11-01 00:00:00 UTC: it speaks of the time from 2026-10-30 00:00:00 UTC to 2026-10-31 00:00:00 UTC"
    )
    assert "that can be told" in str(nothing_within("up.csv", ReportPeriod(0, 1), None))


def test_whole_days_begin_and_end_at_midnight() -> None:
    assert ReportPeriod(NOVEMBER_US, NOVEMBER_US + 3 * DAY_US).is_of_whole_days()
    assert ReportPeriod(None, NOVEMBER_US).is_of_whole_days()
    assert not ReportPeriod(NOVEMBER_US, NOVEMBER_US + 1).is_of_whole_days()
    assert not ReportPeriod(NOVEMBER_US - 1, None).is_of_whole_days()
