"""The clocks of a world's nodes: how far they are off, how they drift, and how they step.

Owns the arithmetic. It must not know when a clock steps (`quorate.simulation.world.plan`), nor what reads it.
"""

from typing import Final

from ...timestamps.clock import Now
from .surroundings import Surroundings

WALL_US_START: Final = 1_700_000_000_000_000


class WallClock:
    """A replica's clock. It drifts until it is as far off as the world's clocks may be; a leap comes on top of that."""

    def __init__(self, world: Surroundings, node: str, skew_us: int) -> None:
        self._world = world
        self._drift = world.drift(node)
        self._skew_us = skew_us
        self._set_at_us = 0
        self.leap_us = 0
        """So far from where it should be, besides."""

    @property
    def skew_us(self) -> int:
        """How far it is off."""
        if not self._drift and not self.leap_us:
            return self._skew_us
        drifted_us = int((self._world.now_us - self._set_at_us) * self._drift)
        most_us = max(abs(self._skew_us), self._world.network.faults.replica_skew_us)
        return self.leap_us + max(-most_us, min(most_us, self._skew_us + drifted_us))

    @property
    def wall_us(self) -> int:
        """What it shows."""
        return WALL_US_START + self._world.now_us + self.skew_us

    @property
    def mono_s(self) -> float:
        """What the replica's monotonic clock shows: it drifts as well, and never steps."""
        return self._world.now_us * (1 + self._drift) / 1e6

    def now(self) -> Now:
        """What both show."""
        return Now(self.mono_s, self.wall_us)

    def reset(self, skew_us: int) -> None:
        """Step to another error."""
        self._skew_us, self._set_at_us = skew_us, self._world.now_us


class SteadyClock:
    """A front end's monotonic clock: it starts anywhere, and runs fast or slow."""

    def __init__(self, world: Surroundings, node: str, start_us: int) -> None:
        self._start_us = start_us
        self._rate = 1 + world.drift(node)

    def shown_s(self, now_us: int) -> float:
        """What it shows at a moment of the world."""
        return (now_us / self._rate + self._start_us) / 1e6

    def moment_us(self, shown_s: float) -> int:
        """The first moment of the world at which it certainly shows this (a rounding error must not come too soon)."""
        return int((shown_s * 1e6 - self._start_us) * self._rate + 0.01) + 1
