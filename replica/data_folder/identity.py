"""Whose data folder it is: its identity, its lock, and whether the replica may vote from it.

A replica's promises live in its store. A store that is empty, older or another's has not made them, and a vote from it
could contradict one that others rely on. This module owns finding that out before the first vote; it must not know
what the promises are.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ...api_specs.configuration import in_force
from ...timestamps.timestamp import ZERO
from ..store import statements
from ..store.configuration import before_in, chosen_in, noted_in, refusal
from ..store.database import Database, StorageFailed, make_private
from ..store.integrity import damage_in
from ..store.records import with_sum
from ..store.statements import SCHEMA_NEWEST, SCHEMA_OLDEST
from .private_folders import make_private_folder, remove_made, write_durably

DATABASE_FILE: Final = "replica.sqlite3"
IDENTITY_FILE: Final = "identity.json"
LOCK_FILE: Final = "lock"
COPY_FILE: Final = "backup.part"
"""A copy that is being made for a backup."""
_STORE_FILES: Final = (
    *(DATABASE_FILE + suffix for suffix in ("", "-wal", "-shm", "-journal")),
    *(IDENTITY_FILE + suffix for suffix in ("", ".new")),
)
_OWN_NAMES: Final = (DATABASE_FILE, IDENTITY_FILE, LOCK_FILE, COPY_FILE, "lost+found")
"""How the names of files begin that a replica may find without a store: its own, and those of an empty disk."""


class FolderRefused(Exception):
    """The data folder must not be used by this replica; the sentence says why and what to do."""


class FolderBusy(FolderRefused):
    """It cannot be used now, and may be later: another process uses it, or its disk has no room."""


class Identity(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who a store belongs to. `store` is its id, which the cluster file may name beforehand; `born` is new with each store
    ever made; `restored_from` the id of the store of whose backup it was made, if it was."""

    cluster: str
    replica: str
    store: str
    schema: int
    restored_from: str = ""
    born: str = ""


_DECODE: Final = msgspec.json.Decoder(Identity).decode


def new_incarnation() -> str:
    """The id of one run of a replica, or of what counts as one."""
    return secrets.token_hex(8)


