"""One SQLite file, its tables and its statements, through SQLAlchemy Core.

Owns everything SQL: no other module knows tables, pragmas or the errors of a driver. Must not know what a row means.
Statements are built with Core and compiled once, at import; running one costs little more than the driver itself,
which matters because every request of every client passes here.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import Executable

SCHEMA_VERSION: Final = 2
"""2 added the table of witnesses; a file of 1 gets it when it is opened."""
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


_METADATA = MetaData()

# SQLite compares TEXT byte by byte (BINARY) unless told otherwise, which is how timestamps sort.
OBJECTS = Table(
    "objects",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("state", LargeBinary, nullable=False),
)
ROWS = Table(
    "rows",
    _METADATA,
    Column("object", Integer, primary_key=True),
    Column("t", Text, primary_key=True),
    Column("arrival", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("value", Text),
    Column("complete", Integer, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)
_ROWS_BY_ARRIVAL = Index("rows_by_arrival", ROWS.c.object, ROWS.c.arrival)
EVENTS = Table(
    "events",
    _METADATA,
    Column("object", Integer, primary_key=True),
    Column("t", Text, primary_key=True),
    Column("event", Text, nullable=False),
    sqlite_with_rowid=False,
)
# One row: what changes with nearly every transaction.
COUNTERS = Table(
    "counters",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("arrival", Integer, nullable=False),
    Column("clock", Text, nullable=False),
    Column("floor", Text, nullable=False),
)
# What this replica has seen of the others' stores.
WITNESSES = Table(
    "witnesses",
    _METADATA,
    Column("replica", Text, primary_key=True),
    Column("store", Text, nullable=False),
    Column("clock", Text, nullable=False),
)
META = Table(
    "meta",
    _METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)


def _sql(statement: Executable, *names: str) -> str:
    """`statement` as SQL text whose question marks take parameters in the order of `names`."""
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"))  # type: ignore[attr-defined]
    assert tuple(compiled.positiontup) == names, f"{compiled}: {compiled.positiontup}"
    return str(compiled)


def _integer(name: str) -> BindParameter[int]:
    return bindparam(name, type_=Integer)


def _text(name: str) -> BindParameter[str]:
    return bindparam(name, type_=Text)


_ZERO = literal_column("0", Integer)
_ONE = literal_column("1", Integer)
_row = (ROWS.c.t, ROWS.c.id, ROWS.c.value, ROWS.c.complete)
_is_object = ROWS.c.object == _integer("object")
_is_listed = ROWS.c.t.in_(select(func.json_each(_text("list")).table_valued("value").c.value))
_upsert = sqlite.insert(OBJECTS)

GET_COUNTERS: Final = _sql(select(COUNTERS.c.arrival, COUNTERS.c.clock, COUNTERS.c.floor))
PUT_COUNTERS: Final = _sql(
    update(COUNTERS).values(arrival=_integer("rows"), clock=_text("highest"), floor=_text("least")),
    "rows",
    "highest",
    "least",
)
NEW_COUNTERS: Final = _sql(insert(COUNTERS), "id", "arrival", "clock", "floor")
GET_META: Final = _sql(select(META.c.name, META.c.value))
PUT_META: Final = _sql(insert(META), "name", "value")
SET_META: Final = _sql(
    update(META).values(value=_text("new")).where(META.c.name == _text("key")), "new", "key"
)
GET_WITNESSES: Final = _sql(select(WITNESSES.c.replica, WITNESSES.c.store, WITNESSES.c.clock))
PUT_WITNESS: Final = _sql(
    insert(WITNESSES)
    .prefix_with("OR REPLACE")
    .values({name: bindparam(f"new_{name}") for name in ("replica", "store", "clock")}),
    "new_replica",
    "new_store",
    "new_clock",
)
COUNT_OBJECTS: Final = _sql(select(func.count()).select_from(OBJECTS))
LAST_OBJECT: Final = _sql(select(func.coalesce(func.max(OBJECTS.c.id), _ZERO)))
GET_OBJECT: Final = _sql(
    select(
        OBJECTS.c.id,
        OBJECTS.c.state,
        select(func.max(ROWS.c.t)).where(ROWS.c.object == OBJECTS.c.id).scalar_subquery(),
    ).where(OBJECTS.c.name == _text("name")),
    "name",
)
PUT_OBJECT: Final = _sql(
    _upsert.on_conflict_do_update(index_elements=["id"], set_={"state": _upsert.excluded.state}),
    "id",
    "name",
    "state",
)
DELETE_OBJECT: Final = _sql(delete(OBJECTS).where(OBJECTS.c.id == _integer("object")), "object")
DELETE_LOG: Final = _sql(delete(ROWS).where(_is_object), "object")
DELETE_EVENTS: Final = _sql(delete(EVENTS).where(EVENTS.c.object == _integer("object")), "object")
NAMES: Final = _sql(
    select(OBJECTS.c.name)
    .where(OBJECTS.c.name > _text("after"), OBJECTS.c.name >= _text("prefix"), OBJECTS.c.name < _text("end"))
    .order_by(OBJECTS.c.name)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "after",
    "prefix",
    "end",
    "limit",
)
STATES: Final = _sql(
    select(OBJECTS.c.id, OBJECTS.c.name, OBJECTS.c.state)
    .where(OBJECTS.c.id > _integer("after"))
    .order_by(OBJECTS.c.id)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "after",
    "limit",
)
PUT_ROW: Final = _sql(
    insert(ROWS).values(
        {name: bindparam(f"new_{name}") for name in ("object", "t", "arrival", "id", "value")}
    ),
    *(f"new_{name}" for name in ("object", "t", "arrival", "id", "value")),
)
MARK_COMPLETE: Final = _sql(
    update(ROWS).values(complete=_ONE).where(_is_object, ROWS.c.t == _text("at"), ROWS.c.complete == _ZERO),
    "object",
    "at",
)
STORED: Final = _sql(select(ROWS.c.t).where(_is_object, _is_listed), "object", "list")
WANTED: Final = _sql(select(*_row).where(_is_object, _is_listed), "object", "list")
ARRIVALS: Final = _sql(
    select(ROWS.c.arrival, *_row)
    .where(_is_object, ROWS.c.arrival > _integer("since"))
    # The plus keeps SQLite from walking the range of timestamps, which may be the whole log.
    .where(literal_column("+rows.t", Text) > _text("after"), literal_column("+rows.t", Text) <= _text("upto"))
    .order_by(ROWS.c.arrival)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "object",
    "since",
    "after",
    "upto",
    "limit",
)
ABOVE: Final = _sql(
    select(*_row)
    .where(_is_object, ROWS.c.t > _text("after"))
    .order_by(ROWS.c.t)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "object",
    "after",
    "limit",
)
NTH: Final = _sql(
    select(ROWS.c.t)
    .where(_is_object, ROWS.c.t > _text("after"))
    .order_by(ROWS.c.t)
    .limit(_ONE)
    .offset(_integer("skipped")),
    "object",
    "after",
    "skipped",
)
NEWEST: Final = _sql(
    select(*_row)
    .where(_is_object, ROWS.c.t > _text("after"))
    .order_by(ROWS.c.t.desc())
    .limit(_integer("limit"))
    .offset(_ZERO),
    "object",
    "after",
    "limit",
)
LAST_ABOVE: Final = _sql(
    select(func.max(ROWS.c.t)).where(_is_object, ROWS.c.t > _text("after")), "object", "after"
)
BELOW: Final = _sql(select(func.max(ROWS.c.t)).where(_is_object, ROWS.c.t < _text("upto")), "object", "upto")
# What is deleted at a time: the oldest rows up to a limit.
NTH_UPTO: Final = _sql(
    select(ROWS.c.t)
    .where(_is_object, ROWS.c.t <= _text("upto"))
    .order_by(ROWS.c.t)
    .limit(_ONE)
    .offset(_integer("skipped")),
    "object",
    "upto",
    "skipped",
)
DELETE_UPTO: Final = _sql(delete(ROWS).where(_is_object, ROWS.c.t <= _text("upto")), "object", "upto")
PUT_EVENT: Final = _sql(
    insert(EVENTS)
    .prefix_with("OR REPLACE")
    .values({name: bindparam(f"new_{name}") for name in ("object", "t", "event")}),
    "new_object",
    "new_t",
    "new_event",
)
GET_EVENTS: Final = _sql(
    select(EVENTS.c.t, EVENTS.c.event).where(EVENTS.c.object == _integer("object")).order_by(EVENTS.c.t),
    "object",
)


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
            for table in _METADATA.sorted_tables:
                self._connection.execute(CreateTable(table))
            self._connection.execute(CreateIndex(_ROWS_BY_ARRIVAL))
        self._wrote = True

    def add_missing_tables(self) -> None:
        """Add the tables that an older schema lacks; part of the transaction at hand."""
        with _mapped():
            for table in _METADATA.sorted_tables:
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
