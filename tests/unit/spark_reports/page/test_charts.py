"""The parts of charts that decide something: scales, ticks, the Pareto front, where labels go."""

import doctest
import re
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.spark_reports.model.phrases import nines
from quorate.spark_reports.page import charts, charts_front, charts_timeline, svg
from quorate.spark_reports.page.charts import WIDE, Chart, Tick
from quorate.spark_reports.page.charts_availability import availability, by_operation
from quorate.spark_reports.page.charts_front import Point, front, pareto
from quorate.spark_reports.page.charts_latency import latency, live_votes
from quorate.spark_reports.page.charts_timeline import time_ticks, timeline
from quorate.spark_reports.page.svg import nines_scale
from tests.unit.spark_reports.made_figures import Made

SHARES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1 - 1e-16, 1 - 1e-9, 0.9, 0.99]))


def test_examples_hold() -> None:
    assert [doctest.testmod(module).failed for module in (svg, charts_timeline)] == [0, 0]


@given(st.lists(SHARES, min_size=1, max_size=20))
def test_every_share_has_a_place_on_an_axis_of_nines(shares: list[float]) -> None:
    scale = nines_scale(shares, 100, 700)
    for share in shares:
        assert 100 <= scale(share) <= 700
        at_end = nines(share) == inf or (scale.end == scale.right and nines(share) >= scale.high)
        assert (scale(share) == scale.end) == at_end
    for one, other in pairwise(sorted(shares)):
        assert scale(one) <= scale(other)


@given(st.lists(SHARES, min_size=1, max_size=20), st.integers(4, 9))
def test_ticks_of_nines_are_round_few_and_in_order(shares: list[float], most: int) -> None:
    scale = nines_scale(shares, 100, 700)
    ticks = scale.ticks(most)
    assert 2 <= len(ticks) <= most
    places = [scale(share) for share, _ in ticks]
    assert places == sorted(set(places))
    for share, label in ticks:
        assert float(label.removesuffix(" %")) / 100 == pytest.approx(share, abs=1e-15)
    assert (ticks[-1][1] == "100 %") == (inf in map(nines, shares))


def test_all_lies_beyond_every_number_of_nines() -> None:
    scale = nines_scale([0.9, 0.999, 1.0], 0, 900)
    assert scale(0.999) < scale(1.0) == 900
    assert nines(1.0) == inf
    assert scale(1 - 1e-15) == 900, "a rounded 1 is 1"
    assert nines_scale([0.9, 0.999], 0, 900)(0.999) == 900, "no place is kept for what nobody reached"


def test_equal_steps_on_the_axis_are_equal_factors_of_failure() -> None:
    scale = nines_scale([0.9, 0.999], 0, 900)
    assert scale(0.99) - scale(0.9) == pytest.approx(scale(0.999) - scale(0.99))


@given(st.floats(1e-3, 1e9), st.integers(4, 9))
def test_times_have_few_round_ticks_within_the_span(span_s: float, most: int) -> None:
    ticks = time_ticks(span_s, most)
    assert 2 <= len(ticks) <= most + 1
    assert ticks[0] == (0.0, "0")
    assert all(0 <= time_s <= span_s * (1 + 1e-6) for time_s, _ in ticks)


def points(*places: tuple[float, float]) -> list[Point]:
    return [Point(n, f"c{n}", x, y, run=False, recommended=False) for n, (x, y) in enumerate(places, start=1)]


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9, 1.0]), st.sampled_from([0.1, 0.5, 0.9, 1.0]))))
def test_the_front_holds_those_that_no_other_beats(places: list[tuple[float, float]]) -> None:
    given_points = points(*places)

    def beaten(one: Point) -> bool:
        return any(
            other.x >= one.x and other.y >= one.y and (other.x, other.y) != (one.x, one.y)
            for other in given_points
        )

    assert sorted(pareto(given_points)) == [point for point in given_points if not beaten(point)]


def test_the_front_is_drawn_below_what_nobody_reaches() -> None:
    # Upwards is a smaller number on the screen.
    assert charts_front._staircase([(0, 10), (5, 20), (9, 20)]) == [
        (0, 10),
        (0, 20),
        (5, 20),
        (5, 20),
        (9, 20),
    ]


