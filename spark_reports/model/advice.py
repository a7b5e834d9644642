"""What a report advises, from its figures or from a `figures.json` read back: the rules, and what a choice would have given.

Owns the step from a recommended choice, or from the best standing rule, to a rule of the cluster file. Must not know where a report lies, nor a cluster.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...adts.specification import EventClass, Specification, operation_of
from ...adts.types.catalogue import kept_type
from ...api_specs.cluster import ChoiceRule, Fallback
from ...quorums.choices.choice import BadChoice, QuorumChoice
from ...quorums.choices.system_choice import choice_of_events
from ...quorums.planning.adaptive_search import majority_of
from .errors import ReportError
from .figures import (
    AdaptiveFigures,
    QuorumFigures,
    RecommendationFigures,
    ReplicaFigures,
    SourceFigures,
    UpSetFigures,
    WindowFigures,
    check_layout,
)

WHOLE: Final = 1 - 1e-9
"""Shares of time that add up to so much are all of it, but for rounding."""


class Told(Struct, frozen=True):
    """The parts of `figures.json` that advice rests on; its other keys are not looked at."""

    source: SourceFigures
    window: WindowFigures
    replicas: tuple[ReplicaFigures, ...]
    up_sets: tuple[UpSetFigures, ...]
    recommendations: tuple[RecommendationFigures, ...]
    adaptive: tuple[AdaptiveFigures, ...]


_TOLD: Final = msgspec.json.Decoder(Told).decode


def read_told(text: bytes) -> Told:
    """The figures in the text of a `figures.json`.

    Raises:
        ReportError: it is none, or one of another release; the sentence goes on from the name of the file.
    """
    check_layout(text)
    try:
        return _TOLD(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReportError(
            f"is damaged, or of an earlier release ({error}): make the report again with quorate report"
        ) from None


def rule_of(objects: str, quorums: Iterable[QuorumFigures]) -> ChoiceRule:
    """The rule that gives these quorums to objects: numbers of votes, or systems where any class has one."""
    rows = tuple(quorums)
    if all(row.needed_votes is not None for row in rows):
        return ChoiceRule(objects, {row.event_class: (int(row.initial), int(row.final)) for row in rows})
    initials = {operation_of(row.event_class): row.initial for row in rows if row.initial != "0"}
    finals = {row.event_class: row.final for row in rows if row.final != "0"}
    return ChoiceRule(objects, initials=initials, finals=finals)


def standing_rule_of(
    objects: str, row: AdaptiveFigures, names: Mapping[str, str], votes: Mapping[str, int]
) -> ChoiceRule:
    """The standing rule for objects. `names` are the members' ids of the report's replicas, `votes` the members' votes."""
    fallback = rule_of(objects, row.fallback_quorums)
    down = tuple(names[each] for each in row.down)
    if not row.fallback_quorums:
        majority = str(majority_of({each: own for each, own in votes.items() if each not in down}))
        fallback = replace(fallback, reads=majority, writes=majority)
    return replace(
        rule_of(objects, row.normal_quorums),
        fallback=Fallback(
            classes=fallback.classes,
            down=down,
            live_below=row.live_below or 0,
            after_s=row.after_s,
            reads=fallback.reads,
            writes=fallback.writes,
            initials=fallback.initials,
            finals=fallback.finals,
        ),
    )


def choice_of(
    specification: Specification, quorums: Iterable[QuorumFigures], votes: Mapping[str, int]
) -> QuorumChoice | None:
    """The choice with these quorums, all other classes filled in; None where the type cannot have them, or no choice in force has."""
    rows = tuple(quorums)
    if reads_by_outcome(rows):
        return None
    rule = rule_of(specification.name, rows)
    try:
        if rule.initials or rule.finals:
            return choice_of_events(specification, votes, rule.initials, rule.finals)
        return QuorumChoice(specification, votes, rule.classes)
    except BadChoice:
        return None


def reads_by_outcome(quorums: Iterable[QuorumFigures]) -> bool:
    """Whether outcomes of one operation read different quorums, as in a queue with `exact_empty`: in a choice in force they read the same."""
    initials = {(operation_of(row.event_class), row.initial) for row in quorums}
    return len(initials) > len({operation for operation, _ in initials})


def is_kept(adt: str, quorums: Iterable[QuorumFigures], votes: Mapping[str, int]) -> bool:
    """Whether the service keeps objects of this type with these quorums."""
    return choice_of(kept_type(adt), quorums, votes) is not None


def available(told: Told, choice: QuorumChoice, names: Mapping[str, str]) -> dict[EventClass, float]:
    """The share of the known time in which replicas held both quorums of each event class. `names` are the choice's names of the report's replicas.
    Nothing where the report lacks some of the sets of replicas that were up together."""
    if sum(row.share for row in told.up_sets) < WHOLE:
        return {}
    ups = [(frozenset(names[replica] for replica in row.up), row.share) for row in told.up_sets]
    return {
        each: sum(
            share
            for up, share in ups
            if choice.initial_of(operation_of(each)).is_met_by(up) and choice.final_of(each).is_met_by(up)
        )
        for each in choice.classes
    }
