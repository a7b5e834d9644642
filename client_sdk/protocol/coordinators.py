"""Coordinators: which replica's front end decides on an object that several front ends want to decide on. Pure.

Owns the rendezvous hash (Thaler and Ravishankar 1998: front ends that hold the same replicas to be live choose the same
one, and when one goes only its objects move), and what is known of replicas as coordinators. It is about speed only: two front
ends that choose differently are slow, not wrong.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final

from ...api_specs.cluster import ClusterDocument

PAUSE_S: Final = 2.0
"""A replica that gave no answer is not asked again for so long; the next one of the hash is."""
KNOWN_S: Final = 2.0
"""So long an incarnation that was heard of counts as the present one. A restart takes about as long; a forwarded request that names an
incarnation that is over has an unknown outcome, so after a silence a question without commands goes first."""
OBJECTS_MAX: Final = 10_000


def _who_may(document: ClusterDocument) -> tuple[str, ...]:
    """The members that have votes, and had some before where the cluster changes: a learner, or one that has just come, has logs to take in first, and who
    waits for it may not hear in time what came of a command. Where there are none, all."""
    before = document.own_votes if document.former is None else document.former.own_votes
    voters = tuple(name for name, votes in document.own_votes.items() if votes and before.get(name, 0))
    return voters or tuple(document.votes)


class Coordinators:
    """The replicas of a cluster as one front end sees them; `own` is the one that it is embedded in, if any."""

    def __init__(self, document: ClusterDocument, own: str | None) -> None:
        self._replicas = _who_may(document)
        self._own: Final = own
        self._heard: Final[dict[str, tuple[str, float]]] = {}
        """Incarnations, and when they were heard of last."""
        self._paused_until_s: Final[dict[str, float]] = {}
        self._greeted_s: Final[dict[str, float]] = {}
        self._wrong: Final[set[str]] = set()
        """Those whose clock is far from ours: a forwarded request that we stamp would be denied there."""
        self._ranked = lru_cache(maxsize=OBJECTS_MAX)(self._rank)

    def follow(self, document: ClusterDocument) -> None:
        """These are the replicas from now on."""
        self._replicas = _who_may(document)
        self._ranked = lru_cache(maxsize=OBJECTS_MAX)(self._rank)

    def heard(self, replica: str, incarnation: str, now_s: float) -> None:
        """The replica answered."""
        self._heard[replica] = incarnation, now_s

    def note_clock(self, replica: str, *, is_near: bool) -> None:
        """Whether the replica's clock is so near to ours that it would serve what we stamp."""
        (self._wrong.discard if is_near else self._wrong.add)(replica)

    def failed(self, replica: str, now_s: float) -> None:
        """The replica gave no answer, or would not serve."""
        self._heard.pop(replica, None)
        self._paused_until_s[replica] = now_s + PAUSE_S

    def coordinator_of(self, name: str, now_s: float) -> str | None:
        """The replica to ask about the object; None when it is the own one, or none is known to be live."""
        coordinators = (each for each in self._live(name, now_s) if self._is_known(each, now_s))
        coordinator = next(coordinators, None)
        return None if coordinator == self._own else coordinator

    def to_greet(self, name: str, now_s: float) -> Sequence[str]:
        """Those that would be asked rather than `coordinator_of`, were they known to be live; each is named once in PAUSE_S.

        The work does not wait for their answers, since one that is stopped never gives any.
        """
        unknown: list[str] = []
        for replica in self._live(name, now_s):
            if self._is_known(replica, now_s):
                break
            if now_s >= self._greeted_s.get(replica, float("-inf")) + PAUSE_S:
                self._greeted_s[replica] = now_s
                unknown.append(replica)
        return unknown

    def incarnation_of(self, replica: str, now_s: float) -> str | None:
        """The incarnation that answers there; None when it must be asked for first."""
        incarnation, heard_s = self._heard.get(replica, ("", float("-inf")))
        return incarnation if now_s - heard_s < KNOWN_S else None

    def ranked(self, name: str) -> tuple[str, ...]:
        """All replicas that may be asked, the one to ask about the object first."""
        return self._ranked(name)

    def _live(self, name: str, now_s: float) -> Iterator[str]:
        for replica in self._ranked(name):
            if replica not in self._wrong and self._paused_until_s.get(replica, 0.0) <= now_s:
                yield replica

    def _is_known(self, replica: str, now_s: float) -> bool:
        return replica == self._own or self.incarnation_of(replica, now_s) is not None

    def _rank(self, name: str) -> tuple[str, ...]:
        def weight(replica: str) -> bytes:
            return sha256(f"{name}\n{replica}".encode()).digest()

        return tuple(sorted(self._replicas, key=weight, reverse=True))
