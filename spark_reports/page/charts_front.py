"""The Pareto front: what each choice would have given two operations, and the choices that none beats in both."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, count, pairwise
from typing import Final, NamedTuple

from markupsafe import Markup

from ..model.figures import CounterfactualFigures, Figures, OperationFigures
from ..model.phrases import counted, listed, percent
from . import svg, tables_choices
from .charts import AXIS_HEIGHT, CHAR_WIDTH, ROWS_MAX, Chart, Drawn, Frame, Mark, Tick, axis, both
from .tables_choices import ranked

HEIGHTS: Final = {"wide": 430.0, "narrow": 330.0}
Y_AXIS_WIDTH: Final = 62.0
SPOTS: Final = (
    (11.0, -8.0, "start"),
    (11.0, 16.0, "start"),
    (-11.0, -8.0, "end"),
    (-11.0, 16.0, "end"),
    (0.0, -14.0, "middle"),
    (0.0, 24.0, "middle"),
)
"""Where the numbers of a point may stand beside it, the best place first."""


class Point(NamedTuple):
    """One choice: its number on the page and its availability for both operations, as predicted."""

    number: int
    choice: str
    x: float
    y: float
    run: bool
    recommended: bool


class Measurement(NamedTuple):
    """The same two operations as measured under one choice, each with its interval, and what was predicted."""

    predicted: Point
    x: OperationFigures
    y: OperationFigures


class Plane(NamedTuple):
    """What one chart shows: two operations, all choices, those on the front, and what was measured."""

    x: str
    y: str
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    measured: tuple[Measurement, ...]

    @property
    def trades(self) -> bool:
        """Whether choices on the front differ: else one place is best for both operations."""
        return len({(point.x, point.y) for point in self.front}) > 1


def numbers(figures: Figures, adt: str) -> dict[str, int]:
    """Number the choices of a type, as its chart and its table name them."""
    return {row.choice: n for row, n in zip(ranked(figures, adt), count(1), strict=False)}


def front(figures: Figures, adt: str, name: str) -> Chart | None:
    """Give the chart of one data type, or None if it has fewer than two operations.

    Of more than two operations it takes the first two, unless one choice is best for both: then those that trade most.
    """
    plane = _plane(figures, adt)
    if plane is None:
        return None
    title = f"The {adt}: availability of {plane.x} against {plane.y}"
    return Chart(
        name=name,
        title=title,
        caption=_caption(plane),
        legend=(
            *([Mark("run", "predicted, a choice that was run")] if any(p.run for p in plane.points) else []),
            Mark("not-run", "predicted, a choice that was not run"),
            *(
                [Mark("recommended", "the recommended choice")]
                if any(p.recommended for p in plane.points)
                else []
            ),
            *([Mark("front", "Pareto front")] if plane.trades else []),
            *([Mark("cross", "measured, joined to its prediction")] if plane.measured else []),
        ),
        drawings=both(name, title, _described(plane), partial(_draw, plane)),
        tables=(tables_choices.candidates(figures, adt, numbers(figures, adt)),),
    )


def _caption(plane: Plane) -> str:
    best = (
        "On the line lie the choices that no other beats in one without losing in the other."
        if plane.trades
        else f"None is better for either than {_numbers([point.number for point in plane.front])}."
    )
    crosses = " Crosses are measurements with their 95 % intervals." if plane.measured else ""
    return (
        f"Each number is a choice of the table below, placed by what it would have given {plane.x} (to the right) and "
        f"{plane.y} (upwards) on this trace, in nines. {best}{crosses}"
    )


def _plane(figures: Figures, adt: str) -> Plane | None:
    rows = [row for row in figures.counterfactuals if row.adt == adt]
    operations = list(dict.fromkeys(row.operation for row in rows))
    if len(operations) < 2:
        return None
    x, y = operations[:2]
    if _trade(rows, x, y) <= 0:
        x, y = max(combinations(operations, 2), key=lambda pair: _trade(rows, *pair))
    given = {(row.choice, row.operation): row.predicted_joint for row in rows}
    number, advised = numbers(figures, adt), tables_choices.preferred(figures, adt)
    points = tuple(
        Point(
            number[row.choice],
            row.choice,
            given[row.choice, x],
            given[row.choice, y],
            row.run_as is not None,
            row.choice == advised,
        )
        for row in ranked(figures, adt)[:ROWS_MAX]
        if (row.choice, x) in given and (row.choice, y) in given
    )
    tried = {(row.choice, row.operation): row for row in figures.operations if row.adt == adt}
    run_as = {row.choice: row.run_as for row in figures.candidates if row.adt == adt}
    measured = tuple(
        Measurement(point, tried[run, x], tried[run, y])
        for point in points
        if (run := run_as[point.choice]) is not None and (run, x) in tried and (run, y) in tried
    )
    return Plane(x, y, points, pareto(points), measured) if points else None


def _trade(rows: Sequence[CounterfactualFigures], x: str, y: str) -> float:
    """Give how much the front trades between two operations: the smaller of its two widths; 0 if one choice beats all."""
    given: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        given[row.choice][row.operation] = row.predicted_joint
    best = pareto(
        [
            Point(0, name, own[x], own[y], run=False, recommended=False)
            for name, own in given.items()
            if x in own and y in own
        ]
    )
    if not best:
        return 0.0
    return min(best[-1].x - best[0].x, best[0].y - best[-1].y)


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """Give the points that no other beats in one direction without losing in the other, from left to right."""
    front: list[Point] = []
    for point in sorted(points, key=lambda each: (-each.x, -each.y, each.number)):
        if not front or point.y > front[-1].y or (point.x, point.y) == (front[-1].x, front[-1].y):
            front.append(point)
    return tuple(reversed(front))


def _described(plane: Plane) -> str:
    ends = [
        f"{point.number} ({point.choice}) gives {plane.x} {percent(point.x)} and {plane.y} {percent(point.y)}"
        for point in plane.front[:6]
    ]
    more = f"; {len(plane.front) - 6} more lie on it" if len(plane.front) > 6 else ""
    return f"{counted(len(plane.points), 'choice')}. On the Pareto front: {listed(ends)}{more}. The table below has every number."


def _draw(plane: Plane, frame: Frame) -> Drawn:
    height = HEIGHTS[frame.css]
    bottom = height - AXIS_HEIGHT - 18
    xs = [p.x for p in plane.points] + [v for m in plane.measured for v in (m.x.measured, m.x.low, m.x.high)]
    ys = [p.y for p in plane.points] + [v for m in plane.measured for v in (m.y.measured, m.y.low, m.y.high)]
    right = min(frame.width - 40, Y_AXIS_WIDTH + 1.5 * height)
    across = svg.nines_scale(xs, Y_AXIS_WIDTH + 14, right)
    up = svg.nines_scale(ys, bottom - 12, 34)
    parts = list(_axes(plane, across, up, frame, bottom))
    steps = [(across(point.x), up(point.y)) for point in plane.front]
    parts.append(svg.polyline(_staircase(steps), "front"))
    for row in plane.measured:
        x, y = across(row.x.measured), up(row.y.measured)
        parts.append(svg.line(across(row.predicted.x), up(row.predicted.y), x, y, "link"))
        parts.append(svg.line(across(row.x.low), y, across(row.x.high), y, "whisker"))
        parts.append(svg.line(x, up(row.y.low), x, up(row.y.high), "whisker"))
    parts += _labelled(plane.points, across, up, frame.width)
    return Drawn(parts, height)


def _staircase(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Go from point to point at right angles: what lies below or left of the steps is beaten by a choice that exists."""
    steps = list(points[:1])
    for (before, _), (x, y) in pairwise(points):
        steps += [(before, y), (x, y)]
    return steps


