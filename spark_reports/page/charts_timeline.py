"""The timeline: when each replica was down, and under it, on the same axis, when operations failed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import floor, log10
from typing import Final

from markupsafe import Markup

from ..model.figures import DownRow, Figures, TimelineRow
from ..model.phrases import counted, duration, maybe_percent
from . import svg, tables_run
from .charts import ROWS_MAX, Chart, Drawn, Frame, Group, Mark, Row, Tick, both, grouped

NAME: Final = "timeline"
COLUMN_HEIGHT: Final = 17.0
TIME_UNITS: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))


def timeline(figures: Figures) -> Chart:
    """Give the chart; where no operation was recorded it holds the replicas alone."""
    failures = figures.timeline[: max(0, ROWS_MAX - len(figures.downtime))]
    title = "When replicas were down, and when operations failed" if failures else "When replicas were down"
    bins = len(figures.downtime[0].down_share) if figures.downtime else 0
    caption = (
        f"{bins} columns of {duration(figures.window.bin_s)} each, from left to right. The height of a column is the share of "
        "that time in which the replica was down"
    )
    if failures:
        caption += ", or the share of the operations begun in it that failed"
    return Chart(
        name=NAME,
        title=title,
        caption=f"{caption}.{_unknown(figures)}",
        legend=(
            Mark("down", "replica down"),
            *([Mark("failed", "operations unavailable or unknown")] if failures else []),
        ),
        drawings=both(NAME, title, _described(figures), partial(_draw, figures, failures)),
        tables=(tables_run.replicas(figures), tables_run.stretches(figures)),
    )


def _unknown(figures: Figures) -> str:
    """Say how much of the time the state of some replica is unknown; the drawing shows that as up."""
    window_s = figures.window.end_s - figures.window.start_s
    least = min((row.observed_s for row in figures.replicas), default=window_s)
    if least >= window_s * 0.999:
        return ""
    return f" Where the state of a replica is unknown (at most {duration(window_s - least)} of one), nothing is drawn."


def _described(figures: Figures) -> str:
    down = [
        f"{row.replica} was up {maybe_percent(row.up_share)} of the time, with {counted(row.outages, 'outage')}"
        for row in figures.replicas
    ]
    failed = [
        f"{row.choice} {row.operation}: {sum(row.failed):,} of {sum(row.attempts):,} failed"
        for row in figures.timeline[:ROWS_MAX]
    ]
    return (
        "; ".join([*down, *failed])
        + ". The tables below have outages, and the timeline in stretches of time."
    )


def _draw(figures: Figures, failures: Sequence[TimelineRow], frame: Frame) -> Drawn:
    bins = len(figures.downtime[0].down_share) if figures.downtime else 1
    scale = svg.Scale(0.0, figures.window.bin_s * bins, frame.left, frame.right)
    up = {row.replica: row.up_share for row in figures.replicas}
    groups = [
        Group("Replicas down", [_down_row(row, up, scale, figures.window.bin_s) for row in figures.downtime])
    ]
    if failures:
        groups.append(
            Group("Operations failed", [_failed_row(row, scale, figures.window.bin_s) for row in failures])
        )
    ticks = time_ticks(figures.window.bin_s * bins, 8 if frame.label_width else 5)
    return grouped(groups, frame, [Tick(scale(time_s), label) for time_s, label in ticks])


def _down_row(row: DownRow, up: Mapping[str, float | None], scale: svg.Scale, bin_s: float) -> Row:
    value = f"up {maybe_percent(up.get(row.replica))}"
    return Row(row.replica, value, partial(_columns, row.down_share, scale, bin_s, "down"))


def _failed_row(row: TimelineRow, scale: svg.Scale, bin_s: float) -> Row:
    shares = [failed / n if n else 0.0 for failed, n in zip(row.failed, row.attempts, strict=True)]
    name = f"{row.operation}, {row.choice}"
    return Row(name, f"{sum(row.failed):,} failed", partial(_columns, shares, scale, bin_s, "failed"))


def _columns(shares: Sequence[float], scale: svg.Scale, bin_s: float, css: str, y: float) -> Iterator[Markup]:
    """Draw one column per bin, as high as its share; neighbours of equal height become one."""
    base = y + COLUMN_HEIGHT / 2
    yield svg.line(scale.left, base, scale.right, base, "base")
    start = 0
    for index in range(1, len(shares) + 1):
        if index < len(shares) and shares[index] == shares[start]:
            continue
        if shares[start] > 0:
            left, right = scale(start * bin_s), scale(index * bin_s)
            high = max(1.5, COLUMN_HEIGHT * shares[start])
            yield svg.rect(left, base - high, max(right - left, 1.0), high, css)
        start = index


def time_ticks(span_s: float, most: int) -> list[tuple[float, str]]:
    """Give up to so many round times from 0 on that lie within the span, all written in one unit.

    >>> [label for _, label in time_ticks(200, 5)]
    ['0', '1 min', '2 min', '3 min']
    """
    unit, unit_s = next((name, size) for name, size in TIME_UNITS if span_s >= 2 * size or name == "ms")
    rough = span_s / unit_s / (most - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    count = floor(span_s / unit_s / step + 1e-9)
    return [
        (index * step * unit_s, f"{index * step:g} {unit}" if index else "0") for index in range(count + 1)
    ]
