"""What a replica tells of timestamps that were given while clocks were ahead."""

from quorate.api_specs.cluster import ClockSettings
from quorate.replica.protocol.ahead import Ahead
from quorate.timestamps.timekeeping import storable_ahead_us
from quorate.timestamps.timestamp import ZERO, make

CLOCK = ClockSettings(replica_error_s=0.1, offset_max_s=2.0)
STORABLE_US = storable_ahead_us(2.0, 0.1)
NOW_US = 1_700_000_000_000_000
FAR = make(NOW_US + 60_000_000, 0, "f1")


def test_what_was_far_ahead_is_told_until_time_has_come_there() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(FAR, NOW_US)
    for later_us in (0, 58_500_000, 60_000_000, 60_000_000 + STORABLE_US):
        ahead.look(FAR, NOW_US + later_us)
        assert ahead.told(NOW_US + later_us) == FAR
    assert ahead.told(NOW_US + 60_000_001 + STORABLE_US) == ZERO
    ahead.look(FAR, NOW_US)
    assert ahead.told(NOW_US) == FAR, "clocks were set back once more"


def test_what_right_clocks_may_have_stored_is_not() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(make(NOW_US + STORABLE_US, 0, "f1"), NOW_US)
    assert ahead.told(NOW_US) == ZERO
    ahead.look(make(NOW_US + STORABLE_US + 1, 0, "f1"), NOW_US)
    assert ahead.told(NOW_US) != ZERO


def test_the_highest_is_told() -> None:
    ahead = Ahead(CLOCK)
    ahead.look(FAR, NOW_US)
    ahead.look(make(NOW_US + 30_000_000, 0, "f1"), NOW_US)
    assert ahead.told(NOW_US) == FAR
