"""Quorum systems: which sets of replicas are quorums, for votes, explicit sets, grids and expressions. Pure.

Owns one form for all of them, the *threshold*: parts that weigh something, and how much weight is needed. A replica is a
part by itself; a threshold may be a part of another. So

* equal votes, `k` of N: parts of weight 1, `needed = k`;
* weighted votes (Gifford 1979): the votes are the weights; a replica without votes weighs 0;
* *and* needs all parts, *or* needs one, *choose k* needs k;
* explicit sets: *or* of *and*; a grid: *or* of its rows.

Systems are monotone: a set that holds a quorum counts as one. Nothing here knows probabilities, data types or time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

DEPTH_MAX: Final = 30


class BadQuorums(ValueError):
    """Input that the calculus cannot compute with; the sentence names the place and the remedy."""


@dataclass(frozen=True, slots=True)
class Replica:
    """The system whose only minimal quorum is this one replica."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Threshold:
    """Quorums are the sets that satisfy parts of `needed` weight together; each part is `(weight, system)`.

    With `needed` 0 the empty set is a quorum. With more than all the weight there is none: such is the dual of the former.
    """

    needed: int
    parts: tuple[tuple[int, "System"], ...]

    def __str__(self) -> str:
        shown = [str(part) for _, part in self.parts]
        if any(weight != 1 for weight, _ in self.parts):
            weighted = ", ".join(
                f"{part}:{weight}" for (weight, _), part in zip(self.parts, shown, strict=True)
            )
            return f"votes({self.needed}; {weighted})"
        if len(shown) > 1 and self.needed in (1, len(shown)):
            return "(" + (" + " if self.needed == 1 else "*").join(shown) + ")"
        return f"choose({self.needed}; {', '.join(shown)})"

    @property
    def total(self) -> int:
        """The weight of all parts."""
        return sum(weight for weight, _ in self.parts)


System = Replica | Threshold

NOBODY: Final = Threshold(0, ())
"""The system whose quorum is the empty set: nobody need answer."""


def votes(votes_of: Mapping[str, int], needed: int) -> Threshold:
    """The sets of replicas with at least `needed` votes; BadQuorums when there are not so many.

    Example, Gifford's second: `votes({"a": 2, "b": 1, "c": 1}, 3)` has the minimal quorums {a, b} and {a, c}.
    """
    for name, weight in votes_of.items():
        if weight < 0:
            raise BadQuorums(f"replica {name!r} has {weight} votes; give 0 or more")
    return _checked(needed, [(weight, Replica(name)) for name, weight in votes_of.items()])


def choose(needed: int, parts: Sequence[System | str]) -> Threshold:
    """Any `needed` of the parts; a text stands for the replica of that name."""
    return _checked(needed, [(1, Replica(part) if isinstance(part, str) else part) for part in parts])


def any_of(parts: Sequence[System | str]) -> Threshold:
    """One of the parts."""
    return choose(1, parts)


def all_of(parts: Sequence[System | str]) -> Threshold:
    """Every part."""
    return choose(len(parts), parts)


def majority(parts: Sequence[System | str]) -> Threshold:
    """More than half of the parts."""
    return choose(len(parts) // 2 + 1, parts)


def explicit(quorums: Iterable[Collection[str]]) -> Threshold:
    """The quorums are the sets given, and all that hold one."""
    return any_of([all_of(sorted(quorum)) for quorum in quorums])


def grid(rows: Sequence[Sequence[str]]) -> Threshold:
    """A quorum is a whole row. Its `dual`: one replica of each row (Cheung, Ammar and Ahamad 1990 combine the two)."""
    if len({len(row) for row in rows}) > 1:
        raise BadQuorums("the rows of the grid have different lengths; give each as many replicas")
    return any_of([all_of(row) for row in rows])


def _checked(needed: int, parts: Sequence[tuple[int, System]]) -> Threshold:
    if not parts:
        raise BadQuorums("a quorum system without parts; name at least one replica")
    made = Threshold(needed, tuple(parts))
    if not 0 <= needed <= made.total:
        raise BadQuorums(f"{needed} votes are needed but there are {made.total}; give 0 to {made.total}")
    return made


def leaves(system: System) -> Iterator[str]:
    """The name at each leaf, from left to right; a replica that stands twice is named twice."""
    if isinstance(system, Replica):
        yield system.name
    else:
        for _, part in system.parts:
            yield from leaves(part)


@lru_cache(maxsize=4096)
def replicas_of(system: System) -> tuple[str, ...]:
    """All replicas that the system names, those without votes too, in order of appearance."""
    return tuple(dict.fromkeys(leaves(system)))


@lru_cache(maxsize=4096)
def is_plain(system: System) -> bool:
    """Whether no replica stands twice: then the parts of a threshold fail independently if the replicas do."""
    return len(replicas_of(system)) == sum(1 for _ in leaves(system))


def is_quorum(system: System, replicas: Collection[str]) -> bool:
    """Whether `replicas` hold a quorum."""
    if isinstance(system, Replica):
        return system.name in replicas
    weight = 0
    for part_weight, part in system.parts:
        if is_quorum(part, replicas):
            weight += part_weight
    return weight >= system.needed


@lru_cache(maxsize=4096)
def dual(system: System) -> System:
    """The system whose quorums are the sets that meet every quorum of `system`.

    Derivation: D meets every quorum exactly when what is outside D holds none. For a threshold of needed k among weights
    that sum to V: the parts that fail outside D must be those satisfied "dually" inside it (induction over the parts), and
    the outside falls short when its weight is below k, that is when the dual parts weigh more than V - k. So the dual is a
    threshold of V - k + 1 over the dual parts. On `choose(2; a, b, c)`: any 3 - 2 + 1 = 2 of them again; on the grid
    `a*b + c*d`: `(a + b)*(c + d)`, one of each row.
    """
    if isinstance(system, Replica):
        return system
    parts = tuple((weight, dual(part)) for weight, part in system.parts)
    return Threshold(system.total - system.needed + 1, parts)


def without(system: System, dead: Collection[str]) -> System | None:
    """What is left of the system when the `dead` replicas never answer; None when no quorum is left.

    The quorums are those of `system` that hold no dead replica: `choose(2; a, b, c)` without c is `a*b`.
    """
    if isinstance(system, Replica):
        return None if system.name in dead else system
    kept = [(weight, without(part, dead)) for weight, part in system.parts]
    left = tuple((weight, part) for weight, part in kept if part is not None)
    if sum(weight for weight, _ in left) < system.needed:
        return None
    if not left:
        return NOBODY
    return Threshold(system.needed, left)


def both(one: System, other: System) -> System:
    """The sets that hold a quorum of each: one operation's initial and final quorum.

    Two thresholds over the same parts need only the larger of the two: the replicas read may be those written.
    """
    if one == other:
        return one
    if isinstance(one, Threshold) and isinstance(other, Threshold) and one.parts == other.parts:
        return one if one.needed >= other.needed else other
    for asked, nobody in ((one, other), (other, one)):
        if isinstance(nobody, Threshold) and nobody.needed == 0:
            return asked
    return Threshold(2, ((1, one), (1, other)))
