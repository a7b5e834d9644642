"""A quorum choice made of quorum systems instead of numbers of votes. Pure.

Owns the step from systems, as text, to the quorums that a front end asks: from a pair, who is read and who stores, or from
an initial system for each operation and a final one for each event class. Systems that can miss each other are refused, as
are numbers of votes that can (`choice`).
"""

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Final

from ...adts.specification import EventClass, Specification, operation_of
from ..systems.expressions import parse_system
from ..systems.systems import NOBODY, BadQuorums, System, both, dual, is_quorum, replicas_of, votes
from ..systems.tally import Quorum
from .assignment import Assignment, of_pair
from .choice import BadChoice, Consistency, Ordering, QuorumChoice, Sizes, is_dropped
from .choices import Constraints, constraints_of
from .minimal import least_size


class SystemQuorum:
    """The quorums of a system, as the protocol asks for them."""

    __slots__ = ("system",)

    def __init__(self, system: System) -> None:
        self.system: Final = system

    def __repr__(self) -> str:
        return f"SystemQuorum({self.system})"

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return is_quorum(self.system, replicas)


class SystemChoice(QuorumChoice):
    """A valid choice of systems for one data type. Any replica may stand in them, whatever its votes.

    `classes` gives the least number of replicas of each quorum, for people.

    Blind operations share one final quorum, decisions one initial and one final quorum: sets that hold a quorum of each
    of that kind, for a decision serves all callers at once and a reader of a cell need not know how its value came there.
    Why that is right although classes may have different finals: of the types that the service keeps every operation that
    reads depends on every change (`tests/unit/quorums/choices/test_system_choice.py`), so its initial quorum meets the final quorum of
    each class; and what holds a quorum of several meets whatever meets one.
    """

    def __init__(
        self,
        specification: Specification,
        replicas: Collection[str],
        assignment: Assignment,
        ordering: Ordering,
        consistency: Consistency,
    ) -> None:
        self.assignment: Final = assignment
        super().__init__(
            specification, dict.fromkeys(replicas, 1), ordering=ordering, consistency=consistency
        )
        self.classes = {
            name: Sizes(least_size(assignment.initials[operation_of(name)]), least_size(final))
            for name, final in assignment.finals.items()
        }

    def final_of(self, event_class: EventClass) -> Quorum:
        """See QuorumChoice."""
        return SystemQuorum(self.assignment.finals[event_class])

    @property
    def voters(self) -> frozenset[str]:
        """See QuorumChoice. Not those who are read only because any replica is."""
        kinds, assignment = self.specification.kinds, self.assignment
        initials = (
            system
            for name, system in assignment.initials.items()
            if not is_dropped(kinds[name], self.consistency)
        )
        return frozenset(
            name for system in (*initials, *assignment.finals.values()) for name in replicas_of(system)
        )

    def _most(self, names: Iterable[EventClass]) -> tuple[Quorum, Quorum]:
        """See QuorumChoice."""
        initials, finals = self.assignment.initials, self.assignment.finals
        all_names = list(names)
        return (
            SystemQuorum(_all(initials[operation_of(name)] for name in all_names)),
            SystemQuorum(_all(finals[name] for name in all_names)),
        )


def choice_of_pair(
    specification: Specification,
    votes_of: Mapping[str, int],
    reads: str,
    writes: str = "",
    *,
    ordering: Ordering = "clock",
    consistency: Consistency = "atomic",
) -> SystemChoice:
    """Every operation that depends on something reads `reads`, every change is stored at `writes` (absent: the dual).

    Raises BadChoice, as `choice_of_events` does.
    """
    try:
        read = _known(reads, "reads", votes_of)
        stored = _known(writes, "writes", votes_of) if writes else None
        constraints = constraints_of(specification, ordering=ordering, consistency=consistency)
        assignment = of_pair(constraints, read, stored)
        initials = assignment.initials | _dropped(specification, votes_of, consistency)
        assignment = Assignment(constraints, initials, assignment.finals)
        return SystemChoice(specification, votes_of, assignment, ordering, consistency)
    except BadQuorums as error:
        raise BadChoice(str(error)) from None


