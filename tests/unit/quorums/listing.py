"""The calculus once more, deliberately dumb: every set of replicas is listed, nothing is clever.

Used up to six replicas to judge the shipped code. It shares the definition of the types with it and no algorithm.
"""

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product

from hypothesis import settings
from hypothesis import strategies as st

from quorate.adts.specification import EventClass, operation_of
from quorate.quorums.choices.choices import Constraints
from quorate.quorums.systems.systems import Replica, System, Threshold

NAMES = ("a", "b", "c", "d", "e", "f")
Sets = set[frozenset[str]]

UNTIMED = settings(deadline=None)
"""Listing takes what it takes."""


def all_sets(names: Collection[str]) -> Sets:
    """All 2**N of them."""
    ordered = sorted(names)
    return {frozenset(some) for size in range(len(ordered) + 1) for some in combinations(ordered, size)}


def quorums_of(system: System, names: Collection[str] = NAMES) -> Sets:
    """Every set that is a quorum: the unions that the definition gives, and whatever holds one of them."""
    unions = set(_unions(system))
    return {each for each in all_sets(names) if any(union <= each for union in unions)}


def _unions(system: System) -> Iterator[frozenset[str]]:
    if isinstance(system, Replica):
        yield frozenset(system.name)
        return
    of_parts = [(weight, set(_unions(part))) for weight, part in system.parts]
    for chosen in product((False, True), repeat=len(of_parts)):
        taken = [part for part, is_in in zip(of_parts, chosen, strict=True) if is_in]
        if sum(weight for weight, _ in taken) >= system.needed:
            for quorums in product(*(unions for _, unions in taken)):
                yield frozenset[str]().union(*quorums)


def sets(*words: str) -> Sets:
    """Sets of replicas with names of one letter: one for each word."""
    return {frozenset(word) for word in words}


def minimal(found: Sets) -> Sets:
    """Those that hold no other."""
    return {each for each in found if not any(other < each for other in found)}


def probability_of(sets: Sets, up: Mapping[str, Fraction]) -> Fraction:
    """The sum of the probabilities of the up-sets."""
    result = Fraction(0)
    for up_set in sets:
        chance = Fraction(1)
        for name, own in up.items():
            chance *= own if name in up_set else 1 - own
        result += chance
    return result


def minimal_choices(
    constraints: Constraints, votes: Mapping[str, int]
) -> set[tuple[tuple[EventClass, int, int], ...]]:
    """Every assignment of sizes to initial and final quorums that is valid, of which none is smaller everywhere.

    Sizes are sums that a set of replicas has; two quorums are held against each other set by set.
    """
    sums = sorted({sum(votes[name] for name in each) for each in all_sets(votes)})
    sets_of = {
        size: [each for each in all_sets(votes) if sum(votes[name] for name in each) >= size] for size in sums
    }
    meet = {
        (one, other): all(a & b for a in sets_of[one] for b in sets_of[other])
        for one in sums
        for other in sums
    }
    operations = list(constraints.outcomes)
    changing = [name for name in constraints.classes if name in constraints.changes]
    valid = []
    for sizes in product(sums, repeat=len(operations) + len(changing)):
        initials = dict(zip(operations, sizes, strict=False))
        finals = dict(zip(changing, sizes[len(operations) :], strict=True))
        if all(finals.values()) and all(
            meet[initials[operation], finals[other]]
            for operation, needed in constraints.meets.items()
            for other in needed
        ):
            valid.append(sizes)
    best = [
        sizes
        for sizes in valid
        if not any(
            other != sizes and all(a <= b for a, b in zip(other, sizes, strict=True)) for other in valid
        )
    ]
    return {
        tuple(
            (
                name,
                sizes[operations.index(operation_of(name))],
                sizes[len(operations) + changing.index(name)] if name in changing else 0,
            )
            for name in constraints.classes
        )
        for sizes in best
    }


def _threshold(parts: list[tuple[int, System]], share: float) -> Threshold:
    total = sum(weight for weight, _ in parts)
    return Threshold(round(total * share), tuple(parts))


def _thresholds(parts: st.SearchStrategy[System]) -> st.SearchStrategy[System]:
    weighted = st.lists(st.tuples(st.integers(0, 3), parts), min_size=1, max_size=4)
    return st.builds(_threshold, weighted, st.floats(0, 1))


SYSTEMS: st.SearchStrategy[System] = st.recursive(
    st.sampled_from([Replica(name) for name in NAMES]), _thresholds, max_leaves=9
)
"""Any system of up to six replicas, in which one may stand several times."""

VOTES = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(
    lambda weights: dict(zip(NAMES, weights, strict=False))
)
CHANCES = st.fixed_dictionaries(
    dict.fromkeys(NAMES, st.sampled_from([Fraction(0), Fraction(1), Fraction(9, 10), Fraction(1, 3)]))
)
