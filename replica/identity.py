"""Whose data folder it is: its identity, its lock, and whether the replica may vote from it.

A replica's promises live in its store. A store that is empty, older or another's has not made them, and a vote from it
could contradict one that others rely on. This module owns finding that out before the first vote; it must not know
what the promises are.
"""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.replica import statements
from quorate.replica.database import Database, StorageFailed, make_private
from quorate.replica.statements import SCHEMA_VERSION
from quorate.timestamps.timestamp import ZERO

DATABASE_FILE: Final = "replica.sqlite3"
IDENTITY_FILE: Final = "identity.json"
LOCK_FILE: Final = "lock"


class FolderRefused(Exception):
    """The data folder must not be used by this replica; the sentence says why and what to do."""


class Identity(Struct, frozen=True, forbid_unknown_fields=True):
    """Who a store belongs to. `store` is its own id, new with each store ever made."""

    cluster: str
    replica: str
    store: str
    schema: int


class Folder:
    """An open data folder, locked for this process until `close`.

    `lost` is None, or the sentence that says why this replica must not vote; then there is no database.
    """

    def __init__(
        self, path: Path, lock: int, identity: Identity, database: Database | None, lost: str | None
    ) -> None:
        self.path: Final = path
        self.identity: Final = identity
        self.database: Final = database
        self.lost: Final = lost
        self.incarnation: Final = secrets.token_hex(8)
        self._lock: int | None = lock

    def close(self) -> None:
        """Let another process use the folder. The database is closed by whom it was given to."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def abandon(self) -> None:
        """Close the database too, for a folder that nobody will serve."""
        if self.database is not None:
            self.database.close()
        self.close()


def open_folder(path: Path, document: ClusterDocument, replica_id: str) -> Folder:
    """The replica's data folder, made on its first start. Raises FolderRefused."""
    replica = _replica(document, replica_id)
    _make_folder(path)
    lock = _lock(path)
    try:
        return _opened(path, lock, document, replica)
    except BaseException:
        os.close(lock)
        raise


def format_store(path: Path, document: ClusterDocument, replica_id: str) -> str:
    """Make the data folder of a replica that never voted, with the store id of the document (a new one when it has
    none), and return that id. Raises FolderRefused when there is a store already.

    Only for a new cluster: a replica that lost its store must not get its old id on an empty one.
    """
    replica = _replica(document, replica_id)
    _make_folder(path)
    lock = _lock(path)
    try:
        if (path / DATABASE_FILE).exists() or (path / IDENTITY_FILE).exists():
            raise FolderRefused(
                f"{path} already holds a store: give an empty folder, or start the replica on it"
            )
        identity = Identity(document.name, replica_id, replica.store or secrets.token_hex(8), SCHEMA_VERSION)
        _create(path, identity).close()
        return identity.store
    finally:
        os.close(lock)


def _replica(document: ClusterDocument, replica_id: str) -> ReplicaInfo:
    for replica in document.replicas:
        if replica.id == replica_id:
            return replica
    known = ", ".join(document.votes)
    raise FolderRefused(f"the cluster document has no replica {replica_id!r}: it has {known}")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise FolderRefused(f"the data folder {path} cannot be used: {error.strerror}") from None


