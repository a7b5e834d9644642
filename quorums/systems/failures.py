"""How replicas fail, and how often a quorum is up: exact for each model of failure. Pure.

Owns three models, and the availability of any quorum system under them:

* `Independent`: each replica is up with a probability of its own;
* `Groups`: racks, power lines, zones; each group is up with its own probability, independent of the others, and takes
  all of its members down; besides, each replica fails by itself;
* `Joint`: any distribution over up-sets, as a trace gives it.

Numbers may be `float` or `fractions.Fraction`; with `Fraction` nothing is rounded. With floats the error is that of
summing at most a few thousand products: below 1e-12 for all sizes that are accepted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, product
from operator import add, mul
from typing import Final, Generic

from .availability import Probability, live_votes_independent
from .diagrams import diagram_probability
from .systems import BadQuorums, Replica, System, is_plain, is_quorum, replicas_of

GROUPS_MAX: Final = 12
"""Groups are conditioned on, so each one doubles the work."""


@dataclass(frozen=True)
class Independent(Generic[Probability]):
    """Each replica's probability of being up."""

    up: Mapping[str, Probability]

    def __post_init__(self) -> None:
        for name, probability in self.up.items():
            check_probability(probability, f"replica {name!r}")

    def states(self) -> Iterable[tuple[Probability, Mapping[str, Probability]]]:
        """One state, certain."""
        yield _one(self.up), self.up


@dataclass(frozen=True)
class Group(Generic[Probability]):
    """Replicas that fall together when what they share falls, as a rack."""

    name: str
    members: frozenset[str]
    up: Probability

    def __post_init__(self) -> None:
        check_probability(self.up, f"group {self.name!r}")


@dataclass(frozen=True)
class Groups(Generic[Probability]):
    """Failure groups over replicas; `up` is what each replica does while all its groups are up. Groups may overlap."""

    up: Mapping[str, Probability]
    groups: tuple[Group[Probability], ...]

    def __post_init__(self) -> None:
        Independent(self.up)
        if len(self.groups) > GROUPS_MAX:
            raise BadQuorums(f"{len(self.groups)} failure groups; give at most {GROUPS_MAX}")
        names = [group.name for group in self.groups]
        for group in self.groups:
            if names.count(group.name) > 1:
                raise BadQuorums(f"group {group.name!r} is given twice; give each a name of its own")
            for name in sorted(group.members - self.up.keys()):
                known = ", ".join(self.up)
                raise BadQuorums(
                    f"group {group.name!r} holds the unknown replica {name!r}; known are {known}"
                )

    def states(self) -> Iterable[tuple[Probability, Mapping[str, Probability]]]:
        """Every combination of groups that are up, with its probability and what its members then do."""
        one = _one(self.up)
        for which in product((True, False), repeat=len(self.groups)):
            chances = (g.up if up else 1 - g.up for g, up in zip(self.groups, which, strict=True))
            down = frozenset[str]().union(
                *(g.members for g, up in zip(self.groups, which, strict=True) if not up)
            )
            given = {name: one * 0 if name in down else own for name, own in self.up.items()}
            yield reduce(mul, chances, one), given


@dataclass(frozen=True)
class Joint(Generic[Probability]):
    """Up-sets with weights, as how long each lasted; replicas that no up-set names were never up."""

    weights: Mapping[frozenset[str], Probability]

    def __post_init__(self) -> None:
        for up_set, weight in self.weights.items():
            if not 0 <= weight < float("inf"):
                raise BadQuorums(
                    f"the up-set {{{', '.join(sorted(up_set))}}} has weight {weight}; give 0 or more"
                )
        if not any(self.weights.values()):
            raise BadQuorums("no up-set has a positive weight; give how long each set of replicas was up")

    def states(self) -> Iterable[tuple[Probability, Mapping[str, Probability]]]:
        """Every up-set with its share; in it, who is up is up for certain."""
        total = reduce(add, self.weights.values())
        one = total / total
        for up_set, weight in self.weights.items():
            yield weight / total, dict.fromkeys(up_set, one)


Model = Independent[Probability] | Groups[Probability] | Joint[Probability]


def availability(
    system: System, model: Model[Probability], answers: Mapping[str, Probability] | None = None
) -> Probability:
    """The probability that the replicas that are up hold a quorum of `system`.

    `answers` gives each replica's chance of answering in time, given that it is up (1 where it is absent): with the chance
    of an answer within t milliseconds, the result is the chance that a quorum has answered within t.

    Derivation on `choose(2; a, b, c)`, each up with 0.9: two or three are up: 3 * 0.9**2 * 0.1 + 0.9**3 = 0.972. Now let a
    and b share a rack that is up with 0.9, and never fail by themselves: rack up, a and b are a quorum; rack down, c alone
    is none: 0.9.
    """
    shares = []
    for weight, up in model.states():
        if weight:
            known = _all_of(system, up, weight)
            if answers is not None:
                known = {name: p * answers.get(name, 1) for name, p in known.items()}
            shares.append(weight * _given(system, known, weight / weight))
    return reduce(add, shares)


def _all_of(system: System, up: Mapping[str, Probability], weight: Probability) -> dict[str, Probability]:
    return {name: up.get(name, weight * 0) for name in replicas_of(system)}


def _given(system: System, up: Mapping[str, Probability], one: Probability) -> Probability:
    """For replicas that fail independently."""
    if all(p in (0, 1) for p in up.values()):
        held = is_quorum(system, {name for name, p in up.items() if p})
        return one * int(held)
    return _plain(system, up) if is_plain(system) else diagram_probability(system, up)


def _plain(system: System, up: Mapping[str, Probability]) -> Probability:
    """Parts that share no replica are independent: they are counted as if each were a replica."""
    if isinstance(system, Replica):
        return up[system.name]
    number = type(next(iter(up.values())))
    tails = _tails(tuple((weight, _plain(part, up)) for weight, part in system.parts), number.__name__)
    share: Probability = tails.get(max(0, system.needed), number(0))
    return min(share, number(1))  # a sum of floats may end one rounding above 1


@lru_cache(maxsize=64)
def _tails(parts: tuple[tuple[int, Probability], ...], number: str) -> Mapping[int, Probability]:
    """The probability of each number of live votes or more, in this kind of number; computed once for all numbers that are asked about. (1.0 and
    Fraction(1) are equal: what was computed with the one must not be found for the other.)"""
    del number
    weights = {str(index): weight for index, (weight, _) in enumerate(parts)}
    chances = {str(index): chance for index, (_, chance) in enumerate(parts)}
    shares = live_votes_independent(weights, chances)
    zero = next(iter(shares.values())) * 0
    counts = range(sum(weights.values()), -1, -1)
    return dict(zip(counts, accumulate(shares.get(count, zero) for count in counts), strict=True))


def check_probability(probability: float | Fraction, whose: str) -> None:
    """BadQuorums unless it lies in [0, 1]; not-a-number does not."""
    if not 0 <= probability <= 1:
        raise BadQuorums(
            f"the up-probability of {whose} is {float(probability):g}; give a number from 0 to 1"
        )


def _one(up: Mapping[str, Probability]) -> Probability:
    number = type(next(iter(up.values())))
    return number(1)
