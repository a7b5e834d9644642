"""How often somebody may ask: a token bucket (here: of drops, since tokens are something else). Pure: time comes in."""

import math
from collections.abc import Hashable
from typing import Final

BURST_S: Final = 2.0
"""So many seconds' worth may come at once."""


class Bucket:
    """Lets through `rate` requests a second on average, and twice as many at once."""

    __slots__ = ("_at_s", "_drops", "_drops_max", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate: Final = rate
        self._drops_max: Final = rate * BURST_S
        self._drops = self._drops_max
        self._at_s = float("-inf")

    def takes(self, now_s: float) -> bool:
        """Whether one more is let through now."""
        passed_s = now_s - self._at_s
        self._at_s = now_s
        self._drops = min(self._drops_max, self._drops + passed_s * self._rate)
        if self._drops < 1:
            return False
        self._drops -= 1
        return True

    def charge(self, requests: int) -> bool:
        """Count so many more that came with one that was let through: whoever owes waits the longer. False, and nothing is counted, where it
        owes already: one that was let through beside it has used up what there was."""
        if self._drops < 0:
            return False
        self._drops -= requests
        return True

    @property
    def wait_s(self) -> int:
        """In how many whole seconds one will certainly be let through, if no other comes meanwhile; 1 at least."""
        return max(1, math.ceil((1 - self._drops) / self._rate))


class Buckets:
    """One bucket of that rate for each of the callers who asked last, at most so many: one who comes again later begins with a full one."""

    def __init__(self, rate: float, callers_max: int) -> None:
        self.rate: Final = rate
        self._callers_max: Final = callers_max
        self._of: Final[dict[Hashable, Bucket]] = {}
        """Who asked last comes last."""

    def of(self, caller: Hashable) -> Bucket:
        """The bucket of one caller, who asks now."""
        bucket = self._of.pop(caller, None) or Bucket(self.rate)
        self._of[caller] = bucket
        if len(self._of) > self._callers_max:
            del self._of[next(iter(self._of))]
        return bucket
