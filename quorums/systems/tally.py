"""Counting replicas towards a quorum. Pure.

A `Quorum` says which sets of replicas are enough. A tally is three-valued: while replies are missing, "not reached" may
still mean "reached soon" or "never".
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final, Protocol


class Quorum(Protocol):
    """Which sets of replicas are enough. Monotone: what holds a quorum is one."""

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """Whether these replicas are a quorum, or hold one."""


class VoteCount:
    """The sets of replicas with at least `needed` of the votes (Gifford 1979)."""

    __slots__ = ("needed", "votes")

    def __init__(self, votes: Mapping[str, int], needed: int) -> None:
        self.votes: Final = votes
        self.needed: Final = needed

    def __repr__(self) -> str:
        return f"VoteCount({dict(self.votes)}, {self.needed})"

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return sum(map(self.votes.__getitem__, replicas)) >= self.needed


class Meeting:
    """The sets of replicas that meet every quorum of another kind."""

    def __init__(self, others: Quorum, everyone: AbstractSet[str]) -> None:
        self._others: Final = others
        self._everyone: Final = everyone

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return not self._others.is_met_by(self._everyone - frozenset(replicas))


class Verdict(Enum):
    """Whether the replicas that agree so far make a quorum."""

    PENDING = "pending"
    REACHED = "reached"
    IMPOSSIBLE = "impossible"


class Tally:
    """Who of `replicas` is for and who against; a replica's later word replaces its earlier one."""

    def __init__(self, replicas: Collection[str], quorum: Quorum) -> None:
        self._replicas: Final = frozenset(replicas)
        self._quorum: Final = quorum
        self.yes: set[str] = set()
        self.no: set[str] = set()

    def say(self, replica: str, agrees: bool) -> None:
        """Record a replica's word."""
        to, off = (self.yes, self.no) if agrees else (self.no, self.yes)
        to.add(replica)
        off.discard(replica)

    @property
    def verdict(self) -> Verdict:
        """REACHED with a quorum for; IMPOSSIBLE when all still silent would not complete one."""
        if self._quorum.is_met_by(self.yes):
            return Verdict.REACHED
        if not self._quorum.is_met_by(self._replicas - self.no):
            return Verdict.IMPOSSIBLE
        return Verdict.PENDING
