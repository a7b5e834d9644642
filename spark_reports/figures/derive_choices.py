"""Every valid quorum choice on the trace as it was: what each would have given, which are worth having, which is best."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...quorums.systems.systems import System
from ..model.advice import is_kept
from ..model.aggregates import Aggregates
from ..model.confidence import OUTAGES_OF_SIGN, Block, Interval, widest, wilson_difference
from ..model.figures import (
    AgainstFigures,
    CandidateFigures,
    CounterfactualFigures,
    MixFigures,
    QuorumFigures,
    RecommendationFigures,
)
from ..model.models import Model, outages
from ..model.questions import Questions
from ..model.quorum_choices import READ_WRITE, Choice, is_valid
from ..model.run_document import Run, object_key

TIE_DIGITS: Final = 12
TIE: Final = 10**-TIE_DIGITS
"""Shares that differ by less are equal but for rounding."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is said of the choices."""

    candidates: tuple[CandidateFigures, ...]
    counterfactuals: tuple[CounterfactualFigures, ...]
    recommendations: tuple[RecommendationFigures, ...]


def answer(
    found: Aggregates, run: Run, questions: Questions, model: Model, given: Mapping[str, float]
) -> Answer:
    """Answer for every choice, type by type; `given` is a mix of operations that was asked for."""
    candidates: list[CandidateFigures] = []
    counterfactuals: list[CounterfactualFigures] = []
    recommendations: list[RecommendationFigures] = []
    for adt, operations in questions.used.items():
        choices = [
            choice
            for choice in questions.choices
            if choice.adt == adt and set(operations) <= set(choice.operations)
        ]
        if not choices:
            continue
        counterfactuals += [
            _counterfactual(choice, name, found, questions, model)
            for choice in choices
            for name in operations
        ]
        valid = [
            choice
            for choice in choices
            if choice.run_as is None or is_valid(choice, operations, questions.types)
        ]
        if not valid:
            continue
        type_answer = _Type(adt, operations, valid, _mix(adt, operations, found, run, given), model, run)
        rows, recommendation = type_answer.answer()
        candidates += rows
        recommendations.append(recommendation)
    return Answer(tuple(candidates), tuple(counterfactuals), tuple(recommendations))


def _mix(
    adt: str, operations: Sequence[str], found: Aggregates, run: Run, given: Mapping[str, float]
) -> tuple[dict[str, float], str]:
    """The share of each operation of a type, and where it comes from."""
    own = {choice.name for choice in run.choices if choice.adt == adt}
    counts = dict.fromkeys(operations, 0.0)
    for row in found.classes:
        if row.choice in own and row.operation in counts:
            counts[row.operation] += row.operations
    origin = "attempts"
    if given and set(given) <= set(operations):
        counts, origin = {name: given.get(name, 0.0) for name in operations}, "given"
    elif not sum(counts.values()):
        counts, origin = dict.fromkeys(operations, 1.0), "equal"
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}, origin


def _counterfactual(
    choice: Choice, operation: str, found: Aggregates, questions: Questions, model: Model
) -> CounterfactualFigures:
    normal = choice.normal_class(operation)
    initial, final = normal.shown
    interval, by_outage = model.sure(normal.needed)
    return CounterfactualFigures(
        choice=choice.name,
        adt=choice.adt,
        kind=choice.kind,
        run_as=choice.run_as,
        operation=operation,
        normal_class=normal.event_class,
        initial=initial,
        final=final,
        needed_votes=normal.needed_votes,
        predicted_independent=model.independent(normal.needed),
        predicted_joint=model.joint(normal.needed),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        by_outage=by_outage,
        predicted_at_attempts=_at_attempts(
            choice.adt, operation, found, questions, model.enough(normal.needed)
        ),
        trace=outages(found.outages, questions.number(normal.needed)),
    )


