"""The tables of a replica's file and the statements on them, as SQL text.

Owns what is asked and written, not when. Statements are built with SQLAlchemy Core and compiled once, at import; running
one costs little more than the driver itself, which matters because every request of every client passes here.
"""

from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import Executable

SCHEMA_VERSION: Final = 7
"""2 added witnesses, 3 sums of records, 4 configuration and births, 5 reservations, 6 ballots in summaries, 7 reservations by number;
none released."""

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
    Column("sum", Integer, nullable=False),
    sqlite_with_rowid=False,
)
_ROWS_BY_ARRIVAL = Index("rows_by_arrival", ROWS.c.object, ROWS.c.arrival)
EVENTS = Table(
    "events",
    _METADATA,
    Column("object", Integer, primary_key=True),
    Column("t", Text, primary_key=True),
    Column("event", Text, nullable=False),
    Column("sum", Integer, nullable=False),
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
    Column("commits", Integer, nullable=False),
    Column("sum", Integer, nullable=False),
)
# What this replica has seen of the others' stores.
WITNESSES = Table(
    "witnesses",
    _METADATA,
    Column("replica", Text, primary_key=True),
    Column("store", Text, nullable=False),
    Column("clock", Text, nullable=False),
    Column("born", Text, nullable=False),
    Column("sum", Integer, nullable=False),
)
# One row, once the replica has voted: the members and quorum choices under which it did.
CONFIGURATION = Table(
    "configuration",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("sum", Integer, nullable=False),
)
# What is held under idempotency keys; `number` rises with each change, `key` is the digest of the object's name and the key. There is
# no index by key: keys are in no order, so that each new one would write a page of its own. The store has all of them in memory.
RESERVATIONS = Table(
    "reservations",
    _METADATA,
    Column("number", Integer, primary_key=True),
    Column("key", LargeBinary, nullable=False),
    Column("held", LargeBinary, nullable=False),
    Column("sum", Integer, nullable=False),
)
META = Table("meta", _METADATA, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))


def _sql(statement: Executable, names: str = "") -> str:
    """`statement` as SQL text whose question marks take parameters in the order of `names`."""
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"))  # type: ignore[attr-defined]
    assert compiled.positiontup == names.split(), f"{compiled}: {compiled.positiontup}"
    return str(compiled)


def _put(table: Table, names: str, *, replaces: bool = False) -> str:
    """SQL text that puts a row with these columns; `replaces`: in place of one with the same key."""
    statement = insert(table).prefix_with("OR REPLACE") if replaces else insert(table)
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="qmark"), column_keys=names.split()))


def _first(statement: Select[Any], order: ColumnElement[Any], names: str) -> str:
    """SQL text for the first rows in an order; their number is the last parameter."""
    return _sql(statement.order_by(order).limit(bindparam("limit", type_=Integer)).offset(_ZERO), names)


def _nth(statement: Select[Any], order: ColumnElement[Any], names: str) -> str:
    """SQL text for one row in an order; the number of those before it is the last parameter."""
    return _sql(statement.order_by(order).limit(_ONE).offset(bindparam("skipped", type_=Integer)), names)


COMPLETE: Final = 1 << 32
"""What the sum of a row grows by when the row is marked complete."""

_ZERO = literal_column("0", Integer)
_ONE = literal_column("1", Integer)

_object, _row, _event, _reservation = OBJECTS.c, ROWS.c, EVENTS.c, RESERVATIONS.c
_all_of_row = (_row.t, _row.arrival, _row.id, _row.value, _row.complete, _row.sum)
VALUE_AT: Final = 3
"""Where the payload stands in it."""
_is_object = _row.object == bindparam("object")
_is_above = _row.t > bindparam("after")
_is_listed = _row.t.in_(select(func.json_each(bindparam("list", type_=Text)).table_valued("value").c.value))

