"""The clock bound: true time is inside it, whatever the network's delays, within the errors that the operator declares."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.timestamps.clock import Now
from quorate.timestamps.clock_bound import AWAY_S, DRIFT, SETTLE_S, ClockBound

START_US = 1_700_000_000_000_000


def now(mono_us: float, wall_us: int = 0) -> Now:
    return Now(mono_us / 1e6, wall_us)


EXCHANGES = st.lists(
    st.tuples(
        st.integers(0, 10_000_000),  # pause before it is sent
        st.integers(0, 200_000),  # way there
        st.integers(0, 200_000),  # way back
        st.sampled_from(["r1", "r2", "r3"]),
        st.floats(-1, 1),  # the replica's error, as a share of what was declared
    ),
    min_size=1,
    max_size=10,
)


@given(EXCHANGES, st.floats(-1, 1), st.just(0) | st.integers(0, 50_000), st.integers(0, 60_000_000))
def test_true_time_is_inside_the_bound(
    exchanges: list[tuple[int, int, int, str, float]], rate: float, error_us: int, later_us: int
) -> None:
    """The front end's monotonic clock starts anywhere and runs fast or slow, by DRIFT at most. What is waited for has passed."""
    bound = ClockBound(offset_max_s=2.0, replica_error_s=error_us / 1e6, front_end_error_s=None)
    true_us = START_US

    def mono(at_us: int) -> Now:
        return now(5_000_000 + (at_us - START_US) / (1 + rate * DRIFT))

    for pause_us, there_us, back_us, replica, share in exchanges:
        sent_us = true_us + pause_us
        read_us = sent_us + there_us
        true_us = read_us + back_us
        bound.measure(replica, read_us + int(share * error_us), mono(sent_us), mono(true_us))
    assert bound.is_known
    for at_us in (true_us, true_us + later_us):
        here = mono(at_us)
        assert bound.lower_us(here) <= at_us <= bound.upper_us(here)
        waited_us = (bound.reached_s(at_us + later_us, here) - here.mono_s) * 1e6 * (1 + rate * DRIFT)
        assert at_us + waited_us >= at_us + later_us - 1


def test_the_bound_is_as_wide_as_the_fastest_round_trip() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None)
    assert not bound.is_known
    bound.measure("r1", START_US + 50_000, now(0), now(100_000))
    bound.measure("r1", START_US + 101_000, now(100_000), now(102_000))
    width_us = bound.upper_us(now(102_000)) - bound.lower_us(now(102_000))
    assert 2_000 <= width_us <= 2_100


def test_the_bound_widens_with_time_by_the_drift() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0), now(0))
    ten_s = now(10_000_000)
    assert bound.upper_us(ten_s) - bound.lower_us(ten_s) >= 2 * 10_000_000 * DRIFT


def test_a_step_of_the_wall_clock_changes_nothing_that_was_measured() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0, 0), now(0, 0))
    assert bound.upper_us(now(0, 0)) == bound.upper_us(now(0, 3_600_000_000))


def test_readings_that_contradict_the_earlier_ones_start_afresh() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0), now(0))
    bound.measure("r1", START_US + 60_000_000, now(1_000), now(2_000))
    assert bound.lower_us(now(2_000)) == START_US + 60_000_000
    assert bound.upper_us(now(2_000)) == START_US + 60_001_000 + 1


def test_one_wrong_clock_among_three_is_outvoted_whenever_it_speaks() -> None:
    """One replica is a minute ahead, or behind; the others are right to within what was declared."""
    for wrong_us in (60_000_000, -60_000_000):
        for order in permutations(("r1", "r2", "wrong")):
            bound = ClockBound(offset_max_s=2.0, replica_error_s=0.01, front_end_error_s=None)
            for moment_us, replica in enumerate(order * 2):
                error_us = {"r1": 9_000, "r2": -9_000, "wrong": wrong_us}[replica]
                bound.measure(replica, START_US + moment_us + error_us, now(moment_us), now(moment_us))
            here = now(10)
            assert bound.lower_us(here) <= START_US + 10 <= bound.upper_us(here)
            assert bound.upper_us(here) - bound.lower_us(here) <= 40_000


