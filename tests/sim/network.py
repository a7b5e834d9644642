"""The network: how long a packet takes between two nodes, or that it never arrives.

Owns cuts, partitions and slow links. It must not know what packets carry.
"""

import random
from collections import Counter
from collections.abc import Iterable

from tests.sim.scenario import Faults

DELAY_US_MIN = 200
DELAY_US_MAX = 1_500
SLOWNESS = 30


class Network:
    """Fates of packets."""

    def __init__(self, faults: Faults, rng: random.Random) -> None:
        self.faults = faults
        self._random = rng.random
        self._cut: Counter[tuple[str, str]] = Counter()
        self._slow: Counter[tuple[str, str]] = Counter()

    def heal(self) -> None:
        """From now on every packet arrives, in the usual time."""
        self.faults = Faults()
        self._cut.clear()
        self._slow.clear()

    def delay_us(self, source: str, target: str) -> int | None:
        """How long the next packet from `source` to `target` takes; None: it is lost."""
        faults = self.faults
        if (self._cut and self._cut[source, target] > 0) or self._random() < faults.loss:
            return None
        if self._random() < faults.tail:
            # Pareto: most of these are a few times the usual delay, some a hundred times.
            delay_us = min(faults.tail_us_max, int(DELAY_US_MAX / (1 - self._random())))
        else:
            delay_us = int(DELAY_US_MIN + (DELAY_US_MAX - DELAY_US_MIN) * self._random())
        return delay_us * SLOWNESS if self._slow and self._slow[source, target] > 0 else delay_us

    def is_doubled(self) -> bool:
        """Whether the next packet arrives twice."""
        return self._random() < self.faults.duplication

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Packets of these (source, target) are lost, until `mend` with the same."""
        self._cut.update(pairs)

    def mend(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Undo one `cut`."""
        self._cut.subtract(pairs)

    def slow(self, one: str, other: str) -> None:
        """Packets between the two take long, until `speed`."""
        self._slow.update([(one, other), (other, one)])

    def speed(self, one: str, other: str) -> None:
        """Undo one `slow`."""
        self._slow.subtract([(one, other), (other, one)])
