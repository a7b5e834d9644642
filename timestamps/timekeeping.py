"""A front end's time: the stamps it gives, and what it holds true time to be. Pure.

Joins the hybrid clock (no timestamp twice, above all that was seen) with the bound of true time that the replicas' clocks
give. Owns what one wrong clock may do to both: nothing, while most of the replicas agree.
"""

from collections.abc import Collection
from typing import Final

from .clock import HybridClock, Now
from .clock_bound import ClockBound
from .timestamp import ZERO, Timestamp, make, wall_us

MARGIN_S: Final = 0.1
"""A request may store what is a microsecond above the highest timestamp of a store: thousands of them, sent at once, move it by less."""


def storable_ahead_us(offset_max_s: float, replica_error_s: float) -> int:
    """How far ahead of true time what replicas have stored may be, in microseconds, if their clocks are right and always were."""
    return int((offset_max_s + 2 * replica_error_s + MARGIN_S) * 1e6)


class Timekeeping:
    """The time of one front end, whose first site id is `site`."""

    def __init__(
        self,
        site: str,
        *,
        replicas: int,
        offset_max_s: float,
        replica_error_s: float,
        front_end_error_s: float | None,
    ) -> None:
        self._clock: Final = HybridClock(site)
        self._bound: Final = ClockBound(
            offset_max_s=offset_max_s,
            replica_error_s=replica_error_s,
            front_end_error_s=front_end_error_s,
            replicas=replicas,
        )
        self._highest_us = 0
        """Of the highest timestamp that any replica has told that its store holds."""
        self._look_until_us = 0
        """Until time has come there, stores may hold timestamps that were given while time was wrong."""
        self._near_us: Final = offset_max_s * 1e6 / 2
        self.storable_ahead_us: Final = storable_ahead_us(offset_max_s, replica_error_s)

    def follow(self, replicas: Collection[str]) -> None:
        """These are the replicas from now on."""
        self._bound.follow(replicas)

    def measure(self, replica: str, theirs_us: int, sent: Now, received: Now) -> None:
        """Take in the physical clock that one reply shows."""
        self._bound.measure(replica, theirs_us, sent, received)

    def miss(self, replica: str, now: Now) -> None:
        """A replica was asked, and gave no answer that shows its clock."""
        self._bound.miss(replica, now)

    def witness(self, stored: Timestamp, now: Now) -> None:
        """Note what a replica's store holds. Stamp above it, as far as clocks that are right may differ: whoever stores
        something further ahead moves nobody's stamps, but those of the object that it is stored for."""
        stored_us, latest_us = wall_us(stored), self.latest_us(now)
        self._highest_us = max(self._highest_us, stored_us)
        self._note_ahead(latest_us)
        if stored > self._clock.last and self.is_settled(now):
            error_us = latest_us - self.earliest_us(now)
            if stored_us <= latest_us + error_us:
                self._clock.witness(stored)

    def stamp(self, now: Now, shown: Timestamp = ZERO, given: Timestamp = ZERO) -> Timestamp:
        """A new timestamp, at or above the upper bound of the present true time, and above what is `shown` of its object, however far
        ahead. Also above what was `given` to it, unless replicas would refuse that: time was wrong then, and they need not have stored it.
        """
        latest_us = self.latest_us(now)
        if self._is_beyond(self._clock.last_us, latest_us) and self._bound.is_agreed:
            # Time is set right. Replicas would refuse what the clock gives for as long as it was ahead.
            self._note_ahead(latest_us)
            self._clock.set_back(latest_us)
        least = shown
        # What comes next is above all that the clock has passed, as the stamps of one batch, in any case.
        if given > shown and given > self._clock.last:
            given_us = wall_us(given)
            is_refused = self._is_beyond(given_us, latest_us) and given_us > wall_us(shown) + 1
            least = shown if is_refused else given
        return self._clock.above(least, latest_us)

    def is_ahead(self, stamp: Timestamp, now: Now) -> bool:
        """Whether it is so far ahead of time that clocks must have been wrong when it was given: no wait is for so long."""
        return self._is_beyond(wall_us(stamp), self.latest_us(now))

    def is_any_ahead(self, now: Now) -> bool:
        """Whether some replica's store holds such a timestamp, or may: until time has come there, for then it is as near as any."""
        latest_us = self.latest_us(now)
        self._note_ahead(latest_us)
        return self._look_until_us >= latest_us

    def hear_of_ahead(self, ahead: Timestamp) -> None:
        """Take in up to where a replica's store may hold timestamps that were given while time was wrong."""
        self._look_until_us = max(self._look_until_us, wall_us(ahead))

    def _note_ahead(self, latest_us: int) -> None:
        known_us = max(self._highest_us, self._clock.last_us)
        if self._is_beyond(known_us, latest_us):
            self._look_until_us = max(self._look_until_us, known_us)

    def _is_beyond(self, stamp_us: int, latest_us: int) -> bool:
        return stamp_us > latest_us + self.storable_ahead_us

    def is_near(self, theirs_us: int, now: Now) -> bool:
        """Whether a replica with that clock takes no stamp of ours for one from far off, though it be on its way a while."""
        return abs(theirs_us - max(self.latest_us(now), self._clock.last_us)) <= self._near_us

    def is_settled(self, now: Now) -> bool:
        """Whether there is a bound that one wrong replica cannot have made."""
        return self._bound.is_settled(now)

    def passed_s(self, stamp: Timestamp, now: Now) -> float:
        """The monotonic time from which true time is certainly after the stamp (commit wait): a microsecond later, for
        another front end may stamp lower in the very microsecond (its counter begins anew).

        Nobody waits for one that `is_ahead`: who writes to its object looks for it first. A replica must have replied before."""
        reached_s = self._bound.reached_s(wall_us(stamp) + 1, now)
        return now.mono_s if reached_s > now.mono_s and self.is_ahead(stamp, now) else reached_s

    def before(self, seconds: float, now: Now) -> Timestamp:
        """So long ago, or longer. By measured time where there is any: the wall clock may be wrong by hours, and stamps do
        not come from it either."""
        return make(max(0, self.earliest_us(now) - int(seconds * 1e6)), 0, "0")

    def earliest_us(self, now: Now) -> int:
        """True time is not before this, as far as anything is known of it."""
        return self._bound.lower_us(now) if self._bound.is_known else now.wall_us

    def latest_us(self, now: Now) -> int:
        """True time is not after this, as far as anything is known of it."""
        return self._bound.upper_us(now) if self._bound.is_known else now.wall_us
