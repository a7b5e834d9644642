"""Figures of each regime: a stretch of time in which one quorum choice was in force, where that changed within the time of a report.

Both engines and a store bring the same up-sets here, so nothing else knows of regimes. An outage across a border is cut at it: each part counts
for the choice that was in force.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from ...quorums.choices.choice import BadChoice, QuorumChoice
from ...quorums.systems.systems import System
from ..model.aggregates import Aggregates, Span, UpSpan
from ..model.errors import ReportError
from ..model.figures import (
    AdaptiveFigures,
    AsItWasFigures,
    OutageFigures,
    RecommendationFigures,
    RegimeFigures,
)
from ..model.models import US_PER_S, Model, outage_figures
from ..model.objectives import Present, Sizes, check_named, present_choices
from ..model.phrases import moment
from ..model.questions import Questions
from ..model.quorum_choices import RUN, Choice, of_votes
from ..reference.trace import lengths


class Since(NamedTuple):
    """From when on which choice was in force; with votes, where it is a rule and these may have changed too."""

    from_us: int
    present: Present
    votes: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of the time of a report, and the choice in force in it."""

    start_us: int
    end_us: int
    present: Present
    votes: Mapping[str, int] | None = None


def check_order(present: Present, changes: Sequence[Since]) -> None:
    """See that changes come in the order of time, and that something says what was in force before the first.

    Raises:
        ReportError: they do not.
    """
    if changes and present is None:
        raise ReportError(
            f"--since {moment(changes[0].from_us)} says what was in force from then on: name the choice before it with --present"
        )
    for before, after in pairwise(changes):
        if before.from_us >= after.from_us:
            raise ReportError(
                f"--since {moment(after.from_us)} comes after --since {moment(before.from_us)}: give them in the order of time, each moment once"
            )


def check_choices(questions: Questions, changes: Sequence[Since]) -> None:
    """See that the choices of changes are among those that were looked at.

    Raises:
        ReportError: the sentence says which there are.
    """
    for each in changes:
        check_named(questions, each.present, f"--since {moment(each.from_us)}")


def regimes_of(span: Span, present: Present, changes: Sequence[Since]) -> list[Regime]:
    """The regimes of a time; at least one. A change after it is not in it, and one to what is in force already is none."""
    begun = [Since(span.start_us, present)]
    for each in changes:
        if each.from_us <= span.start_us:
            begun = [each._replace(from_us=span.start_us)]
        elif each.from_us < span.end_us and each[1:] != begun[-1][1:]:
            begun.append(each)
    ends = [*(each.from_us for each in begun[1:]), span.end_us]
    return [
        Regime(each.from_us, end_us, each.present, each.votes)
        for each, end_us in zip(begun, ends, strict=True)
    ]


def outside(span: Span, changes: Sequence[Since]) -> list[str]:
    """Give a sentence for each change that comes after the data, and so changes nothing."""
    return [
        f"The choice in force from {moment(each.from_us)} on is not in this report: the data ends at {moment(span.end_us)}."
        for each in changes
        if each.from_us >= span.end_us
    ]


def figures_of_regimes(
    found: Aggregates,
    questions: Questions,
    model: Model,
    regimes: Sequence[Regime],
    recommendations: Sequence[RecommendationFigures],
    adaptive: Sequence[AdaptiveFigures],
) -> tuple[tuple[RegimeFigures, ...], tuple[AsItWasFigures, ...]]:
    """Each operation of each type in each regime; and each over all of them as it was, beside what else there is."""
    parts = [_Part(found.spans, regime, model) for regime in regimes]
    rows: list[RegimeFigures] = []
    wholes: list[AsItWasFigures] = []
    for best in recommendations:
        choices = choices_in_force(questions, best.adt, model.votes, regimes)
        if not choices:
            continue
        own = _Type(questions, best, parts, choices)
        rows += own.rows()
        wholes += own.wholes(next((each for each in adaptive if each.adt == best.adt), None))
    return tuple(rows), tuple(wholes)


def choices_in_force(
    questions: Questions, adt: str, votes: Mapping[str, int], regimes: Sequence[Regime]
) -> list[Choice]:
    """The choice in force in each regime; none at all where of one of them nobody knows what its quorums were."""
    found = [_choice(questions, adt, votes, each) for each in regimes]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else []


def _choice(questions: Questions, adt: str, votes: Mapping[str, int], regime: Regime) -> Choice | None:
    """The choice in force in a regime; None where it is not one alone, or nobody knows its quorums."""
    own_votes = votes if regime.votes is None else regime.votes
    if own_votes == votes:
        names = present_choices(questions, adt, votes, regime.present)
        own = [each for each in questions.choices if each.adt == adt and each.name in names]
        if len(own) == 1:
            return own[0]
    if isinstance(regime.present, str) or not own_votes.keys() <= votes.keys():
        return None  # nothing says when a replica was up that is not looked at
    return _of_rule(questions, adt, own_votes, regime.present)


