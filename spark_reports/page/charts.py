"""What all charts of a report share: each is drawn twice, wide for a screen or paper, narrow for a phone.

A drawing that only shrinks would be unreadable on a phone, so the page holds both and shows the one that fits. Marks differ in
shape as well as in colour (the colours are Okabe and Ito's, safe for colour-blind readers), and every chart has its content as
text too: a description, and a table on the page.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from ..model.phrases import shortened
from . import svg
from .tables import Table

CHAR_WIDTH: Final = 7.4
"""Pixels that one letter of a label takes, in a wide font: labels are cut by it, for a page cannot measure text."""

ROWS_MAX: Final = 80
"""Rows of one chart; what goes beyond stands in its table or in figures.json."""


class Mark(NamedTuple):
    """An entry of a legend: the shape, and what it means."""

    shape: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart with all that stands around it; `tables` hold the same facts as text."""

    name: str
    title: str
    caption: str
    legend: tuple[Mark, ...]
    drawings: Markup
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The measures of a drawing: labels stand left of a row, or above it where there is no room."""

    css: str
    width: float
    label_width: float
    row_height: float
    value_width: float

    @property
    def left(self) -> float:
        """Where the axis begins."""
        return self.label_width + 16

    @property
    def right(self) -> float:
        """Where the axis ends."""
        return self.width - self.value_width - 16

    def middle(self, top: float) -> float:
        """Give the height at which the marks of a row stand."""
        return top + (self.row_height / 2 if self.label_width else self.row_height - 14)

    def label(self, top: float, name: str, value: str = "") -> Iterator[Markup]:
        """Give the label of the row that begins at `top`, and the value that stands at its end."""
        if self.label_width:
            y = self.middle(top) + 4.5
            yield svg.text(self.label_width, y, self.fitted(name, self.label_width), "name", "end")
            yield svg.text(self.width - 2, y, value, "value", "end")
        else:
            room = self.width - 24 - CHAR_WIDTH * len(value)
            yield svg.text(4, top + 13, self.fitted(name, room), "name")
            yield svg.text(self.width - 4, top + 13, value, "value", "end")

    @staticmethod
    def fitted(name: str, room: float) -> str:
        """Cut a name to so many pixels."""
        return shortened(name, max(4, int(room / CHAR_WIDTH)))


WIDE: Final = Frame(css="wide", width=880, label_width=180, row_height=26, value_width=84)
NARROW: Final = Frame(css="narrow", width=350, label_width=0, row_height=42, value_width=0)


def both(name: str, title: str, description: str, draw: Callable[[Frame], "Drawn"]) -> Markup:
    """Draw for both frames, under names of their own."""
    drawings = []
    for frame in (WIDE, NARROW):
        drawn = draw(frame)
        drawings.append(
            svg.picture(
                f"{name}-{frame.css}", frame.width, drawn.height, title, description, drawn.parts, frame.css
            )
        )
    return Markup("").join(drawings)


class Drawn(NamedTuple):
    """The elements of a drawing, and how high it is."""

    parts: list[Markup]
    height: float


GROUP_HEIGHT: Final = 30.0
AXIS_HEIGHT: Final = 30.0
NOTE_HEIGHT: Final = 15.0


class Tick(NamedTuple):
    """A line of an axis: its pixel, its label, and a note below the label."""

    at: float
    label: str
    note: str = ""


class Group(NamedTuple):
    """Rows of a chart under one heading; each row draws its marks at the height that it is given."""

    heading: str
    rows: "Sequence[Row]"


class Row(NamedTuple):
    """One row: its label, the value at its end, and what draws its marks."""

    name: str
    value: str
    marks: Callable[[float], Iterable[Markup]]


def grouped(groups: Sequence[Group], frame: Frame, ticks: Sequence[Tick]) -> Drawn:
    """Draw groups of rows, from above, over one axis."""
    bottom = sum(GROUP_HEIGHT + len(group.rows) * frame.row_height for group in groups)
    parts = list(axis(ticks, bottom, frame))
    top = 0.0
    for group in groups:
        parts.append(svg.text(0 if not frame.label_width else frame.left, top + 20, group.heading, "heading"))
        top += GROUP_HEIGHT
        for row in group.rows:
            parts += frame.label(top, row.name, row.value)
            parts += row.marks(frame.middle(top))
            top += frame.row_height
    noted = any(tick.note for tick in ticks)
    return Drawn(parts, bottom + AXIS_HEIGHT + (NOTE_HEIGHT if noted else 0))


def axis(ticks: Sequence[Tick], bottom: float, frame: Frame, top: float = 4) -> Iterator[Markup]:
    """Draw the upright lines of an axis with their labels below.

    A label at the very edge is moved inwards, and one that would meet another is left out; those with a note go first.
    """
    taken: list[tuple[float, float]] = []
    for x, label, note in sorted(ticks, key=lambda tick: (not tick.note, -tick.at)):
        yield svg.line(x, top, x, bottom + 4, "grid")
        width = max(len(label), len(note)) * CHAR_WIDTH
        left = min(frame.width - width, max(0.0, x - width / 2))
        if any(left < right + 2 and begin < left + width + 2 for begin, right in taken):
            continue
        taken.append((left, left + width))
        yield svg.text(left + width / 2, bottom + 19, label, "tick", "middle")
        if note:
            yield svg.text(left + width / 2, bottom + 19 + NOTE_HEIGHT, note, "tick", "middle")


def symbol(shape: str) -> Markup:
    """Give a small picture of a mark, for a legend; what it means stands beside it."""
    marks = {
        "measured": [svg.line(1, 12, 23, 12, "whisker"), svg.circle(12, 12, "measured")],
        "joint": [svg.diamond(12, 12, "joint")],
        "independent": [svg.bar(12, 12, "independent")],
        "joint-fill": [svg.rect(2, 6, 20, 12, "joint-fill")],
        "independent-fill": [svg.rect(2, 6, 20, 12, "independent-fill")],
        "down": [svg.line(1, 20, 23, 20, "base"), svg.rect(6, 4, 12, 16, "down")],
        "failed": [svg.line(1, 20, 23, 20, "base"), svg.rect(6, 4, 12, 16, "failed")],
        "front": [svg.polyline([(1, 5), (14, 5), (14, 19), (23, 19)], "front")],
        "run": [svg.circle(12, 12, "run")],
        "not-run": [svg.circle(12, 12, "not-run")],
        "cross": [svg.line(3, 12, 21, 12, "whisker"), svg.line(12, 3, 12, 21, "whisker")],
        "recommended": [svg.circle(12, 12, "ring", 10)],
        "p50": [svg.circle(12, 12, "measured")],
        "p99": [svg.diamond(12, 12, "joint")],
        "max": [svg.bar(12, 12, "independent")],
    }
    return svg.element("svg", *marks[shape], width=24, height=24, aria_hidden="true", class_="symbol")
