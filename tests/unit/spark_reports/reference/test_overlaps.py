"""Intervals that overlap: what contradicts is unknown, and only that."""

import pytest

from quorate.spark_reports.input.rows import Interval
from quorate.spark_reports.model import contract
from quorate.spark_reports.reference.overlaps import settled


def said(*rows: tuple[int, int, int]) -> list[tuple[Interval, str]]:
    return [(Interval("", "r1", *row), f"{row[0]}-{row[1]}:{row[2]}") for row in rows]


def came_to(*rows: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(each.start_us, each.end_us, each.up) for each in settled(said(*rows))[0]]


def aside(*rows: tuple[int, int, int]) -> list[tuple[str, str]]:
    return settled(said(*rows))[1]


def test_a_wrong_row_takes_away_no_good_row_after_it() -> None:
    """A row that says down for the whole run leaves what others say outside their contradiction untouched."""
    rows = [(0, 10, 1), (5, 100, 0), (20, 30, 0), (30, 40, 0)]
    assert came_to(*rows) == [(0, 5, 1), (10, 100, 0)]
    assert aside(*rows) == [("0-10:1", contract.CONTRADICTS), ("5-100:0", contract.CONTRADICTS)]


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([(0, 10, 1), (4, 5, 0)], [(0, 4, 1), (5, 10, 1)]),
        ([(0, 10, 1), (0, 10, 0)], []),
        ([(0, 10, 1), (0, 4, 0), (4, 10, 0)], []),
        ([(0, 6, 1), (4, 10, 1)], [(0, 10, 1)]),
        ([(0, 6, 1), (6, 10, 0)], [(0, 6, 1), (6, 10, 0)]),
        ([(0, 10, 1), (5, 5, 0)], [(0, 10, 1)]),
    ],
)
def test_contradicted_time_is_unknown_and_the_rest_is_known(
    rows: list[tuple[int, int, int]], left: list[tuple[int, int, int]]
) -> None:
    assert came_to(*rows) == left
    assert came_to(*reversed(rows)) == left


def test_what_agrees_is_not_kept_aside_and_what_is_alike_counts_once() -> None:
    assert aside((0, 6, 1), (4, 10, 1), (10, 12, 0)) == []
    assert aside((0, 6, 1), (0, 6, 1), (0, 6, 1)) == [("0-6:1", contract.SAME_INTERVAL)] * 2


def test_rows_of_other_replicas_and_links_do_not_contradict() -> None:
    up = Interval("", "r1", 0, 10, 1)
    others = [Interval("", "r2", 0, 10, 0), Interval("f1", "r1", 0, 10, 0)]
    intervals, kept = settled([(each, "") for each in (up, *others)])
    assert (len(intervals), kept) == (3, [])
