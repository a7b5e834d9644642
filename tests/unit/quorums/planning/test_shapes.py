"""Every system in which each replica stands once: none is missing, none is there twice."""

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

import pytest

from quorate.quorums.choices.minimal import minimal_quorums
from quorate.quorums.planning.shapes import systems_over
from quorate.quorums.systems.diagrams import diagram
from quorate.quorums.systems.systems import System, choose, replicas_of

NAMES = ("a", "b", "c", "d")


def every(names: Sequence[str]) -> Iterator[System | str]:
    """By hand: all ways to part the names, and all thresholds of the parts; many of them are the same system."""
    if len(names) == 1:
        yield names[0]
        return
    for parts in partitions(names):
        for chosen in products([list(every(part)) for part in parts]):
            for needed in range(1, len(parts) + 1):
                yield choose(needed, chosen)


def partitions(names: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Into two parts or more."""
    yield from (parts for parts in all_partitions(tuple(names)) if len(parts) > 1)


def all_partitions(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    if not names:
        yield []
        return
    first, *others = names
    for parts in all_partitions(tuple(others)):
        yield [(first,), *parts]
        for at, part in enumerate(parts):
            yield [*parts[:at], (first, *part), *parts[at + 1 :]]


def products(choices: Sequence[Sequence[System | str]]) -> Iterator[list[System | str]]:
    if not choices:
        yield []
        return
    for each in choices[0]:
        for others in products(choices[1:]):
            yield [each, *others]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_of_replicas_that_differ_there_is_every_system_once(count: int) -> None:
    names = NAMES[:count]
    found = [diagram(each, names) for each in systems_over([(name,) for name in names])]
    by_hand = {diagram(each, names) for each in every(names) if not isinstance(each, str)}
    assert len(found) == len(set(found))
    assert set(found) == by_hand


@pytest.mark.parametrize("kinds", [("abcd",), ("ab", "cd"), ("abc", "d")])
def test_of_replicas_that_are_alike_there_is_one_of_those_that_differ_by_exchanging_them(
    kinds: Sequence[str],
) -> None:
    """Each system by hand is one of those found with its alike replicas exchanged, and no two of these are such."""

    def classes(system: System) -> frozenset[object]:
        quorums = list(minimal_quorums(system))
        names = [dict[str, str]()]
        for kind in kinds:
            names = [each | dict(zip(kind, own, strict=True)) for each in names for own in permutations(kind)]
        return frozenset(
            frozenset(frozenset(each[name] for name in quorum) for quorum in quorums) for each in names
        )

    found = [classes(each) for each in systems_over([tuple(kind) for kind in kinds])]
    assert len(found) == len(set(found))
    assert set(found) == {classes(each) for each in every(NAMES) if not isinstance(each, str)}


def test_the_first_of_many_replicas_come_at_once_and_name_all_of_them() -> None:
    names = tuple(f"r{at}" for at in range(25))
    for system in islice(systems_over([names]), 100):
        assert set(replicas_of(system)) == set(names)
