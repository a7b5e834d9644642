"""Seeded worlds whose members, votes and quorum choices change while they are used.

`python -m tests.sim.soak --worlds changing` (or `queues`, `standing`, or `dying`) runs as many more as the time allows.
"""

from typing import Final

import pytest

from tests.sim.run import run_seeds

SEEDS: Final = 32
SOMETIMES: Final = (
    "changes of configuration",
    "changes taken back",
    "operators vanished",
    "configurations followed",
    "begun again in a new configuration",
    "decisions begun again in a new configuration",
    "calls during a change",
    "calls after a change",
    "Enq/Ok",
    "Deq/Ok",
    "Acquire/Ok",
    "keyed repeats",
)
FAULTS: Final = ("crashes", "cuts", "slow links", "freezes")


OF_STANDING_RULES: Final = ("switches", "switches taken back")


@pytest.mark.parametrize("worlds", ["changing", "queues", "standing"])
def test_every_promise_is_kept(worlds: str) -> None:
    report = run_seeds(range(1, SEEDS + 1), worlds)
    sometimes = (*SOMETIMES, *OF_STANDING_RULES) if worlds == "standing" else SOMETIMES
    assert [name for name in sometimes if not report.counters.get(name)] == []
    assert [name for name in FAULTS if not report.injected.get(name)] == []


def test_what_others_hold_too_outlives_a_member_that_is_declared_dead() -> None:
    report = run_seeds(range(1, SEEDS + 1), "dying")
    assert report.injected["deaths"] > SEEDS / 2
    assert report.counters["changes of configuration"] > SEEDS
