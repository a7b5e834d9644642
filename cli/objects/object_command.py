"""`quorate object list|delete`: which objects replicas keep, and the keys of a dictionary taken out of it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer
from rich import box
from rich.table import Table

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import connect_async
from ...client_sdk.transport.tls import from_environment
from ..cluster.document import DEFAULT_NAME, read_document, url_of
from ..cluster.probe import NoAnswer, get
from ..cluster.status import cluster_document
from ..credentials import read_token
from ..failure import Failure, Usage
from ..groups import Group
from ..options import ClusterOption
from ..output import AsJson, answer, console, reported
from .trace_command import checked_object, plain

object_app = typer.Typer(
    cls=Group, help="The objects that replicas keep: list them, delete keys.", no_args_is_help=True
)

LISTED: Final = 1000
PAGE: Final = 100
DELETED_AT_ONCE: Final = 64


@object_app.command("list")
@reported
def list_objects(
    prefix: Annotated[
        str,
        typer.Argument(metavar="PREFIX", help="Those whose names begin so, as queue/ or dictionary/users/."),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = LISTED,
    after: Annotated[str, typer.Option("--after", metavar="NAME", help="Those behind this one.")] = "",
    cluster: ClusterOption = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """The objects that replicas keep, by name; each key of a dictionary is one.

    Entries are those that no decision has passed: of a queue the items that wait in its log.
    A deleted key is an object until it is forgotten, about a minute later.
    """
    document = cluster_document(cluster)
    found = list(islice(_objects(document, prefix, after), limit + 1))
    shown, is_more = found[:limit], len(found) > limit
    if as_json:
        answer(True, {"objects": shown, "next": shown[-1]["object"] if is_more else None}, is_look=True)
        return
    if not shown:
        answer(False, None, f"No object{f' has a name that begins with {prefix}' if prefix else ''}.")
        return
    console().print(_table(shown))
    if is_more:
        answer(False, None, f"There are more: --after {quote(shown[-1]['object'])}")


def _objects(document: ClusterDocument, prefix: str, after: str) -> Iterator[Mapping[str, Any]]:
    """All of them, as one replica sees all replicas, page by page. Raises Failure."""
    at: str | None = after
    while at is not None:
        asked = urlencode({"limit": PAGE, "prefix": prefix, "after": at})
        page = _page(document, f"/v1/overview?{asked}")
        yield from page["objects"]
        at = page["next"]


def _page(document: ClusterDocument, path: str) -> Any:
    """What the first replica answers that does."""
    reasons = []
    for id, url in document.urls.items():
        try:
            return get(url, path, read_token())
        except NoAnswer as error:
            reasons.append(f"{id}: {error}")
    raise Failure(f"No replica tells which objects there are ({'; '.join(reasons)}).")


def _table(found: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("object", overflow="fold")
    for name in ("entries", "leased", "waiting", "dead"):
        table.add_column(name, justify="right")
    for each in found:
        counts = (each["held"], each["waiting"], each["dead"])
        entries = f"{each['entries']}{'+' * each['is_cut']}"
        table.add_row(plain(each["object"]), entries, *(str(count or "") for count in counts))
    return table


@object_app.command("delete")
@reported
def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A dictionary, as dictionary/users.")],
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="TEXT", help="Of a dictionary, keys that begin so alone."),
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Delete the keys that a dictionary has now, and say how many. Replicas forget them about a minute later.

    A key that others put while this runs is deleted or stays. One key: `quorate dict NAME delete KEY`. Queues, registers and objects of
    your own types stay once they were used: empty them by their own operations.
    """
    full = checked_object(name, cluster_document(cluster).own_types)
    adt, dictionary, *key = full.split("/", 2)
    if adt != "dictionary":
        raise Usage(
            f"{full} stays once it was used: empty it by its own operations. Keys of dictionaries can be deleted."
        )
    if key:
        raise Usage(f"{full} is one key: `quorate dict {dictionary} delete {quote(key[0])}` deletes it.")
    if prefix == "":
        raise Usage("--prefix is empty: leave it out to delete all keys.")
    place = url_of(cluster) or read_document(Path(cluster))
    deleted = asyncio.run(_delete(place, dictionary, prefix or ""))
    answer(as_json, {"deleted": deleted}, f"{deleted} deleted.")


async def _delete(place: str | ClusterDocument, name: str, prefix: str) -> int:
    async with connect_async(place, token=read_token(), tls=from_environment()) as client:
        dictionary = client.dictionary(name)
        keys = [key for key in await dictionary.items() if key.startswith(prefix)]
        for first in range(0, len(keys), DELETED_AT_ONCE):
            await asyncio.gather(*map(dictionary.delete, keys[first : first + DELETED_AT_ONCE]))
    return len(keys)
