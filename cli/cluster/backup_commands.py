"""`quorate backup|restore|restore-cluster`: copies of replicas' stores, and what becomes of them."""

import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ...api_specs.cluster import ClusterDocument
from ..credentials import read_token
from ..failure import EXIT_FAILED, Failure, Usage
from ..options import ClusterOption, DocumentOption
from ..output import AsJson, answer, reported, say_act
from .data_folder import back_up_data_folder, restore_all, restore_data_folder
from .document import DEFAULT_NAME, change_stores, check_member, read_document
from .running_backup import back_up_running
from .status import cluster_document

_MIB: Final = 1024 * 1024


@reported
def backup(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="A new folder for the backup, or for all of them."),
    ],
    cluster: ClusterOption = DEFAULT_NAME,
    replica_id: Annotated[
        str, typer.Option("--id", metavar="ID", help="Only this replica; else each, into DIR/ID.")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Its data folder, when it is stopped; with --id."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Back up replicas that run (with a token of scope admin), or the data folder of one that is stopped.

    What was acknowledged before a backup began is in it. Each is checked before it counts.
    """
    document = cluster_document(cluster)
    if replica_id:
        check_member(document, replica_id)
    elif data is not None:
        raise Usage("--data is of one replica: say which with --id.")
    if data is not None:
        taken = [_told(out, back_up_data_folder(document, replica_id, data, out))]
        failed: dict[str, str] = {}
    else:
        folders = {replica_id: out} if replica_id else {id: out / id for id in document.urls}
        taken, failed = _back_up_all(document, folders)
    lines = [
        f"{each['folder']}: {each['replica']} with {each['objects']} objects, {each['bytes'] / _MIB:.1f} MiB, as of {each['began']}."
        for each in taken
    ]
    lines += [f"{id}: no backup: {why}." for id, why in failed.items()]
    answer(as_json, {"backups": taken, "failed": failed}, "\n".join(lines))
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _back_up_all(
    document: ClusterDocument, folders: dict[str, Path]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """One after the other: what was made, and of which replicas none, and why."""
    taken, failed = [], {}
    token = read_token()
    for id, folder in folders.items():
        try:
            taken.append(_told(folder, back_up_running(document, id, token, folder)))
        except Failure as error:
            failed[id] = str(error).rstrip(".")
    return taken, failed


def _told(folder: Path, manifest: Any) -> dict[str, Any]:
    facts = {
        name: getattr(manifest, name)
        for name in ("cluster", "replica", "store", "objects", "bytes", "sha256")
    }
    say_act("backup", data=str(folder), cluster=manifest.cluster, replica=manifest.replica)
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(manifest.began_us / 1e6))
    return {"folder": str(folder), **facts, "incarnation": manifest.incarnation, "began": began}


@reported
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder of a backup.")],
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The replica's data folder: a new or empty one.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a data folder of one replica's backup. Nothing need be stopped.

    It has an id of its own and does not vote, for it has forgotten what was promised since: `quorate replace` makes a
    store that votes of it and of the other replicas'.
    """
    manifest, store = restore_data_folder(backup, data)
    say_act("restore", cluster=manifest.cluster, replica=manifest.replica, data=str(data))
    text = (
        f"{data} holds the backup of {manifest.replica}, as store {store}; it does not vote.\n"
        f"Next: stop all replicas, then quorate replace --id {manifest.replica} --data NEW_DIR --from {manifest.replica}={data} "
        "and --from ID=DIR for each other replica. Are all lost? quorate restore-cluster."
    )
    answer(as_json, {"id": manifest.replica, "data": str(data), "store": store}, text)


@reported
def restore_cluster(
    cluster: DocumentOption,
    backups: Annotated[
        list[Path], typer.Argument(metavar="BACKUP…", help="The folders of the backups, one of each replica.")
    ],
    data_root: Annotated[
        Path, typer.Option("--data-root", metavar="DIR", help="Where to make the data folders: DIR/r1 …")
    ],
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Go on without backups of all replicas."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make all data folders anew from backups of all replicas, taken at whatever moments. Stop every replica first.

    What ended before the first of the backups began is there. What was under way or came later may be there or not.
    """
    document = read_document(cluster)
    new, objects = restore_all(document, backups, data_root, accept_loss=accept_loss)
    change_stores(cluster, document, new)
    say_act("restore-cluster", cluster=document.name, data=str(data_root), loss_accepted=accept_loss)
    text = (
        f"{data_root} holds a data folder for each of {', '.join(new.votes)}, with {objects} objects.\n"
        f"{cluster} names the new stores. Next: bring each folder to its machine, give this document to every replica and "
        "caller, and start the replicas."
    )
    folders = {id: str(data_root / id) for id in new.votes}
    answer(as_json, {"data": folders, "objects": objects, "hash": new.hash}, text)
