"""What must hold after a run, from what clients saw and what the objects hold at the end. Pure.

Owns the verdict "nothing lost, nothing delivered twice". An operation with unknown outcome took effect once or never,
so it widens what is allowed by exactly that. Times are seconds on one clock.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field


class QueueRun(Struct):
    """What clients saw of a queue. `delivered` counts how often each item was delivered, the final drain included.

    `maybe_taken` is how many items dequeues with unknown outcome may have taken.
    """

    added: set[str] = field(default_factory=set)
    maybe_added: set[str] = field(default_factory=set)
    delivered: Counter[str] = field(default_factory=Counter)
    maybe_taken: int = 0

    def problems(self) -> list[str]:
        """What is wrong, each in a sentence; empty when nothing is."""
        found = []
        if twice := sorted(item for item, times in self.delivered.items() if times > 1):
            found.append(f"{len(twice)} items were delivered more than once, as {twice[0]}")
        if invented := sorted(self.delivered.keys() - self.added - self.maybe_added):
            found.append(f"{len(invented)} items were delivered that nobody added, as {invented[0]}")
        missing = sorted(self.added - self.delivered.keys())
        if len(missing) > self.maybe_taken:
            found.append(
                f"{len(missing)} acknowledged items never came out, as {missing[0]}, "
                f"and dequeues with unknown outcome explain only {self.maybe_taken}"
            )
        return found


class Written(Struct, frozen=True):
    """A write of one value (None deletes): when it began, and when its answer came (infinity when none ever did)."""

    value: Any
    began_s: float
    ended_s: float = math.inf


def cell_problems(name: str, writes: Sequence[Written], final: Any) -> list[str]:
    """Whether a register or key may hold `final`: no acknowledged write may have begun after that value's write ended.

    A cell that nobody has written holds None, as if by a write that ended before all others.
    """
    candidates = [each for each in (Written(None, -math.inf, -math.inf), *writes) if each.value == final]
    if not candidates:
        return [f"{name} holds {final!r}, which nobody wrote"]
    acknowledged = [each for each in writes if each.ended_s < math.inf]
    for candidate in candidates:
        if not any(later.began_s > candidate.ended_s for later in acknowledged):
            return []
    return [f"{name} holds {final!r}, but a later write of another value was acknowledged"]


def counter_problems(name: str, added: int, maybe_added: int, final: int) -> list[str]:
    """Whether a counter, raised by compare-and-set only, counts every success once."""
    if added <= final <= added + maybe_added:
        return []
    return [
        f"{name} stands at {final}, but {added} raises succeeded and {maybe_added} have an unknown outcome"
    ]


def claim_problems(
    claims: dict[str, list[str]], maybe: dict[str, list[str]], final: dict[str, Any]
) -> list[str]:
    """Whether put-if-absent gave each key to one claimant only, the one whose value it holds."""
    found = []
    for key in sorted(claims.keys() | maybe.keys() | final.keys()):
        winners, unknown, holder = claims.get(key, []), maybe.get(key, []), final.get(key)
        if len(winners) > 1:
            found.append(f"key {key} was given to {len(winners)} claimants")
        elif winners and holder != winners[0]:
            found.append(f"key {key} was given to {winners[0]} but holds {holder!r}")
        elif not winners and holder is not None and holder not in unknown:
            found.append(f"key {key} holds {holder!r}, whom nobody gave it to")
    return found
