"""Backups: a folder with a copy of one replica's database and a manifest that says what it is.

Owns their form, how a copy is checked before it counts as one, and what of them may become a data folder again. A store made
of a backup has forgotten what its replica promised since: it gets an id of its own and does not vote
(`quorate.replica.data_folder.identity`); how a cluster goes on from backups is said in `quorate.replica.data_folder.replacement`.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from io import BufferedIOBase
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import in_force, loses
from ...api_specs.limits import REPLICAS_MAX
from ...api_specs.messages import NOT_DECODED
from ...timestamps.timestamp import Timestamp
from ..protocol.witness import Witness
from ..store import statements
from ..store.configuration import in_force_at
from ..store.database import Database, StorageFailed, copy_database, make_private
from ..store.integrity import damage_in
from ..store.records import without_sum
from ..store.statements import SCHEMA_NEWEST, SCHEMA_OLDEST
from .identity import (
    DATABASE_FILE,
    FolderRefused,
    Identity,
    claim_restored,
    empty_folder,
    format_store,
    identity_in,
    open_folder,
)
from .private_folders import make_private_folder, remove_made, write_durably
from .replacement import fill, latest_of, open_source, with_store

MANIFEST_FILE: Final = "backup.json"
MANIFEST_BYTES_MAX: Final = 1024 * 1024
FORM: Final = 1
_UNFINISHED: Final = DATABASE_FILE + ".new"


class BackupRefused(Exception):
    """The backup cannot be made, or must not be used; the sentence says why and what to do."""


class Taken(Struct, frozen=True):
    """When and of which process a copy was taken. `began_us` is the replica's wall clock just before; what was acknowledged
    by then is in it. `hash` is of the cluster file, with the configuration in force; `incarnation` is empty for a replica that did not run."""

    hash: str
    began_us: int
    incarnation: str = ""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup is of. `clock` is how far the store's clock had come, `sha256` the sum of the database's file."""

    form: int
    cluster: str
    hash: str
    replica: str
    store: str
    incarnation: str
    schema: int
    clock: Timestamp
    objects: int
    began_us: int
    bytes: int
    sha256: str


_DECODE_MANIFEST: Final = msgspec.json.Decoder(Manifest).decode


def begin(folder: Path) -> Path:
    """Make the folder of a backup, for its owner alone; where to put the copy. Raises BackupRefused."""
    try:
        make_private_folder(folder)
        if any(folder.iterdir()):
            raise BackupRefused(f"{folder} is not empty, and nothing was changed: name a new folder")
        folder.chmod(0o700)
        make_private(folder / _UNFINISHED)
    except OSError as error:
        raise BackupRefused(f"{folder} cannot be used for a backup: {error.strerror}") from None
    return folder / _UNFINISHED


