"""Numbers in words, and the sentences that open a report."""

import doctest
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.spark_reports import wording
from quorate.spark_reports.figures import ComparisonFigures
from quorate.spark_reports.wording import NO_BREAK, answer, best_trade, duration, points, signed
from tests.spark_reports import measured_run
from tests.spark_reports.test_derive import figures_of


def test_examples_hold() -> None:
    assert doctest.testmod(wording).failed == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (2e-6, "2 µs"),
        (0.00213, "2.13 ms"),
        (1.0, "1 s"),
        (90.0, "90 s"),
        (150, "2.5 min"),
        (9000, "2.5 h"),
    ],
)
def test_durations_have_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration(seconds).replace(NO_BREAK, " ") == text


def test_differences() -> None:
    assert points(-0.0123) == "1.2 points"
    assert points(0.00123) == "0.12 points"
    assert signed(-0.0123) == "\N{MINUS SIGN}1.23"


def comparison(operation: str, difference: float, width: float, other: str = "b") -> ComparisonFigures:
    return ComparisonFigures(
        "queue", operation, "a", other, difference, difference - width, difference + width
    )


def test_a_trade_is_two_differences_of_opposite_sign_between_the_same_choices() -> None:
    assert best_trade([comparison("Enq", 0.1, 0.01), comparison("Deq", 0.2, 0.01)]) is None
    assert best_trade([comparison("Enq", 0.1, 0.01), comparison("Deq", -0.2, 0.01, other="c")]) is None
    assert best_trade([comparison("Enq", 0.1, 0.01), comparison("Deq", -0.0001, 0.01)]) is None
    found = best_trade([comparison("Enq", -0.1, 0.01), comparison("Deq", 0.2, 0.01)])
    assert found is not None
    assert (found.gained.operation, found.paid.operation, found.certain) == ("Deq", "Enq", True)


def test_a_certain_trade_goes_before_a_larger_one() -> None:
    unsure = [comparison("Enq", 0.3, 0.4), comparison("Deq", -0.3, 0.4)]
    sure = [comparison("Enq", 0.1, 0.01, other="c"), comparison("Deq", -0.1, 0.01, other="c")]
    found = best_trade([*unsure, *sure])
    assert found is not None
    assert found.gained.other == "c"


def test_the_answer_fits_the_run(tmp_path: Path) -> None:
    figures = figures_of(measured_run.write_run(tmp_path / "run", operations=6000))
    first, second = answer(figures)
    assert "buys" in first
    assert "joint up time" in second
    assert "none gave one operation more" in answer(replace(figures, comparisons=()))[0]
    assert answer(replace(figures, operations=()))[0].startswith("No operation was measured")
    calm = figures_of(measured_run.write_run(tmp_path / "calm", operations=50, failing=False))
    assert answer(calm)[0].startswith("All 50 operations were answered")
