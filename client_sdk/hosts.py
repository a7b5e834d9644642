"""Hosts: which replica's front end decides on an object that several front ends want to decide on. Pure.

Owns the rendezvous hash (Thaler and Ravishankar 1998: front ends that hold the same replicas to be live choose the same
one, and when one goes only its objects move), and what is known of replicas as hosts. It is about speed only: two front
ends that choose differently are slow, not wrong.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Final

from quorate.api_specs.cluster import ClusterDocument

PAUSE_S: Final = 2.0
"""A replica that gave no answer is not asked again for so long; the next one of the hash is."""
KNOWN_S: Final = 2.0
"""So long an incarnation that was heard of counts as the present one. A restart takes about as long; an ask that names an
incarnation that is over has an unknown outcome, so after a silence a question without wishes goes first."""
OBJECTS_MAX: Final = 10_000


class Hosts:
    """The replicas of a cluster as one front end sees them; `own` is the one that it is embedded in, if any."""

    def __init__(self, document: ClusterDocument, own: str | None) -> None:
        self._replicas: Final = tuple(document.votes)
        self._own: Final = own
        self._heard: Final[dict[str, tuple[str, float]]] = {}
        """Incarnations, and when they were heard of last."""
        self._paused_until_s: Final[dict[str, float]] = {}
        self._ranked = lru_cache(maxsize=OBJECTS_MAX)(self._rank)

    def heard(self, replica: str, incarnation: str, now_s: float) -> None:
        """The replica answered."""
        self._heard[replica] = incarnation, now_s

    def failed(self, replica: str, now_s: float) -> None:
        """The replica gave no answer, or would not serve."""
        self._heard.pop(replica, None)
        self._paused_until_s[replica] = now_s + PAUSE_S

    def host_of(self, name: str, now_s: float) -> str | None:
        """The replica to ask about the object; None when it is the own one, or none seems to be live."""
        live = (each for each in self._ranked(name) if self._paused_until_s.get(each, 0.0) <= now_s)
        host = next(live, None)
        return None if host == self._own else host

    def incarnation_of(self, replica: str, now_s: float) -> str | None:
        """The incarnation that answers there; None when it must be asked for first."""
        incarnation, heard_s = self._heard.get(replica, ("", float("-inf")))
        return incarnation if now_s - heard_s < KNOWN_S else None

    def _rank(self, name: str) -> tuple[str, ...]:
        def weight(replica: str) -> bytes:
            return sha256(f"{name}\n{replica}".encode()).digest()

        return tuple(sorted(self._replicas, key=weight, reverse=True))