@dataclass
class Folder:
    """An open data folder, locked for this process until `close`.

    `file` is the cluster file, `chosen` the configuration that the store notes where that was chosen while the cluster ran. `lost` is
    None, or the sentence that says why this replica must not vote; then there is no database, unless it voted under another
    configuration (`is_other`). `is_new`: its store has never voted. `joins_at`: where a replica is reached that is no member yet. `before`:
    of one that became a member while the cluster ran, the last configuration in which it was none.
    """

    path: Path
    lock: int | None
    file: ClusterDocument
    identity: Identity
    database: Database | None
    lost: str | None = None
    is_new: bool = False
    chosen: ClusterDocument | None = None
    joins_at: str = ""
    before: ClusterDocument | None = None
    incarnation: str = field(init=False, default_factory=new_incarnation)

    @property
    def document(self) -> ClusterDocument:
        """The cluster file, with the configuration that was in force when the folder was opened."""
        return self.file if self.chosen is None else in_force(self.file, self.chosen)

    @property
    def url(self) -> str:
        """Where the replica is reached."""
        return self.document.urls.get(self.identity.replica, self.joins_at)

    def why_no_member(self, document: ClusterDocument) -> str | None:
        """Why the replica must not vote in this configuration, nor ever again; None when nothing speaks against it."""
        own = self.identity.replica
        if own in document.former_members:
            return (
                f"replica {own} is a member no more, as of configuration {document.number} or one before: stop it, and remove {self.path}. Give a new "
                "replica another id and an empty folder"
            )
        if document.stores.get(own, "") not in ("", self.identity.store):
            return (
                f"replica {own} became a member with store {document.stores[own]}, and {self.path} holds store {self.identity.store}, which must not "
                "vote: find that one's folder, or remove the member with `quorate member remove`, and give a new replica another id"
            )
        return None

    def raise_schema(self) -> None:
        """The store comes to hold a configuration that was chosen while the cluster ran: releases that do not know of those shall refuse the folder before they
        open its database, which says so too."""
        if self.identity.schema < SCHEMA_NEWEST:
            self.identity = replace(self.identity, schema=SCHEMA_NEWEST)
            with contextlib.suppress(OSError):  # The next start writes it.
                _write_identity(self.path, self.identity)

    @property
    def is_other(self) -> bool:
        """See above."""
        return self.lost is not None and self.database is not None

    def close(self) -> None:
        """Let another process use the folder. The database is closed by whom it was given to."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def abandon(self) -> None:
        """Close the database too, for a folder that nobody will serve."""
        if self.database is not None:
            self.database.close()
        self.close()


def open_folder(
    path: Path, document: ClusterDocument, replica_id: str, *, is_source: bool = False, joins_at: str = ""
) -> Folder:
    """The replica's data folder, made on its first start. Raises FolderRefused.

    `is_source`: not to vote from, but to copy from; then a folder that was restored has a database too. `joins_at`: the URL of a replica that
    is to become a member; for one that is a member it says nothing.
    """
    replica = _named(document, replica_id)
    if replica is None:
        known = _read_identity(path)
        if not joins_at and (known is None or known.replica != replica_id):
            raise _no_replica(document, replica_id)
        replica = ReplicaInfo(replica_id, joins_at)
    lock = _claimed(path)
    try:
        folder = _opened(path, lock, document, replica, is_source=is_source)
        if not is_source:
            _check_membership(folder, joins_at)
        return folder
    except BaseException:
        os.close(lock)
        raise


def format_store(path: Path, document: ClusterDocument, replica_id: str) -> str:
    """Make the data folder of a replica that never voted, with the store id of the document (a new one when it has
    none), and return that id. Raises FolderRefused when there is a store already.

    Only for a new cluster: a replica that lost its store must not get its old id on an empty one.
    """
    replica = _replica(document, replica_id)
    lock = _claimed(path)
    try:
        refuse_store(path, document, replica_id)
        identity = _new_identity(document, replica)
        with whole_or_removed(path):
            _create(path, identity).close()
        return identity.store
    finally:
        os.close(lock)


def refuse_store(path: Path, document: ClusterDocument, replica_id: str) -> None:
    """Raises FolderRefused where the folder holds a store, with what helps: the replica starts on its own alone, and not on what a
    `quorate replace` left that was cut off, for the document does not name that yet."""
    if not ((path / DATABASE_FILE).exists() or (path / IDENTITY_FILE).exists()):
        return
    written, named = _read_identity(path), _replica(document, replica_id).store
    if written is not None and named in ("", written.store):
        raise FolderRefused(f"{path} already holds a store: give an empty folder, or start the replica on it")
    raise FolderRefused(
        f"{path} already holds a store, but not the one that the cluster file names for {replica_id}. If a `quorate replace` that was "
        "cut off has left it, empty the folder and repeat; else name an empty folder"
    )


@contextlib.contextmanager
def formatted(folders: Mapping[str, Path], document: ClusterDocument) -> Iterator[None]:
    """The data folders of a new cluster, by replica, made of empty ones. Whatever goes wrong within, none of them is left. Raises
    FolderRefused."""
    with contextlib.ExitStack() as stack:
        for replica_id, folder in folders.items():
            stack.enter_context(empty_folder(folder))
            stack.enter_context(whole_or_removed(folder))
            _create(folder, _new_identity(document, _replica(document, replica_id))).close()
        yield


@contextlib.contextmanager
def whole_or_removed(path: Path) -> Iterator[None]:
    """Whatever goes wrong within, the new store in the folder is removed: half of one would be in the way of the next try.
    Raises FolderRefused where its disk is full, say."""
    try:
        yield
    except BaseException as error:
        for name in _STORE_FILES:
            (path / name).unlink(missing_ok=True)
        if isinstance(error, (StorageFailed, OSError)):
            raise FolderRefused(
                f"no store could be made in {path}, and none is left there: {error}. If its disk is full, make room, or name a folder "
                "on another one"
            ) from error
        raise


@contextlib.contextmanager
def empty_folder(path: Path) -> Iterator[None]:
    """A data folder that holds nothing, locked meanwhile. Raises FolderRefused. Whatever goes wrong within, what was made in it
    is removed, and the folder itself, too, if it was not there before."""
    _refuse_filled(path)  # before it is made private: it may be anybody's
    had_lock = LOCK_FILE in _names_in(path)
    made = _make_folder(path)
    lock = _lock(path)
    try:
        _refuse_filled(path)
        try:
            yield
        except BaseException:
            for each in path.iterdir():  # It was empty: all that is in it is ours.
                if not (had_lock and each.name == LOCK_FILE):
                    each.unlink()
            remove_made(made)
            raise
    finally:
        os.close(lock)


def _claimed(path: Path) -> int:
    """The lock of a folder that is the replica's own, made if it is missing."""
    _refuse_foreign(path)
    _make_folder(path)
    return _lock(path)


def _refuse_filled(path: Path) -> None:
    if any(name != LOCK_FILE for name in _names_in(path)):
        raise FolderRefused(f"{path} is not empty, and nothing was changed: name a new folder, or empty it")


