"""Ballots: ordered by term, then by step; a term's site never disturbs the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.timestamps.ballot import (
    NO_BALLOT,
    STEP_MAX,
    make_ballot,
    parse_ballot,
    step_of,
    term_of,
)
from quorate.timestamps.timestamp import ZERO, make
from tests.unit.timestamps.test_timestamp import PARTS

STEPS = st.integers(0, 3) | st.integers(0, STEP_MAX)
BALLOTS = st.tuples(PARTS, STEPS)
Parts = tuple[tuple[int, int, str], int]


@given(BALLOTS, BALLOTS)
def test_text_sorts_by_turn_then_step(one: Parts, other: Parts) -> None:
    (term, step), (other_term, other_step) = one, other
    first, second = make_ballot(make(*term), step), make_ballot(make(*other_term), other_step)
    assert (first < second) == (one < other)


@given(BALLOTS)
def test_turn_and_step_come_back(parts: Parts) -> None:
    term, step = parts
    ballot = make_ballot(make(*term), step)
    assert (term_of(ballot), step_of(ballot)) == (make(*term), step)
    assert parse_ballot(ballot) == ballot


def test_a_site_that_is_a_prefix_of_another_does_not_overtake_it_by_its_steps() -> None:
    assert make_ballot(make(1, 0, "a"), STEP_MAX) < make_ballot(make(1, 0, "a0"), 0)


def test_a_turn_ends_at_its_last_step() -> None:
    with pytest.raises(ValueError, match="take a new term"):
        make_ballot(ZERO, STEP_MAX + 1)


def test_nothing_is_below_no_ballot() -> None:
    assert make_ballot(ZERO, 0) == NO_BALLOT
    assert make_ballot(make(0, 0, "0"), 1) > NO_BALLOT


@pytest.mark.parametrize("text", ["", str(ZERO), f"{ZERO}/0", f"{ZERO}/0000000G", f"{ZERO}/00000000\n"])
def test_what_is_no_ballot_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a ballot"):
        parse_ballot(text)
