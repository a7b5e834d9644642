"""Options of `quorate serve` that are more than a word each: which numbers it can use, and what it tells of itself."""

import enum
from typing import Annotated, Final

import typer

_CLOCK_OFFSET_S_MAX: Final = 366 * 86400
"""More than any test needs; beyond what timestamps hold, janitor and front end would fail at every step."""


class LogFormat(enum.Enum):
    """The words of `--log-format`."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="How each line of its log, on standard error, is written.")
]
TracesOption = Annotated[
    str,
    typer.Option(
        "--traces",
        metavar="URL",
        envvar="QUORATE_TRACES",
        help="Send traces of operations to that collector (OTLP over HTTP, as http://127.0.0.1:4318).",
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="Listen there instead of at the document's port."),
]
ClockOffsetOption = Annotated[
    float,
    typer.Option(
        "--clock-offset",
        metavar="SECONDS",
        min=-_CLOCK_OFFSET_S_MAX,
        max=_CLOCK_OFFSET_S_MAX,
        help="Make the replica's clock wrong, to test what that does.",
    ),
]