def _refuse_foreign(path: Path) -> None:
    """A folder with other people's files and no store is not ours to close to them, nor to fill."""
    names = _names_in(path)
    if IDENTITY_FILE in names or DATABASE_FILE in names:
        return
    foreign = sorted(name for name in names if not name.startswith(_OWN_NAMES))
    if foreign:
        raise FolderRefused(
            f"{path} holds no store but other files ({foreign[0]} for one), and nothing was changed: name a folder of the "
            "replica's own, new or empty"
        )


def _names_in(path: Path) -> set[str]:
    try:
        return {each.name for each in path.iterdir()} if path.exists() else set()
    except OSError as error:
        raise FolderRefused(f"the data folder {path} cannot be used: {error.strerror}") from None


def claim_restored(path: Path, made: Database) -> Identity:
    """Give the database of a backup, which `made` has opened, an identity of its own and its place in the empty folder;
    closes it. Raises FolderRefused or StorageFailed."""
    was = identity_in(made)
    identity = replace(was, store=secrets.token_hex(8), restored_from=was.restored_from or was.store)
    _put_identity(made, identity)
    made.commit()
    made.close()
    made.path.rename(path / DATABASE_FILE)
    _write_identity(path, identity)
    return identity


def _new_identity(document: ClusterDocument, replica: ReplicaInfo) -> Identity:
    store = replica.store or secrets.token_hex(8)
    return Identity(document.name, replica.id, store, SCHEMA_OLDEST, born=secrets.token_hex(8))


def _named(document: ClusterDocument, replica_id: str) -> ReplicaInfo | None:
    return next((replica for replica in document.replicas if replica.id == replica_id), None)


def _replica(document: ClusterDocument, replica_id: str) -> ReplicaInfo:
    if (named := _named(document, replica_id)) is None:
        raise _no_replica(document, replica_id)
    return named


def _no_replica(document: ClusterDocument, replica_id: str) -> FolderRefused:
    known = ", ".join(document.votes)
    return FolderRefused(
        f"the cluster file has no replica {replica_id!r}: it has {known}. For a new member give --join URL, also if it is one by now"
    )


def _check_membership(folder: Folder, joins_at: str) -> None:
    """Raises FolderRefused where the replica is no member and does not join."""
    folder.joins_at = joins_at
    if folder.lost is not None:
        return
    why = folder.why_no_member(folder.document)
    if why is None and not folder.url:
        why = str(_no_replica(folder.document, folder.identity.replica))
    if why is not None:
        if folder.database is not None:
            folder.database.close()
        raise FolderRefused(why)


def _make_folder(path: Path) -> list[Path]:
    """Those that were made."""
    try:
        made = make_private_folder(path)
        path.chmod(0o700)
        return made
    except OSError as error:
        raise FolderRefused(f"the data folder {path} cannot be used: {error.strerror}") from None


