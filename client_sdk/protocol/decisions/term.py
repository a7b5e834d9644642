"""One term of an owner: its ballots, and how far the replicas that promised it have fenced their logs. Pure.

A term stands until a replica refuses it, or the front end has to forget what it knew of the object. Up to its fences a quorum's
logs can grow no more, so the owner may take from it without looking again; that the term still stands is proved by the accept.
"""

from typing import Final

from ....api_specs.messages import Collected
from ....quorums.systems.tally import Quorum
from ....timestamps.ballot import Ballot, make_ballot
from ....timestamps.timestamp import INFINITY, ZERO, Timestamp
from ..core.log_cache import LogCache


class TermLost(Exception):
    """A replica has promised a higher term."""


class Term:
    """A term named by `stamp`. `initial` is the quorum whose promises it needs."""

    def __init__(self, stamp: Timestamp, cache: LogCache, initial: Quorum) -> None:
        self.stamp: Final = stamp
        self.step = 0
        """Of the latest accept; 0 is the promise itself."""
        self.lives = cache.lives
        """The log cache's, when the latest collect had filled it."""
        self._cache: Final = cache
        self._initial: Final = initial
        self._fenced: dict[str, Timestamp] = {}
        self._fences: dict[str, Timestamp] = {}
        self._whole: set[str] = set()

    def ballot(self, step: int | None = None) -> Ballot:
        """The ballot of a step, the latest unless one is named."""
        return make_ballot(self.stamp, self.step if step is None else step)

    @property
    def granted_by(self) -> frozenset[str]:
        """The replicas that promised this term."""
        return frozenset(self._fenced)

    @property
    def has_promises(self) -> bool:
        """Whether an initial quorum promised this term."""
        return self._initial.is_met_by(self.granted_by)

    def begin_look(self) -> None:
        """A new collect begins: which logs are seen whole is to be found out anew."""
        self._whole.clear()

    def grant(self, replica: str, reply: Collected) -> None:
        """Take in a whole answer to a collect of this term: fence and log were read together."""
        if reply.refused:
            raise TermLost
        self._fences[replica] = max(self._fences.get(replica, ZERO), reply.status.fence)
        bound = min(reply.status.fence, reply.upto)
        self._fenced[replica] = max(self._fenced.get(replica, ZERO), bound)
        if reply.upto == INFINITY:
            self._whole.add(replica)

    @property
    def bound(self) -> Timestamp:
        """Up to here, the logs of an initial quorum can grow no more and are in the log cache whole."""
        reached: set[str] = set()
        reach = [
            (min(bound, self._cache.known_upto(replica)), replica) for replica, bound in self._fenced.items()
        ]
        for bound, replica in sorted(reach, reverse=True):
            reached.add(replica)
            if self._initial.is_met_by(reached):
                return bound
        return ZERO

    def keeps_out(self, upto: Timestamp) -> bool:
        """Whether an initial quorum takes nothing new up to there."""
        return self._initial.is_met_by({replica for replica, fence in self._fences.items() if fence >= upto})

    @property
    def is_whole(self) -> bool:
        """Whether the latest collect showed a quorum's logs to their ends, and the log cache still has them."""
        whole = {replica for replica in self._whole if self._cache.known_upto(replica) == INFINITY}
        return self._initial.is_met_by(whole)
