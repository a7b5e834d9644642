"""Whether stores hold timestamps that were given while clocks were ahead (docs/explanation/clocks.md, "After clocks were wrong"). Pure.

Owns what a replica tells front ends about that. In the last seconds before time reaches such a timestamp, it looks like one that its
writer waits for (commit wait), and a front end would not look for it. So a replica that saw it far ahead says so.
"""

from typing import Final

from ...api_specs.cluster import ClockSettings
from ...timestamps.clock import Now
from ...timestamps.timekeeping import MARGIN_S, storable_ahead_us
from ...timestamps.timestamp import ZERO, Timestamp, wall_us


class Ahead:
    """What one process of a replica knows of it."""

    def __init__(self, clock: ClockSettings) -> None:
        self._storable_us: Final = storable_ahead_us(clock.offset_max_s, clock.replica_error_s)
        self._upto = ZERO
        self._looked: Now | None = None

    def look(self, highest: Timestamp, now: Now) -> None:
        """Note the highest timestamp that the own store or another one holds. Where the wall clock was set back since the last look, by
        the time that it should have shown then: what was far ahead may have come near since."""
        known_us = now.wall_us if self._looked is None else min(now.wall_us, _told_then_us(self._looked, now))
        self._looked = now
        if highest > self._upto and wall_us(highest) > known_us + self._storable_us:
            self._upto = highest

    def told(self, now_us: int) -> Timestamp:
        """The highest timestamp that is known to have been far ahead; ZERO while time has certainly come there. It is remembered: the clock
        may be ahead now, and be set back."""
        if self._upto == ZERO:  # As nearly always.
            return ZERO
        return ZERO if now_us > wall_us(self._upto) + self._storable_us else self._upto


def _told_then_us(looked: Now, now: Now) -> int:
    """What the wall clock would have shown at that look, had it been as right as now. Steps of less than `MARGIN_S` say nothing."""
    then_us = now.wall_us - round((now.mono_s - looked.mono_s) * 1e6)
    return then_us if then_us < looked.wall_us - MARGIN_S * 1e6 else now.wall_us