def test_a_declared_error_needs_no_measuring_and_is_kept_to() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=9.0, front_end_error_s=0.5)
    assert bound.is_known
    bound.measure("r1", START_US, now(0, 0), now(0, 0))
    assert bound.upper_us(now(0, START_US)) == START_US + 500_000
    assert bound.lower_us(now(0, START_US)) == START_US - 500_000


def test_a_bound_is_settled_once_most_replicas_agree_or_nothing_better_came_in_time() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.01, front_end_error_s=None, replicas=3)
    assert not bound.is_settled(now(10 * SETTLE_S * 1e6)), "nothing was measured"
    bound.measure("wrong", START_US + 60_000_000, now(0), now(0))
    assert not bound.is_settled(now(0))
    bound.measure("r1", START_US, now(0), now(0))
    assert not bound.is_settled(now(0)), "two that contradict each other"
    assert bound.is_settled(now(SETTLE_S * 1e6))
    bound.measure("r2", START_US, now(0), now(0))
    assert bound.is_settled(now(0))
    assert ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=0.0, replicas=3).is_settled(
        now(0)
    ), "declared"


def test_half_of_the_replicas_are_not_most_of_them() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None, replicas=4)
    for replica, is_agreed in (("r1", False), ("r2", False), ("r3", True)):
        bound.measure(replica, 1_000_000, now(0), now(0))
        assert bound.is_agreed is is_agreed


@pytest.mark.parametrize("years_off", [0, 10, 53])
def test_the_bound_widens_by_the_drift_however_often_it_is_measured(years_off: int) -> None:
    """A drift of a hundredth of a microsecond between two replies is lost where it is added to microseconds since 1970: a double
    counts those by quarters. After ten seconds of that, true time was outside the bound by two milliseconds. Nor does it matter
    what the first clock was that replied."""
    every_us, slow = 50, 1 + DRIFT
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.005, front_end_error_s=None, replicas=3)
    sent_us = back_us = 0

    def mono(at_us: int) -> Now:
        return now((at_us - START_US) / slow)

    if years_off:
        wrong_us = START_US - years_off * 31_557_600_000_000
        bound.measure("wrong", wrong_us, mono(START_US), mono(START_US + 40))
    for number in range(200_000):
        sent_us = START_US + number * every_us
        back_us = 40 if number < 2 else 20_000
        bound.measure(f"r{number % 2}", sent_us, mono(sent_us), mono(sent_us + back_us))
    true_us = sent_us + back_us
    here = mono(true_us)
    assert bound.lower_us(here) <= true_us - 5_000
    assert true_us + 5_000 <= bound.upper_us(here)


def test_of_other_replicas_most_must_agree_and_what_those_of_before_showed_counts_no_longer() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None, replicas=3)
    bound.measure("r1", START_US, now(0), now(100))
    bound.measure("r2", START_US, now(0), now(100))
    assert bound.is_agreed
    bound.follow(("r1", "r4", "r5"))
    bound.measure("r1", START_US + 200, now(200), now(300))
    assert not bound.is_agreed
    bound.measure("r4", START_US + 200, now(200), now(300))
    assert bound.is_agreed


AHEAD_US = 60_000_000


def all_ahead(replicas: int = 3, ahead_us: int = AHEAD_US) -> ClockBound:
    """All clocks were a minute ahead when they were seen, at the moment 0; or so far."""
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None, replicas=replicas)
    for number in range(1, replicas + 1):
        bound.measure(f"r{number}", START_US + ahead_us, now(0), now(0))
    return bound


def see(bound: ClockBound, at_s: float, off_s: float = 0.0, silent: str = "r2 r3", well: str = "r1") -> float:
    """How far off the bound is, in seconds, after these gave no answer and those did, whose clocks are off by so much."""
    here = now(at_s * 1e6)
    for name in silent.split():
        bound.miss(name, here)
    for name in well.split():
        bound.measure(name, START_US + int((at_s + off_s) * 1e6), here, here)
    return (bound.upper_us(here) - START_US) / 1e6 - at_s


