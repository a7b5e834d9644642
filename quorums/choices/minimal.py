"""Minimal quorums of a system: listing them, the cheapest one, what blocks them, and whether two systems meet. Pure.

Owns the walks over thresholds, for which votes need no diagram. A system in which a replica stands twice is handed to
`diagrams`.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Final

from ..systems.diagrams import MinimalSets, cheapest_path, diagram, disjoint_sets
from ..systems.systems import BadQuorums, Replica, System, Threshold, dual, is_plain, is_quorum, replicas_of

SETS_MAX: Final = 100_000
"""How many minimal quorums are listed at most; 9 of 18 are 48,620."""

Cost = tuple[float, int]
"""A price, and the number of replicas that breaks ties."""


def minimal_quorums(system: System) -> tuple[frozenset[str], ...]:
    """All minimal quorums, smaller ones first, then by name; BadQuorums when there are more than SETS_MAX.

    Example: `votes({"a": 2, "b": 1, "c": 1}, 3)` gives {a, b} and {a, c}.
    """
    return _listed(system)


def blocking_sets(system: System) -> tuple[frozenset[str], ...]:
    """The minimal sets of replicas without which there is no quorum: the minimal quorums of the dual.

    Example: two of a, b, c are needed, so any two that are down block: {a, b}, {a, c}, {b, c}.
    """
    return _listed(dual(system))


def resilience(system: System) -> int:
    """How many replicas may be down, whichever they are: one less than the smallest blocking set.

    Where nothing blocks (an empty quorum) it is the number of replicas; where there is no quorum, -1.
    """
    found = cheapest(dual(system), {})
    return len(replicas_of(system)) if found is None else len(found) - 1


def cheapest(system: System, prices: Mapping[str, float]) -> frozenset[str] | None:
    """A minimal quorum with the least sum of prices, of these one with few replicas; None where there is no quorum.

    A price that is not given is 0; prices must not be negative. For thresholds it is a knapsack over the weights: on
    `votes({"a": 2, "b": 1, "c": 1}, 2)` with prices a 5, b 1, c 1 the least cost of weight 0, 1, 2 is 0, 1, 2 once b and c
    are looked at, so {b, c}.
    """
    if not is_plain(system):
        return cheapest_path(diagram(system), prices)
    found = _cheapest(system, prices)
    return None if found is None else found[1]


def least_size(system: System) -> int:
    """How many replicas the smallest quorum has; all where there is no quorum."""
    found = cheapest(system, {})
    return len(replicas_of(system)) if found is None else len(found)


def disjoint_quorums(one: System, other: System) -> tuple[frozenset[str], frozenset[str]] | None:
    """A minimal quorum of each such that they share no replica; None when every two meet.

    Votes of the same replicas: some set has enough votes and its complement has, too. Which sums a set can have is the
    subset-sum question, answered over the votes. All else goes by decision diagrams.
    """
    if isinstance(one, Threshold) and isinstance(other, Threshold) and _are_votes_of_the_same(one, other):
        return _disjoint_votes(one, other)
    if (found := disjoint_sets(one, other)) is None:
        return None
    return _shrunk(one, found[0]), _shrunk(other, found[1])


def check_meets(one: System, other: System, what: str = "the quorums do not intersect") -> None:
    """BadQuorums naming a quorum of each when the two systems can miss each other."""
    if (missed := disjoint_quorums(one, other)) is not None:
        first, second = (shown(each) for each in missed)
        raise BadQuorums(f"{what}: {first} and {second} share no replica; make one of the two larger")


def shown(replicas: Collection[str]) -> str:
    """A set for a sentence: {r1, r2}."""
    return "{" + ", ".join(sorted(replicas)) + "}"


@lru_cache(maxsize=256)
def _listed(system: System) -> tuple[frozenset[str], ...]:
    if count_of_sets(system) > SETS_MAX:
        raise _too_many(system)
    found = _minimal(system) if is_plain(system) else MinimalSets(system)
    listed: list[frozenset[str]] = []
    for quorum in found:
        if len(listed) == SETS_MAX:
            raise _too_many(system)
        listed.append(quorum)
    return tuple(sorted(listed, key=lambda each: (len(each), sorted(each))))


def _too_many(system: System) -> BadQuorums:
    return BadQuorums(
        f"the system {system} has more than {SETS_MAX} minimal quorums; list those of a smaller one"
    )


def count_of_sets(system: System) -> int:
    """How many minimal quorums there are, counted without listing them; 0 where each replica stands once in nested parts, which are
    counted as they are listed.

    Votes: a replica, taken in order of falling votes, either completes a quorum or lessens what is short
    (`_minimal_parts`): the number of ways to be short of so many votes is carried from one to the next.
    """
    if not is_plain(system):
        return MinimalSets(system).count()
    if not (isinstance(system, Threshold) and system.needed > 0):
        return 0
    if not all(isinstance(part, Replica) for _, part in system.parts):
        return 0
    count, ways = 0, {system.needed: 1}
    for weight in sorted((weight for weight, _ in system.parts if weight), reverse=True):
        for short, number in list(ways.items()):
            if weight >= short:
                count += number
            else:
                ways[short - weight] = ways.get(short - weight, 0) + number
    return count


def _minimal(system: System) -> Iterator[frozenset[str]]:
    """Minimal sets of parts, and from each part one of its minimal quorums: parts share no replica here.

    A part that the empty set satisfies is there anyway: its weight is taken off what is needed.
    """
    if isinstance(system, Replica):
        yield frozenset((system.name,))
        return
    given = sum(weight for weight, part in system.parts if is_quorum(part, ()))
    asked = [part for part in system.parts if part[0] > 0 and not is_quorum(part[1], ())]
    parts = sorted(asked, key=lambda part: -part[0])
    for chosen in _minimal_parts([weight for weight, _ in parts], max(0, system.needed - given)):
        for quorums in product(*(_listed(parts[index][1]) for index in chosen)):
            yield frozenset[str]().union(*quorums)


def _minimal_parts(weights: list[int], needed: int) -> Iterator[tuple[int, ...]]:
    """The sets of indices whose weights reach `needed` and no longer do without any one; weights fall.

    As the last part taken weighs least, a set is minimal as soon as it is reached with it: before it, it was short.
    """
    if needed == 0:
        yield ()
    rest = [sum(weights[index:]) for index in range(len(weights) + 1)]

    def extend(start: int, short: int, taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for index in range(start, len(weights)):
            if rest[index] < short:
                return
            if weights[index] >= short:
                yield (*taken, index)
            else:
                yield from extend(index + 1, short - weights[index], (*taken, index))

    if needed > 0:
        yield from extend(0, needed, ())


def _cheapest(system: System, prices: Mapping[str, float]) -> tuple[Cost, frozenset[str]] | None:
    if isinstance(system, Replica):
        return (prices.get(system.name, 0.0), 1), frozenset((system.name,))
    best: dict[int, tuple[Cost, frozenset[str]]] = {0: ((0.0, 0), frozenset())}
    for weight, part in system.parts:
        found = _cheapest(part, prices) if weight else None
        if found is None:
            continue
        (price, count), quorum = found
        for before, ((paid, taken), chosen) in sorted(best.items(), reverse=True):
            reached = min(before + weight, system.needed)
            cost = (paid + price, taken + count)
            if reached > before and (reached not in best or cost < best[reached][0]):
                best[reached] = (cost, chosen | quorum)
    return best.get(system.needed)


def _are_votes_of_the_same(one: Threshold, other: Threshold) -> bool:
    if one.parts != other.parts or not is_plain(one):  # a replica that stands twice cannot be in both sets
        return False
    return all(isinstance(part, Replica) for _, part in one.parts)


def _disjoint_votes(one: Threshold, other: Threshold) -> tuple[frozenset[str], frozenset[str]] | None:
    """Some set with at least one.needed votes leaves at least other.needed: its sum lies between the two."""
    most = one.total - other.needed
    set_of: dict[int, frozenset[str]] = {0: frozenset()}
    for weight, part in one.parts:
        for total, chosen in list(set_of.items()):
            set_of.setdefault(total + weight, chosen | {str(part)})
    fitting = [total for total in set_of if one.needed <= total <= most]
    if not fitting:
        return None
    first = set_of[min(fitting)]
    return _shrunk(one, first), _shrunk(other, frozenset(replicas_of(one)) - first)


def _shrunk(system: System, quorum: frozenset[str]) -> frozenset[str]:
    for name in sorted(quorum):
        if is_quorum(system, quorum - {name}):
            quorum -= {name}
    return quorum
