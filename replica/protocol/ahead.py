"""Whether stores hold timestamps that were given while clocks were ahead (docs/explanation/clocks.md, "After clocks were wrong"). Pure.

Owns what a replica tells of it. In the last seconds before time comes to such a timestamp it is as near as any. A front end that hears of
it only then could not tell it from those that others wait for. So the replica, which saw it far ahead, says that it was.
"""

from typing import Final

from ...api_specs.cluster import ClockSettings
from ...timestamps.timekeeping import storable_ahead_us
from ...timestamps.timestamp import ZERO, Timestamp, wall_us


class Ahead:
    """What one process of a replica knows of it."""

    def __init__(self, clock: ClockSettings) -> None:
        self._storable_us: Final = storable_ahead_us(clock.offset_max_s, clock.replica_error_s)
        self._upto = ZERO

    def look(self, highest: Timestamp, now_us: int) -> None:
        """Note the highest timestamp that the own store or another one holds."""
        if highest > self._upto and wall_us(highest) > now_us + self._storable_us:
            self._upto = highest

    def told(self, now_us: int) -> Timestamp:
        """The highest timestamp that is known to have been far ahead; ZERO once time has certainly come there."""
        if self._upto != ZERO and now_us > wall_us(self._upto) + self._storable_us:
            self._upto = ZERO
        return self._upto
