"""Quorum systems in place of votes, in the simulation: every promise holds, and systems that miss each other break one.

The faults, clocks and operations are those of ordinary seeds; the replicas and the choice are exchanged. Where systems are
given for each operation and event class, the replicas' own votes are others, and one has none.
"""

from collections.abc import Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from quorate.adts.types.catalogue import adt_of
from quorate.api_specs import cluster
from quorate.api_specs.cluster import ChoiceRule, ReplicaInfo, checked
from quorate.quorums.choices import assignment
from quorate.simulation.run import run
from quorate.simulation.scenarios.scenario import BLIND, Faults, Scenario, scenario
from quorate.simulation.violation import Violation

SYSTEMS: Final = {
    "rows of a grid": (4, "grid(r1,r2;r3,r4)", ""),
    "one of each row": (4, "(r1 + r2)*(r3 + r4)", ""),
    "explicit sets": (3, "r1 + r2*r3", "r1*r2 + r1*r3"),
    "two of three halves": (5, "choose(2; r1, r2*r3, r4 + r5)", ""),
    "weighted votes": (4, "votes(3; r1:2, r2:1, r3:1, r4:0)", "votes(2; r1:2, r2:1, r3:1, r4:0)"),
}
LIGHT: Final = "votes(2; r1:2, r2:1, r3:1, r4:1)"
HEAVY: Final = "votes(4; r1:2, r2:1, r3:1, r4:1)"
Words = tuple[Mapping[str, str], Mapping[str, str]]
"""The initials and finals of a rule."""
BY_CLASS: Final[Mapping[str, Mapping[str, Words]]] = {
    "blind changes light": {
        "queue": ({}, {"Enq": LIGHT, "Deq": HEAVY}),
        "register": ({}, {"Write": LIGHT, "Cas": HEAVY}),
        "dictionary": ({}, {"Put": LIGHT, "Delete": "r1*r2 + r3*r4", "PutIfAbsent": HEAVY, "Cas": "r1*r2*r4"}),
    },
    "decisions light": {
        "queue": ({}, {"Enq/Ok": HEAVY, "Deq/Ok": "r1 + r2*r3"}),
        "register": ({}, {"Write/Ok": "r1*r2*r3 + r2*r3*r4", "Cas/Ok": LIGHT}),
        "dictionary": ({}, {"Put": "r1*r4", "Delete": "r1*r2*r3*r4", "PutIfAbsent": LIGHT, "Cas": "r2 + r3"}),
    },
    "each reader its own": {
        "queue": ({"Deq": "r1*r2 + r3*r4", "Size": "(r1 + r2)*(r3 + r4)", "Peek": HEAVY}, {}),
        "register": ({"Read": "r1 + r2*r3", "Cas": "(r1 + r2)*r3"}, {}),
        "dictionary": ({"Get": "r1 + r2*r3", "Cas": "(r1 + r2)*r3", "Items": LIGHT}, {"Delete": "r1*r2*r3*r4"}),
    },
}  # fmt: skip
MISSING: Final[Mapping[str, tuple[str, Words]]] = {
    "Deq misses Enq": ("queue/q", ({"Deq": "r1 + r2"}, {"Enq": "r3 + r4", "Deq": "r1*r2"})),
    "Deq misses Deq": ("queue/q", ({"Deq": "r1 + r2"}, {"Enq": "r1*r2*r3*r4", "Deq": "r3 + r4"})),
    "Read misses Write": ("register/r", ({"Read": "r1 + r2"}, {"Write": "r3 + r4", "Cas": "r1*r2*r3*r4"})),
    "Cas misses Cas": ("register/r", ({"Cas": "r1 + r2"}, {"Write": "r1*r2*r3*r4", "Cas": "r3 + r4"})),
}
FIRST_SEED: Final = 7_000
SEEDS: Final = 16
CAUGHT_WITHIN: Final = 30
WEIGHTS: Final = {"Enq": 2, "Deq": 2, "Write": 1, "Cas": 3, "Read": 3}


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


def with_words(what: Scenario, words: Mapping[str, Words], votes: tuple[int, ...] = (0, 1, 1, 3)) -> Scenario:
    """The scenario with four replicas, whose objects are kept by a system for each operation and event class."""
    named = tuple(ReplicaInfo(f"r{n}", f"http://r{n}:1", vote) for n, vote in enumerate(votes, 1))
    ordering = what.document.choices[0].ordering
    rules = tuple(
        ChoiceRule(f"{adt}/*", initials=dict(initials), finals=dict(finals), ordering=ordering)
        for adt, (initials, finals) in words.items()
    )
    return replace(what, document=checked(replace(what.document, replicas=named, choices=rules)))


@pytest.mark.parametrize("name", BY_CLASS)
def test_every_promise_is_kept_with_a_system_for_each_class(name: str) -> None:
    done = 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        try:
            done += run(with_words(scenario(seed), BY_CLASS[name])).operations
        except Exception as error:
            error.add_note(f"seed {seed}, {name}")
            raise
    assert done > SEEDS


@pytest.mark.parametrize("name", MISSING)
def test_each_pair_that_may_miss_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the check taken away, a reader that misses one event class alone breaks a promise."""
    monkeypatch.setattr(assignment, "check_meets", lambda *_: None)
    object_name, words = MISSING[name]
    cluster._cached_choice.cache_clear()
    for seed in range(FIRST_SEED, FIRST_SEED + CAUGHT_WITHIN):
        slow = Faults(tail=0.5)
        hostile = replace(scenario(seed), faults=slow, objects=(object_name,), fronts=3, weights=WEIGHTS)
        try:
            run(with_words(hostile, {adt_of(object_name): words}))
        except Violation:
            return
    pytest.fail(f"nothing was noticed in {CAUGHT_WITHIN} seeds")


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
