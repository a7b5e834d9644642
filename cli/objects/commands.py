"""`quorate queue|register|dict NAME OPERATION …`: each word is one call of the SDK.

Every command opens a client of its own, runs one operation and closes it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import Client, connect
from ...client_sdk.transport.tls import from_environment
from ..cluster.document import DEFAULT_NAME, read_document, url_of
from ..credentials import read_token
from ..failure import EXIT_FAILED, Usage
from ..groups import Group
from ..options import DEADLINE_S, ClusterOption, DeadlineOption
from ..output import AsJson, answer, reported
from ..values import compact, compact_lines, parse_one, parse_value, parse_words

BATCH: Final = 500
"""Values that are enqueued with one call; standard input may hold more."""

Value = Annotated[
    str, typer.Argument(metavar="VALUE", help="JSON, as '\"text\"' or 42; - reads it from standard input.")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, a plain word.")]
Old = Annotated[str, typer.Argument(metavar="OLD", help="The value it must have; null for none.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The value it gets.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The object's name.")]

queue_app = typer.Typer(cls=Group, no_args_is_help=True)
register_app = typer.Typer(cls=Group, no_args_is_help=True)
dictionary_app = typer.Typer(cls=Group, no_args_is_help=True)


def _named(context: typer.Context, name: Name) -> None:
    context.obj = name


queue_app.callback(help="Add to a queue, take from it, look at it.")(_named)
register_app.callback(help="Read or set a register, one shared value.")(_named)
dictionary_app.callback(help="Read or change a dictionary of keys and values.")(_named)


def cluster_of(cluster: str) -> str | ClusterDocument:
    """What the SDK takes: the URL of a replica, or the document in the file."""
    return url_of(cluster) or read_document(Path(cluster))


@contextmanager
def connected(cluster: str, deadline_s: float) -> Iterator[Client]:
    """A client for one command."""
    with connect(
        cluster_of(cluster), token=read_token(), tls=from_environment(), deadline_s=deadline_s
    ) as client:
        yield client


def _yes_or_no(as_json: bool, word: str, was: bool, no: str) -> None:
    """A "no" is an answer too, with the exit code that lets a shell branch on it."""
    answer(as_json, {word: was}, "ok" if was else no)
    if not was:
        raise typer.Exit(EXIT_FAILED)


@queue_app.command()
@reported
def enqueue(
    context: typer.Context,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="VALUE…", help="JSON, as '\"text\"' or 42; - reads JSON lines from standard input."
        ),
    ],
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Add values at the end, in order."""
    parsed = parse_words(values, sys.stdin)
    if not parsed:
        raise Usage("Standard input holds no value: nothing was enqueued.")
    with connected(cluster, deadline_s) as client:
        queue = client.queue(context.obj)
        for start in range(0, len(parsed), BATCH):
            queue.enqueue_many(parsed[start : start + BATCH])
    answer(as_json, {"enqueued": len(parsed)})


@queue_app.command()
@reported
def dequeue(
    context: typer.Context,
    items_max: Annotated[int, typer.Option("--max", min=1, help="Take up to so many.")] = 1,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for the first one.")
    ] = 0.0,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Take values from the front: one JSON value a line, nothing when the queue is empty."""
    with connected(cluster, deadline_s) as client:
        items = client.queue(context.obj).dequeue(max_items=items_max, wait_s=wait_s)
    answer(as_json, {"items": items}, compact_lines(items))


@queue_app.command()
@reported
def peek(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Show the value at the front, which stays there; null when the queue is empty."""
    with connected(cluster, deadline_s) as client:
        _show(as_json, "item", client.queue(context.obj).peek())


@queue_app.command("size")
@reported
def queue_size(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Count the values that wait."""
    with connected(cluster, deadline_s) as client:
        _show(as_json, "size", client.queue(context.obj).size())


@register_app.command()
@reported
def read(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Show the value; null when nobody has written one."""
    with connected(cluster, deadline_s) as client:
        _show(as_json, "value", client.register(context.obj).read())


@register_app.command()
@reported
def write(
    context: typer.Context,
    value: Value,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Set the value."""
    parsed = parse_one(value, sys.stdin)
    with connected(cluster, deadline_s) as client:
        client.register(context.obj).write(parsed)
    answer(as_json, {"written": True})


@register_app.command("cas")
@reported
def register_cas(
    context: typer.Context,
    old: Old,
    new: New,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Compare and set: set NEW if the value is OLD. Exit code 1 if it was not."""
    before, after = parse_value(old), parse_value(new)
    with connected(cluster, deadline_s) as client:
        was = client.register(context.obj).compare_and_set(before, after)
    _yes_or_no(as_json, "swapped", was, "not set: the value is another one")


@dictionary_app.command()
@reported
def get(
    context: typer.Context,
    key: Key,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Show a key's value; null when it is absent."""
    with connected(cluster, deadline_s) as client:
        _show(as_json, "value", client.dictionary(context.obj).get(key))


@dictionary_app.command()
@reported
def put(
    context: typer.Context,
    key: Key,
    value: Value,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Set a key's value."""
    parsed = parse_one(value, sys.stdin)
    with connected(cluster, deadline_s) as client:
        client.dictionary(context.obj).put(key, parsed)
    answer(as_json, {"put": True})


@dictionary_app.command()
@reported
def delete(
    context: typer.Context,
    key: Key,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Remove a key; one that is absent stays so."""
    with connected(cluster, deadline_s) as client:
        client.dictionary(context.obj).delete(key)
    answer(as_json, {"deleted": True})


@dictionary_app.command()
@reported
def put_if_absent(
    context: typer.Context,
    key: Key,
    value: Value,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Set a key's value if it has none. Exit code 1 if it has one."""
    parsed = parse_one(value, sys.stdin)
    with connected(cluster, deadline_s) as client:
        was = client.dictionary(context.obj).put_if_absent(key, parsed)
    _yes_or_no(as_json, "stored", was, "not put: the key has a value")


@dictionary_app.command("cas")
@reported
def dictionary_cas(
    context: typer.Context,
    key: Key,
    old: Old,
    new: New,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Compare and set: set NEW if the key's value is OLD. Exit code 1 if it was not."""
    before, after = parse_value(old), parse_value(new)
    with connected(cluster, deadline_s) as client:
        was = client.dictionary(context.obj).compare_and_set(key, before, after)
    _yes_or_no(as_json, "swapped", was, "not set: the value is another one")


@dictionary_app.command()
@reported
def items(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Show all keys and values as they were at one moment: KEY, a tab, JSON."""
    with connected(cluster, deadline_s) as client:
        found = client.dictionary(context.obj).items()
    lines = [f"{key}\t{compact(value)}" for key, value in sorted(found.items())]
    answer(as_json, {"items": found}, "\n".join(lines))


@dictionary_app.command("size")
@reported
def dictionary_size(
    context: typer.Context,
    cluster: ClusterOption = DEFAULT_NAME,
    deadline_s: DeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Count the keys."""
    with connected(cluster, deadline_s) as client:
        _show(as_json, "size", client.dictionary(context.obj).size())


def _show(as_json: bool, word: str, value: Any) -> None:
    answer(as_json, {word: value}, compact(value))
