"""`quorate status`: each replica's own word on how it is, beside what the cluster document says."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import typer
from msgspec import Struct, to_builtins
from rich import box
from rich.markup import escape
from rich.table import Table

from quorate.api_specs.cluster import ClusterDocument, from_json
from quorate.cli.document import DEFAULT_NAME, is_url, read_document
from quorate.cli.failure import EXIT_FAILED, Failure
from quorate.cli.object_commands import ClusterOption
from quorate.cli.output import AsJson, answer, console, reported
from quorate.cli.probe import NoAnswer, get, is_ready
from quorate.cli.token import read_token

_MIB: Final = 1024 * 1024


class Found(Struct, frozen=True):
    """What one replica answered. `trouble` says what is wrong with it and what to do; empty when nothing is.

    `clock_offset_s`: how far its clock is ahead of this machine's, to within half the round trip.
    """

    id: str
    url: str
    is_up: bool = False
    is_ready: bool = False
    incarnation: str = ""
    objects: int | None = None
    file_bytes: int | None = None
    clock_offset_s: float | None = None
    document_agrees: bool | None = None
    trouble: str = ""


@reported
def status(cluster: ClusterOption = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """How each replica is. Exit code 1 unless all are ready and hold the same cluster document."""
    found = ask_all(cluster_document(cluster))
    if as_json:
        answer(True, {"replicas": [to_builtins(each) for each in found]})
    else:
        _show(found)
    if not all(each.is_ready and each.document_agrees for each in found):
        raise typer.Exit(EXIT_FAILED)


def cluster_document(cluster: str) -> ClusterDocument:
    """The document in a file, or as the replica at a URL serves it."""
    if not is_url(cluster):
        return read_document(Path(cluster))
    try:
        return from_json(get(cluster, "/v1/cluster", read_token())["document"])
    except (NoAnswer, KeyError, TypeError) as error:
        raise Failure(
            f"{cluster} does not tell its cluster document: {error}. Is a replica running there?"
        ) from None


def ask_all(document: ClusterDocument) -> list[Found]:
    """What every replica answers; all are asked at once."""
    token = read_token()
    with ThreadPoolExecutor(len(document.urls)) as pool:
        return list(pool.map(lambda pair: _ask(document, *pair, token), document.urls.items()))


def _ask(document: ClusterDocument, id: str, url: str, token: str | None) -> Found:
    began_us = time.time_ns() // 1000
    try:
        told = get(url, "/v1/status", token)
        ended_us = time.time_ns() // 1000
        return _understood(document, id, url, told, (began_us + ended_us) // 2)
    except NoAnswer as error:
        return Found(
            id, url, trouble=f"{error}: start it with `quorate serve --id {id} …`, or look at its log"
        )


def _understood(document: ClusterDocument, id: str, url: str, told: Mapping[str, Any], here_us: int) -> Found:
    return Found(id, url, is_up=True)
