"""One open SQLite file: transactions, pragmas, errors.

Owns the connection: no other module knows pragmas or the errors of a driver. Must not know what a row means.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from ..protocol.pages import read_until_full
from .statements import CREATE, VALUE_AT

BUSY_TIMEOUT_S: Final = 5
WAL_BYTES_MAX: Final = 16 * 1024 * 1024
"""What a write-ahead log is cut back to after a checkpoint."""
CHECKPOINT_PAGES: Final = 2000
VACUUM_PAGES: Final = 500
"""Free pages that are kept for reuse, and how many are handed back to the file system at a time."""

_STEPS_UNLOOKED: Final = 10_000
"""Steps of SQLite's machine between two looks at a reader's time: some tenths of a millisecond."""
COPY_PAGES: Final = 256
"""Copied at a time; as long as that took, the disk is then left to the replica."""

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


class _Mapped:
    """The one place where foreign database errors become ours. A context, of a class for speed."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # The low byte names the kind.
            raise StorageFailed(f"the database failed: {error}", passing=code in _PASSING) from error


_mapped: Final = _Mapped()


_PRAGMAS: Final = (
    "auto_vacuum = INCREMENTAL",  # Works only before the first table is made, so it comes first.
    "journal_mode = WAL",
    "synchronous = FULL",
    f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
    f"journal_size_limit = {WAL_BYTES_MAX}",
    "trusted_schema = OFF",
    "secure_delete = ON",  # Deleted values are overwritten; many systems' SQLite does so anyway.
    "cache_size = -65536",  # 64 MiB
    "temp_store = MEMORY",
)
_PAGES: Final = ("page_count", "freelist_count", "page_size")


