"""Draws what the sweep of `run.py` found: throughput over operations in flight, and percentiles of latency, ours and the peers'.

    python benchmarks/plots.py RUN.json --out docs/explanation [--note "a busy machine"]

Writes `throughput.svg` and `latency.svg`. Systems differ in colour (told apart by the colour-blind, too), in mark and in
dashes; the words beside the drawing say what it shows to those who cannot see it.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from quorate.spark_reports.page import svg

OPERATIONS: Final = ("enqueue", "dequeue", "put", "get")
PERCENTILES: Final = ("p50_ms", "p90_ms", "p99_ms", "p99.9_ms")
LATENCY_WIDTHS: Final = (1, 64)
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 400.0, 270.0, 2
LEFT, RIGHT, TOP, BOTTOM = 62.0, 96.0, 34.0, 44.0
HEAD: Final = 58.0
FOOT: Final = 30.0
LABEL_APART: Final = 13.0
STYLES: Final = {"Quorate": "quorate", "RabbitMQ": "rabbitmq", "etcd": "etcd"}
STYLE: Final = """
svg { font: 12px system-ui, "Liberation Sans", Arial, sans-serif; background: #fff; }
text { fill: #1a1a1a; } .soft { fill: #555b62; } .title { font-size: 16px; font-weight: 600; } .name { font-weight: 600; }
.grid { stroke: #d6d9dd; } .axis { stroke: #8a9097; } polyline { fill: none; stroke-width: 2; }
polyline.quorate { stroke: #0072b2; } polyline.rabbitmq { stroke: #c44e00; stroke-dasharray: 7 3; }
polyline.etcd { stroke: #00795a; stroke-dasharray: 2 3; } polyline.thin { stroke-width: 1.2; }
circle.quorate, text.quorate { fill: #0072b2; } path.rabbitmq, text.rabbitmq { fill: #c44e00; }
rect.etcd, text.etcd { fill: #00795a; }
"""

Line = dict[str, Any]


class Series(NamedTuple):
    """One line of a panel; `css` says whose, `is_thin` that it is the lesser one of two."""

    label: str
    css: str
    points: Sequence[tuple[float, float]]
    is_thin: bool = False


class Panel(NamedTuple):
    """One operation: its lines, and the ticks of both axes."""

    title: str
    series: Sequence[Series]
    x_ticks: Sequence[tuple[float, str]]
    x_name: str
    unit: str


def throughput(lines: Sequence[Line]) -> list[Panel]:
    """Operations a second over operations in flight."""
    widths = sorted({line["in_flight"] for line in lines})
    ticks = [(float(place), str(width)) for place, width in enumerate(widths)]

    def series(operation: str) -> Iterator[Series]:
        for system, css in STYLES.items():
            own = {each["in_flight"]: each["per_s"] for each in _of(lines, operation, system)}
            points = [(float(widths.index(width)), rate) for width, rate in sorted(own.items())]
            if points:
                yield Series(system, css, points)

    return _panels(series, ticks, "operations in flight", "a second")


def latency(lines: Sequence[Line]) -> list[Panel]:
    """Milliseconds over percentiles, with one operation in flight and with many."""
    ticks = [(float(place), name.removesuffix("_ms")) for place, name in enumerate(PERCENTILES)]

    def series(operation: str) -> Iterator[Series]:
        for system, css in STYLES.items():
            for line in _of(lines, operation, system):
                width = line["in_flight"]
                points = [(float(n), line[name]) for n, name in enumerate(PERCENTILES) if name in line]
                if width in LATENCY_WIDTHS:
                    yield Series(f"{system}, {width}", css, points, width == LATENCY_WIDTHS[0])

    return _panels(series, ticks, "share of operations that took at most so long", "ms")


def _of(lines: Sequence[Line], operation: str, system: str) -> list[Line]:
    return [line for line in lines if line["sweep"] == operation and line["system"] == system]


def _panels(
    series: Callable[[str], Iterator[Series]], ticks: Sequence[tuple[float, str]], x_name: str, unit: str
) -> list[Panel]:
    found = ((operation, list(series(operation))) for operation in OPERATIONS)
    return [Panel(operation, own, ticks, x_name, unit) for operation, own in found if own]


def drawing(name: str, title: str, panels: Sequence[Panel], foot: str) -> Markup:
    """All panels, two in a row, with one scale upwards."""
    values = [y for panel in panels for series in panel.series for _, y in series.points]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    rows = ceil(len(panels) / COLUMNS)
    width, height = COLUMNS * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT + FOOT
    systems = {series.css: series.label.partition(",")[0] for panel in panels for series in panel.series}
    children = [
        svg.element("style", Markup(STYLE)),
        svg.text(16, 26, title, "title"),
        *_legend(systems),
        *(
            svg.element(
                "g",
                *_panel(panel, low, high),
                transform=f"translate({n % COLUMNS * PANEL_WIDTH} {HEAD + n // COLUMNS * PANEL_HEIGHT})",
            )
            for n, panel in enumerate(panels)
        ),
        svg.text(16, height - 10, foot, "soft"),
    ]
    picture = svg.picture(name, width, height, title, _described(panels), children, name)
    return Markup(str(picture).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def _legend(systems: dict[str, str]) -> Iterator[Markup]:
    for place, (css, label) in enumerate(systems.items()):
        left = 16.0 + 110 * place
        yield svg.polyline([(left, 44), (left + 26, 44)], css)
        yield _mark(left + 13, 44, css)
        yield svg.text(left + 32, 48, label, css)


def _panel(panel: Panel, low: int, high: int) -> Iterator[Markup]:
    """One panel, its top left corner at the origin."""
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    across = svg.Scale(0.0, float(len(panel.x_ticks) - 1), LEFT, right)
    up = svg.Scale(10.0**low, 10.0**high, bottom, TOP, logarithmic=True)
    yield svg.text(LEFT, TOP - 12, f"{panel.title}, {panel.unit}", "name")
    for decade in range(low, high + 1):
        y = up(10.0**decade)
        yield svg.line(LEFT, y, right, y, "grid")
        yield svg.text(LEFT - 8, y + 4, f"{10.0**decade:,.10g}", "soft", "end")
    for place, label in panel.x_ticks:
        yield svg.text(across(place), bottom + 16, label, "soft", "middle")
    yield svg.line(LEFT, bottom, right, bottom, "axis")
    yield svg.text((LEFT + right) / 2, bottom + 32, panel.x_name, "soft", "middle")
    drawn = [[(across(x), up(y)) for x, y in series.points] for series in panel.series]
    for series, points in zip(panel.series, drawn, strict=True):
        yield svg.polyline(points, f"{series.css} thin" if series.is_thin else series.css)
        yield from (_mark(x, y, series.css) for x, y in points)
    ends = [(points[-1][1], series) for series, points in zip(panel.series, drawn, strict=True)]
    for y, series in _apart(ends):
        yield svg.text(right + 8, y + 4, series.label, series.css)


def _apart(ends: Sequence[tuple[float, Series]]) -> Iterator[tuple[float, Series]]:
    """The labels at the ends of lines, moved so that none lies on another, and none below the drawing."""
    least = float("-inf")
    placed = []
    for y, series in sorted(ends, key=lambda each: each[0]):
        least = max(y, least + LABEL_APART)
        placed.append((least, series))
    surplus = max(0.0, placed[-1][0] - (PANEL_HEIGHT - BOTTOM)) if placed else 0.0
    yield from ((y - surplus, series) for y, series in placed)


def _mark(x: float, y: float, css: str) -> Markup:
    if css == "quorate":
        return svg.circle(x, y, css, 3.5)
    if css == "rabbitmq":
        return svg.diamond(x, y, css, 5)
    return svg.rect(x - 3.5, y - 3.5, 7, 7, css)


def _described(panels: Sequence[Panel]) -> str:
    """Every value, in words."""
    return " ".join(
        f"{panel.title}, {panel.unit}, {series.label}: "
        + ", ".join(f"{panel.x_ticks[round(x)][1]}: {y:,g}" for x, y in series.points)
        + "."
        for panel in panels
        for series in panel.series
    )


def foot_of(made_by: Line, lines: Sequence[Line], note: str | None) -> str:
    """Where it was measured."""
    loads = [line["load"] for line in lines]
    said = "" if note is None else f"; {note}"
    return (
        f"Three replicas on loopback, 100-byte items, on disk at a quorum; {made_by['cpus']} cores, commit {made_by['commit']}, "
        f"load {min(loads):.1f} to {max(loads):.1f}{said}"
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/explanation"))
    parser.add_argument("--note", help="what else must be known of the figures")
    options = parser.parse_args()
    run = json.loads(options.run.read_text())
    lines = run["sweep"]
    foot = foot_of(run["made_by"], lines, options.note)
    for name, title, panels in (
        ("throughput", "Operations a second over operations in flight", throughput(lines)),
        ("latency", "What an operation takes: percentiles, with 1 and with 64 in flight", latency(lines)),
    ):
        (options.out / f"{name}.svg").write_text(f"{drawing(name, title, panels, foot)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
