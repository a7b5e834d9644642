"""`quorate init|format|replace|up`: cluster files, data folders, and replicas in this terminal."""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from ...api_specs.cluster import parse
from ...api_specs.limits import REPLICAS_MAX
from ..credentials import read_token
from ..failure import EXIT_FAILED, Failure, Usage
from ..options import DataOption, DocumentOption, IdOption
from ..output import AsJson, answer, reported, say, say_act
from .data_folder import (
    format_data_folder,
    formatted_data_folders,
    make_root,
    replace_data_folder,
    what_is_lost,
)
from .document import (
    DEFAULT_NAME,
    change_stores,
    check_member,
    new_document,
    read_document,
    write_new,
)
from .local_cluster import HERE, READY_DEADLINE_S, LocalCluster
from .serve_command import PROBE_EVERY, probe_step_s
from .status import ask_all, without_code

_WATCH_S: Final = 0.2
PROBE_LOG_NAME: Final = "probe-log"

ReplicasOption = Annotated[
    int, typer.Option("--replicas", "-n", min=1, max=REPLICAS_MAX, help="How many replicas: r1, r2 …")
]
PortsOption = Annotated[str, typer.Option("--ports", metavar="P1,P2,…", help="One port for each replica.")]


@reported
def init(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write it.")] = Path(
        DEFAULT_NAME
    ),
    replicas: ReplicasOption = 3,
    host: Annotated[str, typer.Option("--host", help="The host of every replica.")] = "127.0.0.1",
    ports: PortsOption = "",
    base_port: Annotated[int, typer.Option("--base-port", help="The port of r1; r2 gets the next …")] = 8001,
    replica: Annotated[
        list[str] | None,
        typer.Option("--replica", metavar="ID=URL", help="Name each replica instead; repeat it."),
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", metavar="DIR", help="Format data folders too: DIR/r1 …")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented cluster file; overwrites nothing."""
    urls = (
        _named_urls(replica)
        if replica
        else _urls(host, _ports(ports, replicas) or _range(base_port, replicas))
    )
    folders = {} if data_root is None else {id: data_root / id for id in urls}
    _check_empty(folders.values())
    text = new_document(urls)
    document = parse(text, str(out))
    with formatted_data_folders(folders, document):
        write_new(out, text)
    lines = [f"Wrote {out}: " + ", ".join(f"{id} at {url}" for id, url in urls.items()) + "."]
    lines += [f"Formatted {folder} for {id}." for id, folder in folders.items()]
    for id, folder in folders.items():
        say_act("format", cluster=document.name, replica=id, data=str(folder))
    if not folders:
        first = next(iter(urls))
        lines.append(
            f"Next, for each replica: quorate format --cluster {out} --id {first} --data DIR, then quorate serve."
        )
    data = {"cluster": str(out), "hash": document.hash, "replicas": urls}
    answer(as_json, data | {"data": {id: str(folder) for id, folder in folders.items()}}, "\n".join(lines))


@reported
def format_folder(
    cluster: DocumentOption, replica_id: IdOption, data: DataOption, as_json: AsJson = False
) -> None:
    """Make the empty data folder of one replica, on the machine where it will run."""
    document = read_document(cluster)
    format_data_folder(data, document, replica_id)
    say_act("format", cluster=document.name, replica=replica_id, data=str(data))
    text = f"Formatted {data} for {replica_id}.\nNext: quorate serve --cluster {cluster} --id {replica_id} --data {data}"
    answer(as_json, {"id": replica_id, "data": str(data), "hash": document.hash}, text)


@reported
def replace_store(
    cluster: DocumentOption,
    replica_id: IdOption,
    data: DataOption,
    sources: Annotated[
        list[str],
        typer.Option(
            "--from", metavar="ID=DIR", help="The data folder of another replica; give all of them."
        ),
    ],
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Go on although some items may have been on the lost disk only."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a new store for a replica that lost its own, from all the others. Stop every replica first.

    Give the changed document to all replicas and callers; then start them.
    """
    document = read_document(cluster)
    check_member(document, replica_id)
    others = dict(map(_named_folder, sources))
    lost = what_is_lost(document, replica_id, others)
    if lost and not accept_loss:
        raise Failure(
            f"{replica_id} alone was a final quorum of {'; '.join(lost)}. What only its lost disk held cannot be "
            "brought back: repeat with --accept-loss to go on without."
        )
    new, objects = replace_data_folder(document, replica_id, data, others)
    change_stores(cluster, document, new)
    say_act("replace", cluster=document.name, replica=replica_id, data=str(data), loss_accepted=bool(lost))
    text = (
        f"{data} holds a new store for {replica_id}, with {objects} objects from the other replicas.\n"
        f"{cluster} names it. Next: give this document to every replica and caller, and start the replicas."
    )
    answer(as_json, {"id": replica_id, "data": str(data), "objects": objects, "hash": new.hash}, text)


def _named_folder(text: str) -> tuple[str, Path]:
    replica, equals, folder = text.partition("=")
    if not (replica and equals and folder):
        raise Usage(f"--from {text!r} is not ID=DIR, as --from r1=my-cluster/r1.")
    return replica, Path(folder)


@reported
def up(
    replicas: Annotated[
        int | None, typer.Option("--replicas", "-n", min=1, max=REPLICAS_MAX, help="How many; 3 if new.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Keep everything there; else in a folder that goes away."),
    ] = None,
    ports: PortsOption = "",
    cluster: Annotated[
        Path | None, typer.Option("--cluster", "-c", metavar="FILE", help="Run this document.")
    ] = None,
    deadline_s: Annotated[
        float, typer.Option("--deadline", metavar="SECONDS", min=0.01, help="To be ready within.")
    ] = READY_DEADLINE_S,
    probe_every: Annotated[
        str,
        typer.Option(
            "--probe-every",
            metavar=PROBE_EVERY,
            help="Have each replica note at each such step, in DIR/probe-log, which replicas vote as it sees them, for `quorate report --cluster DIR`.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Run all replicas of a cluster in this terminal; one JSON line when all are ready. Ctrl-C stops them.

    Started again with the same --data, it goes on with the same document and the same contents.
    """
    del as_json  # The answer is a JSON line in any case.
    if probe_every:
        probe_step_s(probe_every)
    with stopped_at_end(data) as (root, at_end):
        running = at_end.enter_context(_local_cluster(root, cluster, replicas, ports))
        if probe_every:
            _note_probes(running, probe_every)
        running.start()
        running.ready(deadline_s)
        answer(True, running.as_json())
        are_ready = (
            "1 replica is ready" if len(running.urls) == 1 else f"{len(running.urls)} replicas are ready"
        )
        say(
            f"{are_ready}, and shown at {next(iter(running.urls.values()))}/ui. "
            f"In another terminal: export QUORATE_CLUSTER={running.document_path}"
        )
        for line in without_code(ask_all(running.document)) if running.document.own_types else []:
            say(f"{line}.")
        _watch(running)


@contextmanager
def stopped_at_end(data: Path | None) -> Iterator[tuple[Path, ExitStack]]:
    """A folder for what runs in this terminal, and the stack that stops it; Ctrl-C and the signals to stop end the work. Without `data` it is a
    new folder, which is removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    root = Path(tempfile.mkdtemp(prefix="quorate-")) if data is None else data.resolve()
    at_end = ExitStack()
    try:
        yield root, at_end
    except KeyboardInterrupt:
        say("Stopping.")
    finally:
        # From here on stopping is under way already; another Ctrl-C must not break it off.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        at_end.close()
        if data is None:
            shutil.rmtree(root, ignore_errors=True)


def _local_cluster(root: Path, cluster: Path | None, replicas: int | None, ports: str) -> LocalCluster:
    """The cluster of the document that is given or lies in the folder; a new one where there is none."""
    document_path = cluster.resolve() if cluster else root / DEFAULT_NAME
    if cluster is None and not document_path.exists():
        wanted = _ports(ports, replicas)
        return LocalCluster.create(
            root, replicas=replicas or len(wanted) or 3, ports=wanted or None, token=read_token()
        )
    found = LocalCluster(root, document_path, token=read_token())
    here = [urlsplit(url).port for url in found.urls.values()]
    if (ports and _ports(ports, replicas) != here) or (replicas is not None and replicas != len(here)):
        raise Usage(
            f"{document_path} says already which replicas there are ({', '.join(found.urls.values())}): "
            "leave out --replicas and --ports, or name another folder with --data."
        )
    make_root(root)
    found.format_missing()
    left, elsewhere = found.go_on()
    if left:
        say(f"No members any more, and not started: {', '.join(sorted(left))}.")
    if elsewhere:
        names = ", ".join(sorted(elsewhere))
        say(f"Members without a folder here, or with another URL than {HERE}PORT, and not started: {names}.")
    return found


def _note_probes(running: LocalCluster, every: str) -> None:
    """Have all replicas note what they see, in a folder beside their own."""
    for id in running.urls:
        running.serve_options[id] = [
            "--probe-log",
            str(running.root / PROBE_LOG_NAME),
            "--probe-every",
            every,
        ]


def _watch(running: LocalCluster) -> None:
    """Say so when a replica ends by itself, for as long as one is left."""
    while running.pids:
        for id, code in running.died():
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}: {running.last_words(id)}"
            own = f"--cluster {running.document_path} --id {id} --data {running.data_folder(id)}"
            again = " ".join(["quorate serve", own, *running.serve_options.get(id, ())])
            say(
                f"Replica {id} ended by itself ({how}). The others go on. Its log: {running.log_file(id)}\n"
                f"To have it back: {again}"
            )
        time.sleep(_WATCH_S)
    say("No replica is left.")
    raise typer.Exit(EXIT_FAILED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _check_empty(folders: Iterable[Path]) -> None:
    """Before anything is written: a document without its folders would be half a cluster."""
    for folder in folders:
        found = next(each for each in (folder, *folder.parents) if each.exists())
        if not found.is_dir():
            raise Usage(
                f"{found} cannot be used as a folder: it is a file; nothing was changed. Name another with --data-root."
            )
        if folder.exists() and any(folder.iterdir()):
            raise Usage(f"{folder} is not empty; nothing was changed. Name another folder with --data-root.")


def _ports(text: str, replicas: int | None) -> list[int]:
    """The ports of `P1,P2,…`; none for an empty text."""
    if not text:
        return []
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < 65536 for word in words):
        raise Usage(f"--ports {text!r}: give port numbers with commas between them, as 8001,8002,8003.")
    if len(set(words)) < len(words) or (replicas is not None and len(words) != replicas):
        raise Usage(
            f"--ports {text!r}: give one port for each of the {replicas or len(words)} replicas, none twice."
        )
    return [int(word) for word in words]


def _range(base_port: int, replicas: int) -> list[int]:
    if not 0 < base_port <= 65536 - replicas:
        raise Usage(f"--base-port {base_port}: {replicas} ports from there on must lie within 1 to 65535.")
    return list(range(base_port, base_port + replicas))


def _urls(host: str, ports: list[int]) -> dict[str, str]:
    shown = f"[{host}]" if ":" in host else host
    return {f"r{number}": f"http://{shown}:{port}" for number, port in enumerate(ports, 1)}


def _named_urls(words: list[str]) -> dict[str, str]:
    urls: dict[str, str] = {}
    for word in words:
        id, equals, url = word.partition("=")
        if not equals or id in urls:
            raise Usage(f"--replica {word!r}: write ID=URL, as r1=http://host:8000, and each id once.")
        urls[id] = url
    return urls
