"""The plot of `quorate quorums plan --plot`: load and capacity of offers over the share of an operation, as one SVG."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...quorums.planning.curves import Point
from ..failure import Usage

if TYPE_CHECKING:
    from markupsafe import Markup

LINES_MAX: Final = 6
"""As many as a reader tells apart."""
_WIDTH: Final = 880.0
_TOP: Final = 40.0
_BOTTOM: Final = 300.0
_LEGEND_ROW: Final = 20.0
_LABEL_CHARS: Final = 110
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#222}.tick{fill:#555}.grid{stroke:#ddd}polyline{fill:none;stroke-width:2}"
    # Okabe and Ito's colours, which colour-blind readers tell apart; dashes as well.
    ".l0{stroke:#0072b2}.l1{stroke:#d55e00;stroke-dasharray:8 4}.l2{stroke:#009e73;stroke-dasharray:2 4}"
    ".l3{stroke:#cc79a7;stroke-dasharray:12 4 2 4}.l4{stroke:#56b4e9;stroke-dasharray:4 4}.l5{stroke:#e69f00}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.tick{fill:#bbb}.grid{stroke:#444}}"
)


class Line(NamedTuple):
    """One offer: its number in the table, what it is, and its points."""

    number: int
    label: str
    points: Sequence[Point]


def plotted(operation: str, lines: Sequence[Line]) -> str:
    """The text of the file.

    Raises:
        Usage: what writes SVG is not installed.
    """
    try:
        from ...spark_reports.page import svg  # noqa: PLC0415 - only plots need it
    except ModuleNotFoundError as error:
        raise Usage(f"--plot needs {error.name}: pip install 'quorate[reports]'") from None
    height = _BOTTOM + 50 + _LEGEND_ROW * len(lines)
    title = f"Load and capacity as the share of {operation} goes from 0 to 100 %"
    parts = [
        svg.element("style", _STYLE),
        *_panel("load of the busiest replica", 60, 420, operation, lines, lambda point: point.load),
        *_panel("operations a second at most", 500, 860, operation, lines, lambda point: point.capacity),
        *_legend(lines),
    ]
    drawn = svg.picture("plan", _WIDTH, height, title, _described(lines), parts, "plan")
    return str(drawn).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _panel(
    title: str,
    left: float,
    right: float,
    operation: str,
    lines: Sequence[Line],
    value: Callable[[Point], float],
) -> Iterator["Markup"]:
    from ...spark_reports.page import svg  # noqa: PLC0415 - as above

    most = max((value(point) for line in lines for point in line.points), default=0.0) or 1.0
    across, up = svg.Scale(0, 1, left, right), svg.Scale(0, most * 1.05, _BOTTOM, _TOP)
    yield svg.text(left, _TOP - 14, title)
    for step in range(5):
        at = most * step / 4
        yield svg.line(left, up(at), right, up(at), "grid")
        yield svg.text(left - 6, up(at) + 4, f"{at:.3g}", "tick", "end")
        yield svg.text(across(step / 4), _BOTTOM + 18, f"{step * 25} %", "tick", "middle")
    yield svg.text(right, _BOTTOM + 36, f"share of {operation}", "tick", "end")
    for index, line in enumerate(lines):
        yield svg.polyline([(across(point.share), up(value(point))) for point in line.points], f"l{index}")


def _legend(lines: Sequence[Line]) -> Iterator["Markup"]:
    from ...spark_reports.page import svg  # noqa: PLC0415 - as above

    for index, line in enumerate(lines):
        y = _BOTTOM + 56 + _LEGEND_ROW * index
        yield svg.polyline([(20, y - 4), (60, y - 4)], f"l{index}")
        short = line.label if len(line.label) <= _LABEL_CHARS else f"{line.label[: _LABEL_CHARS - 1]}…"
        yield svg.text(68, y, f"{line.number}  {short}")


def _described(lines: Sequence[Line]) -> str:
    """What a listener gets of the drawing."""
    return "; ".join(
        f"{line.number}, {line.label}: load {line.points[0].load:.3g} to {line.points[-1].load:.3g}"
        for line in lines
        if line.points
    )
