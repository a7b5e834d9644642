"""From aggregates to the figures of a report: the arithmetic on small tables.

Both models of failure are fed from the same moments, those at which the state of every replica is known. What differs
between their predictions is then due to replicas failing together and to nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from quorate.quorums.availability import (
    availability_independent,
    availability_joint,
    live_votes_independent,
    live_votes_joint,
)
from quorate.spark_reports import confidence
from quorate.spark_reports.aggregates import BINS, Aggregates, LiveCount
from quorate.spark_reports.confidence import Block
from quorate.spark_reports.contract import Choices, ClassQuorum
from quorate.spark_reports.figures import (
    FORMAT,
    ChoiceFigures,
    ClassFigures,
    ComparisonFigures,
    DownRow,
    Figures,
    LiveVoteFigures,
    OperationFigures,
    ReplicaFigures,
    TimelineRow,
    UpSetFigures,
    WindowFigures,
)

US_PER_S: Final = 1e6
UP_SETS_MAX: Final = 32

Blocks = Mapping[tuple[str, str], list[Block]]
"""Stretches of time of each (choice, operation), in order; the same stretches for all."""


class _Model:
    """What the trace says about the replicas: the one place that turns votes into availability."""

    def __init__(self, found: Aggregates, choices: Choices) -> None:
        self.votes = choices.votes
        names = list(choices.votes)
        self.up_sets = {
            frozenset(name for index, name in enumerate(names) if row.up >> index & 1): float(row.time_us)
            for row in found.up_sets
        }
        self.known_us = sum(row.time_us for row in found.up_sets)
        self.up_share = {
            name: sum(us for up, us in self.up_sets.items() if name in up) / self.known_us for name in names
        }
        self.shortages = {row.needed: row for row in found.shortages}

    def independent(self, needed: int) -> float:
        return availability_independent(self.votes, self.up_share, needed)

    def joint(self, needed: int) -> float:
        return availability_joint(self.up_sets, self.votes, needed)


def derive(found: Aggregates, choices: Choices) -> Figures:
    """Derive all figures from the aggregates of a run."""
    model = _Model(found, choices)
    blocks = _blocks(found)
    operations = _operations(found, choices, model, blocks)
    order = {(c.choice, c.operation): index for index, c in enumerate(choices.operations())}
    return Figures(
        format=FORMAT,
        window=WindowFigures(
            start_s=found.span.start_us / US_PER_S,
            end_s=found.span.end_us / US_PER_S,
            known_s=model.known_us / US_PER_S,
            up_changes=found.up_changes,
            bin_s=found.span.bin_us / US_PER_S,
        ),
        replicas=_replicas(found, model),
        live_votes=_live_votes(model),
        up_sets=_up_sets(model),
        operations=operations,
        comparisons=_comparisons(operations, blocks),
        choices=_choices(found, choices, model),
        classes=_classes(found, choices, model),
        latencies=tuple(sorted(found.latencies, key=lambda row: order[row.choice, row.operation])),
        timeline=tuple(sorted(_timeline(found), key=lambda row: order[row.choice, row.operation])),
        downtime=_downtime(found, model),
        rejected=found.rejected,
    )


def _replicas(found: Aggregates, model: _Model) -> tuple[ReplicaFigures, ...]:
    times = {row.replica: row for row in found.replicas}
    return tuple(
        ReplicaFigures(
            replica=replica,
            votes=votes,
            observed_s=times[replica].observed_us / US_PER_S,
            up_share=times[replica].up_us / times[replica].observed_us,
            up_share_known=model.up_share[replica],
            outages=times[replica].outages,
            longest_outage_s=times[replica].longest_outage_us / US_PER_S,
        )
        for replica, votes in model.votes.items()
    )


def _live_votes(model: _Model) -> tuple[LiveVoteFigures, ...]:
    measured = live_votes_joint(model.up_sets, model.votes)
    independent = live_votes_independent(model.votes, model.up_share)
    return tuple(
        LiveVoteFigures(live, measured.get(live, 0.0), independent.get(live, 0.0))
        for live in sorted(measured.keys() | independent.keys())
    )


def _up_sets(model: _Model) -> tuple[UpSetFigures, ...]:
    rows = [UpSetFigures(tuple(sorted(up)), us / model.known_us) for up, us in model.up_sets.items()]
    return tuple(sorted(rows, key=lambda row: (-row.share, row.up))[:UP_SETS_MAX])


def _operations(
    found: Aggregates, choices: Choices, model: _Model, blocks: Blocks
) -> tuple[OperationFigures, ...]:
    outcomes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in found.classes:
        outcomes[row.choice, row.operation][row.outcome] += row.operations
    return tuple(
        _operation(normal, outcomes[normal.choice, normal.operation], blocks, found, model)
        for normal in choices.operations()
        if (normal.choice, normal.operation) in outcomes
    )


def _operation(
    normal: ClassQuorum,
    outcomes: Mapping[str, int],
    blocks: Blocks,
    found: Aggregates,
    model: _Model,
) -> OperationFigures:
    pair = normal.choice, normal.operation
    attempts, ok = sum(outcomes.values()), outcomes["ok"]
    wilson = confidence.wilson(ok, attempts)
    bootstrap = confidence.block_bootstrap(blocks[pair]) if pair in blocks else None
    low, high = confidence.widest(wilson, bootstrap)
    live = [row for row in found.live if (row.choice, row.operation) == pair]
    known = [row for row in live if row.live_votes is not None]
    return OperationFigures(
        choice=normal.choice,
        adt=normal.adt,
        operation=normal.operation,
        needed_votes=normal.needed,
        attempts=attempts,
        ok=ok,
        unavailable=outcomes["unavailable"],
        unknown=outcomes["unknown"],
        measured=ok / attempts,
        low=low,
        high=high,
        wilson=wilson,
        block_bootstrap=bootstrap,
        measured_if_unknown_ok=(ok + outcomes["unknown"]) / attempts,
        predicted_independent=model.independent(normal.needed),
        predicted_joint=model.joint(normal.needed),
        predicted_at_attempts=_share_with_enough(live, normal.needed),
        attempts_outside_trace=sum(row.operations for row in live if row.live_votes is None),
        ok_while_short=sum(r.operations for r in known if r.ok and (r.live_votes or 0) < normal.needed),
        failed_while_enough=sum(
            r.operations for r in known if not r.ok and (r.live_votes or 0) >= normal.needed
        ),
    )


def _comparisons(operations: Sequence[OperationFigures], blocks: Blocks) -> tuple[ComparisonFigures, ...]:
    """Compare each operation of an ADT under each two choices, the first in file order named first."""
    same = (
        (one, other)
        for one, other in combinations(operations, 2)
        if (one.adt, one.operation) == (other.adt, other.operation)
    )
    return tuple(_comparison(one, other, blocks) for one, other in same)


def _comparison(one: OperationFigures, other: OperationFigures, blocks: Blocks) -> ComparisonFigures:
    pairs = (one.choice, one.operation), (other.choice, other.operation)
    paired = None
    if all(pair in blocks for pair in pairs):
        paired = confidence.block_bootstrap_difference(blocks[pairs[0]], blocks[pairs[1]])
    trials = confidence.wilson_difference(one.measured, one.wilson, other.measured, other.wilson)
    low, high = confidence.widest(trials, paired)
    difference = one.measured - other.measured
    return ComparisonFigures(one.adt, one.operation, one.choice, other.choice, difference, low, high)


def _share_with_enough(live: list[LiveCount], needed: int) -> float | None:
    """Give the share of attempts that began while enough votes were live, or None if none began within the trace."""
    known = [(row.live_votes, row.operations) for row in live if row.live_votes is not None]
    total = sum(operations for _, operations in known)
    return sum(operations for votes, operations in known if votes >= needed) / total if total else None


def _blocks(found: Aggregates) -> Blocks:
    """Gather timeline bins into blocks, for each choice and operation; nothing if the run is too short."""
    longest_us = max(
        (row.longest_us for row in found.shortages),
        default=max(row.longest_outage_us for row in found.replicas),
    )
    count = confidence.block_count(BINS, found.span.bin_us, longest_us)
    if count is None:
        return {}
    blocks: dict[tuple[str, str], list[Block]] = defaultdict(lambda: [Block(0, 0)] * count)
    for row in found.bins:
        index = row.bin * count // BINS
        own = blocks[row.choice, row.operation]
        attempts = row.ok + row.unavailable + row.unknown
        own[index] = Block(own[index].attempts + attempts, own[index].ok + row.ok)
    return dict(blocks)


def _choices(found: Aggregates, choices: Choices, model: _Model) -> tuple[ChoiceFigures, ...]:
    adt_of = {c.choice: c.adt for c in choices.classes}
    run = {(row.choice, row.operation) for row in found.classes}
    figures = []
    for normal in choices.operations():
        # Every attempt at this operation of this ADT, under whichever choice: the workload the choice would have met.
        live = [r for r in found.live if r.operation == normal.operation and adt_of[r.choice] == normal.adt]
        short = model.shortages.get(normal.needed)
        figures.append(
            ChoiceFigures(
                choice=normal.choice,
                adt=normal.adt,
                operation=normal.operation,
                normal_class=normal.event_class,
                needed_votes=normal.needed,
                run=(normal.choice, normal.operation) in run,
                predicted_independent=model.independent(normal.needed),
                predicted_joint=model.joint(normal.needed),
                predicted_at_attempts=_share_with_enough(live, normal.needed),
                shortages=short.periods if short else 0,
                longest_shortage_s=short.longest_us / US_PER_S if short else 0.0,
            )
        )
    return tuple(figures)


def _classes(found: Aggregates, choices: Choices, model: _Model) -> tuple[ClassFigures, ...]:
    ok: Counter[tuple[str, str]] = Counter()
    for row in found.classes:
        if row.event_class is not None:
            ok[row.choice, row.event_class] += row.operations
    normal = {(c.choice, c.event_class) for c in choices.operations()}
    return tuple(
        ClassFigures(
            choice=cls.choice,
            adt=cls.adt,
            operation=cls.operation,
            event_class=cls.event_class,
            normal=(cls.choice, cls.event_class) in normal,
            initial_votes=cls.initial,
            final_votes=cls.final,
            needed_votes=cls.needed,
            ok=ok[cls.choice, cls.event_class],
            predicted_independent=model.independent(cls.needed),
            predicted_joint=model.joint(cls.needed),
        )
        for cls in choices.classes
    )


def _timeline(found: Aggregates) -> list[TimelineRow]:
    attempts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * BINS)
    failed: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * BINS)
    for row in found.bins:
        attempts[row.choice, row.operation][row.bin] += row.ok + row.unavailable + row.unknown
        failed[row.choice, row.operation][row.bin] += row.unavailable + row.unknown
    return [TimelineRow(*pair, tuple(attempts[pair]), tuple(failed[pair])) for pair in attempts]


def _downtime(found: Aggregates, model: _Model) -> tuple[DownRow, ...]:
    down = {replica: [0.0] * BINS for replica in model.votes}
    for row in found.down_bins:
        down[row.replica][row.bin] = row.down_us / found.span.bin_us
    return tuple(DownRow(replica, tuple(shares)) for replica, shares in down.items())
