"""The hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014, figure 5). Pure: the time comes in.

A clock belongs to one site id, that is to one incarnation of one process, and never gives a timestamp twice: a new one is
above all it gave and all it witnessed, and at or above the physical time it is told.
"""

from quorate.timestamps.timestamp import COUNTER_MAX, Timestamp, counter, make, wall_us


class HybridClock:
    """Gives timestamps of one site."""

    def __init__(self, site: str) -> None:
        self._last = make(0, 0, site)
        self._last_us = 0
        self._last_counter = 0
        self.site = site

    @property
    def last(self) -> Timestamp:
        """Nothing that this clock gave or witnessed is above this (but for the site id)."""
        return self._last

    def next(self, now_us: int) -> Timestamp:
        """A new timestamp, at or above `now_us` and above all given or witnessed before."""
        if now_us > self._last_us:
            self._last_us, self._last_counter = now_us, 0
        elif self._last_counter < COUNTER_MAX:
            self._last_counter += 1
        else:
            self._last_us, self._last_counter = self._last_us + 1, 0
        self._last = make(self._last_us, self._last_counter, self.site)
        return self._last

    def witness(self, seen: Timestamp) -> None:
        """Note a timestamp of any site, so that the next one given is above it."""
        # What is not above as a whole is not above in its time and counter: the usual case, told at once.
        if seen > self._last and seen[:19] > self._last[:19]:
            self._last_us, self._last_counter = wall_us(seen), counter(seen)
            self._last = make(self._last_us, self._last_counter, self.site)
