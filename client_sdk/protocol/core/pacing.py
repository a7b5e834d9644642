"""How often dequeues and acquires that wait for items look again. Pure."""

from collections.abc import Sized
from typing import Final

LOOK_S_FIRST: Final = 0.005
LOOK_S_MAX: Final = 0.1
"""How often one looks: after the first time, then twice as long each time, up to the last."""

SHARE_S: Final = 0.001
"""For each operation under way, all wait so much longer: however many wait, their looks together leave time for others."""

PAUSE_S_MAX: Final = 1.5
"""On average, so long at most: one that is hurried still ends before its front end is closed."""

_GOLDEN: Final = 0.618
"""Its multiples, without their whole parts, spread evenly."""


class Pacing:
    """Of one front end, whose operations are `under_way`."""

    def __init__(self, under_way: Sized) -> None:
        self._under_way: Final = under_way
        self._pauses = 0
        self.is_hurried = False
        """Whether who waits ends with what it finds at its next look: for a front end that will soon be closed."""

    def pause_s(self, looked: int) -> float:
        """How long to wait after having looked so many times."""
        alone_s = min(LOOK_S_FIRST * 2.0 ** min(looked - 1, 10), LOOK_S_MAX)
        self._pauses += 1
        place = self._pauses * _GOLDEN % 1  # Who began together looks again one after the other.
        return max(alone_s, (0.5 + place) * min(len(self._under_way) * SHARE_S, PAUSE_S_MAX))
