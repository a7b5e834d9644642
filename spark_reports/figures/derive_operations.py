"""What was run: each operation under each quorum choice, measured beside predicted, and the causes of the difference."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..model import confidence
from ..model.aggregates import BINS, Aggregates, StartCount
from ..model.confidence import Block, Interval
from ..model.figures import (
    CauseFigures,
    ClaimFigures,
    ClassFigures,
    ComparisonFigures,
    GapFigures,
    OperationFigures,
    SurpriseFigures,
)
from ..model.models import Model, outage_figures, outages
from ..model.questions import Questions
from ..model.quorum_choices import Choice, ClassQuorum, Types, is_blind
from ..model.run_document import Run

Pair = tuple[str, str]
"""A quorum choice and an operation."""


def operations(
    found: Aggregates, run: Run, questions: Questions, model: Model
) -> tuple[OperationFigures, ...]:
    """Every choice and operation that was tried, in the order of run.json."""
    outcomes: dict[Pair, Counter[str]] = defaultdict(Counter)
    for row in found.classes:
        outcomes[row.choice, row.operation][row.outcome] += row.operations
    blocks = _blocks(found, model)
    return tuple(
        _operation(
            choice, choice.normal_class(name), outcomes[choice.name, name], found, questions, model, blocks
        )
        for choice in run.choices
        for name in choice.operations
        if (choice.name, name) in outcomes
    )


def _blocks(found: Aggregates, model: Model) -> dict[Pair, list[Block]]:
    """Gather timeline bins into stretches, for each choice and operation; nothing if the run is too short."""
    count = model.blocks
    if count is None:
        return {}
    blocks: dict[Pair, list[Block]] = defaultdict(lambda: [Block(0, 0)] * count)
    for row in found.bins:
        index = row.bin * count // BINS
        own = blocks[row.choice, row.operation]
        attempts = row.ok + row.unavailable + row.unknown
        own[index] = Block(own[index].attempts + attempts, own[index].ok + row.ok)
    return dict(blocks)


def _operation(
    choice: Choice,
    normal: ClassQuorum,
    outcomes: Mapping[str, int],
    found: Aggregates,
    questions: Questions,
    model: Model,
    blocks: Mapping[Pair, list[Block]],
) -> OperationFigures:
    pair = choice.name, normal.operation
    attempts, ok = sum(outcomes.values()), outcomes["ok"]
    wilson = confidence.wilson(ok, attempts)
    bootstrap = confidence.block_bootstrap(blocks[pair]) if pair in blocks else None
    by_outage = model.by_outage(normal.needed, bootstrap)
    low, high = confidence.widest(wilson, bootstrap, by_outage)
    independent, joint = model.independent(normal.needed), model.joint(normal.needed)
    tally = _tally(found.starts, pair, model.enough(normal.needed))
    initial, final = normal.shown
    return OperationFigures(
        choice=choice.name,
        adt=choice.adt,
        operation=normal.operation,
        normal_class=normal.event_class,
        initial=initial,
        final=final,
        needed=str(normal.needed),
        needed_votes=normal.needed_votes,
        attempts=attempts,
        ok=ok,
        unavailable=outcomes["unavailable"],
        unknown=outcomes["unknown"],
        measured=ok / attempts,
        low=low,
        high=high,
        wilson=wilson,
        block_bootstrap=bootstrap,
        by_outage=by_outage,
        measured_if_unknown_ok=(ok + outcomes["unknown"]) / attempts,
        predicted_independent=independent,
        predicted_joint=joint,
        predicted_at_attempts=tally.enough / tally.known if tally.known else None,
        joint_agrees=low <= joint <= high,
        independent_agrees=low <= independent <= high,
        joint_gap=_joint_gap(blocks.get(pair), normal, model, ok / attempts - joint),
        independent_gap=_independent_gap(blocks.get(pair), normal, model, ok / attempts - independent),
        cause=tally.cause(ok / attempts, joint, independent),
        surprises=tally.surprises(),
        trace=outages(found.outages, questions.run_systems[pair]),
        seen=outage_figures(
            next((row[2:] for row in found.seen if (row.choice, row.operation) == pair), (0, 0, 0))
        ),
    )


def _joint_gap(
    blocks: Sequence[Block] | None, normal: ClassQuorum, model: Model, difference: float
) -> GapFigures:
    if blocks is None:
        return _gap(difference, None)
    series = model.series(normal.needed)
    return _gap(difference, confidence.block_bootstrap_difference(blocks, series))


def _independent_gap(
    blocks: Sequence[Block] | None, normal: ClassQuorum, model: Model, difference: float
) -> GapFigures:
    if blocks is None:
        return _gap(difference, None)
    measure, predict = confidence.share_of(blocks), model.independent_of(normal.needed)

    def gap(draw: Sequence[int]) -> float | None:
        measured, predicted = measure(draw), predict(draw)
        return None if measured is None or predicted is None else measured - predicted

    return _gap(difference, confidence.bootstrap(len(blocks), gap))


def _gap(difference: float, interval: Interval | None) -> GapFigures:
    if interval is None:
        return GapFigures(difference, None, None, certain=False)
    return GapFigures(difference, *interval, certain=interval.low > 0 or interval.high < 0)


@dataclass(slots=True)
class _Tally:
    """Attempts of one operation under one choice, by what the up-set at their start would have them do."""

    known: int
    enough: int
    ok: int
    outside: int
    by_kind: Counter[tuple[bool, bool, str]]
    """By whether there was enough, whether a change was near, and the outcome."""

    def count(self, enough: bool, near: bool, *outcomes: str) -> int:
        return sum(self.by_kind[enough, near, outcome] for outcome in outcomes)

    def surprises(self) -> SurpriseFigures:
        return SurpriseFigures(
            failed_near_change=self.count(True, True, "unavailable", "unknown"),
            ok_near_change=self.count(False, True, "ok"),
            unavailable_while_enough=self.count(True, False, "unavailable"),
            unknown_while_enough=self.count(True, False, "unknown"),
            ok_while_short=self.count(False, False, "ok"),
            outside_trace=self.outside,
        )

    def cause(self, measured: float, joint: float, independent: float) -> CauseFigures | None:
        """Take the difference apart; each attempt that surprises counts once, so the parts add up."""
        if not self.known:
            return None
        told = self.surprises()
        at_attempts = self.enough / self.known
        return CauseFigures(
            correlation=joint - independent,
            timing=at_attempts - joint,
            detection=(told.ok_near_change - told.failed_near_change) / self.known,
            rest=(told.ok_while_short - told.unavailable_while_enough - told.unknown_while_enough)
            / self.known,
            unknown_state=measured - self.ok / self.known,
        )


def _tally(starts: Iterable[StartCount], pair: Pair, enough: frozenset[int]) -> _Tally:
    tally = _Tally(0, 0, 0, 0, Counter())
    for row in starts:
        if (row.choice, row.operation) != pair:
            continue
        if row.up is None:
            tally.outside += row.operations
            continue
        holds = row.up in enough
        tally.known += row.operations
        tally.enough += row.operations if holds else 0
        tally.ok += row.operations if row.outcome == "ok" else 0
        tally.by_kind[holds, row.near, row.outcome] += row.operations
    return tally


def classes(found: Aggregates, run: Run, questions: Questions, model: Model) -> tuple[ClassFigures, ...]:
    """Every event class of the choices that were run, in the order of run.json."""
    answered: Counter[tuple[str, str | None]] = Counter()
    tried: Counter[Pair] = Counter()
    for row in found.classes:
        answered[row.choice, row.event_class] += row.operations if row.outcome == "ok" else 0
        tried[row.choice, row.operation] += row.operations
    figures = []
    for choice in run.choices:
        alone = Counter(each.operation for each in choice.classes)
        for each in choice.classes:
            ok, attempts = answered[choice.name, each.event_class], tried[choice.name, each.operation]
            if not attempts:
                continue
            initial, final = each.shown
            figures.append(
                ClassFigures(
                    choice=choice.name,
                    adt=choice.adt,
                    operation=each.operation,
                    event_class=each.event_class,
                    normal=each == choice.normal_class(each.operation),
                    initial=initial,
                    final=final,
                    needed_votes=each.needed_votes,
                    ok=ok,
                    measured=ok / attempts if alone[each.operation] == 1 else None,
                    predicted_independent=model.independent(each.needed),
                    predicted_joint=model.joint(each.needed),
                    trace=outages(found.outages, questions.number(each.needed)),
                )
            )
    return tuple(figures)


def comparisons(
    rows: Sequence[OperationFigures], found: Aggregates, model: Model, run: Run
) -> tuple[ComparisonFigures, ...]:
    """Compare each operation of a type under each two choices, the first in the order of run.json named first."""
    blocks = _blocks(found, model)
    same = (
        (one, other)
        for one, other in combinations(rows, 2)
        if (one.adt, one.operation) == (other.adt, other.operation)
    )
    return tuple(_comparison(one, other, blocks) for one, other in same)


def _comparison(
    one: OperationFigures, other: OperationFigures, blocks: Mapping[Pair, list[Block]]
) -> ComparisonFigures:
    pairs = (one.choice, one.operation), (other.choice, other.operation)
    paired = None
    if all(pair in blocks for pair in pairs):
        paired = confidence.block_bootstrap_difference(blocks[pairs[0]], blocks[pairs[1]])
    trials = confidence.wilson_difference(one.measured, one.wilson, other.measured, other.wilson)
    apart = None
    if max(one.trace.outages, other.trace.outages) < confidence.OUTAGES_OF_SIGN:
        apart = confidence.wilson_difference(
            one.measured, Interval(one.low, one.high), other.measured, Interval(other.low, other.high)
        )
    low, high = confidence.widest(trials, paired, apart)
    return ComparisonFigures(
        adt=one.adt,
        operation=one.operation,
        choice=one.choice,
        other=other.choice,
        difference=one.measured - other.measured,
        low=low,
        high=high,
        predicted_joint=one.predicted_joint - other.predicted_joint,
        certain=low > 0 or high < 0,
    )


def claim(rows: Sequence[ComparisonFigures], run: Run, types: Types) -> tuple[ClaimFigures, ...]:
    """The comparisons of a typed choice with a read/write one, the typed one first."""
    read_write = {choice.name: choice.is_read_write() for choice in run.choices}
    found = []
    for row in rows:
        if read_write[row.choice] == read_write[row.other]:
            continue
        turned = read_write[row.choice]
        typed, other = (row.other, row.choice) if turned else (row.choice, row.other)
        low, high = (-row.high, -row.low) if turned else (row.low, row.high)
        found.append(
            ClaimFigures(
                adt=row.adt,
                typed=typed,
                read_write=other,
                operation=row.operation,
                blind=is_blind(row.adt, row.operation, types),
                difference=-row.difference if turned else row.difference,
                low=low,
                high=high,
                predicted_joint=-row.predicted_joint if turned else row.predicted_joint,
                certain=row.certain,
            )
        )
    return tuple(found)
