"""Quorum choices: how many votes each event class reads before and writes after. Pure.

A choice whose dependent classes can miss each other cannot be constructed. For votes the test is a sum: sets of i and f
votes out of N always meet when i + f > N (Gifford 1979), and only then when each replica has one vote; which classes
must meet says the data type's dependency relation (Herlihy 1986).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from ...adts.specification import EventClass, Kind, Specification, operation_of
from ..systems.tally import Meeting, Quorum, VoteCount

Ordering = Literal["clock", "quorum"]
"""How blind operations of different front ends get their order: by clocks, or by reading an initial quorum first."""

Consistency = Literal["atomic", "eventual"]
"""Whether operations that only observe depend on changes (the object is linearizable), or on none: then they read any one replica, and may miss
changes that have ended."""


class BadChoice(ValueError):
    """A quorum choice that does not fit the data type or the replicas."""


class Sizes(NamedTuple):
    """Votes of an event class's initial and final quorum."""

    initial: int
    final: int


class QuorumChoice:
    """A valid quorum choice for one data type.

    `votes` maps replica ids to votes; `classes` maps event classes to (initial, final). Classes left out are filled in:
    finals with a majority where the event changes the state (zero otherwise), or with more where an initial that is given
    asks for it, initials with the least that meets all
    that any outcome of their operation depends on. Raises BadChoice, which names the pair that fails to intersect and the
    sizes.
    """

    def __init__(
        self,
        specification: Specification,
        votes: Mapping[str, int],
        classes: Mapping[EventClass, tuple[int, int]] | None = None,
        *,
        ordering: Ordering = "clock",
        consistency: Consistency = "atomic",
    ) -> None:
        self.sides: tuple[QuorumChoice, ...] = (self,)
        """More than one where it joins others (`joint_choice`)."""
        self.specification = specification
        self.votes = dict(votes)
        self.total = sum(self.votes.values())
        self.ordering = ordering
        self.consistency = consistency
        _check_given(specification, self.total, classes or {})
        self.classes: Mapping[EventClass, Sizes] = _filled(
            specification, self.total, classes or {}, ordering, consistency
        )
        _check_intersections(self)
        self._note_quorums()

    def _note_quorums(self) -> None:
        """Find the quorums that are asked for, once: the protocol asks for them with every operation."""
        kinds = self.specification.kinds
        self._initial_of: Mapping[str, Quorum] = {
            operation: self._most(name for name in self.classes if operation_of(name) == operation)[0]
            for operation in kinds
        }
        self._of_kind: Mapping[Kind, tuple[Quorum, Quorum]] = {
            kind: self._most(name for name in self.classes if kinds[operation_of(name)] is kind)
            for kind in Kind
        }

    def sizes(self, event_class: EventClass) -> Sizes:
        """The quorum sizes of an event class."""
        return self.classes[event_class]

    def final_of(self, event_class: EventClass) -> Quorum:
        """The final quorum of an event class."""
        return VoteCount(self.votes, self.classes[event_class].final)

    def asked(self) -> Iterator[Quorum]:
        """All quorums that somebody has to ask, initial and final ones: not empty ones, nor those of who may miss changes anyway."""
        for event_class in self.classes:
            operation = operation_of(event_class)
            is_free = is_dropped(self.specification.kinds[operation], self.consistency)
            asked = (self.final_of(event_class), *(() if is_free else (self.initial_of(operation),)))
            yield from (each for each in asked if not each.is_met_by(()))

    def final_of_kind(self, kind: Kind) -> Quorum:
        """The largest final quorum among classes of `kind` (blind events of one type share their final quorum)."""
        return self._of_kind[kind][1]

    def initial_of_kind(self, kind: Kind) -> Quorum:
        """The largest initial quorum among classes of `kind`."""
        return self._of_kind[kind][0]

    def meeting_final_of_kind(self, kind: Kind) -> Quorum:
        """Whatever meets all final quorums of `kind`."""
        return Meeting(self.final_of_kind(kind), self.votes.keys())

    @property
    def is_weak(self) -> bool:
        """Whether operations that only observe may miss changes."""
        return self.consistency == "eventual"

    @property
    def voters(self) -> frozenset[str]:
        """The replicas that stand in a quorum."""
        return frozenset(name for name, votes in self.votes.items() if votes)

    @property
    def anyone(self) -> Quorum:
        """Any replica with a vote."""
        return VoteCount(self.votes, 1)

    def initial_of(self, operation: str) -> Quorum:
        """The initial quorum of an operation: its outcomes share it, for nobody knows the outcome before reading."""
        return self._initial_of[operation]

    def _most(self, names: Iterable[EventClass]) -> tuple[Quorum, Quorum]:
        """The initial and final quorum that are enough for each of these classes."""
        all_sizes = [self.classes[name] for name in names]
        initial = max((sizes.initial for sizes in all_sizes), default=0)
        final = max((sizes.final for sizes in all_sizes), default=0)
        return VoteCount(self.votes, initial), VoteCount(self.votes, final)


