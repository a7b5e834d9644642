"""Timestamps: the order of the text is the order of the parts, and nothing else is a timestamp."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.timestamps.timestamp import (
    COUNTER_MAX,
    INFINITY,
    WALL_US_MAX,
    ZERO,
    counter,
    make,
    parse,
    risen,
    site,
    wall_us,
)

SITES = st.from_regex(r"[a-z0-9]{1,32}", fullmatch=True)
# Few sites and few small numbers too, so that equal parts and prefixes are met often.
CLOSE_SITES = st.sampled_from(["a", "ab", "abc", "a0", "0", "00", "z"]) | SITES
PARTS = st.tuples(
    st.integers(0, 3) | st.integers(0, WALL_US_MAX),
    st.integers(0, 3) | st.integers(0, COUNTER_MAX),
    CLOSE_SITES,
)


@given(PARTS, PARTS)
def test_text_sorts_as_the_parts_do(one: tuple[int, int, str], other: tuple[int, int, str]) -> None:
    assert (make(*one) < make(*other)) == (one < other)
    assert (make(*one) == make(*other)) == (one == other)


@given(PARTS)
def test_parts_come_back_from_the_text(parts: tuple[int, int, str]) -> None:
    timestamp = make(*parts)
    assert (wall_us(timestamp), counter(timestamp), site(timestamp)) == parts
    assert parse(timestamp) == timestamp


@given(PARTS.filter(lambda parts: parts > (0, 0, "0")))
def test_every_timestamp_is_between_zero_and_infinity(parts: tuple[int, int, str]) -> None:
    assert ZERO < make(*parts) <= INFINITY


def test_a_site_that_is_a_prefix_of_another_sorts_first() -> None:
    assert make(1, 1, "a") < make(1, 1, "a0") < make(1, 1, "ab") < make(1, 1, "b")


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((-1, 0, "a"), "wall_us -1"),
        ((WALL_US_MAX + 1, 0, "a"), "check the clock"),
        ((0, -1, "a"), "counter -1"),
        ((0, COUNTER_MAX + 1, "a"), f"counter {COUNTER_MAX + 1}"),
        ((0, 0, ""), "site id ''"),
        ((0, 0, "a" * 33), "site id"),
        ((0, 0, "A"), "site id 'A'"),
        ((0, 0, "a.b"), "site id"),
        ((0, 0, "a/b"), "site id"),
        ((0, 0, "a-b"), "site id"),
        ((0, 0, "a\n"), "site id"),
    ],
)
def test_a_part_out_of_range_is_named(parts: tuple[int, int, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make(*parts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000000000000.0000.a",
        "00000000000000.000.a",
        "00000000000000.0000.",
        "0000000000000F.0000.a",
        "00000000000000.0000.a/00000001",
        "00000000000000.0000.a\n",
        " 00000000000000.0000.a",
        "00000000000000,0000,a",
    ],
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a timestamp"):
        parse(text)


@given(PARTS)
def test_the_next_one_is_the_lowest_above_it_of_the_same_site(parts: tuple[int, int, str]) -> None:
    one = make(*parts)
    above = risen(one)
    assert site(above) == site(one)
    before, after = (wall_us(each) * (COUNTER_MAX + 1) + counter(each) for each in (one, above))
    assert after == before + 1 or (parts[:2] == (WALL_US_MAX, COUNTER_MAX) and above == one)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [((5, COUNTER_MAX), (6, 0)), ((WALL_US_MAX, COUNTER_MAX), (WALL_US_MAX, COUNTER_MAX)), ((5, 0), (5, 1))],
)
def test_the_next_one_at_the_ends(parts: tuple[int, int], expected: tuple[int, int]) -> None:
    assert risen(make(*parts, "a")) == make(*expected, "a")