class Database:
    """One open SQLite file. Used by one thread at a time.

    Every method raises StorageFailed. A transaction begins with the first statement after commit or rollback; one that
    only reads costs no sync.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.commits = 0
        self._wrote = False
        with _mapped:
            self._driver: Final = sqlite3.connect(
                path.absolute(), BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            for pragma in _PRAGMAS:
                self._driver.execute(f"PRAGMA {pragma}")

    def _run(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Within a transaction, which the driver must not begin by itself: a read before the first write would be outside."""
        if not self._driver.in_transaction:
            self._driver.execute("BEGIN")
        return self._driver.execute(sql, parameters)

    def create_tables(self) -> None:
        """Make the tables of an empty file; part of the transaction at hand."""
        with _mapped:
            for statement in CREATE:
                self._run(statement)
        self._wrote = True

    def all(self, sql: str, parameters: tuple[Any, ...] = (), bytes_max: int | None = None) -> Sequence[Any]:
        """All result rows of a query; of rows of a log, with `bytes_max`, only until a page is full: no more are read."""
        with _mapped, closing(self._run(sql, parameters)) as cursor:
            if bytes_max is None:
                return cursor.fetchall()
            return read_until_full(cursor, itemgetter(VALUE_AT), bytes_max)

    def each(self, sql: str) -> Iterator[Any]:
        """The result rows of a query one by one, for more than fits in memory."""
        with _mapped:
            yield from self._run(sql)

    def one(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        """The first result row of a query, or None."""
        with _mapped:
            return self._run(sql, parameters).fetchone()

    def write(self, sql: str, *parameters: tuple[Any, ...]) -> int:
        """Run a statement once for each tuple of parameters; the number of rows it changed."""
        self._wrote = True
        with _mapped:
            if len(parameters) == 1:
                return self._run(sql, parameters[0]).rowcount
            if not self._driver.in_transaction:
                self._driver.execute("BEGIN")
            return self._driver.executemany(sql, parameters).rowcount

    def commit(self) -> None:
        """Make what was written durable; returns when it is on disk."""
        with _mapped:
            self._driver.commit()
        self.commits += self._wrote
        self._wrote = False

    @property
    def wrote(self) -> bool:
        """Whether the transaction at hand has written anything."""
        return self._wrote

    def rollback(self) -> None:
        """Undo what was written since the last commit."""
        self._wrote = False
        with _mapped:
            self._driver.rollback()

    def is_empty(self) -> bool:
        """Whether the file has no tables yet."""
        return int(self.one("SELECT count(*) FROM sqlite_schema")[0]) == 0

    def check(self) -> str | None:
        """What is wrong with the file's structure; None when it is sound. Reads the whole file."""
        made = {row[0] for row in self.all("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        if made not in (set(), set(CREATE)):
            return "its tables are not as they were made"
        found = self.one("PRAGMA integrity_check(1)")[0]
        return None if found == "ok" else " ".join(str(found).split())

    def give_back_space(self) -> None:
        """Return some free pages to the file system, in a transaction of its own; nothing when there are few."""
        if self.one("PRAGMA freelist_count")[0] > VACUUM_PAGES:
            self._wrote = True
            with _mapped:
                for _ in range(VACUUM_PAGES):  # The driver takes one step, and each step frees one page.
                    self._run("PRAGMA incremental_vacuum(1)")

    def sizes(self) -> dict[str, int]:
        """Bytes of the database file and of its write-ahead log."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return {file.name: file.stat().st_size for file in files if file.exists()}

    def held_bytes(self) -> int:
        """Bytes of the file's pages that hold something, what the transaction at hand has written among them."""
        pages, free, size = (self.one(f"PRAGMA {what}")[0] for what in _PAGES)
        return int((pages - free) * size)

    def close(self) -> None:
        """Close the file; the write-ahead log is folded in."""
        with _mapped:
            self._driver.close()


class Reader:
    """Another connection to the file, which reads it as it was at its first question, beside the writer and without holding it
    up. It has `limit_s` seconds; after that, questions raise StorageFailed and `is_late` is true. Used by one thread. `is_still`: nobody writes the file,
    and nothing is made beside it."""

    def __init__(self, path: Path, limit_s: float, *, is_still: bool = False) -> None:
        self._late_s: Final = time.monotonic() + limit_s
        with _mapped:
            self._driver: Final = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' * is_still}",
                uri=True,
                timeout=limit_s,
                isolation_level=None,
            )
            self._driver.set_progress_handler(lambda: self.is_late, _STEPS_UNLOOKED)
            self._driver.execute("BEGIN")

    @property
    def is_late(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() >= self._late_s

    def all(self, sql: str, parameters: tuple[Any, ...] = ()) -> Sequence[Any]:
        """All result rows of a query."""
        if self.is_late:
            raise StorageFailed("there is no time left to read", passing=True)
        with _mapped:
            return self._driver.execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Close it."""
        with _mapped:
            self._driver.close()


def make_private(path: Path) -> None:
    """Create the file empty and readable by its owner alone; SQLite gives its side files the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


class CopyStopped(Exception):
    """A copy was not finished, for it was told not to go on."""


def copy_database(source: Path, target: Path, goes_on: Callable[[], bool]) -> None:
    """Copy a database that may be in use into a file that is not there yet: all that was committed when this began, and
    nothing later. Not synced to disk. Blocks, in small steps; raises StorageFailed, or CopyStopped once `goes_on` denies.

    Nobody waits for the copy: it reads in a transaction of its own. The write-ahead log grows meanwhile by what is written.
    """
    make_private(target)
    began_s = time.monotonic()

    def rest(_: int, __: int, ___: int) -> None:
        nonlocal began_s
        if not goes_on():
            raise CopyStopped
        time.sleep(min(0.1, time.monotonic() - began_s))
        began_s = time.monotonic()

    with (
        _mapped,
        closing(sqlite3.connect(source, BUSY_TIMEOUT_S, isolation_level=None)) as reader,
        closing(sqlite3.connect(target, BUSY_TIMEOUT_S, isolation_level=None)) as writer,
    ):
        # While the transaction lasts, the reader sees one state; without it each commit of others would begin the copy anew.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        writer.execute("PRAGMA synchronous = OFF")
        writer.execute("PRAGMA journal_mode = OFF")
        reader.backup(writer, pages=COPY_PAGES, progress=rest)
