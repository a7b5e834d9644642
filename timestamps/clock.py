"""The hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014, figure 5). Pure: the time comes in.

A clock belongs to one site id, that is to one incarnation of one process, and never gives a timestamp twice: a new one is
above all it gave and all it witnessed, and at or above the physical time it is told. It may be set back, where that time was wrong: the
timestamps that follow have counters that those before have not.
"""

from typing import Final

from msgspec import Struct

from .timestamp import COUNTER_MAX, Timestamp, counter, make, wall_us

AHEAD_MAX: Final = 10_000
"""Microseconds ahead of a clock in which it remembers to have given timestamps."""
GENERATIONS: Final = 4
"""Once less than so often a clock may be set back before time reaches what it gave."""
COUNTERS: Final = (COUNTER_MAX + 1) // GENERATIONS
"""Of one microsecond, as many timestamps as a clock gives between two times that it is set back."""


class Now(Struct, frozen=True, gc=False):
    """One reading of both clocks: `mono_s` never steps and times waits; `wall_us` feeds timestamps."""

    mono_s: float
    wall_us: int

    def since_s(self, earlier: "Now") -> float:
        """How many seconds may have passed since `earlier`: by the clock that says more, for the one that never steps stands still while
        a machine is suspended."""
        return max(self.mono_s - earlier.mono_s, (self.wall_us - earlier.wall_us) / 1e6)

    def before(self, seconds: float) -> "Now":
        """So long ago."""
        return Now(self.mono_s - seconds, self.wall_us - round(seconds * 1e6))


def generation(timestamp: Timestamp) -> int:
    """Which generation of its clock gave it: those of one generation and site rise."""
    return counter(timestamp) // COUNTERS


class HybridClock:
    """Gives timestamps of one site."""

    def __init__(self, site: str) -> None:
        self._last = make(0, 0, site)
        self._last_us = 0
        self._last_counter = 0
        self._ahead: dict[int, int] = {}
        """Of the microseconds ahead of this clock in which it has given timestamps: the next counter that is free."""
        self._generation = 0
        self._given_us = [-1] * GENERATIONS
        """Of each generation that is over: the last microsecond in which it may have given timestamps."""
        self.site = site

    @property
    def last_us(self) -> int:
        """The time of `last`."""
        return self._last_us

    @property
    def last(self) -> Timestamp:
        """Nothing that this clock gave or witnessed is above this (but for the site id)."""
        return self._last

    def next(self, now_us: int) -> Timestamp:
        """A new timestamp, at or above `now_us` and above all that this method gave, and all witnessed, before."""
        if now_us > self._last_us:
            self._last_us, self._last_counter = self._free(now_us, 0)
        else:
            self._last_us, self._last_counter = self._free(self._last_us, self._last_counter + 1)
        self._last = make(self._last_us, self._last_counter, self.site)
        return self._last

    def above(self, least: Timestamp, now_us: int) -> Timestamp:
        """A new timestamp, at or above `now_us` and above `least`, however far ahead that is: the clock itself does not
        move there, and those to come for other objects are not above it."""
        stamp = self.next(now_us)
        if stamp > least:
            return stamp
        at_us, free = self._free(wall_us(least), counter(least) + 1)
        self._ahead[at_us] = free + 1
        if len(self._ahead) > AHEAD_MAX:
            self._forget_passed()
        return make(at_us, free, self.site)

    def set_back(self, now_us: int) -> bool:
        """Give timestamps from `now_us` on, though later ones were given. Whether that can be: not where too many generations of those
        are ahead of `now_us`."""
        passed = (place for place, given_us in enumerate(self._given_us) if given_us < now_us)
        free = next((place for place in passed if place != self._generation), None)
        if free is None:
            return False
        self._given_us[self._generation] = max(self._last_us, *self._ahead, 0)
        self._generation = free
        self._ahead.clear()
        self._last_us, self._last_counter = max(now_us - 1, 0), COUNTER_MAX
        self._last = make(self._last_us, self._last_counter, self.site)
        return True

    def _free(self, at_us: int, least: int) -> tuple[int, int]:
        """The first time and counter of this generation, from these on, that were not given ahead of time."""
        first = self._generation * COUNTERS
        least = max(least, first, self._ahead.get(at_us, 0))
        while least >= first + COUNTERS:
            at_us += 1
            least = max(first, self._ahead.get(at_us, 0))
        return at_us, least

    def _forget_passed(self) -> None:
        """Forget what time has passed; if that is not enough, move the clock above all of it."""
        self._ahead = {at_us: free for at_us, free in self._ahead.items() if at_us >= self._last_us}
        if len(self._ahead) > AHEAD_MAX // 2:
            at_us = max(self._ahead)
            self._last_us, self._last_counter = at_us, self._ahead[at_us] - 1
            self._last = make(self._last_us, self._last_counter, self.site)
            self._ahead.clear()

    def witness(self, seen: Timestamp) -> None:
        """Note a timestamp of any site, so that the next one given is above it."""
        # What is not above as a whole is not above in its time and counter: the usual case, told at once.
        if seen > self._last and seen[:19] > self._last[:19]:
            self._last_us, self._last_counter = wall_us(seen), counter(seen)
            self._last = make(self._last_us, self._last_counter, self.site)
