"""Seeded worlds of all kinds whose front ends have small bounds. Every promise is kept.

`python -m tests.sim.soak --worlds small` runs as many more as the time allows.
"""

from typing import Final

from tests.sim.run import run_seeds
from tests.sim.small import _BOUNDS, small_bounds

SEEDS: Final = 24
SOMETIMES: Final = (
    "Acquire/Ok",
    "Collect/Ok",
    "Deq/Ok",
    "Items/Ok",
    "Size/Ok",
    "collected again",
    "look/Ok",
    "payloads fetched",
    "recoveries",
)


def test_every_promise_is_kept() -> None:
    report = run_seeds(range(1, 1 + SEEDS), "small")
    assert [name for name in SOMETIMES if not report.counters.get(name)] == []


def test_the_bounds_are_small_meanwhile_alone() -> None:
    def bounds() -> list[int]:
        return [getattr(module, name) for module, names in _BOUNDS for name in names]

    before = bounds()
    with small_bounds():
        assert all(small < bound for small, bound in zip(bounds(), before, strict=True))
    assert bounds() == before
