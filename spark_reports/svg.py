"""A few lines to write inline SVG: escaped elements, numbers cut to what a screen shows, and scales.

Charts are drawn by our own code because a report needs four of them, static and with text alternatives; a plotting
library would add tens of megabytes to the installation, or one to every page.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log10

from markupsafe import Markup, escape


def element(name: str, *children: str, **attributes: str | float) -> Markup:
    """Give one escaped element; `class_` stands for class and `_` in a name for `-`."""
    written = Markup("").join(
        Markup(' {}="{}"').format(Markup(key.rstrip("_").replace("_", "-")), number(value))
        for key, value in attributes.items()
    )
    inner = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inner)


def number(value: str | float) -> str:
    """Write a coordinate to a tenth of a pixel; text stays as it is."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def picture(
    width: float, height: float, title: str, description: str, children: Iterable[str], css: str
) -> Markup:
    """Give a whole drawing with its text alternative; it shrinks to the width of the page, never grows."""
    return element(
        "svg",
        element("title", title),
        *children,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {description}",
        class_=css,
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """Give a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=css)


def text(x: float, y: float, content: str, css: str = "", anchor: str = "start") -> Markup:
    """Give a line of text whose base line is at `y`."""
    return element("text", content, x=x, y=y, class_=css, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, css: str) -> Markup:
    """Give a filled rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, class_=css)


def circle(x: float, y: float, css: str) -> Markup:
    """Give the mark of what was measured."""
    return element("circle", cx=x, cy=y, r=5, class_=css)


def diamond(x: float, y: float, css: str) -> Markup:
    """Give a hollow diamond around a point."""
    return element("path", d=f"M{number(x)} {number(y - 8)}l8 8l-8 8l-8 -8z", class_=css)


def bar(x: float, y: float, css: str) -> Markup:
    """Give an upright bar through a point."""
    return line(x, y - 9, x, y + 9, css)


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
