"""Two charts of rows: the latency of answered operations, and how many votes were live."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup

from ..model.aggregates import Latency
from ..model.figures import Figures, LiveVoteFigures
from ..model.phrases import counted, duration, percent
from . import svg, tables_run
from .charts import ROWS_MAX, Chart, Drawn, Frame, Group, Mark, Row, Tick, both, grouped

SHORTEST_S: Final = 1e-6


def latency(figures: Figures) -> Chart | None:
    """Give the chart of latency, or None where nothing was answered."""
    rows = [row for row in figures.latencies if row.outcome == "ok"]
    if not rows:
        return None
    order = {name: n for n, name in enumerate(dict.fromkeys(_class(row) for row in rows))}
    rows = sorted(rows, key=lambda row: order[_class(row)])[:ROWS_MAX]
    title = "Latency of answered operations"
    return Chart(
        name="latency",
        title=title,
        caption="Answered operations only; further left is quicker. From one line to the next it takes ten times as long. "
        "The number at the end of a row is the median.",
        legend=(Mark("p50", "median"), Mark("p99", "99 % are quicker"), Mark("max", "slowest")),
        drawings=both("latency", title, _latency_described(rows), partial(_draw_latency, rows)),
        tables=(tables_run.latencies(figures),),
    )


def _class(row: Latency) -> str:
    return row.event_class or row.operation


def _latency_described(rows: Sequence[Latency]) -> str:
    quick = min(rows, key=lambda row: row.p50_s)
    slow = max(rows, key=lambda row: row.p50_s)
    return (
        f"{counted(len(rows), 'row')}, one for each event class and choice. The quickest median is {duration(quick.p50_s)} "
        f"({_class(quick)} with {quick.choice}), the slowest {duration(slow.p50_s)} ({_class(slow)} with {slow.choice}). "
        "The table below has every number."
    )


def _draw_latency(rows: Sequence[Latency], frame: Frame) -> Drawn:
    low = 10.0 ** floor(log10(max(min(row.p50_s for row in rows), SHORTEST_S)))
    high = 10.0 ** ceil(log10(max(*(row.max_s for row in rows), low * 10)))
    scale = svg.Scale(low, high, frame.left, frame.right, logarithmic=True)
    decades = [low * 10.0**step for step in range(round(log10(high / low)) + 1)]
    groups = [
        Group(
            name, [Row(row.choice, duration(row.p50_s), partial(_latency_marks, row, scale)) for row in own]
        )
        for name, own in groupby(rows, key=_class)
    ]
    return grouped(groups, frame, [Tick(scale(decade), duration(decade)) for decade in decades])


def _latency_marks(row: Latency, scale: svg.Scale, y: float) -> Iterator[Markup]:
    yield svg.line(scale(row.p50_s), y, scale(row.max_s), y, "whisker")
    yield svg.bar(scale(row.max_s), y, "independent")
    yield svg.circle(scale(row.p50_s), y, "measured")
    yield svg.diamond(scale(row.p99_s), y, "joint")


def live_votes(figures: Figures) -> Chart | None:
    """Give the chart of live votes, or None with a single number of them."""
    rows = figures.live_votes
    if len(rows) < 2:
        return None
    title = "Share of time with so many live votes"
    described = (
        "Two bars for each number of live votes, the share of time as it was, and what it would be were failures independent: "
        + "; ".join(
            f"{row.live_votes}: {percent(row.measured_share)}, independent {percent(row.independent_share)}"
            for row in rows[:ROWS_MAX]
        )
    )
    return Chart(
        name="votes",
        title=title,
        caption="Replicas that fail together leave all votes or few of them live more often than independent ones with the "
        "same up time. The number at the end of a row is the share as it was.",
        legend=(Mark("joint-fill", "as they were"), Mark("independent-fill", "if failures were independent")),
        drawings=both("votes", title, f"{described}.", partial(_draw_votes, rows[:ROWS_MAX])),
        tables=(tables_run.live_votes(figures),),
    )


def _draw_votes(rows: Sequence[LiveVoteFigures], frame: Frame) -> Drawn:
    scale = svg.Scale(0.0, 1.0, frame.left, frame.right)
    group = Group(
        "Live votes",
        [
            Row(counted(row.live_votes, "vote"), percent(row.measured_share), partial(_vote_bars, row, scale))
            for row in rows
        ],
    )
    return grouped([group], frame, [Tick(scale(step / 4), f"{step * 25} %") for step in range(5)])


def _vote_bars(row: LiveVoteFigures, scale: svg.Scale, y: float) -> Iterator[Markup]:
    for top, share, css in (
        (y - 10, row.measured_share, "joint-fill"),
        (y, row.independent_share, "independent-fill"),
    ):
        yield svg.rect(scale.left, top, max(scale(share) - scale.left, 0.5), 9, css)
