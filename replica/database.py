"""One open SQLite file, through SQLAlchemy Core: transactions, pragmas, errors.

Owns the connection: no other module knows pragmas or the errors of a driver. Must not know what a row means.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from quorate.replica.statements import METADATA, ROWS_BY_ARRIVAL

BUSY_TIMEOUT_S: Final = 5
WAL_BYTES_MAX: Final = 16 * 1024 * 1024
"""What a write-ahead log is cut back to after a checkpoint."""
CHECKPOINT_PAGES: Final = 2000
VACUUM_PAGES: Final = 500
"""Free pages that are kept for reuse, and how many are handed back to the file system at a time."""

# What time heals: the disk was full, or another process (a backup) held the file. All else needs a person.
_PASSING: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class StorageFailed(Exception):
    """The database could not do it, and the transaction at hand is void.

    `passing`: later transactions may succeed (disk full). Otherwise what is in the file is in doubt (after a failed
    sync, what was written before may be gone too), and the replica must not vote before it was started anew.
    """

    def __init__(self, detail: str, *, passing: bool = False) -> None:
        super().__init__(detail)
        self.passing: Final = passing


@contextlib.contextmanager
def _mapped() -> Iterator[None]:
    """The one place where foreign database errors become ours."""
    try:
        yield
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # The low byte names the kind.
        raise StorageFailed(f"the database failed: {error.orig}", passing=code in _PASSING) from error
    except SQLAlchemyError as error:
        raise StorageFailed(f"the database failed: {error}") from error


class Database:
    """One open SQLite file. Used by one thread at a time.

    Every method raises StorageFailed. A transaction begins with the first statement after commit or rollback; one that
    only reads costs no sync.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.commits = 0
        self._wrote = False
        self._engine: Final = create_engine(
            f"sqlite:///{path}",
            poolclass=StaticPool,
            connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        )
        event.listen(self._engine, "connect", _configure)
        # The driver must not begin by itself, or a read before the first write would be outside the transaction.
        event.listen(self._engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        with _mapped():
            self._connection: Final[Connection] = self._engine.connect()

    def create_tables(self) -> None:
        """Make the tables of an empty file; part of the transaction at hand."""
        with _mapped():
            for table in METADATA.sorted_tables:
                self._connection.execute(CreateTable(table))
            self._connection.execute(CreateIndex(ROWS_BY_ARRIVAL))
        self._wrote = True

    def add_missing_tables(self) -> None:
        """Add the tables that an older schema lacks; part of the transaction at hand."""
        with _mapped():
            for table in METADATA.sorted_tables:
                self._connection.execute(CreateTable(table, if_not_exists=True))
        self._wrote = True

    def all(self, sql: str, parameters: tuple[Any, ...] = ()) -> Sequence[Any]:
        """All result rows of a query."""
        with _mapped():
            return self._connection.exec_driver_sql(sql, parameters).fetchall()

    def one(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        """The first result row of a query, or None."""
        with _mapped():
            return self._connection.exec_driver_sql(sql, parameters).fetchone()

    def write(self, sql: str, *parameters: tuple[Any, ...]) -> int:
        """Run a statement once for each tuple of parameters; the number of rows it changed."""
        self._wrote = True
        with _mapped():
            return self._connection.exec_driver_sql(sql, list(parameters)).rowcount

    def commit(self) -> None:
        """Make what was written durable; returns when it is on disk."""
        with _mapped():
            self._connection.commit()
        self.commits += self._wrote
        self._wrote = False

    def rollback(self) -> None:
        """Undo what was written since the last commit."""
        self._wrote = False
        with _mapped():
            self._connection.rollback()

    def is_empty(self) -> bool:
        """Whether the file has no tables yet."""
        return int(self.one("SELECT count(*) FROM sqlite_schema")[0]) == 0

    def check(self) -> str | None:
        """What is wrong with the file's structure; None when it is sound. Reads the whole file."""
        found = self.one("PRAGMA quick_check(1)")[0]
        return None if found == "ok" else " ".join(str(found).split())

    def give_back_space(self) -> None:
        """Return some free pages to the file system, in a transaction of its own; nothing when there are few."""
        if self.one("PRAGMA freelist_count")[0] > VACUUM_PAGES:
            self._wrote = True
            with _mapped():
                for _ in range(VACUUM_PAGES):  # The driver takes one step, and each step frees one page.
                    self._connection.exec_driver_sql("PRAGMA incremental_vacuum(1)")

    def sizes(self) -> dict[str, int]:
        """Bytes of the database file and of its write-ahead log."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return {file.name: file.stat().st_size for file in files if file.exists()}

    def close(self) -> None:
        """Close the file; the write-ahead log is folded in."""
        with _mapped():
            self._connection.close()
            self._engine.dispose()


def _configure(connection: sqlite3.Connection, record: object) -> None:
    del record
    connection.isolation_level = None
    for pragma in (
        "auto_vacuum = INCREMENTAL",  # Works only before the first table is made, so it comes first.
        "journal_mode = WAL",
        "synchronous = FULL",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        f"journal_size_limit = {WAL_BYTES_MAX}",
        "trusted_schema = OFF",
        "cache_size = -65536",  # 64 MiB
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")


def make_private(path: Path) -> None:
    """Create the file empty and readable by its owner alone; SQLite gives its side files the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
