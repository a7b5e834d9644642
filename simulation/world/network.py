"""The network: how long a packet takes between two nodes, or that it never arrives.

Owns cuts, partitions, slow links and links that term the order round. It must not know what packets carry.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..scenarios.faults import NO_FAULTS, Faults

DELAY_US_MIN = 200
DELAY_US_MAX = 1_500
SLOWNESS = 30
LOCAL_US = 20
"""From a replica to the front end in the same process, and back."""

Link = tuple[str, str]
Stack = list[tuple[Callable[..., None], tuple[Any, ...]]]


class Network:
    """Fates of packets. `injected` counts what was done to them."""

    def __init__(self, faults: Faults, rng: random.Random, injected: Counter[str] | None = None) -> None:
        self.faults = faults
        self.injected: Counter[str] = Counter() if injected is None else injected
        self.stacks: dict[Link, Stack] = {}
        """Of the links that deliver the newest first: what is under way."""
        self._random = rng.random
        self._cut: Counter[Link] = Counter()
        self._slow: Counter[Link] = Counter()

    def heal(self) -> None:
        """From now on every packet arrives, in the usual time."""
        self.faults = NO_FAULTS
        self._cut.clear()
        self._slow.clear()
        self.stacks.clear()

    def delay_us(self, source: str, target: str) -> int | None:
        """How long the next packet from `source` to `target` takes; None: it is lost."""
        if source == target:
            return LOCAL_US
        faults = self.faults
        if self._cut and self._cut[source, target] > 0:
            self.injected["packets cut off"] += 1
            return None
        if self._random() < faults.loss:
            self.injected["packets lost"] += 1
            return None
        if self._random() < faults.tail:
            # Pareto: most of these are a few times the usual delay, some a hundred times.
            delay_us = min(faults.tail_us_max, int(DELAY_US_MAX / (1 - self._random())))
            self.injected["packets late"] += 1
        else:
            delay_us = int(DELAY_US_MIN + (DELAY_US_MAX - DELAY_US_MIN) * self._random())
        if self._slow and self._slow[source, target] > 0:
            self.injected["packets slow"] += 1
            return delay_us * SLOWNESS
        return delay_us

    def is_doubled(self) -> bool:
        """Whether the next packet arrives twice."""
        is_doubled = self._random() < self.faults.duplication
        if is_doubled:
            self.injected["packets doubled"] += 1
        return is_doubled

    def cut(self, pairs: Iterable[Link]) -> None:
        """Packets of these (source, target) are lost, until `mend` with the same."""
        self._cut.update(pairs)

    def mend(self, pairs: Iterable[Link]) -> None:
        """Undo one `cut`."""
        self._cut.subtract(pairs)

    def slow(self, one: str, other: str) -> None:
        """Packets between the two take long, until `speed`."""
        self._slow.update([(one, other), (other, one)])

    def speed(self, one: str, other: str) -> None:
        """Undo one `slow`."""
        self._slow.subtract([(one, other), (other, one)])

    def turn_round(self, one: str, other: str) -> None:
        """Of the packets under way between the two, the newest arrives first."""
        self.stacks[one, other] = []
        self.stacks[other, one] = []