def _of_rule(questions: Questions, adt: str, votes: Mapping[str, int], rule: Sizes | None) -> Choice | None:
    """The choice of a rule that is none of those that were looked at, as with votes of another time."""
    specification = questions.types.get(adt)
    if specification is None:
        return None
    try:
        sizes = QuorumChoice(specification, votes, rule or {}).classes
    except BadChoice:
        return None
    classes = tuple(of_votes(name, (each.initial, each.final), votes) for name, each in sizes.items())
    made = Choice("", adt, "clock", RUN, None, classes)
    normal = {each: made.normal_class(each) for each in made.operations if each in questions.used[adt]}
    numbers = ", ".join(f"{name} ({each.initial_votes}, {each.final_votes})" for name, each in normal.items())
    shares = ", ".join(f"{name}={count}" for name, count in votes.items())
    return replace(made, name=f"{numbers} with votes {shares}")


class _Part:
    """Who was up together within one regime; shares of time are the mean over front ends, as everywhere."""

    def __init__(self, spans: Sequence[UpSpan], regime: Regime, model: Model) -> None:
        self.regime, self.model = regime, model
        self.spans = [each for each in within(spans, regime) if each.view in model.members]
        self.weights: dict[int, int] = defaultdict(int)
        for view, start_us, end_us, up in self.spans:
            self.weights[up] += (end_us - start_us) * model.members[view]
        self.total_us = sum(self.weights.values())

    def enough_us(self, system: System) -> int:
        """How long there was enough for the system."""
        return sum(self.weights[up] for up in self.model.enough(system) if up in self.weights)

    def seconds(self, time_us: int) -> float:
        """So much of all front ends' time together, as seconds of one of them."""
        return time_us / sum(self.model.members.values()) / US_PER_S

    def outages(self, system: System) -> OutageFigures:
        """The outages of the system, cut at the borders of the regime."""
        enough = self.model.enough(system)
        found = lengths((each.start_us, each.end_us) for each in self.spans if each.up not in enough)
        return outage_figures((len(found), sum(found), max(found, default=0)))


def within(spans: Sequence[UpSpan], regime: Regime) -> Iterator[UpSpan]:
    """The parts of spans within a regime, which ends before its last moment."""
    for each in spans:
        start_us, end_us = max(each.start_us, regime.start_us), min(each.end_us, regime.end_us)
        if start_us < end_us:
            yield each._replace(start_us=start_us, end_us=end_us)


class _Type:
    """The regimes of one data type: a choice for each, and the recommended one."""

    def __init__(
        self,
        questions: Questions,
        best: RecommendationFigures,
        parts: Sequence[_Part],
        choices: Sequence[Choice],
    ) -> None:
        self.best, self.parts, self.choices = best, parts, choices
        self.recommended = next(
            each for each in questions.choices if (each.adt, each.name) == (best.adt, best.choice)
        )
        self.total_us = sum(part.total_us for part in parts)

    def rows(self) -> list[RegimeFigures]:
        """Each operation in each regime."""
        return [
            self._row(number, each.operation) for number in range(len(self.parts)) for each in self.best.mix
        ]

    def _row(self, number: int, operation: str) -> RegimeFigures:
        part, choice = self.parts[number], self.choices[number]
        needed = choice.normal_class(operation).needed
        enough_us = part.enough_us(needed)
        outages = part.outages(needed)
        return RegimeFigures(
            adt=self.best.adt,
            regime=number + 1,
            from_s=part.regime.start_us / US_PER_S,
            to_s=part.regime.end_us / US_PER_S,
            choice=choice.name,
            operation=operation,
            known_s=part.seconds(part.total_us),
            available=_share(enough_us, part.total_us),
            downtime_s=part.seconds(part.total_us - enough_us),
            outages=outages.outages,
            longest_s=outages.longest_s,
            mttr_s=outages.mean_s,
            recommended=self.best.choice,
            recommended_available=_share(
                part.enough_us(self.recommended.normal_class(operation).needed), part.total_us
            ),
        )

    def wholes(self, adaptive: AdaptiveFigures | None) -> list[AsItWasFigures]:
        """The mix over all regimes, and then each operation; nothing where no state is known."""
        if not self.total_us:
            return []
        switched = {each.event_class: each.adaptive for each in adaptive.classes} if adaptive else {}
        each_operation = [
            AsItWasFigures(
                adt=self.best.adt,
                operation=row.operation,
                available=self._as_it_was(row.operation),
                recommended=self.best.choice,
                recommended_available=self._recommended(row.operation),
                adaptive_available=switched.get(self.recommended.normal_class(row.operation).event_class),
            )
            for row in self.best.mix
        ]
        mix = AsItWasFigures(
            adt=self.best.adt,
            operation=None,
            available=sum(
                share.share * row.available for share, row in zip(self.best.mix, each_operation, strict=True)
            ),
            recommended=self.best.choice,
            recommended_available=self.best.served,
            adaptive_available=adaptive.served if adaptive else None,
        )
        return [mix, *each_operation]

    def _as_it_was(self, operation: str) -> float:
        """The share of the time in which there was enough for the choice that was in force."""
        pairs = zip(self.parts, self.choices, strict=True)
        enough_us = sum(part.enough_us(choice.normal_class(operation).needed) for part, choice in pairs)
        return enough_us / self.total_us

    def _recommended(self, operation: str) -> float:
        needed = self.recommended.normal_class(operation).needed
        return sum(part.enough_us(needed) for part in self.parts) / self.total_us


def _share(part_us: int, total_us: int) -> float | None:
    return part_us / total_us if total_us else None
