"""Which quorums the replicas that vote hold now, as one replica sees them: for each rule, data type and event class.

Owns what counts as voting, and how fresh that must be. Asks nobody: the watch meets the others every MEET_S anyway, and a
replica that was met last longer than FRESH_S ago is not counted.
"""

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...api_specs.classes_held import ClassHeld, classes_held
from .member import Member, Peer

FRESH_S: Final = 15.0
"""An idle watch looks every 10 s, 2 s late at most, and waits 2 s for the answer: who is up is never older while it works."""
PLACES_TOLD_MAX: Final = 20


class Held(NamedTuple):
    """All classes; `voting` are the replicas counted, and `age_s` is how long ago the one looked at first was asked."""

    classes: tuple[ClassHeld, ...]
    voting: frozenset[str]
    age_s: float

    def lacking(self) -> str:
        """The classes that lack a quorum, by rule and type, for a sentence; empty when there is none.

        Rules are told by number: who asks without a token learns no names of objects.
        """
        by_place: dict[tuple[int, str], list[str]] = {}
        for each in self.classes:
            if not each.is_held:
                by_place.setdefault((each.rule, each.type), []).append(each.event_class)
        told = [f"{_place(rule)}, {type}: {', '.join(names)}" for (rule, type), names in by_place.items()]
        more = [f"{len(told) - PLACES_TOLD_MAX} more rules"] if len(told) > PLACES_TOLD_MAX else []
        return "; ".join([*told[:PLACES_TOLD_MAX], *more])


def held_now(member: Member) -> Held:
    """What `member` sees at this moment."""
    now_s = time.monotonic()
    voting = voting_of(member.id if member.trouble is None else None, member.peers, now_s)
    oldest_s = max((now_s - peer.met_s for peer in member.peers.values()), default=0.0)
    return Held(_classes(member, voting), voting, oldest_s)


def _classes(member: Member, voting: frozenset[str]) -> tuple[ClassHeld, ...]:
    """They are reckoned again only when something changes that they follow from: whoever asks needs no token."""
    document, before = member.document, member.held
    if before is None or before[0] is not document or before[1] != voting:
        before = member.held = document, voting, tuple(classes_held(document, voting))
    return before[2]


def voting_of(own: str | None, peers: Mapping[str, Peer], now_s: float) -> frozenset[str]:
    """Who votes: `own`, if given, and each peer that bore witness when it was asked last, at most FRESH_S ago."""
    others = {name for name, peer in peers.items() if peer.votes and now_s - peer.met_s <= FRESH_S}
    return frozenset(others if own is None else {*others, own})


def _place(rule: int) -> str:
    return f"rule {rule}" if rule else "without a rule"
