"""A front end's stamps and commit waits, by what the replicas' clocks have shown."""

from random import Random

import pytest

from quorate.timestamps.clock import Now
from quorate.timestamps.clock_bound import DRIFT
from quorate.timestamps.timekeeping import MARGIN_S, Timekeeping
from quorate.timestamps.timestamp import COUNTER_MAX, ZERO, Timestamp, make, site, wall_us

WALL_US = 1_700_000_000_000_000
HERE = Now(10.0, WALL_US)
OFFSET_S, ERROR_S = 2.0, 0.1


def declared(error_s: float = 0.0) -> Timekeeping:
    return Timekeeping(
        "a", replicas=1, offset_max_s=OFFSET_S, replica_error_s=ERROR_S, front_end_error_s=error_s
    )


def measuring() -> Timekeeping:
    return Timekeeping(
        "a", replicas=3, offset_max_s=OFFSET_S, replica_error_s=ERROR_S, front_end_error_s=None
    )


def ahead(seconds: float) -> Timestamp:
    return make(WALL_US + int(seconds * 1e6), 0, "b")


def test_a_stamp_is_at_the_latest_that_true_time_may_be_and_none_comes_twice() -> None:
    time = declared(0.5)
    stamps = [time.stamp(HERE) for _ in range(3)]
    assert wall_us(stamps[0]) == WALL_US + 500_000
    assert sorted(set(stamps)) == stamps


def test_what_a_replica_stores_moves_stamps_within_the_clocks_error_and_not_beyond() -> None:
    near, far = declared(0.5), declared(0.5)
    near.witness(ahead(1.5), HERE)
    assert near.stamp(HERE) > ahead(1.5)
    far.witness(ahead(1.6), HERE)
    assert far.stamp(HERE) < ahead(1.6)


def test_nothing_is_witnessed_before_the_clock_has_a_bound() -> None:
    time = measuring()
    time.witness(ahead(0.001), HERE)
    assert time.stamp(HERE) < ahead(0.001)


def test_an_object_is_stamped_above_what_it_shows_however_far_ahead_and_no_other_moves() -> None:
    time = declared()
    assert time.stamp(HERE, ahead(3600)) > ahead(3600)
    assert wall_us(time.stamp(HERE)) < wall_us(ahead(1))


def test_who_heard_of_a_far_timestamp_looks_until_time_has_come_there() -> None:
    """Its writer did not wait for it. In the last two seconds it is as near as one whose writer still waits."""
    time = declared()
    time.witness(ahead(60), HERE)
    for passed_s in (57.0, 58.5, 59.999_999, 60.0):
        assert time.is_any_ahead(Now(10.0 + passed_s, WALL_US + int(passed_s * 1e6)))
    assert not time.is_any_ahead(Now(70.1, WALL_US + 60_000_001))


def test_what_was_given_beyond_time_counts_where_replicas_take_it() -> None:
    """A batch is stamped at once; what its object shows may be far ahead, and no stamp of the batch comes before the one ahead of it."""
    time = declared()
    shown = ahead(60)
    stamps = [time.stamp(HERE, shown)]
    for _ in range(COUNTER_MAX + 2):
        stamps.append(time.stamp(HERE, shown, stamps[-1]))
    assert sorted(set(stamps)) == stamps
    assert wall_us(stamps[-1]) == wall_us(shown) + 1


def test_a_batch_rises_though_the_clock_is_set_back_within_it() -> None:
    """What follows has another site id, which must not be all that makes it higher."""
    time = declared()
    shown = ahead(4060)
    later = Now(20.0, WALL_US + 4_000_000_000)
    stamps = [time.stamp(later, shown)]
    for _ in range(12):
        time.stamp(Now(20.0, WALL_US + 9_000_000_000))
        stamps.append(time.stamp(later, shown, stamps[-1]))
    assert sorted(set(stamps)) == stamps
    assert len({site(stamp) for stamp in stamps}) == len(stamps)
    assert wall_us(stamps[-1]) == wall_us(shown), "as replicas take it"


@pytest.mark.parametrize(("seconds", "is_ahead"), [(2.2 + MARGIN_S, False), (2.21 + MARGIN_S, True)])
def test_ahead_is_what_no_right_clock_would_have_stored(seconds: float, is_ahead: bool) -> None:
    time = declared()
    assert time.is_ahead(ahead(seconds), HERE) is is_ahead
    assert not time.is_any_ahead(HERE)
    time.witness(ahead(seconds), HERE)
    assert time.is_any_ahead(HERE) is is_ahead


def test_what_a_replica_saw_far_ahead_counts_though_it_is_heard_of_late() -> None:
    time = declared()
    time.witness(ahead(1.5), HERE)
    assert not time.is_any_ahead(HERE), "as near as what others wait for"
    time.hear_of_ahead(ahead(1.5))
    assert time.is_any_ahead(HERE)
    assert time.is_any_ahead(Now(11.4, WALL_US + 1_400_000))
    assert not time.is_any_ahead(Now(11.7, WALL_US + 1_700_000))


def test_what_is_less_far_ahead_ends_no_look() -> None:
    time = declared()
    time.hear_of_ahead(ahead(60))
    time.witness(ahead(10), HERE)
    assert time.is_any_ahead(Now(40.0, WALL_US + 30_000_000))


def test_what_is_stored_moves_no_stamp_before_the_bound_is_settled() -> None:
    time = measuring()
    time.measure("r1", WALL_US, HERE, HERE)
    assert not time.is_settled(HERE)
    time.witness(ahead(0.15), HERE)
    assert time.stamp(HERE) < ahead(0.15)
    time.measure("r2", WALL_US, HERE, HERE)
    time.witness(ahead(0.15), HERE)
    assert time.stamp(HERE) > ahead(0.15)


