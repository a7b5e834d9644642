"""What a reader wants first: the recommended choice of each type beside the choice in force, operation by operation."""

from collections.abc import Mapping, Sequence
from typing import Final

from ..model.figures import CounterfactualFigures, RecommendationFigures, SummaryFigures
from ..model.objectives import Present, present_choices
from ..model.questions import Questions

MONTH_S: Final = 30 * 86_400.0


def summary(
    questions: Questions,
    votes: Mapping[str, int],
    present: Present,
    rows: Sequence[CounterfactualFigures],
    recommendations: Sequence[RecommendationFigures],
    time_scale: float,
) -> tuple[SummaryFigures, ...]:
    """For each operation the recommended choice, then those in force. `present` is one that is said to be."""
    found: list[SummaryFigures] = []
    for best in recommendations:
        in_force = present_choices(questions, best.adt, votes, present)
        own = [row for row in rows if row.adt == best.adt and row.choice in {best.choice, *in_force}]
        own.sort(key=lambda row: row.choice != best.choice)
        found += [
            _row(row, time_scale, recommended=row.choice == best.choice, present=row.choice in in_force)
            for operation in dict.fromkeys(each.operation for each in best.mix)
            for row in own
            if row.operation == operation
        ]
    return tuple(found)


def _row(
    row: CounterfactualFigures, time_scale: float, *, recommended: bool, present: bool
) -> SummaryFigures:
    return SummaryFigures(
        adt=row.adt,
        operation=row.operation,
        choice=row.choice,
        run_as=row.run_as,
        recommended=recommended,
        present=present,
        available=row.predicted_joint,
        downtime_month_s=(1 - row.predicted_joint) * MONTH_S,
        outages=row.trace.outages,
        longest_s=row.trace.longest_s * time_scale,
        mttr_s=None if row.trace.mean_s is None else row.trace.mean_s * time_scale,
    )
