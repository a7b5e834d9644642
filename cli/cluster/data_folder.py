"""What the command line asks of the replica room: to format a data folder, replace a lost one, take and restore backups.

That room is imported only when it is asked, so that the other commands work where only the client is installed. Its
refusals become this room's.
"""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import loses
from ...replica.data_folder.private_folders import make_private_folder
from ..failure import Failure
from ..files import used_as_folder
from .document import check_member

if TYPE_CHECKING:
    from ...replica.data_folder.backup import Manifest


@contextmanager
def refusals_told() -> Iterator[None]:
    """Within, what the replica room refuses is a Failure."""
    from ...replica.data_folder.backup import BackupRefused  # noqa: PLC0415
    from ...replica.data_folder.identity import FolderRefused  # noqa: PLC0415

    try:
        yield
    except (BackupRefused, FolderRefused) as error:
        raise Failure(f"{error}.") from None


@refusals_told()
def format_data_folder(folder: Path, document: ClusterDocument, replica_id: str) -> None:
    """Make the data folder of a replica that never ran; Failure when there is a store already."""
    from ...replica.data_folder.identity import format_store  # noqa: PLC0415

    check_member(document, replica_id)
    format_store(folder, document, replica_id)


@contextmanager
def formatted_data_folders(folders: Mapping[str, Path], document: ClusterDocument) -> Iterator[None]:
    """The data folders of a new cluster, by replica; none is left if anything goes wrong within. Raises Failure."""
    from ...replica.data_folder.identity import formatted  # noqa: PLC0415

    with refusals_told(), formatted(folders, document):
        yield


def make_root(root: Path) -> None:
    """Make the folder in which data folders and logs of replicas will lie, for its owner alone, unless it is there."""
    with used_as_folder(root, "--data"):
        make_private_folder(root)


@refusals_told()
def replace_data_folder(
    document: ClusterDocument, replica_id: str, folder: Path, others: dict[str, Path]
) -> tuple[ClusterDocument, int]:
    """Fill a new store from all the others: the document that names it, and the number of objects. Raises Failure."""
    from ...replica.data_folder.replacement import make_replacement, with_store  # noqa: PLC0415

    new = with_store(document, replica_id, secrets.token_hex(8))
    return new, make_replacement(document, new, replica_id, folder, others)


def members_noted(document: ClusterDocument, root: Path) -> ClusterDocument:
    """The cluster file with the latest configuration that a store in a folder of `root` notes, where the replicas do not run."""
    from ...replica.data_folder.identity import DATABASE_FILE  # noqa: PLC0415
    from ...replica.store.configuration import latest_at  # noqa: PLC0415

    folders = sorted(each.parent for each in root.glob(f"*/{DATABASE_FILE}"))
    return latest_at(document, folders, DATABASE_FILE)


@refusals_told()
def what_is_lost(document: ClusterDocument, replica_id: str, others: dict[str, Path]) -> list[str]:
    """The event classes of which the lost replica alone may have been a final quorum, by the configuration that the others' folders note. Raises
    Failure."""
    from ...replica.data_folder.replacement import in_force_in  # noqa: PLC0415

    members = {other: folder for other, folder in others.items() if other != replica_id}
    return loses(in_force_in(document, members), [replica_id])


@refusals_told()
def back_up_data_folder(document: ClusterDocument, replica_id: str, data: Path, folder: Path) -> "Manifest":
    """Back up the data folder of a replica that is stopped. Raises Failure."""
    from ...replica.data_folder.backup import back_up_stopped  # noqa: PLC0415

    return back_up_stopped(document, replica_id, data, folder, time.time_ns() // 1000)


@refusals_told()
def restore_data_folder(backup: Path, data: Path) -> tuple["Manifest", str]:
    """Make a data folder of a backup: its manifest, and the id of the new store. Raises Failure."""
    from ...replica.data_folder.backup import restore  # noqa: PLC0415

    manifest, identity = restore(backup, data)
    return manifest, identity.store


@refusals_told()
def restore_all(
    document: ClusterDocument, backups: list[Path], root: Path, *, accept_loss: bool
) -> tuple[ClusterDocument, int]:
    """Make all data folders of a cluster: its document with the new stores, and the number of objects. Raises Failure."""
    from ...replica.data_folder.backup import restore_cluster, sort_backups  # noqa: PLC0415

    return restore_cluster(document, sort_backups(document, backups, accept_loss=accept_loss), root)