def test_commit_wait_ends_a_microsecond_after_the_stamp_and_counts_the_drift() -> None:
    time = declared()
    assert time.passed_s(make(WALL_US - 1, 0, "a"), HERE) == HERE.mono_s
    waited_s = time.passed_s(ahead(1), HERE) - HERE.mono_s
    assert waited_s == pytest.approx(1.000001 / (1 - DRIFT), abs=1e-7)


def test_nobody_waits_for_what_is_far_ahead() -> None:
    assert declared().passed_s(ahead(3600), HERE) == HERE.mono_s


def test_the_past_is_counted_from_the_earliest_that_true_time_may_be() -> None:
    time = declared(0.5)
    assert wall_us(time.before(30, HERE)) == WALL_US - 30_500_000
    assert time.before(1e12, HERE) == make(0, 0, "0"), "never below zero"
    assert time.before(1e12, HERE) <= ZERO


def test_measured_time_is_gone_by_and_not_the_wall_clock() -> None:
    time = measuring()
    wrong = Now(10.0, WALL_US + 3_600_000_000)
    assert time.latest_us(wrong) == wrong.wall_us, "nothing else is known yet"
    for replica in ("r1", "r2"):
        time.measure(replica, WALL_US, wrong, wrong)
    assert time.is_settled(wrong)
    assert time.earliest_us(wrong) == WALL_US - 100_000
    assert time.latest_us(wrong) == WALL_US + 100_000


@pytest.mark.parametrize(("off_s", "is_near"), [(0.9, True), (1.1, False), (-1.1, False)])
def test_a_replica_is_near_within_half_of_the_offset_that_is_accepted(off_s: float, is_near: bool) -> None:
    assert declared().is_near(wall_us(ahead(off_s)), HERE) is is_near


def test_no_replica_is_near_whose_time_is_far_below_what_is_given_next() -> None:
    """It would deny what is forwarded under such an id, and not say that it was never served."""
    time = declared()
    time.stamp(Now(11.0, WALL_US + 1_200_000))
    assert not time.is_near(WALL_US, HERE)
    assert time.is_near(WALL_US + 500_000, HERE)


def test_what_was_stamped_while_time_was_wrong_keeps_no_stamp_ahead() -> None:
    """Clocks were an hour ahead, and are set right: replicas would refuse what goes on from there."""
    time = declared()
    later = Now(20.0, WALL_US)
    given_ = time.stamp(Now(11.0, WALL_US + 3_600_000_000))
    stamps = [time.stamp(later), time.stamp(later, ZERO, given_), time.stamp(later, ahead(-1), given_)]
    assert sorted(set(stamps)) == stamps
    assert wall_us(stamps[-1]) == WALL_US
    assert time.stamp(later, given_, given_) > given_, "but an object that shows it goes on from it"


def test_a_small_step_back_leaves_stamps_where_they_are() -> None:
    """Whoever waits for them to pass waits no longer than clocks may differ."""
    time = declared()
    given_ = time.stamp(Now(11.0, WALL_US + 2_200_000))
    assert time.stamp(HERE) > given_
    assert not time.is_any_ahead(HERE)


def test_who_was_set_back_looks_before_it_stamps_until_time_has_come() -> None:
    """A stamp that was given just before may be stored, and no replica may have told: the next one must be above it."""
    time = declared()
    given_ = time.stamp(Now(11.0, WALL_US + 3_000_000))
    assert time.is_any_ahead(HERE)
    time.stamp(HERE)
    assert time.is_any_ahead(HERE)
    assert time.is_any_ahead(Now(12.9, wall_us(given_)))
    assert not time.is_any_ahead(Now(13.0, wall_us(given_) + 1))


def test_no_stamp_is_set_back_by_a_bound_that_one_replica_may_have_made() -> None:
    time = measuring()
    for replica in ("r1", "r2"):
        time.measure(replica, WALL_US + 3_600_000_000, HERE, HERE)
    given_ = time.stamp(HERE)
    time.measure("r1", WALL_US, HERE, HERE)
    later = Now(HERE.mono_s + 5, WALL_US + 5_000_000)
    assert time.is_settled(later), "half a second is enough to stamp"
    assert time.stamp(later) > given_
    time.measure("r2", WALL_US, HERE, HERE)
    assert wall_us(time.stamp(HERE)) < WALL_US + 1_000_000


def test_only_what_the_clock_has_not_passed_needs_to_be_looked_at() -> None:
    """A stamp is the one that comes of looking at all that was given, as one does who does not know what the clock has passed."""

    def thorough(time: Timekeeping, now: Now, shown: Timestamp, given: Timestamp) -> Timestamp:
        latest_us = time.latest_us(now)
        if time._is_beyond(time._clock.last_us, latest_us) and time._bound.is_agreed:
            time._note_ahead(latest_us)
            time._clock.set_back(latest_us)
        is_refused = time._is_beyond(wall_us(given), latest_us) and wall_us(given) > wall_us(shown) + 1
        return time._clock.above(shown if is_refused else max(shown, given), latest_us)

    for seed in range(100):
        rng, wall = Random(seed), WALL_US
        quick, plain = declared(0.5), declared(0.5)
        told = [ZERO, ahead(1), ahead(3600)]
        for step in range(60):
            wall += rng.choice((0, 0, 0, 1, 1000, 3_600_000_000, -3_600_000_000))
            now = Now(float(step), wall)
            if rng.random() < 0.1:
                for each in (quick, plain):
                    each.witness(told[-1], now)
            shown, given = rng.choice(told[-4:]), rng.choice(told)
            told.append(quick.stamp(now, shown, given))
            assert told[-1] == thorough(plain, now, shown, given), (seed, step)
