"""The chart of availability in nines: measured with its interval, and what two models of failure predict."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from math import inf
from typing import Final

from markupsafe import Markup

from ..model.figures import Figures, OperationFigures
from ..model.phrases import counted, in_nines, nines, percent
from . import svg, tables_run
from .charts import ROWS_MAX, Chart, Drawn, Frame, Group, Mark, Row, Tick, both, grouped

NAME: Final = "availability"


def availability(figures: Figures) -> Chart:
    """Give the chart, operation by operation, so that choices stand under one another."""
    rows = by_operation(figures.operations)[:ROWS_MAX]
    title = "Availability of each operation and quorum choice, in nines"
    return Chart(
        name=NAME,
        title=title,
        caption="Further right is better; from one tick of nines to the next, a tenth as much fails. Where the diamond lies "
        "on the line, the joint prediction agrees with what was measured; where the bar lies beside it, independence is off. The "
        "number at the end of a row is what was measured.",
        legend=(
            Mark("measured", "measured, with its 95 % interval"),
            Mark("joint", "predicted from joint up times"),
            Mark("independent", "predicted as if independent"),
        ),
        drawings=both(NAME, title, _described(rows), partial(_draw, rows)),
        tables=(tables_run.operations(figures),),
    )


def by_operation(operations: Sequence[OperationFigures]) -> list[OperationFigures]:
    """Sort by type and operation, in the order in which these first come; choices keep theirs."""
    order = {key: n for n, key in enumerate(dict.fromkeys((row.adt, row.operation) for row in operations))}
    return sorted(operations, key=lambda row: order[row.adt, row.operation])


def _described(rows: Sequence[OperationFigures]) -> str:
    """Say what is to be seen: how many rows, the range, and how the two predictions lie; the table has the numbers."""
    worst = min(rows, key=lambda row: row.measured)
    best = max(rows, key=lambda row: row.measured)
    joint = sum(row.joint_agrees for row in rows)
    independent = sum(row.independent_agrees for row in rows)
    return (
        f"{counted(len(rows), 'row')}, one for each operation and choice. Lowest: {worst.operation} with {worst.choice}, "
        f"{percent(worst.measured)}, {in_nines(worst.measured, worst.low)}. Highest: {best.operation} with {best.choice}, "
        f"{percent(best.measured)}, {in_nines(best.measured, best.low)}. The joint prediction lies within the interval in "
        f"{joint} of {len(rows)} rows, the independent one in {independent}. The table below has every number."
    )


def _draw(rows: Sequence[OperationFigures], frame: Frame) -> Drawn:
    shares = [
        share
        for row in rows
        for share in (row.measured, row.low, row.high, row.predicted_joint, row.predicted_independent)
    ]
    scale = svg.nines_scale(shares, frame.left, frame.right)
    several = len({row.adt for row in rows}) > 1
    groups = [
        Group(
            f"{operation} ({adt})" if several else operation,
            [Row(row.choice, percent(row.measured), partial(_marks, row, scale)) for row in own],
        )
        for (adt, operation), own in groupby(rows, key=lambda row: (row.adt, row.operation))
    ]
    ticks = [
        Tick(scale(share), label, _whole_nines(share))
        for share, label in scale.ticks(9 if frame.label_width else 6)
    ]
    drawn = grouped(groups, frame, ticks)
    return Drawn([*drawn.parts, *_break(scale)], drawn.height)


def _whole_nines(share: float) -> str:
    """Give the note of a tick at a whole number of nines."""
    if nines(share) == inf:
        return "all"
    whole = round(nines(share))
    return counted(whole, "nine") if whole and abs(nines(share) - whole) < 1e-6 else ""


def _marks(row: OperationFigures, scale: svg.Nines, y: float) -> Iterator[Markup]:
    yield svg.line(scale(row.low), y, scale(row.high), y, "whisker")
    for end in (row.low, row.high):
        yield svg.line(scale(end), y - 4, scale(end), y + 4, "whisker-end")
    yield svg.bar(scale(row.predicted_independent), y, "independent")
    yield svg.circle(scale(row.measured), y, "measured")
    yield svg.diamond(scale(row.predicted_joint), y, "joint")


def _break(scale: svg.Nines) -> Iterator[Markup]:
    """Draw the break between the last tick and 100 %, which lies infinitely many nines away."""
    if scale.end == scale.right:
        return
    middle = (scale.right + scale.end) / 2
    for x in (middle - 3, middle + 3):
        yield svg.line(x - 3, 15, x + 3, 5, "break")
