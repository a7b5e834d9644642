"""Which quorums the replicas that vote hold now, as one replica sees them: for each rule, data type and event class.

Owns what counts as voting, and how fresh that must be. Asks nobody: the watch meets the others every MEET_S anyway, and a
replica that was met last longer than FRESH_S ago is not counted.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from quorate.adts.catalogue import SPECIFICATIONS
from quorate.adts.specification import EventClass, Kind, operation_of
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.quorums.choice import QuorumChoice
from quorate.quorums.tally import Quorum
from quorate.replica.member import Member, Peer

FRESH_S: Final = 15.0
"""An idle watch looks every 10 s, 2 s late at most, and waits 2 s for the answer: who is up is never older while it works."""
PLACES_TOLD_MAX: Final = 20
SETTLING: Final = frozenset({"Peek"})
"""Observing operations that decide: the front of a queue is settled before it is shown."""


class ClassHeld(NamedTuple):
    """An event class of the rule at place `rule` (from 1; 0 is the default), and whether its quorums are up."""

    rule: int
    objects: str
    type: str
    event_class: EventClass
    is_held: bool


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
    return Held(tuple(_classes(member.document, voting)), voting, oldest_s)


def voting_of(own: str | None, peers: Mapping[str, Peer], now_s: float) -> frozenset[str]:
    """Who votes: `own`, if given, and each peer that bore witness when it was asked last, at most FRESH_S ago."""
    others = {name for name, peer in peers.items() if peer.votes and now_s - peer.met_s <= FRESH_S}
    return frozenset(others if own is None else {*others, own})


def _place(rule: int) -> str:
    return f"rule {rule}" if rule else "without a rule"


def _classes(document: ClusterDocument, voting: Collection[str]) -> Iterator[ClassHeld]:
    for rule, adt in rules_in_force(document):
        place = document.choices.index(rule) + 1 if rule in document.choices else 0
        choice = document.choice_by(rule, adt)
        for name in choice.classes:
            is_held = all(quorum.is_met_by(voting) for quorum in needed_by(choice, name))
            yield ClassHeld(place, rule.objects, adt, name, is_held)


def needed_by(choice: QuorumChoice, event_class: EventClass) -> Sequence[Quorum]:
    """The quorums that the service asks for an event of this class, which may be more than the class's own.

    All decisions of a type share their quorums, and so do its blind operations' final ones (`docs/quorums.md`).
    """
    operation = operation_of(event_class)
    kind = choice.specification.kinds[operation]
    if kind is Kind.DECIDE or operation in SETTLING:
        return choice.initial_of_kind(Kind.DECIDE), choice.final_of_kind(Kind.DECIDE)
    if kind is Kind.BLIND:
        return choice.initial_of_kind(kind), choice.final_of_kind(kind)
    return (choice.initial_of(operation),)


def rules_in_force(document: ClusterDocument) -> list[tuple[ChoiceRule, str]]:
    """Each rule with each data type that it is in force for; behind one for all objects of a type, none is."""
    found: list[tuple[ChoiceRule, str]] = []
    open_types = list(SPECIFICATIONS)
    for rule in (*document.choices, ChoiceRule("*")):
        found += [(rule, adt) for adt in open_types if rule.covers(adt)]
        open_types = [adt for adt in open_types if rule.objects not in ("*", f"{adt}/*")]
    return found
