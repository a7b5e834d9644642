"""The hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014, figure 5). Pure: the time comes in.

A clock belongs to one incarnation of one process, and never gives a timestamp twice: a new one is above all it gave and all it
witnessed, and at or above the physical time it is told. It may be set back, where that time was wrong: the timestamps that follow have
another site id.
"""

from typing import Final

from msgspec import Struct

from .timestamp import COUNTER_MAX, Timestamp, counter, make, wall_us

AHEAD_MAX: Final = 10_000
"""Microseconds ahead of a clock in which it remembers to have given timestamps."""


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


class HybridClock:
    """Gives timestamps of one site, and of others made from its id once it was set back."""

    def __init__(self, site: str) -> None:
        self._first_site: Final = site
        self._sites = 1
        self._site = site
        self._last = make(0, 0, site)
        self._last_us = 0
        self._last_counter = 0
        self._ahead: dict[int, int] = {}
        """Of the microseconds ahead of this clock in which it has given timestamps of its present site: the next counter that is free."""

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
        at_us, least = (now_us, 0) if now_us > self._last_us else (self._last_us, self._last_counter + 1)
        if self._ahead or least > COUNTER_MAX:
            at_us, least = self._free(at_us, least)
        self._last_us, self._last_counter = at_us, least
        self._last = make(self._last_us, self._last_counter, self._site)
        return self._last

    def above(self, least: Timestamp, now_us: int) -> Timestamp:
        """A new timestamp, at or above `now_us` and above `least`, however far ahead that is: the clock itself does not
        move there, and those to come for other objects are not above it."""
        stamp = self.next(now_us)
        if stamp > least:
            return stamp
        at_us, free = self._free(wall_us(least), counter(least) + 1)
        self._ahead[at_us] = free + 1
        stamp = make(at_us, free, self._site)
        if len(self._ahead) > AHEAD_MAX:
            self._forget_passed()
        return stamp

    def set_back(self, now_us: int) -> None:
        """Give timestamps from `now_us` on, though later ones were given."""
        self._last_us, self._last_counter = max(now_us - 1, 0), COUNTER_MAX
        self._take_another_site()

    def _free(self, at_us: int, least: int) -> tuple[int, int]:
        """The first time and counter, from these on, that were not given ahead of time."""
        least = max(least, self._ahead.get(at_us, 0))
        while least > COUNTER_MAX:
            at_us += 1
            least = self._ahead.get(at_us, 0)
        return at_us, least

    def _forget_passed(self) -> None:
        """Forget what time has passed; if that is not enough, all, under another site id."""
        self._ahead = {at_us: free for at_us, free in self._ahead.items() if at_us >= self._last_us}
        if len(self._ahead) > AHEAD_MAX // 2:
            self._take_another_site()

    def _take_another_site(self) -> None:
        """Whatever was given before, none of it comes again. Nobody else has a site id that begins with the first one of this clock."""
        self._sites += 1
        self._site = f"{self._first_site}x{self._sites}"
        self._last = make(self._last_us, self._last_counter, self._site)
        self._ahead.clear()

    def witness(self, seen: Timestamp) -> None:
        """Note a timestamp of any site, so that the next one given is above it."""
        # What is not above as a whole is not above in its time and counter: the usual case, told at once.
        if seen > self._last and seen[:19] > self._last[:19]:
            self._last_us, self._last_counter = wall_us(seen), counter(seen)
            self._last = make(self._last_us, self._last_counter, self._site)
