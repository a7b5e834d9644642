"""Seeded worlds in which deleted keys are forgotten beside queues, leases and objects of one's own types. Every promise is kept.

`python -m tests.sim.soak --worlds burying` runs as many more as the time allows.
"""

from typing import Final

import pytest

from tests.sim.run import run_seed, run_seeds

SEEDS: Final = 36
REGRESSIONS: Final = (12466,)
"""Each failed once: a deleted key came back."""
SOMETIMES: Final = (
    "Collect/Ok",
    "Collect/Kept",
    "Acquire/Ok",
    "Deq/Ok",
    "look/Ok",
    "recoveries",
    "undone calls under their keys again",
)


def test_every_promise_is_kept() -> None:
    report = run_seeds(range(1, SEEDS + 1), "burying")
    assert [name for name in SOMETIMES if not report.counters.get(name)] == []


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once_holds(seed: int) -> None:
    run_seed(seed, "burying")
