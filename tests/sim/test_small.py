"""Seeded worlds of all kinds whose front ends have small bounds. Every promise is kept.

`python -m tests.sim.soak --worlds small` runs as many more as the time allows.
"""

from typing import Final

import pytest

from tests.sim.run import run_seed, run_seeds
from tests.sim.small import _BOUNDS, small_bounds

SEEDS: Final = 24
REGRESSIONS: Final = (4060050227,)
"""An outcome is unknown without any fault: with so small a bound too many terms were decided since. The judge took it for wrong."""
SOMETIMES: Final = (
    "Acquire/Ok",
    "Collect/Ok",
    "Deq/Ok",
    "Items/Ok",
    "Size/Ok",
    "calls without room",
    "collected again",
    "look/Ok",
    "payloads fetched",
    "recoveries",
)


def test_every_promise_is_kept() -> None:
    report = run_seeds(range(1, 1 + SEEDS), "small")
    assert [name for name in SOMETIMES if not report.counters.get(name)] == []


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once_holds(seed: int) -> None:
    run_seed(seed, "small")


def test_the_bounds_are_small_meanwhile_alone() -> None:
    def bounds() -> list[int]:
        return [getattr(module, name) for module, names in _BOUNDS for name in names]

    before = bounds()
    with small_bounds():
        assert all(small < bound for small, bound in zip(bounds(), before, strict=True))
    assert bounds() == before
