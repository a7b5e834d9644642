"""Seeded worlds of eventual consistency: what observes may miss changes, and invents nothing; all else is linearizable.

`python -m tests.sim.soak --worlds weak` runs as many more as the time allows.
"""

from collections.abc import Sequence
from typing import Final

from quorate.simulation import run as runs
from quorate.simulation.history import Call
from quorate.simulation.judging.checkers import check_object, check_weak
from quorate.simulation.violation import Violation
from tests.sim.planted.plant import patched
from tests.sim.run import run_seeds

SEEDS: Final = 48
SOMETIMES: Final = (
    "weak answers",
    "Read/Ok",
    "Get/Ok",
    "Items/Ok",
    "Peek/Ok",
    "Peek/Empty",
    "Size/Ok",
    "Cas/Ok",
)


def test_every_promise_is_kept() -> None:
    """And some answers do miss changes, or the worlds would show nothing."""
    missed = 0

    def check(name: str, weak: Sequence[Call], others: Sequence[Call]) -> None:
        nonlocal missed
        check_weak(name, weak, others)
        try:
            check_object(name, [*others, *weak], is_exact=False)
        except Violation:
            missed += 1

    with patched(runs, check_weak=check):
        report = run_seeds(range(1, SEEDS + 1), "weak")
    assert [name for name in SOMETIMES if not report.counters.get(name)] == []
    assert missed >= 5