def _check_given(
    specification: Specification, total: int, classes: Mapping[EventClass, tuple[int, int]]
) -> None:
    if total < 1:
        raise BadChoice("the replicas have no votes at all: give at least one of them a vote")
    for name, sizes in classes.items():
        if name not in specification.depends:
            known = ", ".join(specification.depends)
            raise BadChoice(f"a {specification.name} has no event class {name!r}: use {known}")
        if not all(0 <= size <= total for size in sizes):
            raise BadChoice(f"{name} {list(sizes)}: a quorum has 0 to {total} votes here")
        if name in specification.changes and sizes[1] < 1:
            raise BadChoice(
                f"{name} {list(sizes)} changes the state: its final quorum must have at least 1 vote"
            )


def _filled(
    specification: Specification,
    total: int,
    given: Mapping[EventClass, tuple[int, int]],
    ordering: Ordering,
    consistency: Consistency,
) -> Mapping[EventClass, Sizes]:
    majority = total // 2 + 1
    finals = dict.fromkeys(specification.depends, 0) | dict.fromkeys(specification.changes, majority)
    for name, (initial, _) in given.items():
        for other in must_meet(specification, name, ordering, consistency) - given.keys():
            # No more than there are: where even that does not meet an initial, the pair is told.
            finals[other] = min(total, max(finals[other], total + 1 - initial))
    finals |= {name: sizes[1] for name, sizes in given.items()}
    least = {operation: int(is_dropped(kind, consistency)) for operation, kind in specification.kinds.items()}
    for name in specification.depends:
        # By operation, not by class: nobody knows the outcome before reading, so that all outcomes read the same.
        operation = operation_of(name)
        needed = (
            total + 1 - finals[other] for other in must_meet(specification, name, ordering, consistency)
        )
        least[operation] = max(least[operation], *needed, 0)
    return {
        name: Sizes(given[name][0] if name in given else least[operation_of(name)], finals[name])
        for name in specification.depends
    }


def is_dropped(kind: Kind, consistency: Consistency) -> bool:
    """Whether operations of this kind depend on nothing for that consistency alone: they read any one replica."""
    return consistency == "eventual" and kind is Kind.OBSERVE


def must_meet(
    specification: Specification, name: EventClass, ordering: Ordering, consistency: Consistency = "atomic"
) -> frozenset[EventClass]:
    """The classes that `name` must see; with quorum ordering, blind events also see each other's timestamps."""
    kind = specification.kinds[operation_of(name)]
    if is_dropped(kind, consistency):
        return frozenset()
    if ordering == "quorum" and kind is Kind.BLIND:
        return specification.depends[name] | specification.changes
    return specification.depends[name]


def _check_intersections(choice: QuorumChoice) -> None:
    for name, sizes in choice.classes.items():
        if sizes.initial < 1 and is_dropped(
            choice.specification.kinds[operation_of(name)], choice.consistency
        ):
            raise BadChoice(
                f"{name} {list(sizes)} reads nobody: its initial quorum must have at least 1 vote"
            )
        for other in sorted(must_meet(choice.specification, name, choice.ordering, choice.consistency)):
            final = choice.classes[other].final
            if sizes.initial + final <= choice.total:
                raise BadChoice(
                    f"{name} does not meet {other}: initial quorum {sizes.initial} + final quorum {final} "
                    f"must exceed the {choice.total} votes; {name} depends on {other}"
                )
