"""The quorum choice of a configuration that changes: each quorum holds one of the old choice and one of the new. Pure.

So it meets whatever either of the two meets, and operations go on while what the old one stored is carried to the new (joint
consensus: Ongaro and Ousterhout 2014, section 6; here by event class: Herlihy 1987). Must not know configurations.
"""

from collections.abc import Collection
from typing import Final

from ...adts.specification import EventClass, Kind
from ..systems.tally import Quorum
from .choice import QuorumChoice


class Both:
    """The sets that hold a quorum of each of the two."""

    __slots__ = ("first", "second")

    def __init__(self, first: Quorum, second: Quorum) -> None:
        self.first: Final = first
        self.second: Final = second

    def __repr__(self) -> str:
        return f"Both({self.first}, {self.second})"

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return self.first.is_met_by(replicas) and self.second.is_met_by(replicas)


class OrAll:
    """The quorum, or all of these replicas: where the others are gone for good, these are all that can be asked. They meet each quorum that did not
    consist of the others alone."""

    __slots__ = ("names", "quorum")

    def __init__(self, quorum: Quorum, names: frozenset[str]) -> None:
        self.quorum: Final = quorum
        self.names: Final = names

    def __repr__(self) -> str:
        return f"OrAll({self.quorum}, {sorted(self.names)})"

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return self.quorum.is_met_by(replicas) or self.names.issubset(replicas)


class JointChoice(QuorumChoice):
    """Both choices, of one data type. It is ordered by quorum where either is, and weak where either is: a read that any one old replica answers meets
    no more than that, and one that any new replica answers is what is wanted. `survivors`, where some old replicas are gone for good: all others that
    have votes, which stand in for any old quorum."""

    def __init__(self, old: QuorumChoice, new: QuorumChoice, survivors: frozenset[str] = frozenset()) -> None:
        self.sides = (old, new)
        self._survivors: Final = survivors
        self.specification = new.specification
        self.votes = {**old.votes, **new.votes}
        self.total = sum(self.votes.values())
        self.ordering = "quorum" if "quorum" in (old.ordering, new.ordering) else "clock"
        self.consistency = "eventual" if old.is_weak or new.is_weak else "atomic"
        self.classes = new.classes
        self._initial_of = {
            name: self._both(old.initial_of(name), new.initial_of(name)) for name in old.specification.kinds
        }
        self._of_kind = {
            kind: (
                self._both(old.initial_of_kind(kind), new.initial_of_kind(kind)),
                self._both(old.final_of_kind(kind), new.final_of_kind(kind)),
            )
            for kind in Kind
        }

    def _both(self, old: Quorum, new: Quorum) -> Both:
        return Both(OrAll(old, self._survivors) if self._survivors else old, new)

    def final_of(self, event_class: EventClass) -> Quorum:
        """See QuorumChoice."""
        old, new = self.sides
        return self._both(old.final_of(event_class), new.final_of(event_class))

    def meeting_final_of_kind(self, kind: Kind) -> Quorum:
        """See QuorumChoice: what meets the final quorums of both, as each may have stored what is looked for."""
        old, new = self.sides
        return self._both(old.meeting_final_of_kind(kind), new.meeting_final_of_kind(kind))

    @property
    def anyone(self) -> Quorum:
        """See QuorumChoice."""
        old, new = self.sides
        return Both(old.anyone, new.anyone)
