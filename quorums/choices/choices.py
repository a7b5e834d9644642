"""From a data type's constraints to all its minimal quorum choices. Pure.

Owns the step that a person does with a table on paper: which numbers of votes may the initial and final quorums have, and
which of these choices are worth having. What an operation depends on, the data type says; how often quorums are up, and
what they cost, other modules say.

Derivation, on a queue with Enq and Deq over N = 3 replicas of one vote. Deq/Ok depends on Enq/Ok and on Deq/Ok, Deq/Empty on
Enq/Ok; both outcomes share the initial quorum m, for the client cannot know the outcome before it reads. With e and d for
the final quorums of Enq/Ok and Deq/Ok: m + e > 3 and m + d > 3. The least e and d for a given m are 4 - m; the least m for
these is m again. Such a fixed point is minimal: no number can be lowered without raising another. They are m = 3, 2, 1:

    Enq/Ok     (0, 1)  (0, 2)  (0, 3)
    Deq/Ok     (3, 1)  (2, 2)  (1, 3)
    Deq/Empty  (3, 0)  (2, 0)  (1, 0)

That is the rule `inclusion`. The rule `by-operation` counts an operation as reading *and* writing the same replicas: Deq
needs max(m, d) votes, 3, 2 and 3. The third choice asks 3 votes of each operation where the second asks 2: dropped.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from ...adts.specification import EventClass, Specification, operation_of
from ..systems.systems import BadQuorums
from .choice import Consistency, Ordering, Sizes, must_meet

Rule = Literal["inclusion", "by-operation"]
"""Which choices are dropped: those of which another is smaller in every quorum, or in what every operation needs."""

Replication = Literal["typed", "versions", "timestamps"]
"""Typed logs; or the whole state behind read and write quorums, with version numbers or with timestamps (Gifford 1979).

