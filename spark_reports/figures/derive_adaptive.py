"""Two choices and a standing rule that switches between them as replicas fail: what the best such rule would have given on the trace.

What switches and what it costs, `quorate.quorums.planning.adaptive` simulates. That is sequential in time, so it runs here for both engines,
on the up-sets that Spark brings to the driver too.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ...quorums.choices.choice import QuorumChoice
from ...quorums.planning.adaptive import InForce, Stretch
from ...quorums.planning.adaptive_search import Result, Search, Trace, View
from ...quorums.systems.systems import System
from ..model.advice import choice_of, is_kept
from ..model.aggregates import BINS, Aggregates
from ..model.confidence import Block
from ..model.figures import AdaptiveClassFigures, AdaptiveFigures, QuorumFigures, RecommendationFigures
from ..model.models import US_PER_S, Model
from ..model.questions import Questions, names_of
from ..model.run_document import Run
from ..reference.trace import by_bin
from .derive_choices import TIE, Answer, objects_of, quorums_of

AFTER_S: Final = 10.0
"""How long a condition must last before quorums are switched."""
JOINT_S: Final = 1.0
"""How long both choices are in force once the members that must be up are up."""
FIXED_MAX: Final = 8
"""Fixed choices that are tried as parts of rules."""


def adaptive(
    found: Aggregates, run: Run, questions: Questions, model: Model, choices: Answer
) -> tuple[AdaptiveFigures, ...]:
    """One row for each type with a recommendation, where any rule could switch."""
    trace = _trace(found, run, model)
    rows = (_Type(found, run, questions, model, choices, each).row(trace) for each in choices.recommendations)
    return tuple(row for row in rows if row is not None)


def _trace(found: Aggregates, run: Run, model: Model) -> Trace:
    replicas = list(run.votes)
    ups = {each.up: names_of(each.up, replicas) for each in found.spans}
    views: dict[str, list[Stretch]] = {}
    for view, start_us, end_us, up in found.spans:
        views.setdefault(view, []).append(Stretch(start_us, end_us, ups[up]))
    seen = [View(callers, views[view]) for view, callers in model.members.items() if view in views]
    return Trace(run.votes, views.get("", []), seen)


class _Type:
    """The recommended choice of a data type, and the rules that may be better."""

    def __init__(
        self,
        found: Aggregates,
        run: Run,
        questions: Questions,
        model: Model,
        choices: Answer,
        best: RecommendationFigures,
    ) -> None:
        self.found, self.run, self.model, self.best = found, run, model, best
        self.by_name = {each.name: each for each in questions.choices if each.adt == best.adt}
        self.specification = questions.types.get(best.adt)
        own = [each for each in choices.candidates if each.adt == best.adt]
        own.sort(key=lambda each: (not each.recommended, not each.on_front, -each.served))
        self.names = [each.choice for each in own[:FIXED_MAX]]
        self.classes = {
            row.operation: self.by_name[best.choice].normal_class(row.operation) for row in best.mix
        }
        self.mix = {self.classes[row.operation].event_class: row.share for row in best.mix}

    def row(self, trace: Trace) -> AdaptiveFigures | None:
        """The best rule; None where the type is not known, or no rule could switch."""
        fixed = self._fixed()
        if self.specification is None or self.best.choice not in fixed:
            return None
        classes = [
            each.event_class
            for each in self.best.quorums
            if each.event_class.partition("/")[0] in self.classes
        ]
        scale = US_PER_S / self.run.time_scale
        search = Search(
            self.specification,
            fixed,
            self.mix,
            classes,
            max(1, round(AFTER_S * scale)),
            max(1, round(JOINT_S * scale)),
        )
        found = search.best(trace)
        return None if found is None else self._figures(trace, *found)

    def _fixed(self) -> Mapping[str, QuorumChoice]:
        if self.specification is None:
            return {}
        made = {
            name: choice_of(self.specification, quorums_of(self.by_name[name]), self.run.votes)
            for name in self.names
        }
        return {name: choice for name, choice in made.items() if choice is not None}

    def _figures(self, trace: Trace, result: Result, tried: int) -> AdaptiveFigures:
        rule, best = result.candidate.rule, self.by_name[self.best.choice]
        interval = self.model.difference(self._series(trace, result), self._fixed_series())
        difference = result.served - self.best.served
        normal, fallback = self._quorums(result.candidate.normal), self._quorums(result.candidate.fallback)
        is_advice = difference > TIE and self._is_kept(normal) and self._is_kept(fallback)
        return AdaptiveFigures(
            adt=self.best.adt,
            fixed=self.best.choice,
            normal=result.candidate.normal,
            fallback=result.candidate.fallback,
            down=tuple(sorted(rule.condition.down)),
            live_below=rule.condition.live_below or None,
            after_s=AFTER_S,
            served=result.served,
            served_fixed=self.best.served,
            difference=difference,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            certain=interval is not None and interval.low > 0,
            wins=difference > TIE,
            switches=result.course.switches,
            joint_s=self._lasted(result, "joint"),
            fallback_s=self._lasted(result, "fallback"),
            tried=tried,
            classes=tuple(
                AdaptiveClassFigures(
                    each.event_class, self.model.joint(each.needed), result.available[each.event_class]
                )
                for each in best.classes
                if each.event_class in result.available
            ),
            normal_quorums=normal,
            fallback_quorums=fallback,
            objects=objects_of(self.best.adt, self.run) if is_advice else (),
        )

    def _quorums(self, name: str) -> tuple[QuorumFigures, ...]:
        """Those of a fixed choice; none of a majority of the members that the condition leaves."""
        return quorums_of(self.by_name[name]) if name in self.names else ()

    def _is_kept(self, quorums: Sequence[QuorumFigures]) -> bool:
        return is_kept(self.best.adt, quorums, self.run.votes)

    def _lasted(self, result: Result, in_force: InForce) -> float:
        lasted = sum(each.end - each.start for each in result.course.phases if each.in_force == in_force)
        return lasted / US_PER_S * self.run.time_scale

    def _series(self, trace: Trace, result: Result) -> list[Block]:
        """For each stretch of time, how long it is known and how much of the mix the rule would have served."""
        found = [[0, 0.0] for _ in range(self.model.blocks or 0)]
        for callers, piece in trace.pieces(result.course) if found else ():
            share = sum(
                share
                for name, share in self.mix.items()
                if result.candidate.rule.serves(name, piece.up, piece.in_force)
            )
            for index, time_us in by_bin(piece.start, piece.end, self.found.span):
                block = found[index * len(found) // BINS]
                block[0] += time_us * callers
                block[1] += time_us * callers * share
        return [Block(int(known), ok) for known, ok in found]

    def _fixed_series(self) -> Sequence[Block]:
        systems: dict[System, float] = {}
        for row in self.best.mix:
            needed = self.classes[row.operation].needed
            systems[needed] = systems.get(needed, 0.0) + row.share
        return self.model.served(systems)
