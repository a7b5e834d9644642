"""Counting replicas towards a quorum: which sets of replicas are enough. Pure."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol


class Quorum(Protocol):
    """Which sets of replicas are enough. Monotone: what holds a quorum is one."""

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """Whether these replicas are a quorum, or hold one."""


class VoteCount:
    """The sets of replicas with at least `needed` of the votes (Gifford 1979). Who is not named has none."""

    __slots__ = ("needed", "votes")

    def __init__(self, votes: Mapping[str, int], needed: int) -> None:
        self.votes: Final = votes
        self.needed: Final = needed

    def __repr__(self) -> str:
        return f"VoteCount({dict(self.votes)}, {self.needed})"

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        votes = self.votes
        return sum([votes[replica] for replica in replicas if replica in votes]) >= self.needed


class Meeting:
    """The sets of replicas that meet every quorum of another kind."""

    def __init__(self, others: Quorum, everyone: AbstractSet[str]) -> None:
        self._others: Final = others
        self._everyone: Final = everyone

    def is_met_by(self, replicas: Collection[str]) -> bool:
        """See Quorum."""
        return not self._others.is_met_by(self._everyone - frozenset(replicas))
