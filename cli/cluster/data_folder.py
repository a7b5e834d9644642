"""What the command line asks of the replica room: format a data folder, replace a lost one, run a replica.

That room is imported only when it is asked, so that the other commands work where only the client is installed. Its
refusals become this room's.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import ADDRESS_SHARE_MAX, Capacity
from ...client_sdk.transport.tls import from_environment
from ..credentials import read_token
from ..failure import Failure, Usage

if TYPE_CHECKING:
    from ...replica.access.token_list import Access


def check_member(document: ClusterDocument, replica_id: str) -> None:
    """Usage unless the document has that replica."""
    if replica_id not in document.urls:
        raise Usage(
            f"The cluster document has no replica {replica_id!r}: use one of {', '.join(document.urls)}."
        )


def format_data_folder(folder: Path, document: ClusterDocument, replica_id: str) -> None:
    """Make the data folder of a replica that never ran; Failure when there is a store already."""
    from ...replica.data_folder.identity import FolderRefused, format_store  # noqa: PLC0415

    check_member(document, replica_id)
    try:
        format_store(folder, document, replica_id)
    except FolderRefused as error:
        raise Failure(f"{error}.") from None


def make_root(root: Path) -> None:
    """Make the folder in which data folders and logs of replicas will lie, for its owner alone, unless it is there."""
    from ...replica.data_folder.private_folders import make_private_folder  # noqa: PLC0415

    try:
        make_private_folder(root)
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror
        raise Usage(f"{root} cannot be used as a folder: {reason}. Name another with --data.") from None


def replace_data_folder(
    old: ClusterDocument, new: ClusterDocument, replica_id: str, folder: Path, others: dict[str, Path]
) -> int:
    """Fill a new store from all the others; the number of objects. Failure when a folder cannot be used."""
    from ...replica.data_folder.identity import FolderRefused  # noqa: PLC0415
    from ...replica.data_folder.replacement import make_replacement  # noqa: PLC0415

    try:
        return make_replacement(old, new, replica_id, folder, others)
    except FolderRefused as error:
        raise Failure(f"{error}.") from None


def what_is_lost(document: ClusterDocument, replica_id: str) -> list[str]:
    """The event classes of which the lost replica alone may have been a final quorum."""
    from ...replica.data_folder.replacement import loses  # noqa: PLC0415

    return loses(document, [replica_id])


def with_new_store(document: ClusterDocument, replica_id: str) -> ClusterDocument:
    """The document with a new store id for the replica."""
    from ...replica.data_folder.replacement import with_store  # noqa: PLC0415

    return with_store(document, replica_id, secrets.token_hex(8))


class ServeOptions(Struct, frozen=True):
    """How a replica is served, as the command line says it; see `quorate.replica.server.server.Door`. `tls_files` are its
    certificate, its key, and the authority of its callers; empty where not given."""

    host: str | None = None
    port: int | None = None
    tls_files: tuple[str, str, str] = ("", "", "")
    allows_plain: bool = False
    allows_anyone: bool = False
    clock_offset_s: float = 0.0
    endpoints: Mapping[str, str] | None = None
    logs_json: bool = False
    traces: str = ""
    address_share: float = ADDRESS_SHARE_MAX
    capacity: Capacity = Capacity()


def run_replica(document: ClusterDocument, replica_id: str, folder: Path, options: ServeOptions) -> None:
    """Serve until a signal, with the tokens of the environment; Failure when the folder or the address cannot be used."""
    from ...replica.data_folder.identity import FolderRefused  # noqa: PLC0415
    from ...replica.http.server_tls import ServerTls  # noqa: PLC0415
    from ...replica.logs.formats import log_to_stderr  # noqa: PLC0415
    from ...replica.server.server import Door, ServeRefused, Settings, serve  # noqa: PLC0415

    check_member(document, replica_id)
    certificate, key, client_ca = options.tls_files
    if bool(certificate) != bool(key) or (client_ca and not certificate):
        raise Usage("Give --tls-cert and --tls-key together; --tls-client-ca goes with both.")
    door = Door(
        options.host,
        options.port,
        ServerTls(certificate, key, client_ca) if certificate else None,
        from_environment(),
        allows_plain=options.allows_plain,
        allows_anyone=options.allows_anyone,
        address_share=options.address_share,
    )
    access = _access()
    log_to_stderr(replica_id, is_json=options.logs_json)
    try:
        serve(
            document,
            replica_id,
            folder,
            door=door,
            access=access,
            settings=Settings(options.capacity, options.endpoints, options.traces, options.clock_offset_s),
        )
    except (FolderRefused, ServeRefused) as error:
        raise Failure(f"{error}.") from None


def _access() -> "Access":
    """Which tokens the environment says are accepted."""
    from ...replica.access.token_list import BadTokens, from_file, from_text, one_token  # noqa: PLC0415

    token = read_token()
    file, text = os.environ.get("QUORATE_TOKENS_FILE", ""), os.environ.get("QUORATE_TOKENS", "")
    if file and text:
        raise Usage("QUORATE_TOKENS_FILE and QUORATE_TOKENS are both set: keep one.")
    try:
        if file:
            return from_file(Path(file), token)
        return from_text(text, token) if text else one_token(token)
    except BadTokens as error:
        raise Usage(f"{error}.") from None


def audit_line(act: str, **facts: str | bool) -> str:
    """The audit line of an act that changes a data folder."""
    from ...replica.logs import audit  # noqa: PLC0415

    return audit.audit_line(act, **facts)