def _at_attempts(
    adt: str, operation: str, found: Aggregates, questions: Questions, enough: frozenset[int]
) -> float | None:
    """The share of the attempts, under any choice of the type, that began while there was enough."""
    own = {choice.run_as for choice in questions.choices if choice.adt == adt}
    known = [
        row for row in found.starts if row.choice in own and row.operation == operation and row.up is not None
    ]
    total = sum(row.operations for row in known)
    return sum(row.operations for row in known if row.up in enough) / total if total else None


class _Type:
    """The choices of one data type, weighed by a mix of its operations."""

    def __init__(
        self,
        adt: str,
        operations: Sequence[str],
        choices: Sequence[Choice],
        mix: tuple[dict[str, float], str],
        model: Model,
        run: Run,
    ) -> None:
        self.adt = adt
        self.run = run
        self.operations = operations
        self.choices = {choice.name: choice for choice in choices}
        self.mix, self.mix_from = mix
        self.model = model
        self.served = {choice.name: self._served(choice) for choice in choices}
        self.series = {choice.name: model.served(self._systems(choice)) for choice in choices}

    def answer(self) -> tuple[list[CandidateFigures], RecommendationFigures]:
        """The table of choices, and the one to recommend."""
        points = {name: self._point(choice) for name, choice in self.choices.items()}
        best, tied = self._best()
        rows = []
        for name in self.choices:
            better = [other for other in points if _beats(points[other], points[name])]
            rows.append(
                replace(
                    self._candidate(name),
                    on_front=not better,
                    dominated_by=max(better, key=lambda other: self.served[other]) if better else None,
                    recommended=name == best,
                )
            )
        return rows, self._recommendation(best, tied)

    def _needed(self, choice: Choice, operation: str) -> System:
        return choice.normal_class(operation).needed

    def _systems(self, choice: Choice) -> dict[System, float]:
        systems: dict[System, float] = defaultdict(float)
        for operation, share in self.mix.items():
            systems[self._needed(choice, operation)] += share
        return dict(systems)

    def _served(self, choice: Choice, *, independent: bool = False) -> float:
        predict = self.model.independent if independent else self.model.joint
        return sum(share * predict(self._needed(choice, name)) for name, share in self.mix.items())

    def _point(self, choice: Choice) -> tuple[float, ...]:
        return tuple(self.model.joint(self._needed(choice, name)) for name in self.operations)

    def _size(self, choice: Choice) -> float | None:
        """Votes asked for an operation of the mix, in the mean."""
        total = 0.0
        for operation, share in self.mix.items():
            normal = choice.normal_class(operation)
            if normal.initial_votes is None or normal.final_votes is None:
                return None
            total += share * (normal.initial_votes + normal.final_votes)
        return total

    def _best(self) -> tuple[str, tuple[str, ...]]:
        """The choice that serves most, and those that serve as much, the best first.

        Those that served as much may bear a different number of failures, which this trace happened not to need: so the one
        comes first that independent replicas would serve most with, then the one that asks the fewest votes, then one that
        was run.
        """
        top = max(self.served.values())
        equal = [name for name, served in self.served.items() if top - served <= TIE]
        order = {name: index for index, name in enumerate(self.choices)}

        def preference(name: str) -> tuple[float, bool, float, bool, int]:
            choice = self.choices[name]
            size, independent = self._size(choice), round(self._served(choice, independent=True), TIE_DIGITS)
            return -independent, size is None, size or 0.0, choice.run_as is None, order[name]

        equal.sort(key=preference)
        return equal[0], tuple(equal[1:])

    def _outages(self, choice: Choice) -> int:
        return max(self.model.outages[system] for system in self._systems(choice))

    def _sure(self, choice: Choice) -> Interval | None:
        """The interval of what a choice serves; operations are out together, so that what is sure of each adds up."""
        bootstrap = self.model.interval(self.series[choice.name])
        parts = [
            (share, self.model.joint(system), *self.model.sure(system))
            for system, share in self._systems(choice).items()
        ]
        if not any(by_outage for _, _, _, by_outage in parts):
            return bootstrap
        low = sum(share * (interval.low if interval else joint) for share, joint, interval, _ in parts)
        high = sum(share * (interval.high if interval else joint) for share, joint, interval, _ in parts)
        return widest(Interval(low, min(1.0, high)), bootstrap)

    def _candidate(self, name: str) -> CandidateFigures:
        choice = self.choices[name]
        interval = self._sure(choice)
        return CandidateFigures(
            choice=name,
            adt=self.adt,
            kind=choice.kind,
            run_as=choice.run_as,
            served=self.served[name],
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            served_independent=self._served(choice, independent=True),
            quorum_size=self._size(choice),
            on_front=False,
            dominated_by=None,
            recommended=False,
        )

    def _recommendation(self, best: str, tied: tuple[str, ...]) -> RecommendationFigures:
        choice, own = self.choices[best], self._candidate(best)
        others = [name for name, other in self.choices.items() if other.run_as is not None]
        read_write = [name for name, other in self.choices.items() if other.kind == READ_WRITE]
        if read_write:
            others.append(max(read_write, key=lambda name: self.served[name]))
        against = [self._against(best, name, tied) for name in dict.fromkeys(others) if name != best]
        quorums = quorums_of(choice)
        are_alike = 0 < len(self.choices) - 1 <= len(tied)
        is_advice = not are_alike and is_kept(self.adt, quorums, self.run.votes)
        return RecommendationFigures(
            adt=self.adt,
            choice=best,
            kind=choice.kind,
            run_as=choice.run_as,
            mix=tuple(MixFigures(name, share) for name, share in self.mix.items()),
            mix_from=self.mix_from,
            served=own.served,
            low=own.low,
            high=own.high,
            tied=tied,
            against=tuple(against),
            quorums=quorums,
            objects=objects_to_change(choice, self.run) if is_advice else (),
        )

    def _against(self, best: str, name: str, tied: Sequence[str]) -> AgainstFigures:
        other: list[Block] = self.series[name]
        interval = self.model.difference(self.series[best], other)
        choice = self.choices[name]
        own, theirs = self._sure(self.choices[best]), self._sure(choice)
        outages = max(self._outages(self.choices[best]), self._outages(choice))
        if own and theirs and name not in tied and outages < OUTAGES_OF_SIGN:
            apart = wilson_difference(self.served[best], own, self.served[name], theirs)
            interval = widest(apart, interval)
        return AgainstFigures(
            choice=name,
            kind=choice.kind,
            run=choice.run_as is not None,
            served=self.served[name],
            difference=self.served[best] - self.served[name],
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            certain=interval is not None and interval.low > 0,
        )


def quorums_of(choice: Choice) -> tuple[QuorumFigures, ...]:
    """The quorums of each event class of a choice."""
    return tuple(
        QuorumFigures(each.event_class, *each.shown, needed_votes=each.needed_votes)
        for each in choice.classes
    )


def objects_to_change(choice: Choice, run: Run) -> tuple[str, ...]:
    """The objects that have another choice."""
    was_run = _was_run(choice.adt, run)
    return () if was_run == [choice.run_as] else objects_of(choice.adt, run)


def objects_of(adt: str, run: Run) -> tuple[str, ...]:
    """The objects of the type: known where one choice was run for it; else `<type>/NAME` stands for one that the reader knows."""
    was_run = _was_run(adt, run)
    kept = [object_key(name) for name, own in run.objects.items() if [own] == was_run]
    return tuple(dict.fromkeys(kept)) or (f"{adt}/NAME",)


def _was_run(adt: str, run: Run) -> list[str]:
    return [each.name for each in run.choices if each.adt == adt]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether `one` is nowhere worse, and somewhere better by more than rounding."""
    return all(a >= b - TIE for a, b in zip(one, other, strict=True)) and any(
        a > b + TIE for a, b in zip(one, other, strict=True)
    )
