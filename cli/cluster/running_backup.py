"""The backup of a replica that runs: asked for over HTTP, and checked as it comes.

The replica room is imported only when it is asked, so that the other commands work where only the client is installed.
"""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import NOT_DECODED
from ..failure import Failure
from .data_folder import refusals_told
from .probe import NoAnswer, WrongToken, download

if TYPE_CHECKING:
    from ...replica.data_folder.backup import Manifest, Taken


@refusals_told()
def back_up_running(
    document: ClusterDocument, replica_id: str, token: str | None, folder: Path
) -> "Manifest":
    """Back up a replica that runs. Raises Failure, after which nothing is left in `folder`."""
    from ...replica.api.admin_api import BACKUP_PATH  # noqa: PLC0415
    from ...replica.data_folder.backup import begin, finish, give_up  # noqa: PLC0415

    try:
        new = begin(folder)
        try:
            with new.open("r+b") as file:
                headers = download(document.urls[replica_id], BACKUP_PATH, token, file)
            manifest = finish(folder, _taken(new, headers))
            if (manifest.cluster, manifest.replica) != (document.name, replica_id):
                raise Failure(
                    f"{document.urls[replica_id]} is {manifest.replica} of {manifest.cluster}: correct the document's urls."
                )
        except BaseException:
            give_up(folder)
            raise
    except NoAnswer as error:
        advice = "; set QUORATE_TOKEN to a token of scope admin" if isinstance(error, WrongToken) else ""
        raise Failure(
            f"{replica_id} at {document.urls[replica_id]} gave no backup: {error}{advice}"
        ) from None
    return manifest


def _taken(copy: Path, headers: Mapping[str, str]) -> "Taken":
    """What the answer's headers tell, once they fit the copy that came. Raises NoAnswer."""
    from ...replica.api.admin_api import DIGEST_HEADER, TAKEN_HEADER  # noqa: PLC0415
    from ...replica.data_folder.backup import Taken  # noqa: PLC0415

    found = {name.lower(): value for name, value in headers.items()}
    with copy.open("rb") as file:
        digest = base64.b64encode(hashlib.file_digest(file, "sha256").digest()).decode()
    if found.get(DIGEST_HEADER.lower()) != f"sha-256=:{digest}:":
        raise NoAnswer("what came is not what it sent, or is cut short: try again")
    try:
        return msgspec.json.decode(found.get(TAKEN_HEADER.lower(), ""), type=Taken)
    except NOT_DECODED:
        raise NoAnswer("it answers, but not as a replica does") from None