Replicas that keep only the whole state make every change read it first: an Enq is then a read and a write. With timestamps
an operation that replaces the whole state need not read: a Write, but no Enq.
"""

COMBINATIONS_MAX: Final = 1_000_000

_REPLACES_ALL: Final = frozenset({"Write"})


@dataclass(frozen=True)
class Constraints:
    """Which initial quorums meet which final quorums: `meets[operation]` are event classes with a final quorum.

    `outcomes` gives each operation's event classes, the normal one first; `changes` are those that must be stored.
    """

    type_name: str
    outcomes: Mapping[str, tuple[EventClass, ...]]
    meets: Mapping[str, frozenset[EventClass]]
    changes: frozenset[EventClass]

    @property
    def classes(self) -> tuple[EventClass, ...]:
        """All event classes, operation by operation."""
        return tuple(name for names in self.outcomes.values() for name in names)


@dataclass(frozen=True)
class Choice:
    """Votes per event class, as one row of the table; outcomes of an operation have the same initial quorum."""

    classes: Mapping[EventClass, Sizes]

    def __str__(self) -> str:
        return "  ".join(f"{name} {tuple(sizes)}" for name, sizes in self.classes.items())

    def needed_of(self, operation: str) -> int:
        """The votes that must be live for every outcome of the operation, its two quorums on the same replicas."""
        return max(max(sizes) for name, sizes in self.classes.items() if operation_of(name) == operation)


def constraints_of(
    specification: Specification,
    operations: Collection[str] | None = None,
    *,
    ordering: Ordering = "clock",
    consistency: Consistency = "atomic",
    replication: Replication = "typed",
) -> Constraints:
    """The constraints of a data type, of which only `operations` are used (all of them when None).

    `ordering="quorum"` makes blind operations read the highest timestamp first, so they meet all that is stored.

    Raises:
        BadQuorums: an operation that the type does not have.
    """
    used = _used(specification, operations)
    changes = frozenset(name for name in specification.changes if operation_of(name) in used)
    meets: dict[str, frozenset[EventClass]] = {}
    for operation, outcomes in used.items():
        if replication != "typed":
            free = replication == "timestamps" and ordering == "clock" and operation in _REPLACES_ALL
            meets[operation] = frozenset() if free else changes
        else:
            needs = (must_meet(specification, name, ordering, consistency) for name in outcomes)
            meets[operation] = frozenset[str]().union(*needs) & changes
    return Constraints(specification.name, used, meets, changes)


def _used(
    specification: Specification, operations: Collection[str] | None
) -> dict[str, tuple[EventClass, ...]]:
    outcomes: dict[str, tuple[EventClass, ...]] = {}
    for name in specification.depends:
        outcomes[operation_of(name)] = (*outcomes.get(operation_of(name), ()), name)
    for operation in operations or ():
        if operation not in outcomes:
            raise BadQuorums(
                f"a {specification.name} has no operation {operation!r}: use {', '.join(outcomes)}"
            )
    return {name: found for name, found in outcomes.items() if operations is None or name in operations}


def minimal_choices(
    constraints: Constraints, votes: Mapping[str, int], rule: Rule = "inclusion"
) -> list[Choice]:
    """All minimal choices for these replicas, in the order of their numbers.

    For weighted votes only sums that some set of replicas has are listed: with votes 2, 2, 1 the sizes 1 to 5. Each choice
    obeys the durability floor: an event that changes the state has a final quorum of at least one vote.

    The walk goes over the final quorums of event classes that the same operations depend on (they are equal in a minimal
    choice), so it takes V**g steps for V votes and g such groups: one for a queue.

    Raises:
        BadQuorums: no votes at all, or more combinations than COMBINATIONS_MAX.
    """
    least = _least_that_meets(votes)
    groups = _groups(constraints)
    sizes = [size for size in least if size > 0]
    if len(sizes) ** len(groups) > COMBINATIONS_MAX:
        raise BadQuorums(
            f"{len(sizes)} sizes for each of {len(groups)} groups of events are too many; name fewer operations or replicas"
        )
    found = []
    for chosen in product(sizes, repeat=len(groups)):
        finals = {name: size for group, size in zip(groups, chosen, strict=True) for name in group}
        initials = {
            operation: max((least[finals[name]] for name in needed), default=0)
            for operation, needed in constraints.meets.items()
        }
        if finals == _least_finals(constraints, initials, least):
            found.append(_choice(constraints, initials, finals))
    kept = found if rule == "inclusion" else _pruned_by_operation(constraints, found)
    return sorted(kept, key=lambda choice: tuple(choice.classes.values()))


def _least_finals(
    constraints: Constraints, initials: Mapping[str, int], least: Mapping[int, int]
) -> dict[EventClass, int]:
    floor = min(size for size in least if size > 0)
    return {
        name: max(
            (least[initials[op]] for op, needed in constraints.meets.items() if name in needed), default=floor
        )
        for name in constraints.changes
    }


def _least_that_meets(votes: Mapping[str, int]) -> dict[int, int]:
    """For each size that a set of replicas can have, the least such size whose quorums always meet it.

    Two sizes miss each other when some sum of votes reaches the one and leaves the other. So the least size that meets s
    is the next sum above V - s, of V votes in all. For one vote each: N + 1 - s. The floor keeps it at 1 or more.
    """
    sums = {0}
    for replica, weight in votes.items():
        if weight < 0:
            raise BadQuorums(f"replica {replica!r} has {weight} votes; give 0 or more")
        sums |= {total + weight for total in sums}
    total = max(sums)
    if total < 1:
        raise BadQuorums("the replicas have no votes at all: give at least one of them a vote")
    ordered = sorted(sums)
    floor = ordered[1]
    least = {0: total}
    for size in ordered[1:]:
        least[size] = max(floor, min(each for each in ordered if each > total - size))
    return least


def _groups(constraints: Constraints) -> list[list[EventClass]]:
    """Changing classes on which the same operations depend."""
    of_dependents: dict[frozenset[str], list[EventClass]] = {}
    for name in constraints.classes:
        if name in constraints.changes:
            dependents = frozenset(op for op, needed in constraints.meets.items() if name in needed)
            of_dependents.setdefault(dependents, []).append(name)
    return list(of_dependents.values())


def _choice(
    constraints: Constraints, initials: Mapping[str, int], finals: Mapping[EventClass, int]
) -> Choice:
    return Choice(
        {
            name: Sizes(initials[operation], finals.get(name, 0))
            for operation, outcomes in constraints.outcomes.items()
            for name in outcomes
        }
    )


def _pruned_by_operation(constraints: Constraints, choices: list[Choice]) -> list[Choice]:
    needs = {
        index: tuple(map(choice.needed_of, constraints.outcomes)) for index, choice in enumerate(choices)
    }
    return [
        choice
        for index, choice in enumerate(choices)
        if not any(beats(other, needs[index]) for other in needs.values())
    ]


def beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether `one` is at most `other` everywhere, and less somewhere."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