@pytest.mark.parametrize("ahead_us", [AHEAD_US, -AHEAD_US])
def test_what_replicas_showed_that_are_away_is_left_out_once_all_that_answer_would_refuse_it(
    ahead_us: int,
) -> None:
    bound, off_s = all_ahead(ahead_us=ahead_us), pytest.approx(ahead_us / 1e6, abs=0.1)
    assert see(bound, 1.0) == off_s, "most of the replicas said so"
    assert see(bound, AWAY_S + 0.9) == off_s
    assert bound.is_agreed
    assert abs(see(bound, AWAY_S + 1.0)) < 0.1
    assert bound.is_agreed, "there is nobody else to go by"
    see(bound, 19.0, ahead_us / 2e6, well="r2", silent="r3")
    assert not bound.is_agreed, "three that contradict each other"
    assert see(bound, 20.0, ahead_us / 1e6, well="r2", silent="r3") == off_s, (
        "most of the replicas say so again"
    )
    assert bound.is_agreed
    assert abs(see(bound, 21.0, silent="", well="r1 r3")) < 0.1


@pytest.mark.parametrize("wrong_s", [60.0, -60.0])
def test_what_they_showed_counts_again_when_one_comes_back_that_contradicts_the_one_that_was_left(
    wrong_s: float,
) -> None:
    """One clock of three is wrong, and was alone for a while. The third stays away."""
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None, replicas=3)
    see(bound, 0.0, silent="", well="r2 r3")
    for second in range(13):
        see(bound, 1.0 + second, wrong_s)
    assert see(bound, 14.0, wrong_s) == pytest.approx(wrong_s, abs=0.1)
    for second in range(2):
        assert abs(see(bound, 15.0 + 30 * second, silent="", well="r2")) < 0.1
        assert bound.is_agreed
        assert abs(see(bound, 16.0 + 30 * second, wrong_s, silent="r3")) < 0.1


def test_what_they_showed_stays_left_out_however_far_their_clocks_may_have_drifted_since() -> None:
    """After 83 hours those may agree with the one that answers."""
    bound = all_ahead()
    see(bound, 1.0)
    for hour in range(1, 100):
        assert abs(see(bound, hour * 3600.0)) < 0.1, hour


def test_what_they_showed_stays_while_those_that_answer_would_take_what_is_stamped_by_it() -> None:
    bound = all_ahead()
    for second in range(100):
        see(bound, 1.0 + second, 58.1)
    assert see(bound, 101.0, 58.1) > 59.9
    assert see(bound, 102.0, 57.9) < 58.0


def test_what_they_showed_stays_while_those_that_answer_contradict_each_other() -> None:
    bound = all_ahead(replicas=5)
    for second in range(100):
        see(bound, 1.0 + second, 30.0, silent="", well="r2")
        assert see(bound, 1.0 + second, silent="r3 r4 r5", well="r1") > 59.0, second


def test_it_counts_from_when_others_answer_and_anew_after_nobody_did() -> None:
    bound = all_ahead()
    see(bound, 1.0, silent="r1 r2 r3", well="")
    assert see(bound, 100.0) > 59.0, "it may have been our own network"
    assert see(bound, 99.0 + AWAY_S) > 59.0
    see(bound, 100.0 + AWAY_S, silent="r1 r2 r3", well="")
    assert see(bound, 200.0) > 59.0
    assert abs(see(bound, 200.0 + AWAY_S)) < 0.1


def test_who_is_not_asked_is_not_away_and_who_answers_in_between_is_not_either() -> None:
    bound = all_ahead()
    for second in range(100):
        assert see(bound, 1.0 + second, silent="") > 59.0
    bound = all_ahead()
    for second in range(100):
        assert see(bound, 1.0 + second) > 59.0
        see(bound, 1.5 + second, 60.0, silent="", well="r2 r3" if second % 5 == 0 else "")


def test_who_was_never_seen_does_not_count_for_ever() -> None:
    bound = ClockBound(offset_max_s=2.0, replica_error_s=0.0, front_end_error_s=None, replicas=3)
    see(bound, 1.0)
    assert not bound.is_agreed
    see(bound, 1.0 + AWAY_S)
    assert bound.is_agreed


def test_members_that_left_are_not_missed() -> None:
    bound = all_ahead()
    see(bound, 1.0)
    see(bound, 1.0 + AWAY_S)
    assert bound.is_agreed
    bound.follow(("r1", "r4", "r5"))
    assert not bound.is_agreed
    see(bound, 2.0 + AWAY_S, silent="")
    assert not bound.is_agreed
