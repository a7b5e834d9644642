"""From aggregates to the figures of a report: the arithmetic on small tables.

`derive_operations` answers for what was run, `derive_choices` for every choice that could have been.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...quorums.systems.availability import live_votes_independent, live_votes_joint
from ..model import confidence
from ..model.aggregates import BINS, Aggregates
from ..model.confidence import Repairs
from ..model.figures import (
    FORMAT,
    DownRow,
    Figures,
    LiveVoteFigures,
    ProberFigures,
    ReplicaFigures,
    RowFigures,
    SourceFigures,
    TimelineRow,
    UpSetFigures,
    WindowFigures,
)
from ..model.models import US_PER_S, Model, correlation
from ..model.period import ReportPeriod
from ..model.questions import Questions, names_of
from ..model.run_document import Run
from . import derive_adaptive, derive_choices, derive_operations
from .derive_objectives import Wanted, objectives
from .derive_regimes import Since, figures_of_regimes, regimes_of
from .derive_summary import summary

UP_SETS_MAX = 1024
NOTHING_WANTED = Wanted({})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the aggregates come from, as the report says it."""

    kind: str
    name: str
    files: tuple[str, ...]
    engine: str
    linked: tuple[str, ...]
    lag_us: int
    mix: Mapping[str, float] = field(default_factory=dict)
    period: ReportPeriod | None = None
    wanted: Wanted = NOTHING_WANTED
    changes: Sequence[Since] = ()


def derive(found: Aggregates, run: Run, questions: Questions, origin: Origin) -> Figures:
    """Derive all figures from the aggregates of a run."""
    blocks = block_count(found, questions)
    counts = {row.system: row.periods for row in found.outages}
    model = Model(
        votes=run.votes,
        members=run.members(origin.linked),
        times=found.up_sets,
        blocks=blocks,
        repairs=_repairs(found),
        outages={system: counts.get(number, 0) for number, system in enumerate(questions.systems)},
    )
    operations = derive_operations.operations(found, run, questions, model)
    comparisons = derive_operations.comparisons(operations, found, model, run)
    order = {pair: index for index, pair in enumerate((row.choice, row.operation) for row in operations)}
    choices = derive_choices.answer(found, run, questions, model, origin.mix)
    regimes = regimes_of(found.span, origin.wanted.present, origin.changes)
    wanted = replace(origin.wanted, present=regimes[-1].present)
    objective_rows, verdicts = objectives(found, run, questions, model, wanted, regimes)
    switching = derive_adaptive.adaptive(found, run, questions, model, choices)
    regime_rows, as_it_was = (
        figures_of_regimes(found, questions, model, regimes, choices.recommendations, switching)
        if origin.changes
        else ((), ())
    )
    return Figures(
        format=FORMAT,
        source=_source(run, origin),
        window=_window(found, run, model, origin),
        replicas=_replicas(found, run, model),
        correlation=correlation(model),
        live_votes=_live_votes(model),
        up_sets=_up_sets(model),
        operations=operations,
        classes=derive_operations.classes(found, run, questions, model),
        comparisons=comparisons,
        claim=derive_operations.claim(comparisons, run, questions.types),
        candidates=choices.candidates,
        counterfactuals=choices.counterfactuals,
        recommendations=choices.recommendations,
        adaptive=switching,
        latencies=tuple(sorted(found.latencies, key=lambda row: order[row.choice, row.operation])),
        prober=_prober(found, run),
        timeline=tuple(sorted(_timeline(found), key=lambda row: order[row.choice, row.operation])),
        downtime=_downtime(found, run),
        rows=tuple(RowFigures(row.kind, row.read, row.used, row.read - row.used) for row in found.rows),
        rejected=found.rejected,
        objectives=objective_rows,
        verdicts=verdicts,
        summary=summary(
            questions,
            run.votes,
            wanted.present,
            choices.counterfactuals,
            choices.recommendations,
            run.time_scale,
        ),
        regimes=regime_rows,
        as_it_was=as_it_was,
    )


def _repairs(found: Aggregates) -> Repairs:
    """All outages of replicas."""
    down_us = sum(row.observed_us - row.up_us for row in found.replicas)
    return Repairs(sum(row.outages for row in found.replicas), down_us / US_PER_S)


