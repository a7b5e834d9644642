"""The charts of a report, each drawn twice: wide for a screen or paper, narrow for a phone.

A drawing that only shrinks would be unreadable on a phone, so the page holds both and shows the one that fits. Marks
differ in shape as well as in colour (the colours are Okabe and Ito's, safe for colour-blind readers), and every drawing
has its content as text too: a description here, a table on the page.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup

from quorate.spark_reports import svg
from quorate.spark_reports.aggregates import BINS
from quorate.spark_reports.figures import Figures
from quorate.spark_reports.wording import counted, duration, percent

AXES: Final = (
    (0.0, 5),
    (0.5, 5),
    (0.7, 3),
    (0.8, 4),
    (0.9, 5),
    (0.95, 5),
    (0.98, 4),
    (0.99, 5),
    (0.995, 5),
    (0.998, 4),
    (0.999, 5),
)
"""Where an axis of shares may begin, and into how many round steps it is then cut up to 1."""

TIME_UNITS: Final = (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
NAME_CHARS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """The measures of a drawing: labels stand left of a row, or above it where there is no room."""

    css: str
    width: float
    label_width: float
    row_height: float

    @property
    def left(self) -> float:
        return self.label_width + 14

    @property
    def right(self) -> float:
        return self.width - 18

    def label(self, y: float, name: str, note: str = "") -> Iterator[Markup]:
        """Give the label of the row whose middle is at `y`."""
        name = name if len(name) <= NAME_CHARS_MAX else name[: NAME_CHARS_MAX - 1] + "…"
        if self.label_width:
            yield svg.text(self.label_width, y + (0 if note else 5), name, "name", "end")
            yield svg.text(self.label_width, y + 14, note, "note", "end")
        else:
            yield svg.text(self.left, y - 15, name, "name")
            yield svg.text(self.right, y - 15, note, "note", "end")


FRAMES: Final = (
    Frame(css="wide", width=880, label_width=190, row_height=40),
    Frame(css="narrow", width=350, label_width=0, row_height=52),
)


def _both(draw: Callable[[Figures, Frame], Markup]) -> Callable[[Figures], Markup]:
    return lambda figures: Markup("").join(draw(figures, frame) for frame in FRAMES)


def _availability(figures: Figures, frame: Frame) -> Markup:
    rows = figures.operations
    lowest = min(min(row.low, row.predicted_joint, row.predicted_independent) for row in rows)
    axis_low, steps = max(axis for axis in AXES if axis[0] <= max(0.0, lowest))
    scale = svg.Scale(axis_low, 1.0, frame.left, frame.right)
    height = len(rows) * frame.row_height + 34
    ticks = [axis_low + (1 - axis_low) * step / steps for step in range(steps + 1)]
    parts = list(_axis(scale, [(tick, f"{tick * 100:.6g} %") for tick in ticks], height, frame))
    described = []
    for index, row in enumerate(rows):
        y = _row_middle(frame, index)
        parts += frame.label(
            y, f"{row.choice}: {row.operation}", f"needs {row.needed_votes}, n = {row.attempts:,}"
        )
        parts.append(svg.line(scale(row.low), y, scale(row.high), y, "measured whisker"))
        parts.append(svg.circle(scale(row.measured), y, "measured"))
        parts.append(svg.diamond(scale(row.predicted_joint), y, "joint"))
        parts.append(svg.bar(scale(row.predicted_independent), y, "independent"))
        described.append(
            f"{row.choice} {row.operation}: measured {percent(row.measured)}, joint {percent(row.predicted_joint)}, "
            f"independent {percent(row.predicted_independent)}"
        )
    title = "Availability measured and predicted, by quorum choice and operation"
    return svg.picture(frame.width, height, title, "; ".join(described), parts, frame.css)


def _live_votes(figures: Figures, frame: Frame) -> Markup:
    scale = svg.Scale(0.0, 1.0, frame.left, frame.right - 60)
    height = len(figures.live_votes) * frame.row_height + 34
    parts = list(_axis(scale, [(s / 4, f"{s * 25} %") for s in range(5)], height, frame))
    described = []
    for index, row in enumerate(figures.live_votes):
        y = _row_middle(frame, index)
        parts += frame.label(y, counted(row.live_votes, "live vote"))
        for top, share, css in (
            (y - 11, row.measured_share, "joint"),
            (y + 1, row.independent_share, "independent"),
        ):
            parts.append(svg.rect(scale.left, top, max(scale(share) - scale.left, 0.5), 10, f"{css} fill"))
            parts.append(svg.text(scale(share) + 5, top + 9, f"{share * 100:.2f} %", "value"))
        described.append(
            f"{row.live_votes}: measured {row.measured_share:.4f}, independent {row.independent_share:.4f}"
        )
    title = "Share of time with so many live votes, measured and if replicas failed independently"
    return svg.picture(frame.width, height, title, "; ".join(described), parts, frame.css)


def _timeline(figures: Figures, frame: Frame) -> Markup:
    span_s = figures.window.bin_s * BINS
    scale = svg.Scale(0.0, span_s, frame.left, frame.right)
    rows = len(figures.downtime) + len(figures.timeline)
    height = rows * frame.row_height + 34
    parts = list(_axis(scale, _time_ticks(span_s), height, frame))
    for index, down in enumerate(figures.downtime):
        y = _row_middle(frame, index)
        replica = figures.replicas[index]
        parts += frame.label(
            y, down.replica, f"up {percent(replica.up_share)}, {counted(replica.outages, 'outage')}"
        )
        parts.append(svg.line(scale.left, y + 9, scale.right, y + 9, "base"))
        parts += _columns(down.down_share, scale, y + 9, figures.window.bin_s, "down")
    for index, row in enumerate(figures.timeline, start=len(figures.downtime)):
        y = _row_middle(frame, index)
        shares = [failed / n if n else 0.0 for failed, n in zip(row.failed, row.attempts, strict=True)]
        parts += frame.label(y, f"{row.choice}: {row.operation}", f"{sum(row.failed):,} failed")
        parts.append(svg.line(scale.left, y + 9, scale.right, y + 9, "base"))
        parts += _columns(shares, scale, y + 9, figures.window.bin_s, "failed")
    title = "When replicas were down, and when operations failed"
    described = "; ".join(
        [
            f"{r.replica}: {counted(r.outages, 'outage')}, longest {duration(r.longest_outage_s)}"
            for r in figures.replicas
        ]
        + [
            f"{row.choice} {row.operation}: {sum(row.failed)} of {sum(row.attempts)} failed"
            for row in figures.timeline
        ]
    )
    return svg.picture(frame.width, height, title, described, parts, frame.css)


def _columns(
    shares: Sequence[float], scale: svg.Scale, base_y: float, bin_s: float, css: str
) -> Iterator[Markup]:
    """Draw one column per bin, as high as its share; neighbours of equal height become one."""
    start = 0
    for index in range(1, len(shares) + 1):
        if index < len(shares) and shares[index] == shares[start]:
            continue
        if shares[start] > 0:
            left, right = scale(start * bin_s), scale(index * bin_s)
            high = max(1.5, 18 * shares[start])
            yield svg.rect(left, base_y - high, max(right - left, 1.0), high, css)
        start = index


def _latency(figures: Figures, frame: Frame) -> Markup:
    rows = [row for row in figures.latencies if row.outcome == "ok"]
    low = 10.0 ** floor(log10(max(min(row.p50_s for row in rows), 1e-6)))
    high = 10.0 ** ceil(log10(max(*(row.max_s for row in rows), low * 10)))
    scale = svg.Scale(low, high, frame.left, frame.right, logarithmic=True)
    decades = [low * 10.0**step for step in range(round(log10(high / low)) + 1)]
    height = len(rows) * frame.row_height + 34
    parts = list(_axis(scale, [(decade, duration(decade)) for decade in decades], height, frame))
    described = []
    for index, row in enumerate(rows):
        y = _row_middle(frame, index)
        parts += frame.label(y, f"{row.choice}: {row.operation}", f"median {duration(row.p50_s)}")
        parts.append(svg.line(scale(row.p50_s), y, scale(row.max_s), y, "measured whisker"))
        parts.append(svg.circle(scale(row.p50_s), y, "measured"))
        parts.append(svg.diamond(scale(row.p99_s), y, "joint"))
        parts.append(svg.bar(scale(row.max_s), y, "independent"))
        described.append(
            f"{row.choice} {row.operation}: median {duration(row.p50_s)}, 99 % {duration(row.p99_s)}"
        )
    title = "Latency of answered operations"
    return svg.picture(frame.width, height, title, "; ".join(described), parts, frame.css)


def _row_middle(frame: Frame, index: int) -> float:
    return index * frame.row_height + (20 if frame.label_width else 34)


def _axis(
    scale: svg.Scale, ticks: Sequence[tuple[float, str]], height: float, frame: Frame
) -> Iterator[Markup]:
    for value, label in ticks:
        x = scale(value)
        # Labels at the very edge would be cut off.
        anchor = "end" if x > frame.width - 30 else "start" if x < 30 else "middle"
        yield svg.line(x, 2, x, height - 26, "grid")
        yield svg.text(x, height - 10, label, "tick", anchor)


def _time_ticks(span_s: float) -> list[tuple[float, str]]:
    """Give three to eight round times from 0 on that lie within the span, all written in one unit."""
    unit, unit_s = next((name, size) for name, size in TIME_UNITS if span_s >= 2 * size or name == "ms")
    rough = span_s / unit_s / 6
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    count = floor(span_s / unit_s / step)
    return [
        (index * step * unit_s, f"{index * step:g} {unit}" if index else "0") for index in range(count + 1)
    ]


availability_chart = _both(_availability)
live_votes_chart = _both(_live_votes)
timeline_chart = _both(_timeline)
latency_chart = _both(_latency)


def symbol(shape: str) -> Markup:
    """Give a small picture of a mark, for a legend; what it means stands beside it."""
    marks = {
        "measured": svg.circle(12, 12, "measured"),
        "joint": svg.diamond(12, 12, "joint"),
        "independent": svg.bar(12, 12, "independent"),
        "whisker": svg.line(1, 12, 23, 12, "measured whisker"),
        "joint-fill": svg.rect(2, 6, 20, 12, "joint fill"),
        "independent-fill": svg.rect(2, 6, 20, 12, "independent fill"),
        "down": svg.rect(6, 3, 12, 18, "down"),
        "failed": svg.rect(6, 3, 12, 18, "failed"),
    }
    return svg.element("svg", marks[shape], width=24, height=24, aria_hidden="true", class_="symbol")
