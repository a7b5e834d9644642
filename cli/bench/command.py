"""`quorate bench`: how quick a running cluster is, as text with histograms and as a JSON document.

Owns the words, the document's file and what ends a run. What is asked of the cluster, `quorate.measurement.speed` knows.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from msgspec import json, to_builtins

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import QuorateError, connect_async
from ...client_sdk.transport.tls import from_environment
from ...measurement.run.run_folder import machine
from ...measurement.speed.figures import VERSION, Document, Figure, lines_of, table
from ...measurement.speed.works import ITEM_BYTES, ITEM_BYTES_MIN, WORKS, Bounds, Ground, InUse, timed
from ..cluster.document import DEFAULT_NAME, read_document, url_of, write_new
from ..credentials import read_token
from ..failure import Failure, Usage
from ..interrupt import set_at_signal
from ..options import ClusterOption
from ..output import AsJson, answer, reported, say

_WIDTH_MAX: Final = 1024
_WIDTHS_MAX: Final = 10
_SECONDS_MAX: Final = 600.0
_ITEMS_MAX: Final = 1_000_000


class _Asked(NamedTuple):
    """What is measured, and where."""

    works: list[str]
    in_flight: list[int]
    bounds: Bounds
    item_bytes: int
    prefix: str


@reported
def bench(
    works: Annotated[
        str, typer.Option("--works", metavar="NAMES", help=f"Which, with commas: {', '.join(WORKS)}.")
    ] = ",".join(WORKS),
    in_flight: Annotated[
        str,
        typer.Option(
            "--in-flight",
            metavar="NUMBERS",
            help="How many operations at a time, with commas; each is measured.",
        ),
    ] = "1,64",
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0.01, max=_SECONDS_MAX, help="How long each operation is measured."),
    ] = 3.0,
    items: Annotated[
        int,
        typer.Option("--items", min=1, max=_ITEMS_MAX, help="At most so many items of each operation."),
    ] = 20_000,
    item_bytes: Annotated[
        int, typer.Option("--bytes", min=ITEM_BYTES_MIN, help="The size of a value, as JSON text.")
    ] = ITEM_BYTES,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix", metavar="TEXT", help="How the names of the objects begin that are used, and emptied."
        ),
    ] = "bench-",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="A new file for the JSON document.")
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """How quick a running cluster is: rates, percentiles and histograms of what its operations take from here.

    Uses a queue and a dictionary of its own, and empties them at the end. Others who use the cluster meanwhile feel the load, and it shows in the figures.

    Ctrl-C ends it early; what was measured until then is told and kept.
    """
    if out is not None and out.exists():
        raise Usage(f"{out} exists already; nothing was done. Name another file with --out.")
    asked = _Asked(_works(works), _numbers(in_flight), Bounds(seconds, items), item_bytes, prefix)
    place = url_of(cluster) or read_document(Path(cluster))
    document = asyncio.run(_measured(place, asked, is_told=not as_json))
    if out is not None:
        write_new(out, json.encode(document).decode() + "\n")
    if not document.figures:
        raise Failure("Nothing was measured: the run ended before its first figure.")
    answer(as_json, to_builtins(document), "\n".join(table(document.figures)))


def _works(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    if unknown := [each for each in names if each not in WORKS]:
        raise Usage(f"--works: there is no work {unknown[0]!r}; there are {', '.join(WORKS)}.")
    return names


def _numbers(text: str) -> list[int]:
    words = [each.strip() for each in text.split(",")]
    if len(words) > _WIDTHS_MAX or not all(
        each.isdecimal() and 1 <= int(each) <= _WIDTH_MAX for each in words
    ):
        raise Usage(
            f"--in-flight {text}: give up to {_WIDTHS_MAX} numbers from 1 to {_WIDTH_MAX}, with commas, as 1,64."
        )
    return [int(each) for each in words]


async def _measured(place: str | ClusterDocument, asked: _Asked, *, is_told: bool) -> Document:
    """The run, of which each figure is told as it is there."""
    stop = set_at_signal()
    began = datetime.now(UTC)
    made_by = machine() | {"load": round(os.getloadavg()[0], 2)}
    figures: list[Figure] = []
    async with connect_async(place, token=read_token(), tls=from_environment()) as client:
        ground = Ground(client, asked.prefix, asked.item_bytes)
        try:
            await ground.check_unused()
        except InUse as error:
            raise Usage(
                f"{error}, and would be emptied; nothing was done. Name other objects with --prefix."
            ) from None
        try:
            async for each in timed(ground, asked.works, asked.in_flight, asked.bounds, stop.is_set):
                figures.append(each)
                if is_told:
                    _tell(figures[-1])
        finally:
            await _clear(ground, asked.prefix)
        in_force = client.document
    return Document(
        version=VERSION,
        began=began.isoformat(timespec="seconds"),
        is_whole=not stop.is_set(),
        made_by=made_by,
        cluster={
            "name": in_force.name,
            "configuration": in_force.number,
            "replicas": dict(in_force.votes),
        },
        asked=_told(asked),
        figures=figures,
    )


def _told(asked: _Asked) -> dict[str, Any]:
    return asked._asdict() | {"bounds": asked.bounds._asdict()}


def _tell(figure: Figure) -> None:
    is_ascii = "utf" not in (sys.stdout.encoding or "").lower()
    answer(False, None, "\n".join(lines_of(figure, is_ascii=is_ascii)) + "\n")


async def _clear(ground: Ground, prefix: str) -> None:
    try:
        await ground.clear()
    except (QuorateError, TimeoutError) as error:
        say(
            f"queue/{prefix}queue and dictionary/{prefix}dictionary are not empty yet: {str(error) or 'it took too long'}"
        )
