"""Seeded worlds of a queue with outboxes: each acknowledged item comes once in the end, whatever became of who kept it or relayed it.

`python -m tests.sim.soak --worlds outbox` runs as many more as the time allows.
"""

from typing import Final

from tests.sim.run import run_seeds

SEEDS: Final = 48
SOMETIMES: Final = (
    "Enq/Ok",
    "Deq/Ok",
    "Acquire/Ok",
    "Relay/some",
    "Relay/empty",
    "Relay/failed",
    "outboxes tried in vain",
    "keyed repeats",
)


def test_every_promise_is_kept() -> None:
    report = run_seeds(range(1, SEEDS + 1), "outbox")
    assert [name for name in SOMETIMES if not report.counters.get(name)] == []
    assert report.injected["crashes"]