def _lock(path: Path) -> int:
    """The kernel drops this lock with the process, however that ends, so it is never stale."""
    lock = os.open(path / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise FolderBusy(
            f"{path} is in use by another process: stop that one, or give this replica a folder of its own"
        ) from None
    return lock


def _opened(
    path: Path, lock: int, document: ClusterDocument, replica: ReplicaInfo, *, is_source: bool
) -> Folder:
    written = _read_identity(path)
    if written is not None:
        _check(path, written, document, replica)
    opened = _open_database(path / DATABASE_FILE)
    if opened is None:
        if written is not None or replica.store:
            expected = written.store if written is not None else replica.store
            identity = Identity(document.name, replica.id, expected, SCHEMA_OLDEST)
            return Folder(path, lock, document, identity, None, _lost(path, identity))
        identity = _new_identity(document, replica)
        return Folder(path, lock, document, identity, _create(path, identity), is_new=True)
    try:
        identity = identity_in(opened)
        _check(path, identity, document, replica)
        if written != identity:
            if written is not None and written.store != identity.store:
                raise FolderRefused(f"{path}: {IDENTITY_FILE} and {DATABASE_FILE} are of different stores")
            _write_identity(path, identity)
        if identity.restored_from and not is_source:
            opened.close()
            return Folder(path, lock, document, identity, None, _restored(path, identity))
        noted, chosen, before = noted_in(opened), chosen_in(opened), before_in(opened)
        opened.commit()
    except BaseException:
        with contextlib.suppress(StorageFailed):
            opened.close()
        raise
    folder = Folder(
        path, lock, document, identity, opened, is_new=noted is None, chosen=chosen, before=before
    )
    folder.lost = None if noted is None else refusal(noted, folder.document, replica.id)
    return folder


def _lost(path: Path, identity: Identity) -> str:
    return (
        f"replica {identity.replica} has voted before, from store {identity.store}, and {path} does not hold that "
        "store: its promises are forgotten, so it does not vote. Put the folder back, complete and not from a backup, or put a new replica with another "
        "id in its place while the others serve (`quorate member replace`). Only where that does not end, stop all replicas and make a new store from "
        "the others' with `quorate replace`"
    )


def _restored(path: Path, identity: Identity) -> str:
    return (
        f"{path} was restored from a backup of store {identity.restored_from}: promises that replica {identity.replica} made "
        "after the backup are forgotten, so it does not vote. Stop all replicas and make a new store from the others' and "
        f"this one with `quorate replace` (--from {identity.replica}={path} among the others); if all replicas are lost, use "
        "`quorate restore-cluster`"
    )


def _check(path: Path, found: Identity, document: ClusterDocument, replica: ReplicaInfo) -> None:
    if found.schema > SCHEMA_NEWEST:
        raise FolderRefused(
            f"{path} was written by a newer release (schema {found.schema}, this one knows {SCHEMA_OLDEST} to {SCHEMA_NEWEST}): "
            "install that release again"
        )
    if found.schema < SCHEMA_OLDEST:
        raise FolderRefused(
            f"{path} was written before the first release (schema {found.schema}), which this one does not read: "
            f"start with an empty folder for every replica"
        )
    if found.cluster != document.name:
        raise FolderRefused(f"{path} belongs to cluster {found.cluster!r}, not to {document.name!r}")
    if found.replica != replica.id:
        raise FolderRefused(f"{path} belongs to replica {found.replica!r}, not to {replica.id!r}")
    if replica.store and found.store != replica.store and not found.restored_from:
        raise FolderRefused(
            f"{path} holds store {found.store}, but the cluster file says that {replica.id} votes from store "
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
    _put_identity(opened, identity)
    opened.write(statements.NEW_COUNTERS, (1, *with_sum(0, ZERO, ZERO, 0)))
    opened.commit()


def _put_identity(opened: Database, identity: Identity) -> None:
    facts = {name: str(getattr(identity, name)) for name in identity.__struct_fields__}
    opened.write(statements.PUT_META, *((name, fact) for name, fact in facts.items() if fact))


def _open_database(file: Path) -> Database | None:
    """None without a file, and for one whose making was cut off: it has no tables, and nobody voted from it."""
    if not file.exists():
        return None
    _refuse_emptied(file)
    try:
        opened = Database(file)
        problem = damage_in(opened)
        is_empty = opened.is_empty()
        opened.commit()
    except StorageFailed as error:
        refused, advice = (FolderBusy, _LATER) if error.passing else (FolderRefused, _DAMAGED)
        raise refused(f"{file} cannot be opened: {error}. {advice}") from error
    if problem is not None:
        opened.close()
        raise FolderRefused(f"{file} is damaged: {problem}. {_DAMAGED}")
    if is_empty:
        opened.close()
        return None
    return opened


def _refuse_emptied(file: Path) -> None:
    """SQLite takes an empty file for a new database, and deletes the log beside it, the only copy of what is in there."""
    log = file.with_name(file.name + "-wal")
    if file.stat().st_size == 0 and log.exists() and log.stat().st_size > 0:
        raise FolderRefused(f"{file} is damaged: it is empty, and its write-ahead log is not. {_DAMAGED}")


_LATER: Final = "Make room on the disk, or end what holds the file, and start again"
_DAMAGED: Final = "Do not delete it: this replica's promises are in it. Repair the disk, or stop all replicas and use `quorate replace`"


def identity_in(opened: Database) -> Identity:
    """The identity that a database holds. Raises FolderRefused."""
    try:
        meta = dict(opened.all(statements.GET_META))
        opened.commit()
        facts = {
            name: meta[name] for name in Identity.__struct_fields__ if name in meta
        }  # Beside other notes.
        return msgspec.convert(facts, Identity, strict=False)
    except (StorageFailed, msgspec.ValidationError):
        raise FolderRefused(f"{opened.path} is no database of a replica. {_DAMAGED}") from None


def _read_identity(path: Path) -> Identity | None:
    file = path / IDENTITY_FILE
    try:
        return _DECODE(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FolderRefused(
            f"{file} cannot be read: {error}. If {DATABASE_FILE} is beside it, remove it and start again: it is made anew"
        ) from None


def _write_identity(path: Path, identity: Identity) -> None:
    write_durably(path / IDENTITY_FILE, msgspec.json.format(msgspec.json.encode(identity)) + b"\n")