def _lock(path: Path) -> int:
    """The kernel drops this lock with the process, however that ends, so it is never stale."""
    lock = os.open(path / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise FolderRefused(
            f"{path} is in use by another process: stop that one, or give this replica a folder of its own"
        ) from None
    return lock


def _opened(path: Path, lock: int, document: ClusterDocument, replica: ReplicaInfo) -> Folder:
    written = _read_identity(path)
    if written is not None:
        _check(path, written, document, replica)
    opened = _open_database(path / DATABASE_FILE)
    if opened is None:
        if written is not None or replica.store:
            expected = written.store if written is not None else replica.store
            identity = Identity(document.name, replica.id, expected, SCHEMA_VERSION)
            return Folder(path, lock, identity, None, _lost(path, identity))
        identity = Identity(document.name, replica.id, secrets.token_hex(8), SCHEMA_VERSION)
        return Folder(path, lock, identity, _create(path, identity), None)
    try:
        identity = _identity_in(opened, path)
        _check(path, identity, document, replica)
        if identity.schema < SCHEMA_VERSION:
            identity = _upgraded(opened, identity)
        if written != identity:
            if written is not None and written.store != identity.store:
                raise FolderRefused(f"{path}: {IDENTITY_FILE} and {DATABASE_FILE} are of different stores")
            _write_identity(path, identity)
    except BaseException:
        with contextlib.suppress(StorageFailed):
            opened.close()
        raise
    return Folder(path, lock, identity, opened, None)


def _lost(path: Path, identity: Identity) -> str:
    return (
        f"replica {identity.replica} has voted before, from store {identity.store}, and {path} does not hold that "
        "store: its promises are forgotten, so it does not vote. Put the folder back, complete and not from a backup, "
        "or stop all replicas and make a new store from the others' with `quorate replace`"
    )


def _check(path: Path, found: Identity, document: ClusterDocument, replica: ReplicaInfo) -> None:
    if found.schema > SCHEMA_VERSION:
        raise FolderRefused(
            f"{path} was written by a newer release (schema {found.schema}, this one knows {SCHEMA_VERSION}): "
            "install that release again"
        )
    if found.cluster != document.name:
        raise FolderRefused(f"{path} belongs to cluster {found.cluster!r}, not to {document.name!r}")
    if found.replica != replica.id:
        raise FolderRefused(f"{path} belongs to replica {found.replica!r}, not to {replica.id!r}")
    if replica.store and found.store != replica.store:
        raise FolderRefused(
            f"{path} holds store {found.store}, but the cluster document says that {replica.id} votes from store "
            f"{replica.store}: find that one's folder"
        )


def _create(path: Path, identity: Identity) -> Database:
    """Identity and tables in one transaction, then identity.json: a crash in between leaves a complete database or an
    empty one, and an empty one has never voted."""
    make_private(path / DATABASE_FILE)
    opened = Database(path / DATABASE_FILE)
    _create_tables(opened, identity)
    _write_identity(path, identity)
    return opened


def _create_tables(opened: Database, identity: Identity) -> None:
    opened.create_tables()
    names = identity.__struct_fields__
    opened.write(statements.PUT_META, *((name, str(getattr(identity, name))) for name in names))
    opened.write(statements.NEW_COUNTERS, (1, 0, ZERO, ZERO))
    opened.commit()


def _open_database(file: Path) -> Database | None:
    """None without a file, and for one whose making was cut off: it has no tables, and nobody voted from it."""
    if not file.exists():
        return None
    try:
        opened = Database(file)
        problem = opened.check()
        is_empty = opened.is_empty()
        opened.commit()
    except StorageFailed as error:
        raise FolderRefused(f"{file} cannot be opened: {error}. {_DAMAGED}") from error
    if problem is not None:
        opened.close()
        raise FolderRefused(f"{file} is damaged: {problem}. {_DAMAGED}")
    if is_empty:
        opened.close()
        return None
    return opened


_DAMAGED: Final = "Do not delete it: this replica's promises are in it. Repair the disk, or stop all replicas and use `quorate replace`"


def _upgraded(opened: Database, identity: Identity) -> Identity:
    """Bring the tables to this release's schema, all or nothing."""
    opened.add_missing_tables()
    opened.write(statements.SET_META, (str(SCHEMA_VERSION), "schema"))
    opened.commit()
    return msgspec.structs.replace(identity, schema=SCHEMA_VERSION)


def _identity_in(opened: Database, path: Path) -> Identity:
    try:
        meta = dict(opened.all(statements.GET_META))
        opened.commit()
        return msgspec.convert(meta, Identity, strict=False)
    except (StorageFailed, msgspec.ValidationError):
        raise FolderRefused(f"{path / DATABASE_FILE} is no database of a replica. {_DAMAGED}") from None


def _read_identity(path: Path) -> Identity | None:
    file = path / IDENTITY_FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise FolderRefused(f"{file} cannot be read: {error}") from None


def _write_identity(path: Path, identity: Identity) -> None:
    temporary = path / (IDENTITY_FILE + ".new")
    file = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.write(file, msgspec.json.format(msgspec.json.encode(identity)) + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    temporary.rename(path / IDENTITY_FILE)
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
