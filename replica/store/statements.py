"""The tables of a replica's file and the statements on them, as SQL text.

Owns what is asked and written, not when. Statements are built with SQLAlchemy Core and compiled once, at import; running
one costs little more than the driver itself, which matters because every request of every client passes here.
"""

from typing import Final

from sqlalchemy import (
    BindParameter,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
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


COMPLETE: Final = 1 << 32
"""What the sum of a row grows by when the row is marked complete."""

_ZERO = literal_column("0", Integer)
_ONE = literal_column("1", Integer)
_row = (ROWS.c.t, ROWS.c.arrival, ROWS.c.id, ROWS.c.value, ROWS.c.complete, ROWS.c.sum)
VALUE_AT: Final = 3
"""Where the payload stands in it."""
_is_object = ROWS.c.object == _integer("object")
_is_listed = ROWS.c.t.in_(select(func.json_each(_text("list")).table_valued("value").c.value))
_upsert = sqlite.insert(OBJECTS)

_counters = (COUNTERS.c.arrival, COUNTERS.c.clock, COUNTERS.c.floor, COUNTERS.c.commits)
GET_COUNTERS: Final = _sql(select(*_counters, COUNTERS.c.sum))
PUT_COUNTERS: Final = _sql(
    update(COUNTERS).values(
        arrival=_integer("rows"),
        clock=_text("highest"),
        floor=_text("least"),
        commits=_integer("commits_made"),
        sum=_integer("new_sum"),
    ),
    "rows",
    "highest",
    "least",
    "commits_made",
    "new_sum",
)
NEW_COUNTERS: Final = _sql(insert(COUNTERS), "id", "arrival", "clock", "floor", "commits", "sum")
GET_META: Final = _sql(select(META.c.name, META.c.value))
PUT_META: Final = _sql(insert(META).prefix_with("OR REPLACE"), "name", "value")
GET_WITNESSES: Final = _sql(
    select(WITNESSES.c.replica, WITNESSES.c.store, WITNESSES.c.clock, WITNESSES.c.born, WITNESSES.c.sum)
)
PUT_WITNESS: Final = _sql(
    insert(WITNESSES)
    .prefix_with("OR REPLACE")
    .values({name: bindparam(f"new_{name}") for name in ("replica", "store", "clock", "born", "sum")}),
    "new_replica",
    "new_store",
    "new_clock",
    "new_born",
    "new_sum",
)
GET_CONFIGURATION: Final = _sql(select(CONFIGURATION.c.text, CONFIGURATION.c.sum))
PUT_CONFIGURATION: Final = _sql(insert(CONFIGURATION).prefix_with("OR REPLACE"), "id", "text", "sum")
_reservation = ("number", "key", "held", "sum")
GET_RESERVATION: Final = _sql(
    select(RESERVATIONS).where(RESERVATIONS.c.number == _integer("number")), "number"
)
PUT_RESERVATION: Final = _sql(insert(RESERVATIONS), *_reservation)
DELETE_RESERVATION: Final = _sql(
    delete(RESERVATIONS).where(RESERVATIONS.c.number == _integer("number")), "number"
)
NUMBERS_OF_RESERVATIONS: Final = _sql(
    select(RESERVATIONS.c.key, RESERVATIONS.c.number).order_by(RESERVATIONS.c.number)
)
RESERVATIONS_PAGE: Final = _sql(
    select(RESERVATIONS)
    .where(RESERVATIONS.c.number > _integer("after"))
    .order_by(RESERVATIONS.c.number)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "after",
    "limit",
)
OLDEST_RESERVATIONS: Final = _sql(
    select(RESERVATIONS.c.key, RESERVATIONS.c.number)
    .where(RESERVATIONS.c.number <= _integer("upto"))
    .order_by(RESERVATIONS.c.number)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "upto",
    "limit",
)
DELETE_RESERVATIONS: Final = _sql(
    delete(RESERVATIONS).where(RESERVATIONS.c.number <= _integer("upto")), "upto"
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
NUMBERED: Final = _sql(
    select(OBJECTS.c.id, OBJECTS.c.name)
    .where(OBJECTS.c.id > _integer("after"))
    .order_by(OBJECTS.c.id)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "after",
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
        {name: bindparam(f"new_{name}") for name in ("object", "t", "arrival", "id", "value", "sum")}
    ),
    *(f"new_{name}" for name in ("object", "t", "arrival", "id", "value", "sum")),
)
MARK_COMPLETE: Final = _sql(
    update(ROWS)
    .values(complete=_ONE, sum=ROWS.c.sum + literal_column(str(COMPLETE), Integer))
    .where(_is_object, ROWS.c.t == _text("at"), ROWS.c.complete == _ZERO),
    "object",
    "at",
)
STORED: Final = _sql(select(ROWS.c.t).where(_is_object, _is_listed), "object", "list")
_wanted = select(*_row).where(_is_object, _is_listed)
WANTED: Final = _sql(_wanted.order_by(ROWS.c.t), "object", "list")
WANTED_NEWEST_FIRST: Final = _sql(_wanted.order_by(ROWS.c.t.desc()), "object", "list")
ARRIVALS: Final = _sql(
    select(*_row)
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
# The index by arrival holds all that is asked for.
ARRIVED: Final = _sql(
    select(ROWS.c.arrival, ROWS.c.t)
    .where(_is_object, ROWS.c.arrival > _integer("since"), ROWS.c.arrival <= _integer("until"))
    .order_by(ROWS.c.arrival.desc())
    .limit(_integer("limit"))
    .offset(_ZERO),
    "object",
    "since",
    "until",
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
_UPTO = (_is_object, ROWS.c.t <= _text("upto"), ROWS.c.arrival <= _integer("arrival"))
NTH_UPTO: Final = _sql(
    select(ROWS.c.t).where(*_UPTO).order_by(ROWS.c.t).limit(_ONE).offset(_integer("skipped")),
    "object",
    "upto",
    "arrival",
    "skipped",
)
DELETE_UPTO: Final = _sql(delete(ROWS).where(*_UPTO), "object", "upto", "arrival")
NO_ROWS: Final = {LAST_ABOVE: ((None,),), BELOW: ((None,),)}
"""The answers about an object without a log, where they are not simply empty."""
PUT_EVENT: Final = _sql(
    insert(EVENTS)
    .prefix_with("OR REPLACE")
    .values({name: bindparam(f"new_{name}") for name in ("object", "t", "event", "sum")}),
    "new_object",
    "new_t",
    "new_event",
    "new_sum",
)
NEWEST_EVENTS: Final = _sql(
    select(EVENTS.c.object, EVENTS.c.t, EVENTS.c.event, EVENTS.c.sum)
    .where(EVENTS.c.object == _integer("object"))
    .order_by(EVENTS.c.t.desc())
    .limit(func.coalesce(_integer("limit"), literal_column("-1", Integer)))
    .offset(_ZERO),
    "object",
    "limit",
)

COUNT_LOG: Final = _sql(select(func.count()).where(_is_object), "object")

# What a survey counts.
_of_each = select(ROWS.c.object, func.count().label("length")).group_by(ROWS.c.object).subquery()
LONG_LOGS: Final = _sql(select(_of_each).where(_of_each.c.length >= _integer("rows_min")), "rows_min")
COUNT_ROWS: Final = _sql(
    select(
        func.coalesce(func.sum(_of_each.c.length), _ZERO), func.coalesce(func.max(_of_each.c.length), _ZERO)
    )
)
QUEUES: Final = _sql(
    select(OBJECTS.c.id, OBJECTS.c.name, OBJECTS.c.state)
    .where(
        OBJECTS.c.name >= literal_column("'queue/'", Text), OBJECTS.c.name < literal_column("'queue0'", Text)
    )
    .order_by(OBJECTS.c.name)
    .limit(_integer("limit"))
    .offset(_ZERO),
    "limit",
)
COUNT_ABOVE: Final = _sql(
    select(func.count(), func.min(ROWS.c.t)).where(_is_object, ROWS.c.t > _text("after")), "object", "after"
)

# All of it, to see at the start whether it is sound.
ALL_OBJECTS: Final = _sql(select(OBJECTS.c.id, OBJECTS.c.name, OBJECTS.c.state))
ALL_ROWS: Final = _sql(select(ROWS.c.object, *_row))
ALL_RESERVATIONS: Final = _sql(select(RESERVATIONS))
ALL_EVENTS: Final = _sql(select(EVENTS.c.object, EVENTS.c.t, EVENTS.c.event, EVENTS.c.sum))

CREATE: Final = (
    *(str(CreateTable(table).compile(dialect=sqlite.dialect())).strip() for table in _METADATA.sorted_tables),
    str(CreateIndex(_ROWS_BY_ARRIVAL).compile(dialect=sqlite.dialect())),
)
"""Makes the tables. The database keeps these texts, so that damage to them shows."""
