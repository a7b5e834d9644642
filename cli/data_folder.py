"""What the command line asks of the replica room: format a data folder, replace a lost one, run a replica.

That room is imported only when it is asked, so that the other commands work where only the client is installed. Its
refusals become this room's.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

from quorate.api_specs.cluster import ClusterDocument
from quorate.cli.failure import Failure, Usage


def check_member(document: ClusterDocument, replica_id: str) -> None:
    """Usage unless the document has that replica."""
    if replica_id not in document.urls:
        raise Usage(
            f"The cluster document has no replica {replica_id!r}: use one of {', '.join(document.urls)}."
        )


def format_data_folder(folder: Path, document: ClusterDocument, replica_id: str) -> None:
    """Make the data folder of a replica that never ran; Failure when there is a store already."""
    from quorate.replica.identity import FolderRefused, format_store  # noqa: PLC0415

    check_member(document, replica_id)
    try:
        format_store(folder, document, replica_id)
    except FolderRefused as error:
        raise Failure(f"{error}.") from None


def replace_data_folder(
    old: ClusterDocument, new: ClusterDocument, replica_id: str, folder: Path, others: dict[str, Path]
) -> int:
    """Fill a new store from all the others; the number of objects. Failure when a folder cannot be used."""
    from quorate.replica.identity import FolderRefused  # noqa: PLC0415
    from quorate.replica.replacement import make_replacement  # noqa: PLC0415

    try:
        return make_replacement(old, new, replica_id, folder, others)
    except FolderRefused as error:
        raise Failure(f"{error}.") from None


def what_is_lost(document: ClusterDocument, replica_id: str) -> list[str]:
    """The event classes of which the lost replica alone may have been a final quorum."""
    from quorate.replica.replacement import loses  # noqa: PLC0415

    return loses(document, replica_id)


def with_new_store(document: ClusterDocument, replica_id: str) -> ClusterDocument:
    """The document with a new store id for the replica."""
    from quorate.replica.replacement import with_store  # noqa: PLC0415

    return with_store(document, replica_id, secrets.token_hex(8))


def run_replica(
    document: ClusterDocument,
    replica_id: str,
    folder: Path,
    *,
    host: str | None,
    port: int | None,
    token: str | None,
    clock_offset_s: float = 0.0,
    endpoints: Mapping[str, str] | None = None,
) -> None:
    """Serve until a signal; Failure when the folder or the address cannot be used."""
    from quorate.replica.identity import FolderRefused  # noqa: PLC0415
    from quorate.replica.server import ServeRefused, log_to_stderr, serve  # noqa: PLC0415

    check_member(document, replica_id)
    log_to_stderr(replica_id)
    try:
        serve(
            document,
            replica_id,
            folder,
            host=host,
            port=port,
            token=token,
            clock_offset_s=clock_offset_s,
            endpoints=endpoints,
        )
    except (FolderRefused, ServeRefused) as error:
        raise Failure(f"{error}.") from None
