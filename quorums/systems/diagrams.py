"""Quorum systems as binary decision diagrams (Bryant 1986): exact also where a replica stands twice. Pure.

Owns what thresholds alone cannot answer: systems whose parts share replicas, and whether two systems meet. A diagram asks
for one replica after the other, in the order in which the system names them, and shares equal rests. Its size follows the
structure and not the number of sets: a 5x5 grid's rows with one replica of each row, 2**25 sets, take 60 nodes. Of votes
there are at most as many nodes as replicas times votes. Systems without structure can need very many, so there is a bound.
"""

from collections.abc import Iterator, Mapping, Sized
from functools import lru_cache
from typing import Final, NamedTuple

from .availability import Probability
from .systems import BadQuorums, Replica, System, Threshold, dual, replicas_of

REPLICAS_MAX: Final = 100
"""Replicas of a diagram: the walks below go as deep."""
NODES_MAX: Final = 500_000
"""Nodes made on the way to a diagram; no system of 18 replicas needs so many in the end."""

_NO, _YES = 0, 1


class Node(NamedTuple):
    """Asks for the replica at `level` of the order; `low` and `high` are the places of what is left without and with it."""

    level: int
    low: int
    high: int


class Diagram(NamedTuple):
    """A system's diagram: children stand before parents; places 0 and 1 are *no* and *yes*. Equal for equal quorums."""

    order: tuple[str, ...]
    nodes: tuple[Node, ...]
    root: int


@lru_cache(maxsize=256)
def diagram(system: System, order: tuple[str, ...] = ()) -> Diagram:
    """The diagram of `system` over the replicas in `order`, which names at least all of the system's (default: just them).

    Example: `a*b` asks for a; without it *no*, with it asks for b; without it *no*, with it *yes*.
    """
    maker = _Maker(order or replicas_of(system))
    return maker.finished(maker.of(system))


def _check_room(nodes: Sized) -> None:
    if len(nodes) >= NODES_MAX:
        raise BadQuorums(
            f"the system needs more than {NODES_MAX} nodes of a decision diagram; use votes, name replicas that belong "
            "together next to each other, or write it so that each replica stands once"
        )