def _axes(plane: Plane, across: svg.Nines, up: svg.Nines, frame: Frame, bottom: float) -> Iterator[Markup]:
    ticks = across.ticks(8 if frame.label_width else 5)
    yield from axis([Tick(across(share), label) for share, label in ticks], bottom, frame, 26)
    for share, label in up.ticks(7):
        yield svg.line(Y_AXIS_WIDTH, up(share), across.end + 8, up(share), "grid")
        yield svg.text(Y_AXIS_WIDTH - 6, up(share) + 4, label, "tick", "end")
    yield svg.text(0, 14, f"{plane.y}, upwards", "heading")
    yield svg.text(across.end + 8, bottom + 37, f"{plane.x}, to the right", "heading", "end")


def _labelled(points: Sequence[Point], across: svg.Nines, up: svg.Nines, width: float) -> Iterator[Markup]:
    """Draw points with their numbers; choices at one place share a mark, and numbers keep out of one another's way."""
    places: dict[tuple[float, float], list[Point]] = defaultdict(list)
    for point in points:
        places[round(across(point.x)), round(up(point.y))].append(point)
    # What lies beyond the right edge is taken too, and the line above that names the axis.
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    taken += [(width - 2, 0.0, 2 * width, width), (0.0, 0.0, width, 20.0)]
    for (x, y), own in places.items():
        if any(point.recommended for point in own):
            yield svg.circle(x, y, "ring", 10)
        yield svg.circle(x, y, "run" if any(point.run for point in own) else "not-run")
        label = _numbers([point.number for point in own])
        dx, dy, anchor, box = min(
            _spots(x, y, label), key=lambda spot: sum(_meet(spot[3], other) for other in taken)
        )
        taken.append(box)
        yield svg.text(x + dx, y + dy, label, "name", anchor)


def _numbers(given: Sequence[int]) -> str:
    """Write numbers shortly: runs of three and more as from-to, and not more than four parts."""
    runs: list[list[int]] = []
    for number in sorted(given):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [
        part
        for run in runs
        for part in ([f"{run[0]}\N{EN DASH}{run[-1]}"] if len(run) > 2 else [str(number) for number in run])
    ]
    return ", ".join(parts[:4]) + (" …" if len(parts) > 4 else "")


Box = tuple[float, float, float, float]


def _spots(x: float, y: float, label: str) -> Iterator[tuple[float, float, str, Box]]:
    width = CHAR_WIDTH * len(label)
    for dx, dy, anchor in SPOTS:
        left = x + dx - {"start": 0.0, "end": width, "middle": width / 2}[anchor]
        yield dx, dy, anchor, (left, y + dy - 11, left + width, y + dy + 2)


def _meet(one: Box, other: Box) -> float:
    """Give the area in which two boxes lie over one another."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, across) * max(0.0, up)