def finish(folder: Path, taken: Taken) -> Manifest:
    """Check the copy that lies in `folder`, and make it a backup. Raises BackupRefused."""
    new = folder / _UNFINISHED
    identity, clock, objects = _checked(new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
        size, digest = sum_of(file)
    manifest = Manifest(
        FORM,
        identity.cluster,
        taken.hash,
        identity.replica,
        identity.store,
        taken.incarnation,
        identity.schema,
        clock,
        objects,
        taken.began_us,
        size,
        digest,
    )
    new.rename(folder / DATABASE_FILE)
    write_durably(folder / MANIFEST_FILE, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


def give_up(folder: Path) -> None:
    """Remove what `begin` has made; for a copy that did not come to its end."""
    for name in (_UNFINISHED, _UNFINISHED + "-wal", _UNFINISHED + "-shm"):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def back_up_stopped(
    document: ClusterDocument, replica_id: str, data: Path, folder: Path, now_us: int
) -> Manifest:
    """Back up the data folder of a replica that does not run. Raises FolderRefused or BackupRefused."""
    if not data.is_dir():
        raise BackupRefused(f"there is no data folder {data}")
    opened = open_folder(data, document, replica_id)
    try:
        if opened.lost is not None:
            raise BackupRefused(f"{data} holds no store that votes: {opened.lost}")
        new = begin(folder)
        try:
            copy_database(data / DATABASE_FILE, new, lambda: True)
            return finish(folder, Taken(opened.document.hash, now_us))
        except BaseException:
            give_up(folder)
            raise
    except StorageFailed as error:
        raise BackupRefused(f"{data} could not be copied to {folder}: {error}") from None
    finally:
        opened.abandon()


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup. Raises BackupRefused."""
    path = backup / MANIFEST_FILE
    try:
        with path.open("rb") as file:
            manifest = _DECODE_MANIFEST(file.read(MANIFEST_BYTES_MAX))
    except FileNotFoundError:
        inside = ", ".join(
            sorted(str(each.parent) for each in backup.glob(f"*/{MANIFEST_FILE}"))[:REPLICAS_MAX]
        )
        instead = f"; it holds backups, so name one of these: {inside}" if inside else ""
        raise BackupRefused(
            f"{backup} is no backup, or one that was not finished: there is no {MANIFEST_FILE} in it{instead}"
        ) from None
    except (OSError, *NOT_DECODED) as error:
        raise BackupRefused(f"{path} is damaged or cannot be read: {error}. Use another backup") from None
    if manifest.form != FORM or not SCHEMA_OLDEST <= manifest.schema <= SCHEMA_NEWEST:
        raise BackupRefused(
            f"{backup} was made by another release (form {manifest.form}, schema {manifest.schema}; this one reads {FORM} "
            f"and {SCHEMA_OLDEST} to {SCHEMA_NEWEST}): restore it with that release"
        )
    return manifest


def restore(backup: Path, folder: Path) -> tuple[Manifest, Identity]:
    """Make a data folder of a backup, with a store id of its own: it does not vote. Raises BackupRefused or FolderRefused."""
    manifest = read_manifest(backup)
    with empty_folder(folder):
        new = folder / _UNFINISHED
        try:
            _copy_checked(backup, manifest, new)
            return manifest, claim_restored(folder, Database(new))
        except StorageFailed as error:
            raise BackupRefused(f"{backup} could not be restored to {folder}: {error}") from None


def restore_cluster(
    document: ClusterDocument, backups: Mapping[str, Path], root: Path
) -> tuple[ClusterDocument, int]:
    """Make the data folders of all replicas, below `root`, from backups of them (by replica; see `sort_backups`): the
    document with new store ids, and the number of objects.

    Each new store holds what all backups hold together, as `make_replacement` argues for one: the cluster goes on as if each
    replica had crashed at the moment of its backup. Raises BackupRefused or FolderRefused.
    """
    new = document
    for replica in document.votes:
        new = with_store(new, replica, secrets.token_hex(8))
    try:
        made = make_private_folder(root)
        if any(root.iterdir()):
            raise BackupRefused(f"{root} is not empty, and nothing was changed: name a new folder")
    except OSError as error:
        raise BackupRefused(f"{root} cannot be used: {error.strerror}") from None
    try:
        return new, _make_all(document, new, backups, root)
    except BaseException:
        for each in root.iterdir():  # It was empty: all that is in it is ours.
            shutil.rmtree(each, ignore_errors=True)
        remove_made(made)
        raise


def _make_all(old: ClusterDocument, new: ClusterDocument, backups: Mapping[str, Path], root: Path) -> int:
    staging = root / ".restoring"
    objects = 0
    with ExitStack() as stack:
        sources = {}
        for replica, backup in backups.items():
            restore(backup, staging / replica)
            _, sources[replica] = open_source(stack, old, replica, staging / replica, may_be_restored=True)
        latest = latest_of(old, sources.values())
        if latest.votes.keys() != old.votes.keys():
            raise BackupRefused(
                f"the cluster had members {', '.join(latest.votes)} then (configuration {latest.number}), and the cluster file names "
                f"{', '.join(old.votes)}: name those in it, and give a backup of each"
            )
        for replica in new.votes:
            format_store(root / replica, new, replica)
        made = {replica: open_source(stack, new, replica, root / replica) for replica in new.votes}
        for replica, (_, target) in made.items():
            objects = fill(target, sources, latest)
            clock = target.clock
            for other, (identity, _) in made.items():
                if other != replica:
                    target.others.put_witness(other, Witness(identity.store, clock, identity.born))
            target.note_configuration(in_force(new, latest))
            target.commit()
    shutil.rmtree(staging)
    return objects


def sort_backups(document: ClusterDocument, backups: list[Path], *, accept_loss: bool) -> dict[str, Path]:
    """The backups by replica, when they are of this cluster and enough of it. Raises BackupRefused."""
    found: dict[str, Path] = {}
    configurations = {document.number: document}
    for backup in backups:
        manifest = read_manifest(backup)
        try:
            then = in_force_at(document, backup / DATABASE_FILE)
        except StorageFailed as error:
            raise BackupRefused(
                f"{backup} is damaged, or cannot be read: {error}. Use another backup"
            ) from None
        if manifest.cluster != document.name or manifest.hash != then.hash:
            raise BackupRefused(
                f"{backup} is of cluster {manifest.cluster!r} with a document of hash {manifest.hash}, and the one given is of "
                f"{document.name!r} with hash {then.hash}: give the cluster file of that time"
            )
        if manifest.replica in found:
            raise BackupRefused(
                f"{backup} and {found[manifest.replica]} are both of {manifest.replica}: give one of each"
            )
        found[manifest.replica] = backup
        configurations[then.number] = then
    missing = sorted(document.votes.keys() - found.keys())
    if missing and not accept_loss:
        lost = sorted({each for then in configurations.values() for each in loses(then, missing)})
        told = f", who alone may have held events of {'; '.join(lost)}" if lost else ""
        raise BackupRefused(
            f"there is no backup of {', '.join(missing)}{told}: give one of each replica, or repeat with --accept-loss to go "
            "on without"
        )
    return found


def _checked(file: Path) -> tuple[Identity, Timestamp, int]:
    """Whose database it is, its clock and its number of objects, once all of it was found whole."""
    try:
        opened = Database(file)
        try:
            problem = "it is empty" if opened.is_empty() else damage_in(opened)
            if problem is not None:
                raise BackupRefused(f"the copy {file} is damaged: {problem}. Take another one")
            identity = identity_in(opened)
            _, clock, *_ = without_sum("its counters", opened.one(statements.GET_COUNTERS))
            objects = int(opened.one(statements.COUNT_OBJECTS)[0])
            opened.rollback()
        finally:
            opened.close()
    except StorageFailed as error:
        raise BackupRefused(f"the copy {file} is damaged, or cannot be read: {error}") from None
    except FolderRefused as error:
        raise BackupRefused(str(error)) from None
    return identity, Timestamp(clock), objects


def _copy_checked(backup: Path, manifest: Manifest, new: Path) -> None:
    """Copy the backup's database, which must be what the manifest says."""
    make_private(new)
    try:
        with (backup / DATABASE_FILE).open("rb") as source, new.open("r+b") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
            target.seek(0)
            size, digest = sum_of(target)
    except OSError as error:
        raise BackupRefused(f"{backup / DATABASE_FILE} cannot be copied: {error.strerror}") from None
    if (size, digest) != (manifest.bytes, manifest.sha256):
        raise BackupRefused(
            f"{backup / DATABASE_FILE} is damaged: its {size} bytes do not have the sum in {MANIFEST_FILE}. Use another backup"
        )
    identity, clock, _ = _checked(new)
    if (identity.cluster, identity.replica, identity.store, clock) != (
        manifest.cluster,
        manifest.replica,
        manifest.store,
        manifest.clock,
    ):
        raise BackupRefused(
            f"{backup}: {MANIFEST_FILE} and {DATABASE_FILE} are of different backups. Use another one"
        )


def sum_of(file: BufferedIOBase) -> tuple[int, str]:
    """Size and SHA-256 of an open file that stands at its beginning."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return file.tell(), digest