def choice_of_events(
    specification: Specification,
    votes_of: Mapping[str, int],
    initials: Mapping[str, str],
    finals: Mapping[EventClass, str],
    *,
    ordering: Ordering = "clock",
    consistency: Consistency = "atomic",
) -> SystemChoice:
    """`initials` by operation, `finals` by event class (an operation alone stands for its normal outcome).

    What is left out is filled in. A final quorum: the sets that meet every quorum of the initials given here of operations
    that depend on it; where there is none, a majority of the votes. An initial quorum: the sets that meet every quorum of
    all finals that the operation depends on.

    Raises:
        BadChoice: a word or a system that does not fit, with its place; or two that can miss each other, with a quorum of each.
    """
    constraints = constraints_of(specification, ordering=ordering, consistency=consistency)
    dropped = _dropped(specification, votes_of, consistency)
    try:
        given_initials = dropped | _initials(constraints, initials, votes_of, dropped)
        given_finals = _finals(constraints, finals, votes_of)
        assignment = _filled(constraints, votes_of, given_initials, given_finals)
        return SystemChoice(specification, votes_of, assignment, ordering, consistency)
    except BadQuorums as error:
        raise BadChoice(str(error)) from None


def _dropped(
    specification: Specification, votes_of: Mapping[str, int], consistency: Consistency
) -> dict[str, System]:
    """Who is read by operations that depend on nothing for the consistency alone: any replica."""
    anyone = votes(dict.fromkeys(votes_of, 1), 1)
    return {name: anyone for name, kind in specification.kinds.items() if is_dropped(kind, consistency)}


def _initials(
    constraints: Constraints,
    given: Mapping[str, str],
    votes_of: Mapping[str, int],
    dropped: Collection[str],
) -> dict[str, System]:
    found: dict[str, System] = {}
    for word, text in given.items():
        if word in constraints.classes:
            raise BadQuorums(
                f"initials are given by operation, for nobody knows the outcome before reading: "
                f"write {operation_of(word)}, not {word}"
            )
        if word not in constraints.outcomes:
            raise BadQuorums(
                f"initials: a {constraints.type_name} has no operation {word!r}: "
                f"use {', '.join(constraints.outcomes)}"
            )
        found[word] = _known(text, f"initials, {word}", votes_of)
        if word in dropped and is_quorum(found[word], ()):
            raise BadQuorums(
                f"initials: {word} reads nobody by {text!r}: name somebody, or leave it out for any replica"
            )
        if not constraints.meets[word] and word not in dropped and not is_quorum(found[word], ()):
            raise BadQuorums(f"initials: {word} depends on nothing here and reads nobody; leave it out")
    return found


def _finals(
    constraints: Constraints, given: Mapping[EventClass, str], votes_of: Mapping[str, int]
) -> dict[EventClass, System]:
    found: dict[EventClass, System] = {}
    for word, text in given.items():
        name = constraints.outcomes[word][0] if word in constraints.outcomes else word
        if name not in constraints.classes:
            raise BadQuorums(
                f"finals: a {constraints.type_name} has no event class {word!r}: "
                f"use {', '.join(constraints.classes)}"
            )
        if name in found:
            raise BadQuorums(f"finals: {name} is given twice; give it once")
        found[name] = _known(text, f"finals, {word}", votes_of)
        if name not in constraints.changes and not is_quorum(found[name], ()):
            raise BadQuorums(f"finals: {name} changes nothing and is stored nowhere; leave it out")
    return found


def _filled(
    constraints: Constraints,
    votes_of: Mapping[str, int],
    initials: Mapping[str, System],
    finals: Mapping[EventClass, System],
) -> Assignment:
    """The assignment with what is left out, as `choice_of_events` says."""
    all_finals = dict(finals)
    for name in constraints.classes:
        if name in constraints.changes and name not in finals:
            dependents = [
                system for operation, system in initials.items() if name in constraints.meets[operation]
            ]
            all_finals[name] = _all(map(dual, dependents)) if dependents else _majority_of(votes_of)
    all_initials = dict(initials)
    for operation, needed in constraints.meets.items():
        if operation not in initials:
            all_initials[operation] = _all(dual(all_finals[name]) for name in sorted(needed))
    return Assignment(constraints, all_initials, all_finals)


def _majority_of(votes_of: Mapping[str, int]) -> System:
    total = sum(votes_of.values())
    if total == 0:
        raise BadQuorums(
            "the replicas have no votes at all: give at least one of them a vote, or every final"
        )
    return votes(votes_of, total // 2 + 1)


def _known(text: str, place: str, votes_of: Mapping[str, int]) -> System:
    try:
        system = parse_system(text)
    except BadQuorums as error:
        raise BadQuorums(f"{place}: {error}") from None
    for name in replicas_of(system):
        if name not in votes_of:
            raise BadQuorums(f"{place}: unknown replica {name!r}; known are {', '.join(votes_of)}")
    return system


def _all(systems: Iterable[System]) -> System:
    nobody: System = NOBODY
    return reduce(both, systems, nobody)
