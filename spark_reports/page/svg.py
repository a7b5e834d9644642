"""A few lines to write inline SVG: escaped elements, numbers cut to what a screen shows, and scales.

Charts are drawn by our own code because a report needs a handful of them, static and with text alternatives; a plotting
library would add tens of megabytes to the installation, or one to every page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log10
from typing import Final

from markupsafe import Markup, escape

from ..model.phrases import nines

NINES_MAX: Final = 12.0
"""No axis has more: beyond, floats cannot be told from 1."""

STEPS: Final = ((1.0, 1), (0.7, 4), (0.5, 2), (0.4, 4), (0.3, 4), (0.2, 3), (0.15, 4))
"""Where an axis of nines may have a tick within one nine: what is missing to 1, and how fine the axis must be for it."""

FINEST: Final = 4


def element(name: str, *children: str, **attributes: str | float) -> Markup:
    """Give one escaped element; `class_` stands for class and `_` in a name for `-`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value))}"' for key, value in attributes.items()
    )
    inner = "".join(map(escape, children))
    return Markup(f"<{name}{written}>{inner}</{name}>")


def number(value: str | float) -> str:
    """Write a coordinate to a tenth of a pixel; text stays as it is."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def picture(
    name: str, width: float, height: float, title: str, description: str, children: Iterable[str], css: str
) -> Markup:
    """Give a whole drawing with its text alternative; it shrinks to the width of the page, never grows.

    Args:
        name: what its title and description are found by; no two drawings of a page have the same.
        width: in pixels, as `height`.
        height: see `width`.
        title: what the drawing shows.
        description: what is to be seen in it, in sentences: all that a listener gets of the drawing itself.
        children: its elements.
        css: its class.
    """
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *children,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_=css,
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=css)


def text(x: float, y: float, content: str, css: str = "", anchor: str = "start") -> Markup:
    """Give a line of text whose base line is at `y`."""
    return element("text", content, x=x, y=y, class_=css, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, css: str) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, class_=css)


def circle(x: float, y: float, css: str, radius: float = 5) -> Markup:
    """Give the mark of what was measured."""
    return element("circle", cx=x, cy=y, r=radius, class_=css)


def diamond(x: float, y: float, css: str, size: float = 8) -> Markup:
    """Give a diamond around a point, its corners so many pixels away."""
    side = number(size)
    return path(f"M{number(x)} {number(y - size)}l{side} {side}l-{side} {side}l-{side} -{side}z", css)


def bar(x: float, y: float, css: str) -> Markup:
    return line(x, y - 9, x, y + 9, css)


def path(steps: str, css: str) -> Markup:
    return element("path", d=steps, class_=css)


def polyline(points: Sequence[tuple[float, float]], css: str) -> Markup:
    return element("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=css)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values between `low` and `high` to pixels between `left` and `right`; beyond, it stays at the edge."""

    low: float
    high: float
    left: float
    right: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Give the pixel of a value."""
        low, high, at = (self._place(v) for v in (self.low, self.high, value))
        share = (at - low) / (high - low)
        return self.left + min(1.0, max(0.0, share)) * (self.right - self.left)

    def _place(self, value: float) -> float:
        return log10(max(value, 1e-9)) if self.logarithmic else value


@dataclass(frozen=True, slots=True)
class Nines:
    """Maps availabilities to pixels by their nines: 90 % lies as far from 99 % as 99 % from 99.9 %.

    All of it, 100 %, has infinitely many nines, and a place of its own at `end`, beyond a break in the axis.
    """

    low: float
    high: float
    left: float
    right: float
    end: float

    def __call__(self, share: float) -> float:
        """Give the pixel of a share; what lies beyond either end of the axis stays at it."""
        if nines(share) == inf:
            return self.end
        place = min(self.high, max(self.low, nines(share)))
        return self.left + (place - self.low) / (self.high - self.low) * (self.right - self.left)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Give at most so many round shares with their labels, 100 % among them where it has a place."""
        room = most - (self.end != self.right)
        found = next(
            (ticks for fineness in range(FINEST, 0, -1) if len(ticks := self._within(fineness)) <= room),
            None,
        )
        if found is None:
            whole = self._within(1)
            found = whole[:: -(-len(whole) // room)]
        shares = [*found, 1.0] if self.end != self.right else found
        return [(share, f"{share * 100:.13g} %") for share in shares]

    def _within(self, fineness: int) -> list[float]:
        edge = 1e-9
        return [
            share for share in _round_shares(fineness) if self.low - edge <= nines(share) <= self.high + edge
        ]


def _round_shares(fineness: int) -> list[float]:
    """Give 0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99 and so on; a coarser axis has fewer of them."""
    return [
        1 - missing * 10.0**-power
        for power in range(round(NINES_MAX) + 1)
        for missing, needs in STEPS
        if needs <= fineness
    ]


def nines_scale(shares: Iterable[float], left: float, right: float) -> Nines:
    """Give the scale that shows all these shares between two pixels, its ends at round shares.

    >>> [label for _, label in nines_scale([0.42, 0.997], 0, 100).ticks(9)]
    ['50 %', '80 %', '90 %', '95 %', '98 %', '99 %', '99.5 %']
    >>> [label for _, label in nines_scale([0.972, 1.0], 0, 100).ticks(9)]
    ['97 %', '98 %', '100 %']
    """
    given = list(shares)
    places = [place for place in map(nines, given) if place < inf] or [nines(0.9)]
    marks = [nines(share) for share in _round_shares(FINEST)]
    edge = 1e-9
    low = max(mark for mark in marks if mark <= max(0.0, min(places)) + edge)
    high = min(
        (mark for mark in marks if mark >= max(places) - edge and mark > low + edge), default=NINES_MAX
    )
    if high <= low:
        low = marks[-4]
    # The break takes a ninth of the way: enough that a mark at 100 % does not touch the last tick.
    whole = any(nines(share) == inf for share in given)
    broken = right - (right - left) / 9 if whole else right
    return Nines(low, high, left, broken, right)
