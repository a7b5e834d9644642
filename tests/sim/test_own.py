"""Seeded worlds of types of one's own: machines drawn at random, a list of all that was put, and bundled types. Every promise is
kept.

`python -m tests.sim.soak --worlds own` (or `library`) runs as many more as the time allows.
"""

from typing import Final

from tests.sim.own import WORDS, Trail, type_of
from tests.sim.run import run_seeds

SEEDS: Final = 48
LIBRARY_SEEDS: Final = 54
"""Six for each type."""
SOMETIMES_IN_LIBRARY: Final = (
    "keys remembered",
    "add/Ok",
    "value/Ok",
    "take/Ok",
    "take/Full",
    "give_back/Ok",
    "give_back/BadAmount",
    "credit/Ok",
    "debit/Ok",
    "debit/Overdraft",
    "contains/Ok",
    "pop/Ok",
    "pop/Empty",
    "put/Ok",
    "first/Ok",
    "insert/Ok",
    "insert/Present",
    "update/Missing",
    "append/Ok",
    "read/Ok",
    "acquire/Ok",
    "acquire/Held",
    "release/Ok",
    "release/NotHeld",
)
SOMETIMES: Final = (
    "keys remembered",
    "keyed repeats",
    "lost accepts found decided",
    "summaries written back",
    "steady-owner steps",
    "batches of several",
    "recoveries",
    "put/Ok",
    "add/Ok",
    "take/Ok",
    "take/Refused",
    "look/Ok",
    "a/Ok",
    "a/Refused",
)


def test_every_promise_is_kept() -> None:
    found = run_seeds(range(1, 1 + SEEDS), "own")
    assert found.given_up <= SEEDS / 20, "too many searches were given up to mean much"
    assert not [name for name in SOMETIMES if not found.counters.get(name)], found


def test_every_promise_is_kept_for_bundled_types() -> None:
    found = run_seeds(range(1, 1 + LIBRARY_SEEDS), "library")
    assert found.given_up <= LIBRARY_SEEDS / 20, "too many searches were given up to mean much"
    assert not [name for name in SOMETIMES_IN_LIBRARY if not found.counters.get(name)], found


def test_seeds_draw_both_kinds_of_types() -> None:
    names = [list(type_of(seed).arguments) for seed in range(1, 41)]
    trail = [name for name in vars(Trail) if not name.startswith("_") and name not in ("blind", "observing")]
    assert trail in names
    machines = [each for each in names if each != trail]
    assert len(machines) > 10
    assert all(each == list(WORDS[: len(each)]) for each in machines)