_counters = (COUNTERS.c.arrival, COUNTERS.c.clock, COUNTERS.c.floor, COUNTERS.c.commits, COUNTERS.c.sum)
GET_COUNTERS: Final = _sql(select(*_counters))
PUT_COUNTERS: Final = _sql(
    update(COUNTERS).values({each: bindparam(f"new_{each.name}") for each in _counters}),
    "new_arrival new_clock new_floor new_commits new_sum",
)
NEW_COUNTERS: Final = _put(COUNTERS, "id arrival clock floor commits sum")
GET_META: Final = _sql(select(META))
PUT_META: Final = _put(META, "name value", replaces=True)
GET_WITNESSES: Final = _sql(select(WITNESSES))
PUT_WITNESS: Final = _put(WITNESSES, "replica store clock born sum", replaces=True)
GET_CONFIGURATION: Final = _sql(select(CONFIGURATION.c.text, CONFIGURATION.c.sum))
PUT_CONFIGURATION: Final = _put(CONFIGURATION, "id text sum", replaces=True)

ALL_RESERVATIONS: Final = _sql(select(RESERVATIONS))
_is_reservation = _reservation.number == bindparam("number")
GET_RESERVATION: Final = _sql(select(RESERVATIONS).where(_is_reservation), "number")
PUT_RESERVATION: Final = _put(RESERVATIONS, "number key held sum")
DELETE_RESERVATION: Final = _sql(delete(RESERVATIONS).where(_is_reservation), "number")
_numbers = select(_reservation.key, _reservation.number)
NUMBERS_OF_RESERVATIONS: Final = _sql(_numbers.order_by(_reservation.number))
RESERVATIONS_PAGE: Final = _first(
    select(RESERVATIONS).where(_reservation.number > bindparam("after")), _reservation.number, "after limit"
)
_is_old = _reservation.number <= bindparam("upto")
OLDEST_RESERVATIONS: Final = _first(_numbers.where(_is_old), _reservation.number, "upto limit")
DELETE_RESERVATIONS: Final = _sql(delete(RESERVATIONS).where(_is_old), "upto")

ALL_OBJECTS: Final = _sql(select(OBJECTS))
COUNT_OBJECTS: Final = _sql(select(func.count()).select_from(OBJECTS))
LAST_OBJECT: Final = _sql(select(func.coalesce(func.max(_object.id), _ZERO)))
_newest_row = select(func.max(_row.t)).where(_row.object == _object.id).scalar_subquery()
GET_OBJECT: Final = _sql(
    select(_object.id, _object.state, _newest_row).where(_object.name == bindparam("name")), "name"
)
_upsert = sqlite.insert(OBJECTS)
PUT_OBJECT: Final = _sql(
    _upsert.on_conflict_do_update(index_elements=["id"], set_={"state": _upsert.excluded.state}),
    "id name state",
)
DELETE_OBJECT: Final = _sql(delete(OBJECTS).where(_object.id == bindparam("object")), "object")
NAMES: Final = _first(
    select(_object.name).where(
        _object.name > bindparam("after"),
        _object.name >= bindparam("prefix"),
        _object.name < bindparam("end"),
    ),
    _object.name,
    "after prefix end limit",
)
_is_numbered_above = _object.id > bindparam("after")
NUMBERED: Final = _first(
    select(_object.id, _object.name).where(_is_numbered_above), _object.id, "after limit"
)
STATES: Final = _first(select(OBJECTS).where(_is_numbered_above), _object.id, "after limit")