class _Maker:
    """Makes each node once, so that equal functions have the same place."""

    def __init__(self, order: tuple[str, ...]) -> None:
        if len(order) > REPLICAS_MAX:
            raise BadQuorums(
                f"a system in which a replica stands twice is computed up to {REPLICAS_MAX} replicas, and this one has "
                f"{len(order)}; use votes, or write it so that each replica stands once"
            )
        self.order = order
        self.level_of = {name: level for level, name in enumerate(order)}
        self.nodes = [Node(len(order), _NO, _NO), Node(len(order), _YES, _YES)]
        self.place_of: dict[Node, int] = {}
        self.chosen: dict[tuple[int, int, int], int] = {}
        self.made: dict[System, int] = {}

    def node(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        made = Node(level, low, high)
        if (place := self.place_of.get(made)) is None:
            _check_room(self.nodes)
            place = self.place_of[made] = len(self.nodes)
            self.nodes.append(made)
        return place

    def choose(self, test: int, high: int, low: int) -> int:
        """What is `high` where `test` holds, and `low` elsewhere."""
        if test == _YES or high == low:
            return high
        if test == _NO:
            return low
        if high == _YES and low == _NO:
            return test
        key = (test, high, low)
        if (found := self.chosen.get(key)) is None:
            level = min(self.nodes[each].level for each in key)
            without = (self.nodes[each].low if self.nodes[each].level == level else each for each in key)
            present = (self.nodes[each].high if self.nodes[each].level == level else each for each in key)
            low_of_all = self.choose(*without)
            found = self.chosen[key] = self.node(level, low_of_all, self.choose(*present))
        return found

    def of(self, system: System) -> int:
        if isinstance(system, Replica):
            return self.node(self.level_of[system.name], _NO, _YES)
        if (found := self.made.get(system)) is None:
            found = self.made[system] = self._threshold(system)
        return found

    def _threshold(self, system: Threshold) -> int:
        """From the last part back: what is left of the system when so much weight is still short before a part."""
        shorts = [{max(0, system.needed)}]
        for weight, _ in system.parts:
            shorts.append({max(0, short - taken) for short in shorts[-1] for taken in (0, weight)})
        rest = {short: _NO if short else _YES for short in shorts.pop()}
        for (weight, part), before in zip(reversed(system.parts), reversed(shorts), strict=True):
            test = self.of(part)
            rest = {short: self.choose(test, rest[max(0, short - weight)], rest[short]) for short in before}
        return rest[max(0, system.needed)]

    def finished(self, root: int) -> Diagram:
        """The nodes below `root` alone, numbered in the order of a walk, so that equal systems have equal diagrams."""
        places = {_NO: _NO, _YES: _YES}
        kept = self.nodes[:2]

        def visit(place: int) -> int:
            if place not in places:
                level, low, high = self.nodes[place]
                kept.append(Node(level, visit(low), visit(high)))
                places[place] = len(kept) - 1
            return places[place]

        root = visit(root)
        return Diagram(self.order, tuple(kept), root)


def diagram_probability(system: System, up_probability: Mapping[str, Probability]) -> Probability:
    """The probability that the replicas that are up hold a quorum, when they fail independently.

    Derivation: condition on the replica that a node asks for: P(node) = p * P(high) + (1 - p) * P(low).
    """
    order, nodes, root = diagram(system)
    number = type(next(iter(up_probability.values())))
    shares = [number(0), number(1)]
    for level, low, high in nodes[2:]:
        up = up_probability[order[level]]
        shares.append(up * shares[high] + (1 - up) * shares[low])
    return shares[root]


def cheapest_path(found: Diagram, prices: Mapping[str, float]) -> frozenset[str] | None:
    """The set with the least sum of prices that leads to *yes*, of these one with few replicas; None where none does.

    Of equal ones, that of the replicas that come first in the order.
    """
    best: list[tuple[float, int, frozenset[str]] | None] = [None, (0.0, 0, frozenset())]
    for level, low, high in found.nodes[2:]:
        name, ways = found.order[level], [best[low]]
        if (rest := best[high]) is not None:
            ways.insert(0, (rest[0] + prices.get(name, 0.0), rest[1] + 1, rest[2] | {name}))
        best.append(min((way for way in ways if way is not None), key=lambda way: way[:2]))
    chosen = best[found.root]
    return None if chosen is None else chosen[2]


def disjoint_sets(one: System, other: System) -> tuple[frozenset[str], frozenset[str]] | None:
    """A quorum of `one`, and all replicas outside it, which hold a quorum of `other`; None when every two meet.

    They exist where `one` has a quorum that is no quorum of the dual of `other`.
    """
    order = tuple(dict.fromkeys(replicas_of(one) + replicas_of(other)))
    maker = _Maker(order)
    missing = maker.choose(maker.of(dual(other)), _NO, maker.of(one))
    first = cheapest_path(maker.finished(missing), {})
    return None if first is None else (first, frozenset(order) - first)


class MinimalSets:
    """The minimal quorums of a system as a diagram of their own (zero-suppressed, Minato 1993): counted without listing.

    A minimal quorum either does without the replica that is asked for, or holds it: then the rest is minimal where it is
    present, and no quorum where it is absent. A replica that is not asked for is in none of the sets.
    """

    def __init__(self, system: System) -> None:
        found = diagram(system)
        self._order = found.order
        self._quorums = found.nodes
        self._nodes = [Node(len(found.order), _NO, _NO), Node(len(found.order), _YES, _YES)]
        self._place_of: dict[Node, int] = {}
        self._without: dict[tuple[int, int], int] = {}
        places = [_NO, _YES]
        for level, low, high in found.nodes[2:]:
            places.append(self._node(level, places[low], self._not_in(places[high], low)))
        self._root = places[found.root]

    def _node(self, level: int, low: int, high: int) -> int:
        if high == _NO:
            return low
        made = Node(level, low, high)
        if (place := self._place_of.get(made)) is None:
            _check_room(self._nodes)
            place = self._place_of[made] = len(self._nodes)
            self._nodes.append(made)
        return place

    def _not_in(self, family: int, quorums: int) -> int:
        """Those sets of `family` that are no quorum of the diagram at place `quorums`."""
        if family == _NO or quorums == _YES:
            return _NO
        if (
            quorums == _NO or family == _YES
        ):  # of a system that the empty set does not satisfy, it is no quorum
            return family
        key = (family, quorums)
        if key not in self._without:
            level, low, high = self._nodes[family]
            asked = self._quorums[quorums]
            if asked.level < level:
                made = self._not_in(family, asked.low)
            else:
                absent, present = (asked.low, asked.high) if asked.level == level else (quorums, quorums)
                made = self._node(level, self._not_in(low, absent), self._not_in(high, present))
            self._without[key] = made
        return self._without[key]

    def count(self) -> int:
        """How many there are."""
        counts = [0, 1]
        for _, low, high in self._nodes[2:]:
            counts.append(counts[low] + counts[high])
        return counts[self._root]

    def __iter__(self) -> Iterator[frozenset[str]]:
        return self._below(self._root, frozenset())

    def _below(self, place: int, chosen: frozenset[str]) -> Iterator[frozenset[str]]:
        if place == _YES:
            yield chosen
        elif place != _NO:
            level, low, high = self._nodes[place]
            yield from self._below(low, chosen)
            yield from self._below(high, chosen | {self._order[level]})
