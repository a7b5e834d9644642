"""Options of `quorate serve` that are more than a word each: which numbers it can use, and what it tells of itself."""

import enum
from typing import Annotated, Final

import typer

from ...api_specs.limits import Capacity

_CLOCK_OFFSET_S_MAX: Final = 366 * 86400
"""More than any test needs; beyond what timestamps hold, janitor and front end would fail at every step."""

_ADDRESS_SHARE_MIN: Final = 0.001
"""Of 2,000 connections, two."""


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
AddressShareOption = Annotated[
    float,
    typer.Option(
        "--address-share",
        metavar="SHARE",
        min=_ADDRESS_SHARE_MIN,
        max=1.0,
        help="So large a share of the connections may come from one address; 1.0 where all callers are behind one.",
    ),
]


def _bound(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", min=1, metavar="N", envvar=f"QUORATE_{name.upper().replace('-', '_')}", help=what
    )
    return option


CAPACITY: Final = Capacity()
ObjectsMaxOption = Annotated[int, _bound("objects-max", "Refuse new objects when it has so many.")]
LogEntriesMaxOption = Annotated[
    int, _bound("log-entries-max", "Refuse new entries of an object whose log has so many.")
]
DiskBytesMaxOption = Annotated[
    int, _bound("disk-bytes-max", "Refuse new entries when its database holds so many bytes.")
]
DiskFreeMinOption = Annotated[
    int, _bound("disk-free-min", "Refuse new entries when its disk has fewer bytes free.")
]