def test_runs_of_numbers_are_written_shortly() -> None:
    assert charts_front._numbers([8, 1, 2, 3, 5, 7]).replace("\N{EN DASH}", "-") == "1-3, 5, 7, 8"
    assert charts_front._numbers([1, 3, 5, 7, 9]) == "1, 3, 5, 7 …"


def test_labels_that_would_meet_are_left_out_whole_nines_last() -> None:
    ticks = [Tick(100, "98 %"), Tick(110, "99 %", "2 nines"), Tick(300, "99.5 %")]
    drawn = "".join(charts.axis(ticks, 50, WIDE))
    assert re.findall(r">([^<]+)</text>", drawn) == ["99 %", "2 nines", "99.5 %"]
    assert drawn.count("<line") == 3


def drawn(chart: Chart | None) -> tuple[str, str]:
    """The wide and the narrow drawing."""
    assert chart is not None
    wide, narrow = re.findall(r"<svg.*?</svg>", chart.drawings)
    assert 'class="wide"' in wide
    assert 'class="narrow"' in narrow
    return wide, narrow


def test_every_measured_row_has_its_marks() -> None:
    figures = Made(choices=3).figures()
    for drawing in drawn(availability(figures)):
        assert drawing.count("<circle") == drawing.count("<path") == 6
        assert drawing.count('class="independent"') == 6


def test_rows_stand_operation_by_operation() -> None:
    rows = by_operation(Made(choices=2).figures().operations)
    assert [(row.operation, row.choice) for row in rows] == [
        ("Enq", "enq-1"),
        ("Enq", "enq-2"),
        ("Deq", "enq-1"),
        ("Deq", "enq-2"),
    ]


def test_neighbouring_columns_of_equal_height_are_one() -> None:
    figures = Made(replicas=1, choices=1, measured=False).figures()
    wide, _ = drawn(timeline(figures))
    # Four outages of eleven bins each, and not one column of the operations that nobody ran.
    assert wide.count('class="down"') == 4
    assert "failed" not in wide


@pytest.mark.parametrize("made", [Made(), Made(measured=False), Made(replicas=9, choices=20, failing=False)])
def test_nothing_is_drawn_outside_its_picture(made: Made) -> None:
    figures = made.figures()
    charts_drawn = [timeline(figures), live_votes(figures), front(figures, "queue", "f")]
    charts_drawn += [availability(figures), latency(figures)] if figures.operations else []
    for chart in charts_drawn:
        for drawing in drawn(chart):
            viewed = re.search(r'viewBox="0 0 (\S+) (\S+)"', drawing)
            assert viewed
            width, height = float(viewed[1]), float(viewed[2])
            for name, place in re.findall(r' (x1|x2|cx|x|y1|y2|cy|y)="(-?[\d.]+)"', drawing):
                assert 0 <= float(place) <= (width if "x" in name else height), (chart and chart.name, name)


def test_the_pareto_chart_joins_measurements_to_the_choices_they_ran_as() -> None:
    for drawing in drawn(front(Made().figures(), "queue", "f")):
        assert drawing.count('class="link"') == 4
    for drawing in drawn(front(Made(measured=False).figures(), "queue", "f")):
        assert "link" not in drawing
        assert drawing.count('class="not-run"') == 3, "two choices of four stand at one place"


def test_a_type_with_one_operation_has_no_front() -> None:
    figures = Made().figures()
    only = tuple(row for row in figures.counterfactuals if row.operation == "Enq")
    assert front(replace(figures, counterfactuals=only), "queue", "f") is None


def test_a_front_of_one_place_is_no_line() -> None:
    calm = front(Made(failing=False).figures(), "queue", "f")
    assert calm is not None
    assert "None is better for either than 1\N{EN DASH}4." in calm.caption
    assert "Pareto front" not in [mark.meaning for mark in calm.legend]
    trading = front(Made().figures(), "queue", "f")
    assert trading is not None
    assert "Pareto front" in [mark.meaning for mark in trading.legend]
