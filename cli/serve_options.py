"""Options of `quorate serve` that say what it tells of itself: the form of its log, and where traces go."""

import enum
from typing import Annotated

import typer


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