ALL_ROWS: Final = _sql(select(_row.object, *_all_of_row))
PUT_ROW: Final = _put(ROWS, "object t arrival id value sum")
MARK_COMPLETE: Final = _sql(
    update(ROWS)
    .values(complete=_ONE, sum=_row.sum + literal_column(str(COMPLETE), Integer))
    .where(_is_object, _row.t == bindparam("at"), _row.complete == _ZERO),
    "object at",
)
DELETE_LOG: Final = _sql(delete(ROWS).where(_is_object), "object")
COUNT_LOG: Final = _sql(select(func.count()).where(_is_object), "object")
STORED: Final = _sql(select(_row.t).where(_is_object, _is_listed), "object list")
_wanted = select(*_all_of_row).where(_is_object, _is_listed)
WANTED: Final = _sql(_wanted.order_by(_row.t), "object list")
WANTED_NEWEST_FIRST: Final = _sql(_wanted.order_by(_row.t.desc()), "object list")
# The plus keeps SQLite from walking the range of timestamps, which may be the whole log.
_t_unwalked = literal_column("+rows.t", Text)
ARRIVALS: Final = _first(
    select(*_all_of_row)
    .where(_is_object, _row.arrival > bindparam("since"))
    .where(_t_unwalked > bindparam("after"), _t_unwalked <= bindparam("upto")),
    _row.arrival,
    "object since after upto limit",
)
# The index by arrival holds all that is asked for.
ARRIVED: Final = _first(
    select(_row.arrival, _row.t).where(
        _is_object, _row.arrival > bindparam("since"), _row.arrival <= bindparam("until")
    ),
    _row.arrival.desc(),
    "object since until limit",
)
_above = select(*_all_of_row).where(_is_object, _is_above)
ABOVE: Final = _first(_above, _row.t, "object after limit")
NEWEST: Final = _first(_above, _row.t.desc(), "object after limit")
NTH: Final = _nth(select(_row.t).where(_is_object, _is_above), _row.t, "object after skipped")
LAST_ABOVE: Final = _sql(select(func.max(_row.t)).where(_is_object, _is_above), "object after")
BELOW: Final = _sql(select(func.max(_row.t)).where(_is_object, _row.t < bindparam("upto")), "object upto")
# What is deleted at a time: the oldest rows up to a limit.
_upto = (_is_object, _row.t <= bindparam("upto"), _row.arrival <= bindparam("arrival"))
NTH_UPTO: Final = _nth(select(_row.t).where(*_upto), _row.t, "object upto arrival skipped")
DELETE_UPTO: Final = _sql(delete(ROWS).where(*_upto), "object upto arrival")
NO_ROWS: Final = {LAST_ABOVE: ((None,),), BELOW: ((None,),)}
"""The answers about an object without a log, where they are not simply empty."""

ALL_EVENTS: Final = _sql(select(EVENTS))
PUT_EVENT: Final = _put(EVENTS, "object t event sum", replaces=True)
_is_event_of = _event.object == bindparam("object")
DELETE_EVENTS: Final = _sql(delete(EVENTS).where(_is_event_of), "object")
NEWEST_EVENTS: Final = _sql(
    select(EVENTS)
    .where(_is_event_of)
    .order_by(_event.t.desc())
    .limit(func.coalesce(bindparam("limit", type_=Integer), literal_column("-1", Integer)))
    .offset(_ZERO),
    "object limit",
)

# What a survey counts.
_lengths = select(_row.object, func.count().label("length")).group_by(_row.object).subquery()
_length = _lengths.c.length
LONG_LOGS: Final = _sql(select(_lengths).where(_length >= bindparam("rows_min")), "rows_min")
COUNT_ROWS: Final = _sql(
    select(func.coalesce(func.sum(_length), _ZERO), func.coalesce(func.max(_length), _ZERO))
)
QUEUES: Final = _first(
    select(OBJECTS).where(
        _object.name >= literal_column("'queue/'", Text), _object.name < literal_column("'queue0'", Text)
    ),
    _object.name,
    "limit",
)
COUNT_ABOVE: Final = _sql(select(func.count(), func.min(_row.t)).where(_is_object, _is_above), "object after")

CREATE: Final = (
    *(str(CreateTable(table).compile(dialect=sqlite.dialect())).strip() for table in _METADATA.sorted_tables),
    str(CreateIndex(_ROWS_BY_ARRIVAL).compile(dialect=sqlite.dialect())),
)
"""Makes the tables. The database keeps these texts, so that damage to them shows."""
