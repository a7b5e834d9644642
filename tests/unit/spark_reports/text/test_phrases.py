"""Numbers in words."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.spark_reports.model import phrases
from quorate.spark_reports.model.phrases import (
    NO_BREAK,
    duration,
    in_nines,
    listed,
    percent,
    points,
    shortened,
    signed,
)


def test_examples_hold() -> None:
    assert doctest.testmod(phrases).failed == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2e-6, "2 µs"),
        (0.00213, "2.13 ms"),
        (1.0, "1 s"),
        (90.0, "90 s"),
        (150, "2.5 min"),
        (9000, "2.5 h"),
        (800_000, "9.26 days"),
        (86400 * 4000, "4,000 days"),
    ],
)
def test_durations_have_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration(seconds).replace(NO_BREAK, " ") == text


def test_differences() -> None:
    assert points(-0.0123) == "1.2 points"
    assert points(0.00123) == "0.12 points"
    assert points(0.0000123) == "0.001 points"
    assert signed(-0.0123) == "\N{MINUS SIGN}1.23"
    assert signed(-1e-9) == "0.00"


@given(st.floats(0, 1))
def test_only_all_is_written_as_all_and_only_nothing_as_nothing(share: float) -> None:
    text = percent(share).replace(NO_BREAK, "")
    assert (text == "100%") == (1 - share < 1e-12)
    assert (text == "0%") == (share == 0)
    if text[0] not in "<>":
        # What is missing keeps its first digit: a reader can tell 99.95 % from 99.94 %.
        assert abs(float(text[:-1]) / 100 - share) <= 0.06 * (1 - share) + 1e-15


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_is_never_written_as_a_smaller_one(one: float, other: float) -> None:
    low, high = sorted((one, other))
    numbers = [float(percent(share).replace(NO_BREAK, "").strip("<>%")) for share in (low, high)]
    assert numbers[0] <= numbers[1]


def test_nines_of_a_run_without_failures_are_those_of_its_interval() -> None:
    assert in_nines(1.0, low=0.999) == "at least 3.0 nines"
    assert in_nines(0.999, low=0.9) == "3.0 nines"


@given(st.lists(st.text("ab", min_size=1), max_size=5))
def test_a_list_names_everything(things: list[str]) -> None:
    assert listed(things).replace(" and ", ", ") == ", ".join(things)


@given(st.text(max_size=60), st.integers(4, 40))
def test_a_cut_name_fits_and_keeps_both_ends(name: str, most: int) -> None:
    cut = shortened(name, most)
    assert len(cut) <= most
    if cut != name:
        head, tail = cut.split("…", 1) if "…" not in name else (cut[:1], cut[-1:])
        assert name.startswith(head)
        assert name.endswith(tail)
