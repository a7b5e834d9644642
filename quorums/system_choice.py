"""A quorum choice made of quorum systems instead of numbers of votes. Pure.

Owns the step from two systems, who is read and who stores, to the quorums that a front end asks: every operation that
depends on something reads a quorum of the one, every change is stored at a quorum of the other. Two systems that can miss
each other are refused, as are numbers of votes that can (`choice`).
"""

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Final

from quorate.adts.specification import EventClass, Specification, operation_of
from quorate.quorums.assignment import of_pair
from quorate.quorums.choice import BadChoice, Ordering, QuorumChoice, Sizes
from quorate.quorums.choices import constraints_of
from quorate.quorums.expressions import parse_system
from quorate.quorums.minimal import cheapest
from quorate.quorums.systems import NOBODY, BadQuorums, System, both, is_quorum, replicas_of
from quorate.quorums.tally import Quorum


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
    """A valid choice of systems for one data type: `reads`, and `writes` or the dual of `reads`, as text.

    `classes` gives the least number of replicas of each quorum, for people. Raises BadChoice.
    """

    def __init__(
        self,
        specification: Specification,
        votes: Mapping[str, int],
        reads: str,
        writes: str = "",
        *,
        ordering: Ordering = "clock",
    ) -> None:
        try:
            read, stored = _known(reads, votes), _known(writes, votes) if writes else None
            assignment = of_pair(constraints_of(specification, ordering=ordering), read, stored)
        except BadQuorums as error:
            raise BadChoice(str(error)) from None
        self._initials: Final = assignment.initials
        self._finals: Final = assignment.finals
        super().__init__(specification, votes, ordering=ordering)
        self.classes = {
            name: Sizes(_least(self._initials[operation_of(name)]), _least(final))
            for name, final in self._finals.items()
        }

    def final_of(self, event_class: EventClass) -> Quorum:
        """See QuorumChoice."""
        return SystemQuorum(self._finals[event_class])

    def _most(self, names: Iterable[EventClass]) -> tuple[Quorum, Quorum]:
        """See QuorumChoice."""
        all_names = list(names)
        return _all(self._initials[operation_of(name)] for name in all_names), _all(
            self._finals[name] for name in all_names
        )


def _known(text: str, votes: Mapping[str, int]) -> System:
    system = parse_system(text)
    for name in replicas_of(system):
        if name not in votes:
            raise BadQuorums(f"{text!r} names the unknown replica {name!r}; known are {', '.join(votes)}")
    return system


def _least(system: System) -> int:
    return len(cheapest(system, {}) or ())


def _all(systems: Iterable[System]) -> SystemQuorum:
    nobody: System = NOBODY
    return SystemQuorum(reduce(both, systems, nobody))
