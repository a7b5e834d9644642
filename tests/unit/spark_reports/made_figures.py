"""Figures made up for tests of the page: any number of replicas and choices, with or without operations and failures.

What hangs together in real figures does so here: a recommended choice serves most, an interval holds its share, causes add up.
"""

import random
from typing import Final

from quorate.spark_reports.model.aggregates import BINS, Latency, Rejected
from quorate.spark_reports.model.confidence import Interval, wilson
from quorate.spark_reports.model.figures import (
    FORMAT,
    AdaptiveClassFigures,
    AdaptiveFigures,
    AgainstFigures,
    CandidateFigures,
    CauseFigures,
    ClaimFigures,
    ClassFigures,
    ComparisonFigures,
    CorrelationFigures,
    CounterfactualFigures,
    DownRow,
    Figures,
    GapFigures,
    LiveVoteFigures,
    MixFigures,
    OperationFigures,
    OutageFigures,
    PairFigures,
    ProberFigures,
    QuorumFigures,
    RecommendationFigures,
    ReplicaFigures,
    RowFigures,
    SourceFigures,
    SurpriseFigures,
    TimelineRow,
    UpSetFigures,
    WindowFigures,
)

START_S: Final = 1_760_000_000.0
WINDOW_S: Final = 240.0
CALM: Final = OutageFigures(outages=0, total_s=0.0, longest_s=0.0, mean_s=None)


def outages(number: int, total_s: float) -> OutageFigures:
    """Give outages of about equal length."""
    return OutageFigures(number, total_s, 1.5 * total_s / number, total_s / number) if number else CALM


def paired(difference: float, width: float) -> GapFigures:
    """Give a difference with an interval that reaches so far to both sides."""
    return GapFigures(difference, difference - width, difference + width, certain=abs(difference) > width)


def around(difference: float) -> tuple[float, float, float, float, bool]:
    """Give a difference, its interval, what was predicted, and whether the sign is certain."""
    return difference, difference - 0.02, difference + 0.02, difference, abs(difference) > 0.02


