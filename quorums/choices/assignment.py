"""Quorum systems assigned to a data type's events: who is read before, who must store after. Pure.

Owns the general form of a quorum choice: any system where a choice of numbers has votes. An assignment whose dependent
events can miss each other cannot be constructed. Availability and cost are asked of an assignment, whatever it was made of.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import reduce
from operator import add

from ...adts.specification import EventClass, operation_of
from ..systems.availability import Probability
from ..systems.failures import Model, availability
from ..systems.systems import (
    NOBODY,
    BadQuorums,
    System,
    Threshold,
    both,
    dual,
    is_quorum,
    replicas_of,
    votes,
    without,
)
from .choices import Choice, Constraints
from .minimal import check_meets

Mix = Mapping[EventClass, float | Fraction]
"""How often each event class happens, relative to the others."""


class Assignment:
    """A valid assignment: `initials` by operation, `finals` by event class; None or absent for an empty quorum.

    `replicas` are all there are, those in no quorum too. Raises BadQuorums, naming the pair of classes and a quorum of each
    that share no replica; or the class that changes the state and is stored nowhere.
    """

    def __init__(
        self,
        constraints: Constraints,
        initials: Mapping[str, System],
        finals: Mapping[EventClass, System],
        *,
        label: str = "",
    ) -> None:
        self.constraints = constraints
        self.label = label
        self.initials = {name: initials.get(name, NOBODY) for name in constraints.outcomes}
        self.finals = {name: finals.get(name, NOBODY) for name in constraints.classes}
        named = (replicas_of(each) for each in (*self.initials.values(), *self.finals.values()))
        self.replicas = tuple(dict.fromkeys(name for names in named for name in names))
        self._check()

    def _check(self) -> None:
        for name in sorted(self.constraints.changes):
            if is_quorum(self.finals[name], ()):
                raise BadQuorums(f"{name} changes the state and is stored nowhere: give it a final quorum")
        for name, system in (*self.initials.items(), *self.finals.items()):
            if not is_quorum(system, self.replicas):
                raise BadQuorums(f"{name} can never find its quorum: no set of replicas is one of {system}")
        checked = set()
        for operation, needed in self.constraints.meets.items():
            for other in sorted(needed):
                pair = (self.initials[operation], self.finals[other])
                if pair not in checked:
                    check_meets(*pair, f"{operation} depends on {other} and can miss it")
                    checked.add(pair)

    def needed(self, event_class: EventClass) -> System:
        """Who must be up for an event of this class: its operation's initial quorum and its own final quorum."""
        return both(self.initials[operation_of(event_class)], self.finals[event_class])

    def needed_of(self, operation: str) -> System:
        """Who must be up for the operation, however it ends."""
        outcomes = self.constraints.outcomes[operation]
        return reduce(both, (self.needed(name) for name in outcomes))

    def surviving(self, dead: Collection[str]) -> "Assignment | None":
        """The same assignment while the `dead` replicas never answer; None when some operation has no quorum left."""
        initials = {name: without(system, dead) for name, system in self.initials.items()}
        finals = {name: without(system, dead) for name, system in self.finals.items()}
        if any(left is None for left in (*initials.values(), *finals.values())):
            return None
        return Assignment(
            self.constraints,
            {name: left for name, left in initials.items() if left is not None},
            {name: left for name, left in finals.items() if left is not None},
            label=self.label,
        )


def of_choice(
    constraints: Constraints, choice: Choice, votes_of: Mapping[str, int], label: str = ""
) -> Assignment:
    """The assignment of a choice of numbers of votes."""
    initials = {
        operation: votes(votes_of, choice.classes[names[0]].initial)
        for operation, names in constraints.outcomes.items()
    }
    finals = {name: votes(votes_of, sizes.final) for name, sizes in choice.classes.items()}
    return Assignment(constraints, initials, finals, label=label)


def of_pair(
    constraints: Constraints, initial: System, final: System | None = None, label: str = ""
) -> Assignment:
    """Every operation that depends on something reads `initial`, every change is stored at `final` (default: the dual).

    This is what a read/write quorum system is to a data type: quoracle's `QuorumSystem(reads, writes)`.
    """
    stored = dual(initial) if final is None else final
    initials = {name: initial for name, needed in constraints.meets.items() if needed}
    return Assignment(constraints, initials, dict.fromkeys(constraints.changes, stored), label=label)


def is_empty(system: System) -> bool:
    """Whether the empty set is a quorum: nobody need answer."""
    return isinstance(system, Threshold) and system.needed == 0


def availability_of(
    assignment: Assignment, model: Model[Probability], mix: Mapping[EventClass, Probability]
) -> Probability:
    """The share of operations that find their quorums up, for a mix of event classes that does not depend on who is up."""
    total = reduce(add, mix.values())
    parts = [share * availability(assignment.needed(name), model) for name, share in mix.items() if share]
    return reduce(add, parts) / total