def block_count(found: Aggregates, questions: Questions) -> int | None:
    """The number of stretches of time for the bootstrap, from the outages of what was run.

    Where nothing was run, from the longest outage of a replica.
    """
    run = set(questions.run_systems.values())
    rows = [row for row in found.outages if row.system in run]
    longest_us = max((row.longest_us for row in rows), default=0)
    mean_us = max((row.total_us // row.periods for row in rows), default=0)
    if not run:
        longest_us = mean_us = max(row.longest_outage_us for row in found.replicas)
    return confidence.block_count(BINS, found.span.bin_us, longest_us, mean_us)


def _source(run: Run, origin: Origin) -> SourceFigures:
    return SourceFigures(
        kind=origin.kind,
        name=origin.name,
        files=origin.files,
        engine=origin.engine,
        front_ends=run.front_ends,
        links=bool(origin.linked),
        prober_step_s=run.prober_step_s,
        plan=run.plan,
        made=dict(run.made),
        notes=run.notes,
    )


def _window(found: Aggregates, run: Run, model: Model, origin: Origin) -> WindowFigures:
    return WindowFigures(
        start_s=found.span.start_us / US_PER_S,
        end_s=found.span.end_us / US_PER_S,
        known_s=model.known_us / US_PER_S,
        up_changes=found.up_changes,
        bin_s=found.span.bin_us / US_PER_S,
        blocks=model.blocks,
        time_scale=run.time_scale,
        lag_s=origin.lag_us / US_PER_S,
        from_s=_seconds(origin.period.from_us) if origin.period else None,
        to_s=_seconds(origin.period.to_us) if origin.period else None,
    )


def _seconds(time_us: int | None) -> float | None:
    return None if time_us is None else time_us / US_PER_S


def _replicas(found: Aggregates, run: Run, model: Model) -> tuple[ReplicaFigures, ...]:
    figures = []
    for row in sorted(found.replicas, key=lambda row: list(run.votes).index(row.replica)):
        down_us = row.observed_us - row.up_us
        figures.append(
            ReplicaFigures(
                replica=row.replica,
                votes=run.votes[row.replica],
                rack=run.racks.get(row.replica),
                observed_s=row.observed_us / US_PER_S,
                up_share=row.up_us / row.observed_us,
                up_share_known=model.up_share[row.replica],
                outages=row.outages,
                longest_outage_s=row.longest_outage_us / US_PER_S,
                mttf_s=row.up_us / row.failures / US_PER_S if row.failures else None,
                mttr_s=down_us / row.outages / US_PER_S if row.outages else None,
            )
        )
    return tuple(figures)


def _live_votes(model: Model) -> tuple[LiveVoteFigures, ...]:
    named = {names_of(up, list(model.votes)): float(us) for up, us in model.weights.items()}
    measured = live_votes_joint(named, model.votes)
    independent = live_votes_independent(model.votes, model.up_share)
    return tuple(
        LiveVoteFigures(live, measured.get(live, 0.0), independent.get(live, 0.0))
        for live in sorted(measured.keys() | independent.keys())
    )


def _up_sets(model: Model) -> tuple[UpSetFigures, ...]:
    rows = [
        UpSetFigures(tuple(sorted(names_of(up, list(model.votes)))), us / model.total_us)
        for up, us in model.weights.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.share, row.up))[:UP_SETS_MAX])


def _prober(found: Aggregates, run: Run) -> tuple[ProberFigures, ...]:
    rows = sorted(found.probed, key=lambda row: list(run.votes).index(row.replica))
    return tuple(
        ProberFigures(
            replica=row.replica,
            watched_s=row.watched_us / US_PER_S,
            agreed=row.agreed_us / row.watched_us if row.watched_us else None,
            outages=row.outages,
            detected=row.detected,
            missed=row.outages - row.detected,
            false_alarms=row.false_alarms,
            detection_mean_s=row.detection_us / row.detected / US_PER_S if row.detected else None,
            detection_max_s=row.detection_max_us / US_PER_S if row.detected else None,
            recovery_mean_s=row.recovery_us / row.recoveries / US_PER_S if row.recoveries else None,
        )
        for row in rows
    )


def _timeline(found: Aggregates) -> list[TimelineRow]:
    attempts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * BINS)
    failed: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for row in found.bins:
        attempts[row.choice, row.operation][row.bin] += row.ok + row.unavailable + row.unknown
        failed[row.choice, row.operation][row.bin] += row.unavailable + row.unknown
    return [
        TimelineRow(*pair, tuple(attempts[pair]), tuple(failed[pair][index] for index in range(BINS)))
        for pair in attempts
    ]


def _downtime(found: Aggregates, run: Run) -> tuple[DownRow, ...]:
    down = {replica: [0.0] * BINS for replica in run.votes}
    for row in found.down_bins:
        down[row.replica][row.bin] = row.down_us / found.span.bin_us
    return tuple(DownRow(replica, tuple(shares)) for replica, shares in down.items())
