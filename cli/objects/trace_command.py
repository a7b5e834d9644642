"""`quorate trace TYPE/NAME`: asks every replica for its logs and draws them side by side."""

import time
from collections.abc import Collection
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...adts.keys import as_kept, as_written, key_name
from ...adts.types.catalogue import SPECIFICATIONS, check_name
from ...api_specs.cluster import ClusterDocument
from ...client_sdk.inspection.log_table import Trace, traces_of, when
from ..cluster.document import DEFAULT_NAME
from ..cluster.probe import scan_all
from ..cluster.status import cluster_document
from ..credentials import read_token
from ..failure import Failure, Usage
from ..options import ClusterOption
from ..output import AsJson, answer, console, reported
from ..values import spelled_out


@reported
def trace(
    object_name: Annotated[
        str, typer.Argument(metavar="TYPE/NAME", help="As queue/jobs, register/leader, dictionary/users.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Whole timestamps instead of t1, t2 …")] = False,
    cluster: ClusterOption = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """The logs of all replicas side by side: one row per timestamp, one column per replica.

    Items that are delivered under a lease, delayed or dead letters are shown as such. Below them each replica's horizon (consumed or decided up to there) and fence (nothing new up to there). Entries that
    the replicas have collected are gone; an object with `collect = false` keeps everything, decided events too.
    """
    document = cluster_document(cluster)
    wanted = as_kept(checked_object(object_name, document.own_types))
    traces = read_traces(document, wanted)
    troubles = {id: column.trouble for id, column in traces[0].columns.items()}
    if all(troubles.values()):
        by_trouble: dict[str, list[str]] = {}
        for id, trouble in troubles.items():
            by_trouble.setdefault(trouble, []).append(id)
        told = "; ".join(f"{', '.join(ids)}: {trouble}" for trouble, ids in by_trouble.items())
        raise Failure(f"No replica shows its logs ({told}). `quorate status` says more.")
    if as_json:
        answer(True, {"traces": [_as_json(document, each) for each in traces]}, is_look=True)
    else:
        for each in traces:
            show(each, console(), full=full)
            if _consistency(document, each.object):
                console().print("Eventual consistency: an answer may be older than what is shown here.")


def _as_json(document: ClusterDocument, trace: Trace) -> dict[str, Any]:
    return trace.as_json() | {"object": as_written(trace.object)} | _consistency(document, trace.object)


def _consistency(document: ClusterDocument, name: str) -> dict[str, str]:
    return {"consistency": "eventual"} if document.choice_of(name).is_weak else {}


def read_traces(document: ClusterDocument, wanted: str) -> list[Trace]:
    """The tables of an object, of each key for a dictionary."""
    replies = scan_all(document, wanted, read_token())
    return traces_of(replies, wanted, document.limits.page_entries_max, time.time_ns() // 1000)


def checked_object(text: str, own_types: Collection[str] = ()) -> str:
    """`text` if it names an object (dict/… stands for dictionary/…) of the service's types or of these, a dictionary's key as people write it."""
    adt, _, rest = text.partition("/")
    adt = "dictionary" if adt == "dict" else adt
    name, *key = rest.split("/", 1)
    if adt not in (*SPECIFICATIONS, *own_types) or (key and adt != "dictionary"):
        raise Usage(
            f"{text!r} names no object: write queue/NAME, register/NAME, dictionary/NAME or dictionary/NAME/KEY"
            + "".join(f", {name}/NAME" for name in own_types)
            + "."
        )
    check_name(name)
    for each in key:
        key_name(each)
    return f"{adt}/{rest}"


def plain(text: str) -> str:
    """What a replica said, as text alone: neither markup nor anything that a terminal obeys."""
    return escape(spelled_out(text))


def _cell(event: str, status: str) -> str:
    return plain(event) + (f"\n[yellow]{plain(status)}[/yellow]" if status else "")


def show(trace: Trace, out: Console, *, full: bool = False) -> None:
    """Print one table, and what its labels stand for."""
    labels = trace.labels
    table = Table(
        box=box.SIMPLE_HEAVY,
        title=plain(as_written(trace.object)),
        title_justify="left",
        title_style="bold",
        show_footer=False,
    )
    table.add_column("", style="dim", no_wrap=not full, overflow="fold")
    for id in trace.columns:
        table.add_column(id, overflow="fold")
    for t in trace.rows:
        table.add_row(t if full else labels[t], *(_cell(*trace.cell(id, t)) for id in trace.columns))
    if trace.rows:
        table.add_section()
    for title, row in trace.footer(full):
        table.add_row(title, *map(plain, row), style="cyan")
    out.print(table)
    for id, column in trace.columns.items():
        if column.trouble:
            out.print(f"{id} did not answer: {plain(column.trouble)}")
        elif column.cut:
            out.print(f"{id} holds older entries too; only its newest page is shown.")
    if not trace.rows and not any(column.trouble for column in trace.columns.values()):
        out.print(
            "No replica holds an entry of it."
            if len(labels) == 2
            else "No log holds an entry of it any more: each is collected, or kept with a decision."
        )
    if not full and len(labels) > 2:
        named = [(label, t) for t, label in labels.items() if label.startswith("t")]
        out.print("\n".join(f"{label:>4} = {when(t)}  {t}" for label, t in named), style="dim")
