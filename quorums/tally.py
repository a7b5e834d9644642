"""Counting votes towards a quorum. Pure.

A tally is three-valued: while replies are missing, "not reached" may still mean "reached soon" or "never".
"""

from collections.abc import Mapping
from enum import Enum


class Verdict(Enum):
    """Whether the votes cast so far make a quorum."""

    PENDING = "pending"
    REACHED = "reached"
    IMPOSSIBLE = "impossible"


class Tally:
    """Votes for and against among replicas of known weights; a replica's later word replaces its earlier one."""

    def __init__(self, votes: Mapping[str, int], needed: int) -> None:
        self._votes = votes
        self._needed = needed
        self.yes: set[str] = set()
        self.no: set[str] = set()

    def say(self, replica: str, agrees: bool) -> None:
        """Record a replica's word."""
        to, off = (self.yes, self.no) if agrees else (self.no, self.yes)
        to.add(replica)
        off.discard(replica)

    @property
    def verdict(self) -> Verdict:
        """REACHED with enough votes for; IMPOSSIBLE when all still silent would not be enough."""
        if votes_of(self._votes, self.yes) >= self._needed:
            return Verdict.REACHED
        if votes_of(self._votes, self._votes.keys() - self.no) < self._needed:
            return Verdict.IMPOSSIBLE
        return Verdict.PENDING


def votes_of(votes: Mapping[str, int], replicas: set[str] | frozenset[str]) -> int:
    """The votes of `replicas` together."""
    return sum(map(votes.__getitem__, replicas))
