"""The hybrid clock: never twice, always above what was given or witnessed, at or above the time it is told."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.timestamps.clock import HybridClock, Now
from quorate.timestamps.timestamp import (
    COUNTER_MAX,
    WALL_US_MAX,
    Timestamp,
    counter,
    make,
    site,
    wall_us,
)
from tests.unit.timestamps.test_timestamp import CLOSE_SITES

# A few values only, so that clocks stand still, step back, and are witnessed at the very edge of the counter.
TIMES = st.integers(0, 5)
SEEN = st.builds(
    make, TIMES, st.sampled_from([0, 1, COUNTER_MAX - 1, COUNTER_MAX]), CLOSE_SITES | st.just("me")
)
STEPS = st.lists(TIMES | SEEN, max_size=40)


@pytest.mark.parametrize(
    ("mono_s", "wall_us", "passed_s"), [(7, 0, 7), (1, 9_000_000, 9), (2, -9_000_000, 2)]
)
def test_time_has_passed_by_the_clock_that_says_more(mono_s: int, wall_us: int, passed_s: int) -> None:
    """As where the machine was suspended, or its wall clock was set back."""
    earlier = Now(3.0, 10_000_000)
    assert Now(3.0 + mono_s, 10_000_000 + wall_us).since_s(earlier) == passed_s


@given(STEPS)
def test_each_timestamp_is_above_all_given_and_witnessed_before(steps: list[int | Timestamp]) -> None:
    clock = HybridClock("me")
    met: list[Timestamp] = []
    for step in steps:
        if isinstance(step, int):
            given_now = clock.next(step)
            assert all(given_now > before for before in met)
            assert wall_us(given_now) >= step
            assert site(given_now) == "me"
            met.append(given_now)
        else:
            clock.witness(step)
            met.append(step)


def test_a_clock_that_stands_still_counts() -> None:
    clock = HybridClock("me")
    assert [clock.next(7) for _ in range(3)] == [make(7, 0, "me"), make(7, 1, "me"), make(7, 2, "me")]


def test_a_clock_that_steps_back_stays_at_its_last_time() -> None:
    clock = HybridClock("me")
    clock.next(100)
    assert clock.next(50) == make(100, 1, "me")


def test_a_full_counter_carries_into_the_next_microsecond() -> None:
    clock = HybridClock("me")
    clock.witness(make(100, COUNTER_MAX, "other"))
    assert clock.next(100) == make(101, 0, "me")


def test_a_timestamp_of_a_higher_site_at_the_same_time_is_passed() -> None:
    clock = HybridClock("a")
    clock.next(10)
    clock.witness(make(10, 0, "b"))
    assert clock.next(10) > make(10, 0, "b")


def test_what_is_older_is_witnessed_without_effect() -> None:
    clock = HybridClock("me")
    clock.next(100)
    before = clock.last
    clock.witness(make(99, COUNTER_MAX, "zz"))
    assert clock.last == before


def test_a_clock_at_the_end_of_time_refuses_to_repeat() -> None:
    clock = HybridClock("me")
    clock.witness(make(WALL_US_MAX, COUNTER_MAX, "other"))
    with pytest.raises(ValueError, match="check the clock"):
        clock.next(0)
    assert counter(clock.last) == COUNTER_MAX


ASKED = st.lists(st.tuples(st.booleans(), SEEN.filter(lambda seen: wall_us(seen) < 6), TIMES), max_size=40)


@given(ASKED)
def test_a_timestamp_above_another_is_new_and_moves_no_later_ones(
    asked: list[tuple[bool, Timestamp, int]],
) -> None:
    """However far ahead it is, and where counters run over, too."""
    clock, given_ = HybridClock("me"), set()
    for is_above, least, now_us in asked:
        before = clock.last
        stamp = clock.above(least, now_us) if is_above else clock.next(now_us)
        assert stamp not in given_
        given_.add(stamp)
        assert stamp > before
        assert wall_us(stamp) >= now_us
        assert not is_above or stamp > least
        used_up = sum(counter(each) == COUNTER_MAX for each in given_)
        assert wall_us(clock.last) <= max(now_us, wall_us(before)) + 1 + used_up


def test_a_clock_that_gave_too_many_timestamps_ahead_stays_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It forgets them, and gives others under another site id. For as long as it remembers some, their places are not taken twice."""
    monkeypatch.setattr("quorate.timestamps.clock.AHEAD_MAX", 3)
    clock, given_ = HybridClock("me"), set[Timestamp]()
    for number in range(40):
        stamp = clock.above(make(1_000 + number % 7, 0, "a"), number // 8)
        assert stamp not in given_
        given_.add(stamp)
        assert clock.next(number // 8) < make(6, 0, "a")
    assert {site(stamp)[:3] for stamp in given_} == {"me", "mex"}


def test_a_clock_that_is_set_back_gives_no_timestamp_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it remembers but a few of those that it gave ahead of time."""
    monkeypatch.setattr("quorate.timestamps.clock.AHEAD_MAX", 2)
    for seed in range(500):
        drawn = random.Random(seed)
        clock, given_ = HybridClock("me"), set[Timestamp]()
        for _ in range(60):
            now_us = drawn.randint(0, 5)
            if drawn.random() < 0.05:
                clock.set_back(now_us)
                continue
            least = make(drawn.randint(0, 5), drawn.choice([0, 1, COUNTER_MAX - 1, COUNTER_MAX]), "you")
            is_above = drawn.random() < 0.6
            stamp = clock.above(least, now_us) if is_above else clock.next(now_us)
            assert stamp not in given_, seed
            assert wall_us(stamp) >= now_us
            assert not is_above or stamp > least
            given_.add(stamp)


def test_a_clock_that_is_set_back_goes_on_from_there() -> None:
    clock = HybridClock("me")
    clock.next(1000)
    clock.above(make(2000, 7, "other"), 1000)
    clock.set_back(500)
    assert clock.next(500) == make(500, 0, "mex2")
    assert clock.next(1000) == make(1000, 0, "mex2")
    assert clock.above(make(2000, 7, "other"), 1000) == make(2000, 8, "mex2")
    clock.set_back(1000)
    assert clock.next(1000) == make(1000, 0, "mex3")


def test_a_clock_may_be_set_back_any_number_of_times() -> None:
    clock = HybridClock("me")
    given_ = set()
    for _ in range(100):
        given_.add(clock.next(1000))
        clock.set_back(10)
        given_.add(clock.next(10))
    assert len(given_) == 200