class Made:
    """The figures of one made-up run of a queue: choices of `needs`, from 1 vote for Enq to a majority for both."""

    def __init__(
        self,
        *,
        replicas: int = 5,
        choices: int = 4,
        failing: bool = True,
        measured: bool = True,
        attempts: int = 2400,
        name: str = "enq-{}",
    ) -> None:
        self.rng = random.Random(replicas * 100 + choices)
        self.replicas = [f"r{i + 1}" for i in range(replicas)]
        self.failing, self.measured, self.attempts = failing, measured, attempts
        majority = replicas // 2 + 1
        enq = [1 + i % majority for i in range(choices)]
        self.needs = {name.format(i + 1): (e, replicas + 1 - e) for i, e in enumerate(enq)}
        self.kinds = dict.fromkeys(self.needs, "typed")
        if choices > 1:
            last = list(self.needs)[-1]
            self.needs[last], self.kinds[last] = (majority, majority), "read-write"

    def predicted(self, needed: int) -> tuple[float, float]:
        """Give the joint and the independent prediction of an operation that needs so many votes."""
        if not self.failing:
            return 1.0, 1.0
        lost = 0.02 + 0.05 * needed
        return 1 - lost, 1 - lost * 0.25 * (0.2 if needed < 3 else 1)

    def served(self, choice: str) -> float:
        """Give the share of the mix, half Enq and half Deq."""
        return sum(self.predicted(needed)[0] for needed in self.needs[choice]) / 2

    @property
    def best(self) -> str:
        """The choice that serves most."""
        return max(self.needs, key=self.served)

    def operations(self) -> tuple[OperationFigures, ...]:
        return tuple(
            self._operation(choice, operation, needed)
            for choice, needs in self.needs.items()
            for operation, needed in zip(("Enq", "Deq"), needs, strict=True)
        )

    def _operation(self, choice: str, operation: str, needed: int) -> OperationFigures:
        joint, independent = self.predicted(needed)
        ok = round(self.attempts * joint) if self.failing else self.attempts
        interval = wilson(ok, self.attempts)
        measured = ok / self.attempts
        rest = measured - joint
        failed = self.attempts - ok
        return OperationFigures(
            choice=choice,
            adt="queue",
            operation=operation,
            normal_class=f"{operation}/Ok",
            initial="0" if operation == "Enq" else str(needed),
            final=str(needed),
            needed=f"choose({needed}, {', '.join(self.replicas)})",
            needed_votes=needed,
            attempts=self.attempts,
            ok=ok,
            unavailable=failed - failed // 5,
            unknown=failed // 5,
            measured=measured,
            low=interval.low,
            high=interval.high,
            wilson=interval,
            block_bootstrap=Interval(interval.low, interval.high) if failed else None,
            by_outage=Interval(interval.low, interval.high) if self.failing else None,
            measured_if_unknown_ok=(ok + failed // 5) / self.attempts,
            predicted_independent=independent,
            predicted_joint=joint,
            predicted_at_attempts=joint,
            joint_agrees=interval.low <= joint <= interval.high,
            independent_agrees=interval.low <= independent <= interval.high,
            joint_gap=paired(rest, 0.01),
            independent_gap=paired(measured - independent, 0.01),
            cause=CauseFigures(joint - independent, 0.0, rest, 0.0, 0.0),
            surprises=SurpriseFigures(1, 2, 0, 1, 0, 0),
            trace=outages(3 if self.failing else 0, (1 - joint) * WINDOW_S),
            seen=outages(4 if self.failing else 0, (1 - joint) * WINDOW_S),
        )

    def candidates(self) -> tuple[CandidateFigures, ...]:
        return tuple(
            CandidateFigures(
                choice=choice,
                adt="queue",
                kind=self.kinds[choice],
                run_as=choice if self.measured else None,
                served=self.served(choice),
                low=max(0.0, self.served(choice) - 0.02),
                high=min(1.0, self.served(choice) + 0.02),
                served_independent=sum(self.predicted(needed)[1] for needed in needs) / 2,
                quorum_size=float(sum(needs)) / 2,
                on_front=self.kinds[choice] == "typed",
                dominated_by=None if self.kinds[choice] == "typed" else self.best,
                recommended=choice == self.best,
            )
            for choice, needs in self.needs.items()
        )

    def counterfactuals(self) -> tuple[CounterfactualFigures, ...]:
        rows = []
        for choice, needs in self.needs.items():
            for operation, needed in zip(("Enq", "Deq"), needs, strict=True):
                joint, independent = self.predicted(needed)
                rows.append(
                    CounterfactualFigures(
                        choice=choice,
                        adt="queue",
                        kind=self.kinds[choice],
                        run_as=choice if self.measured else None,
                        operation=operation,
                        normal_class=f"{operation}/Ok",
                        initial="0" if operation == "Enq" else str(needed),
                        final=str(needed),
                        needed_votes=needed,
                        predicted_independent=independent,
                        predicted_joint=joint,
                        low=max(0.0, joint - 0.03),
                        high=min(1.0, joint + 0.03),
                        by_outage=Interval(max(0.0, joint - 0.03), min(1.0, joint + 0.03)),
                        predicted_at_attempts=joint if self.measured else None,
                        trace=outages(3 if self.failing else 0, (1 - joint) * WINDOW_S),
                    )
                )
        return tuple(rows)

    def recommendation(self) -> RecommendationFigures:
        served = self.served(self.best)
        against = [
            AgainstFigures(
                choice=choice,
                kind=self.kinds[choice],
                run=self.measured,
                served=self.served(choice),
                difference=served - self.served(choice),
                low=served - self.served(choice) - 0.01,
                high=served - self.served(choice) + 0.01,
                certain=served - self.served(choice) > 0.01,
            )
            for choice in self.needs
            if choice != self.best
        ]
        tied = tuple(c for c in self.needs if c != self.best and self.served(c) == served)
        return RecommendationFigures(
            adt="queue",
            choice=self.best,
            kind=self.kinds[self.best],
            run_as=self.best if self.measured else None,
            mix=(MixFigures("Enq", 0.5), MixFigures("Deq", 0.5)),
            mix_from="attempts" if self.measured else "equal",
            served=served,
            low=max(0.0, served - 0.02),
            high=min(1.0, served + 0.02),
            tied=tied,
            against=tuple(against),
            quorums=self.quorums(),
            objects=("queue/NAME",) if len(tied) < len(self.needs) - 1 else (),
        )

    def quorums(self) -> tuple[QuorumFigures, ...]:
        return tuple(
            QuorumFigures(f"{operation}/Ok", "0" if operation == "Enq" else str(needed), str(needed), needed)
            for operation, needed in zip(("Enq", "Deq"), self.needs[self.best], strict=True)
        )

    def adaptive(self) -> tuple[AdaptiveFigures, ...]:
        served = self.served(self.best)
        return (
            AdaptiveFigures(
                adt="queue",
                fixed=self.best,
                normal=self.best,
                fallback=f"majority of {', '.join(self.replicas[2:])}",
                down=tuple(self.replicas[:2]),
                live_below=None,
                after_s=10.0,
                served=served + 0.04,
                served_fixed=served,
                difference=0.04,
                low=0.01,
                high=0.07,
                certain=True,
                wins=True,
                switches=6,
                joint_s=6.0,
                fallback_s=3600.0,
                tried=48,
                classes=tuple(
                    AdaptiveClassFigures(
                        f"{operation}/Ok", self.predicted(needed)[0], self.predicted(needed)[0] + 0.04
                    )
                    for operation, needed in zip(("Enq", "Deq"), self.needs[self.best], strict=True)
                ),
                normal_quorums=self.quorums(),
                fallback_quorums=(),
                objects=("queue/NAME",),
            ),
        )

    def claim(self) -> tuple[ClaimFigures, ...]:
        written = [choice for choice, kind in self.kinds.items() if kind == "read-write"]
        rows = []
        for typed in (choice for choice, kind in self.kinds.items() if kind == "typed"):
            for other in written:
                for operation, own, others in zip(
                    ("Enq", "Deq"), self.needs[typed], self.needs[other], strict=True
                ):
                    gap = self.predicted(own)[0] - self.predicted(others)[0]
                    rows.append(
                        ClaimFigures("queue", typed, other, operation, operation == "Enq", *around(gap))
                    )
        return tuple(rows)

    def timeline(self) -> tuple[TimelineRow, ...]:
        per_bin = max(1, self.attempts // BINS)
        return tuple(
            TimelineRow(
                choice,
                operation,
                (per_bin,) * BINS,
                tuple(
                    self.rng.randint(0, per_bin) if self.failing and 20 < i % 60 < 20 + 3 * needed else 0
                    for i in range(BINS)
                ),
            )
            for choice, needs in self.needs.items()
            for operation, needed in zip(("Enq", "Deq"), needs, strict=True)
        )

    def downtime(self) -> tuple[DownRow, ...]:
        return tuple(
            DownRow(
                replica,
                tuple(
                    1.0 if self.failing and 20 < (i + 7 * (n // 2)) % 60 < 32 else 0.0 for i in range(BINS)
                ),
            )
            for n, replica in enumerate(self.replicas)
        )

    def latencies(self) -> tuple[Latency, ...]:
        return tuple(
            Latency(choice, operation, f"{operation}/Ok", "ok", 1000, p50_s, 2 * p50_s, 9 * p50_s, 80 * p50_s)
            for choice in self.needs
            for operation, p50_s in (("Enq", 0.0021), ("Deq", 0.0035))
        )

    def source(self) -> SourceFigures:
        return SourceFigures(
            kind="run" if self.measured else "prometheus",
            name="week" if self.measured else "up.json",
            files=("run.json", "operations.jsonl.gz", "replicas.csv") if self.measured else ("up.json",),
            engine="python",
            front_ends=("f1", "f2") if self.measured else (),
            links=False,
            prober_step_s=0.1 if self.measured else None,
            plan='seed = 1\n[time]\nduration = "7d"\n' if self.measured else None,
            made={"quorate": "0.1.0", "machine": "two cores"} if self.measured else {},
            notes=(),
        )

    def window(self) -> WindowFigures:
        return WindowFigures(
            start_s=START_S,
            end_s=START_S + WINDOW_S,
            known_s=WINDOW_S,
            up_changes=31 if self.failing else 1,
            bin_s=WINDOW_S / BINS,
            blocks=40 if self.failing else None,
            time_scale=2520.0 if self.measured else 1.0,
            lag_s=0.5,
        )

    def replica_rows(self) -> tuple[ReplicaFigures, ...]:
        up = 0.9 if self.failing else 1.0
        return tuple(
            ReplicaFigures(
                replica=replica,
                votes=1,
                rack="abc"[n // 2 % 3],
                observed_s=WINDOW_S,
                up_share=up,
                up_share_known=up,
                outages=4 if self.failing else 0,
                longest_outage_s=9.0 if self.failing else 0.0,
                mttf_s=54.0 if self.failing else None,
                mttr_s=6.0 if self.failing else None,
            )
            for n, replica in enumerate(self.replicas)
        )

    def correlation(self) -> CorrelationFigures:
        pairs = [(a, b) for i, a in enumerate(self.replicas) for b in self.replicas[i + 1 :]]
        return CorrelationFigures(
            variance_ratio=2.13 if self.failing else None,
            pairs=tuple(
                PairFigures(a, b, 0.05, 0.01, 0.44) if self.failing else PairFigures(a, b, 0, 0, None)
                for a, b in pairs
            ),
        )

    @staticmethod
    def classes(operations: tuple[OperationFigures, ...]) -> tuple[ClassFigures, ...]:
        return tuple(
            ClassFigures(
                choice=row.choice,
                adt=row.adt,
                operation=row.operation,
                event_class=row.normal_class,
                normal=True,
                initial=row.initial,
                final=row.final,
                needed_votes=row.needed_votes,
                ok=row.ok,
                measured=row.measured if row.operation == "Enq" else None,
                predicted_independent=row.predicted_independent,
                predicted_joint=row.predicted_joint,
                trace=row.trace,
            )
            for row in operations
        )

    @staticmethod
    def comparisons(operations: tuple[OperationFigures, ...]) -> tuple[ComparisonFigures, ...]:
        return tuple(
            ComparisonFigures("queue", a.operation, a.choice, b.choice, *around(gap))
            for i, a in enumerate(operations)
            for b in operations[i + 1 :]
            if a.operation == b.operation
            for gap in [a.measured - b.measured]
        )

    def figures(self) -> Figures:
        """Give the whole of it."""
        operations = self.operations() if self.measured else ()
        return Figures(
            format=FORMAT,
            source=self.source(),
            window=self.window(),
            replicas=self.replica_rows(),
            correlation=self.correlation(),
            live_votes=tuple(
                LiveVoteFigures(
                    votes,
                    float(votes == len(self.replicas)),
                    0.5 if votes == len(self.replicas) else 0.5 / len(self.replicas),
                )
                for votes in range(len(self.replicas) + 1)
            ),
            up_sets=(UpSetFigures(tuple(self.replicas), 1.0),),
            operations=operations,
            classes=self.classes(operations),
            comparisons=self.comparisons(operations),
            claim=self.claim() if self.measured else (),
            candidates=self.candidates(),
            counterfactuals=self.counterfactuals(),
            recommendations=(self.recommendation(),),
            adaptive=self.adaptive() if self.failing and len(self.needs) > 1 else (),
            latencies=self.latencies() if self.measured else (),
            prober=tuple(
                ProberFigures(replica, WINDOW_S, 0.993, 4, 4, 0, 1, 0.11, 0.3, 0.1)
                for replica in self.replicas
            )
            if self.measured
            else (),
            timeline=self.timeline() if self.measured else (),
            downtime=self.downtime(),
            rows=(
                RowFigures("operations", self.attempts, self.attempts - 3 if self.measured else 0, 3),
                RowFigures("intervals", 60, 60, 0),
            ),
            rejected=(Rejected("operations.jsonl.gz", "start lies after the window", 3, '{"start_s": 9e9}'),),
        )
