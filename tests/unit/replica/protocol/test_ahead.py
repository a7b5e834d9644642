"""What a replica tells of timestamps that were given while clocks were ahead."""

from quorate.api_specs.cluster import ClockSettings
from quorate.replica.protocol.ahead import Ahead
from quorate.timestamps.clock import Now
from quorate.timestamps.timekeeping import storable_ahead_us
from quorate.timestamps.timestamp import ZERO, make

CLOCK = ClockSettings(replica_error_s=0.1, offset_max_s=2.0)
STORABLE_US = storable_ahead_us(2.0, 0.1)
NOW_US = 1_700_000_000_000_000
FAR = make(NOW_US + 60_000_000, 0, "f1")


def now(later_us: int, mono_us: int | None = None) -> Now:
    """A moment by both clocks; the one that never steps goes with the other unless told otherwise."""
    return Now((later_us if mono_us is None else mono_us) / 1e6, NOW_US + later_us)


def test_what_was_far_ahead_is_told_until_time_has_come_there() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(FAR, now(0))
    for later_us in (0, 58_500_000, 60_000_000, 60_000_000 + STORABLE_US):
        ahead.look(FAR, now(later_us))
        assert ahead.told(NOW_US + later_us) == FAR
    assert ahead.told(NOW_US + 60_000_001 + STORABLE_US) == ZERO


def test_what_right_clocks_may_have_stored_is_not() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(make(NOW_US + STORABLE_US, 0, "f1"), now(0))
    assert ahead.told(NOW_US) == ZERO
    ahead.look(make(NOW_US + STORABLE_US + 1, 0, "f1"), now(0))
    assert ahead.told(NOW_US) != ZERO


def test_the_highest_is_told() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(FAR, now(0))
    ahead.look(make(NOW_US + 30_000_000, 0, "f1"), now(0))
    assert ahead.told(NOW_US) == FAR


def test_it_is_told_again_where_the_clock_was_ahead_once_more() -> None:
    """It was forgotten then, and was too near to be noted once the clock was set right."""
    ahead = Ahead(CLOCK)
    ahead.look(FAR, now(0))
    ahead.look(FAR, now(78_000_000, 57_900_000))
    assert ahead.told(NOW_US + 78_000_000) == ZERO
    ahead.look(FAR, now(58_500_000))
    assert ahead.told(NOW_US + 58_500_000) == FAR


def test_what_came_near_before_anybody_looked_again_is_noted() -> None:
    """Clocks were three seconds ahead, and set right just after a look; the next one came 1.9 s later."""
    ahead = Ahead(CLOCK)
    stored = make(NOW_US + 3_000_000, 0, "f1")
    ahead.look(stored, now(3_000_000, 0))
    ahead.look(stored, now(1_900_000))
    assert ahead.told(NOW_US + 1_900_000) == stored


def test_small_steps_back_say_nothing() -> None:
    ahead = Ahead(CLOCK)
    stored = make(NOW_US + 4_260_000, 0, "f1")
    ahead.look(stored, now(2_000_000, 50_000))
    ahead.look(stored, now(3_950_000, 2_050_000))
    assert ahead.told(NOW_US + 3_950_000) == ZERO
