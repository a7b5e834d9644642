"""Which event classes have their quorums among given replicas: for each rule of a cluster file and each data type. Pure.

Owns what the service asks for an event, which may be more than the class's own quorums, and the words for what is lacking.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ..adts.specification import EventClass, Kind, operation_of
from ..quorums.choices.choice import QuorumChoice
from ..quorums.systems.tally import Quorum, VoteCount
from .cluster import ChoiceRule, ClusterDocument

SETTLING: Final = frozenset({"Peek"})
"""Observing operations that decide: the front of a queue is settled before it is shown."""

EMPTY: Final = "Deq/Empty"


class ClassHeld(NamedTuple):
    """An event class of the rule at place `rule` (from 1; 0 is the default), and whether its quorums are up.

    `lacks`: what one of them lacks, in words; empty where it is held.
    """

    rule: int
    objects: str
    type: str
    event_class: EventClass
    is_held: bool
    lacks: str = ""


def classes_held(document: ClusterDocument, voting: Collection[str]) -> Iterator[ClassHeld]:
    """All classes of all rules, while these replicas vote."""
    for rule, adt in rules_in_force(document):
        place = document.choices.index(rule) + 1 if rule in document.choices else 0
        choice = document.choice_by(rule, adt)
        for name in choice.classes:
            needed = _outboxes(document, rule, choice, name) or needed_by(choice, name)
            before = choice_before(document, rule, adt)
            if before is not None and not (document.survivors and document.survivors.issubset(voting)):
                needed = (*needed, *needed_by(before, name))
            lacking = [quorum for quorum in needed if not quorum.is_met_by(voting)]
            lacks = max((_lack(quorum, voting) for quorum in lacking), default=(0, ""))[1]
            yield ClassHeld(place, rule.objects, adt, name, not lacking, lacks)


def choice_before(document: ClusterDocument, rule: ChoiceRule, adt: str) -> QuorumChoice | None:
    """The choice of the configuration before for the objects of a rule, while the cluster changes from it; narrower rules of then are left out."""
    if document.former is None:
        return None
    return document.former.choice_of(rule.objects if rule.objects.startswith(f"{adt}/") else f"{adt}/*")


def _outboxes(
    document: ClusterDocument, rule: ChoiceRule, choice: QuorumChoice, event_class: EventClass
) -> Sequence[Quorum]:
    """Any one replica, where its outbox is enough for the class; all of them, where their outboxes must be empty."""
    outboxes = dict.fromkeys(document.votes, 1)
    if rule.has_outboxes and choice.specification.kinds[operation_of(event_class)] is Kind.BLIND:
        return (VoteCount(outboxes, 1),)
    if rule.has_exact_empty and event_class == EMPTY:
        return (*needed_by(choice, event_class), VoteCount(outboxes, len(outboxes)))
    return ()


def _lack(quorum: Quorum, voting: Collection[str]) -> tuple[int, str]:
    """How much it needs, and in words what of that is there."""
    if not isinstance(quorum, VoteCount):
        return 1, f"no quorum among {', '.join(sorted(voting)) or 'none'}"
    held = sum(quorum.votes.get(name, 0) for name in voting)
    if set(quorum.votes.values()) > {1}:
        return quorum.needed, f"{held} of {quorum.needed} needed votes answer"
    return quorum.needed, f"{held} of {quorum.needed} needed replicas {'answers' if held == 1 else 'answer'}"


def needed_by(choice: QuorumChoice, event_class: EventClass) -> Sequence[Quorum]:
    """The quorums that the service asks for an event of this class, which may be more than the class's own.

    All decisions of a type share their quorums, and so do its blind operations' final ones (`docs/how-to/quorum-rules.md`).
    """
    operation = operation_of(event_class)
    kind = choice.specification.kinds[operation]
    if kind is Kind.DECIDE or (operation in SETTLING and not choice.is_weak):
        return choice.initial_of_kind(Kind.DECIDE), choice.final_of_kind(Kind.DECIDE)
    if kind is Kind.BLIND:
        return choice.initial_of_kind(kind), choice.final_of_kind(kind)
    return (choice.initial_of(operation),)


def rules_in_force(document: ClusterDocument) -> list[tuple[ChoiceRule, str]]:
    """Each rule with each data type that it is in force for; behind one for all objects of a type, none is."""
    found: list[tuple[ChoiceRule, str]] = []
    open_types = list(document.specifications)
    for rule in (*document.choices, ChoiceRule("*")):
        found += [(rule, adt) for adt in open_types if rule.covers(adt)]
        open_types = [adt for adt in open_types if rule.objects not in ("*", f"{adt}/*")]
    return found
