"""How often dequeues and acquires that wait for items look again. Pure."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final

LOOK_S_FIRST: Final = 0.005
LOOK_S_MAX: Final = 0.1
"""How often one looks: after the first time, then twice as long each time, up to the last."""

LOOKS_PER_S_MAX: Final = 250
"""Of all who wait together, on average: a look takes a millisecond of the front end's loop, and as much of all replicas. Each caller
has an equal share of them, however many of its operations wait."""

PAUSE_S_MAX: Final = 1.5
"""On average, so long at most: one that is hurried still ends before its front end is closed."""

_GOLDEN: Final = 0.618
"""Its multiples, without their whole parts, spread evenly."""


class Pacing:
    """Of one front end."""

    def __init__(self) -> None:
        self._waiting: Final = Counter[Hashable]()
        """How many operations wait, by caller."""
        self._pauses = 0
        self.is_hurried = False
        """Whether who waits ends with what it finds at its next look: for a front end that will soon be closed."""

    @contextmanager
    def waits(self, caller: Hashable) -> Iterator[None]:
        """One more operation of this caller waits meanwhile."""
        self._waiting[caller] += 1
        try:
            yield
        finally:
            self._waiting[caller] -= 1
            if not self._waiting[caller]:
                del self._waiting[caller]

    def pause_s(self, looked: int, caller: Hashable) -> float:
        """How long one of the caller's that wait pauses after having looked so many times."""
        alone_s = min(LOOK_S_FIRST * 2.0 ** min(looked - 1, 10), LOOK_S_MAX)
        self._pauses += 1
        place = self._pauses * _GOLDEN % 1  # Who began together looks again one after the other.
        share_s = self._waiting[caller] * len(self._waiting) / LOOKS_PER_S_MAX
        return max(alone_s, (0.5 + place) * min(share_s, PAUSE_S_MAX))
