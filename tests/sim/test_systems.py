"""Quorum systems in place of votes, in the simulation: every promise holds, and systems that miss each other break one.

The faults, clocks and operations are those of ordinary seeds; the replicas and the choice are exchanged.
"""

from typing import Final

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ReplicaInfo
from quorate.quorums import assignment
from tests.sim.checkers import Violation
from tests.sim.run import run
from tests.sim.scenario import BLIND, Faults, Scenario, scenario

SYSTEMS: Final = {
    "rows of a grid": (4, "grid(r1,r2;r3,r4)", ""),
    "one of each row": (4, "(r1 + r2)*(r3 + r4)", ""),
    "explicit sets": (3, "r1 + r2*r3", "r1*r2 + r1*r3"),
    "two of three halves": (5, "choose(2; r1, r2*r3, r4 + r5)", ""),
    "weighted votes": (4, "votes(3; r1:2, r2:1, r3:1, r4:0)", "votes(2; r1:2, r2:1, r3:1, r4:0)"),
}
FIRST_SEED: Final = 7_000
SEEDS: Final = 16


def with_system(what: Scenario, replicas: int, reads: str, writes: str) -> Scenario:
    """The scenario with so many replicas, whose objects are kept by the systems."""
    named = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, replicas + 1))
    ordering = what.document.choices[0].ordering
    rules = tuple(ChoiceRule(f"{adt}/*", reads=reads, writes=writes, ordering=ordering) for adt in BLIND)
    return replace(what, document=replace(what.document, replicas=named, choices=rules))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_promise_is_kept_with_quorum_systems(name: str) -> None:
    done = 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        try:
            done += run(with_system(scenario(seed), *SYSTEMS[name])).operations
        except Exception as error:
            error.add_note(f"seed {seed}, {name}")
            raise
    assert done > SEEDS


def test_systems_that_miss_each_other_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the check taken away, "any one replica" for both reads and writes loses items and delivers them twice."""
    monkeypatch.setattr(assignment, "check_meets", lambda *_: None)
    any_one = "r1 + r2 + r3 + r4"
    caught = 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        delayed = replace(scenario(seed), faults=Faults(tail=0.5), objects=("queue/q",), fronts=3)
        try:
            run(with_system(delayed, 4, any_one, any_one))
        except Violation:
            caught += 1
    assert caught
