"""The tables of a replica's file and the statements on them, as SQL text.

Owns what is asked and written, not when. Question marks take parameters in the order in which they stand.
"""

from typing import Final

from ...api_specs.values import BRACKET_BYTES

SCHEMA_OLDEST: Final = 7
"""Of new stores: what a release must know to read them. 2 added witnesses, 3 sums of records, 4 configuration and births, 5 reservations, 6 ballots in
summaries, 7 reservations by number; none before it was released."""
SCHEMA_NEWEST: Final = 8
"""Of stores of clusters that changed their configuration while they ran. The tables are the same; who knows 7 alone would pass over the rows that say
which configuration is in force."""


def _table(name: str, *columns: str, options: str = "") -> str:
    """Tabs and blanks as they are in every store: it holds the very text, which is compared."""
    return f"CREATE TABLE {name} (\n\t" + ", \n\t".join(columns) + f"\n){options}"


CREATE: Final = (
    # Once the replica has voted: the members and quorum choices under which it did (1), and the configuration that it is in, where that was chosen
    # while the cluster ran (2).
    _table(
        "configuration",
        "id INTEGER NOT NULL",
        "text TEXT NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (id)",
    ),
    # One row: what changes with nearly every transaction.
    _table(
        "counters",
        "id INTEGER NOT NULL",
        "arrival INTEGER NOT NULL",
        "clock TEXT NOT NULL",
        "floor TEXT NOT NULL",
        "commits INTEGER NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (id)",
    ),
    # SQLite compares TEXT byte by byte (BINARY) unless told otherwise, which is how timestamps sort.
    _table(
        "events",
        "object INTEGER NOT NULL",
        "t TEXT NOT NULL",
        "event TEXT NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (object, t)",
        options="\n WITHOUT ROWID",
    ),
    _table("meta", "name TEXT NOT NULL", "value TEXT NOT NULL", "PRIMARY KEY (name)"),
    _table(
        "objects",
        "id INTEGER NOT NULL",
        "name TEXT NOT NULL",
        "state BLOB NOT NULL",
        "PRIMARY KEY (id)",
        "UNIQUE (name)",
    ),
    # What is held under idempotency keys; `number` rises with each change, `key` is the digest of the object's name and the key. There is
    # no index by key: keys are in no order, so that each new one would write a page of its own. The store has all of them in memory.
    _table(
        "reservations",
        "number INTEGER NOT NULL",
        '"key" BLOB NOT NULL',
        "held BLOB NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (number)",
    ),
    _table(
        "rows",
        "object INTEGER NOT NULL",
        "t TEXT NOT NULL",
        "arrival INTEGER NOT NULL",
        "id TEXT NOT NULL",
        "value TEXT",
        "complete INTEGER DEFAULT '0' NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (object, t)",
        options="\n WITHOUT ROWID",
    ),
    # What this replica has seen of the others' stores.
    _table(
        "witnesses",
        "replica TEXT NOT NULL",
        "store TEXT NOT NULL",
        "clock TEXT NOT NULL",
        "born TEXT NOT NULL",
        "sum INTEGER NOT NULL",
        "PRIMARY KEY (replica)",
    ),
    "CREATE INDEX rows_by_arrival ON rows (object, arrival)",
)
"""Makes the tables. The database keeps these texts, so that damage to them shows."""

COMPLETE: Final = 1 << 32
"""What the sum of a row grows by when the row is marked complete."""

GET_COUNTERS: Final = "SELECT arrival, clock, floor, commits, sum FROM counters"
PUT_COUNTERS: Final = "UPDATE counters SET arrival = ?, clock = ?, floor = ?, commits = ?, sum = ?"
NEW_COUNTERS: Final = (
    "INSERT INTO counters (id, arrival, clock, floor, commits, sum) VALUES (?, ?, ?, ?, ?, ?)"
)
GET_META: Final = "SELECT name, value FROM meta"
PUT_META: Final = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
GET_SCHEMA: Final = "SELECT value FROM meta WHERE name = 'schema'"
GET_WITNESSES: Final = "SELECT replica, store, clock, born, sum FROM witnesses"
PUT_WITNESS: Final = (
    "INSERT OR REPLACE INTO witnesses (replica, store, clock, born, sum) VALUES (?, ?, ?, ?, ?)"
)
DROP_WITNESS: Final = "DELETE FROM witnesses WHERE replica = ?"
GET_CONFIGURATION: Final = "SELECT text, sum FROM configuration WHERE id = ?"
PUT_CONFIGURATION: Final = "INSERT OR REPLACE INTO configuration (id, text, sum) VALUES (?, ?, ?)"

ALL_RESERVATIONS: Final = 'SELECT number, "key", held, sum FROM reservations'
GET_RESERVATION: Final = f"{ALL_RESERVATIONS} WHERE number = ?"
PUT_RESERVATION: Final = 'INSERT INTO reservations (number, "key", held, sum) VALUES (?, ?, ?, ?)'
DELETE_RESERVATION: Final = "DELETE FROM reservations WHERE number = ?"
_NUMBERS: Final = 'SELECT "key", number FROM reservations'
NUMBERS_OF_RESERVATIONS: Final = f"{_NUMBERS} ORDER BY number"
RESERVATIONS_PAGE: Final = f"{ALL_RESERVATIONS} WHERE number > ? ORDER BY number LIMIT ?"
OLDEST_RESERVATIONS: Final = f"{_NUMBERS} WHERE number <= ? ORDER BY number LIMIT ?"
DELETE_RESERVATIONS: Final = "DELETE FROM reservations WHERE number <= ?"

ALL_OBJECTS: Final = "SELECT id, name, state FROM objects"
COUNT_OBJECTS: Final = "SELECT count(*) FROM objects"
LAST_OBJECT: Final = "SELECT coalesce(max(id), 0) FROM objects"
GET_OBJECT: Final = "SELECT id, state, (SELECT max(rows.t) FROM rows WHERE rows.object = objects.id) FROM objects WHERE name = ?"
PUT_OBJECT: Final = "INSERT INTO objects (id, name, state) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state"
DELETE_OBJECT: Final = "DELETE FROM objects WHERE id = ?"
NAMES: Final = "SELECT name FROM objects WHERE name > ? AND name >= ? AND name < ? ORDER BY name LIMIT ?"
NUMBERED: Final = "SELECT id, name FROM objects WHERE id > ? ORDER BY id LIMIT ?"
STATES: Final = f"{ALL_OBJECTS} WHERE id > ? ORDER BY id LIMIT ?"

_OF_ROW: Final = "t, arrival, id, value, complete, sum"
VALUE_AT: Final = 3
"""Where the payload stands in it."""
_LISTED: Final = "object = ? AND t IN (SELECT value FROM json_each(?))"
ALL_ROWS: Final = f"SELECT object, {_OF_ROW} FROM rows"
PUT_ROW: Final = "INSERT INTO rows (object, t, arrival, id, value, sum) VALUES (?, ?, ?, ?, ?, ?)"
MARK_COMPLETE: Final = (
    f"UPDATE rows SET complete = 1, sum = sum + {COMPLETE} WHERE object = ? AND t = ? AND complete = 0"
)
DELETE_LOG: Final = "DELETE FROM rows WHERE object = ?"
COUNT_LOG: Final = "SELECT count(*) FROM rows WHERE object = ?"
STORED: Final = f"SELECT t FROM rows WHERE {_LISTED}"
WANTED: Final = f"SELECT {_OF_ROW} FROM rows WHERE {_LISTED} ORDER BY t"
WANTED_NEWEST_FIRST: Final = f"{WANTED} DESC"
# The plus keeps SQLite from walking the range of timestamps, which may be the whole log.
ARRIVALS: Final = f"""\
SELECT {_OF_ROW} FROM rows
WHERE object = ? AND arrival > ? AND +t > ? AND +t <= ?
ORDER BY arrival LIMIT ?"""
# The index by arrival holds all that is asked for.
ARRIVED: Final = """\
SELECT arrival, t FROM rows
WHERE object = ? AND arrival > ? AND arrival <= ?
ORDER BY arrival DESC LIMIT ?"""
_ABOVE: Final = "FROM rows WHERE object = ? AND t > ?"
ABOVE: Final = f"SELECT {_OF_ROW} {_ABOVE} ORDER BY t LIMIT ?"
NEWEST: Final = f"SELECT {_OF_ROW} {_ABOVE} ORDER BY t DESC LIMIT ?"
NTH: Final = f"SELECT t {_ABOVE} ORDER BY t LIMIT 1 OFFSET ?"
LAST_ABOVE: Final = f"SELECT max(t) {_ABOVE}"
COUNT_ABOVE: Final = f"SELECT count(*), min(t) {_ABOVE}"
COUNT_UPTO: Final = "SELECT count(*) FROM rows WHERE object = ? AND t <= ?"
# As `quorate.api_specs.values.work_bytes` counts it.
_BRACKETS: Final = "2 * length(value) - length(replace(value, '[', '')) - length(replace(value, '{', ''))"
_WORK: Final = f"length(CAST(value AS BLOB)) + {BRACKET_BYTES} * ({_BRACKETS})"
WORK_ABOVE: Final = f"SELECT count(*), coalesce(sum({_WORK}), 0) {_ABOVE}"
BELOW: Final = "SELECT max(t) FROM rows WHERE object = ? AND t < ?"
# What is deleted at a time: the oldest rows up to a limit.
_UPTO: Final = "FROM rows WHERE object = ? AND t <= ? AND arrival <= ?"
NTH_UPTO: Final = f"SELECT t {_UPTO} ORDER BY t LIMIT 1 OFFSET ?"
DELETE_UPTO: Final = f"DELETE {_UPTO}"
NO_ROWS: Final = {LAST_ABOVE: ((None,),), BELOW: ((None,),)}
"""The answers about an object without a log, where they are not simply empty."""

ALL_EVENTS: Final = "SELECT object, t, event, sum FROM events"
PUT_EVENT: Final = "INSERT OR REPLACE INTO events (object, t, event, sum) VALUES (?, ?, ?, ?)"
DELETE_EVENTS: Final = "DELETE FROM events WHERE object = ?"
NEWEST_EVENTS: Final = f"{ALL_EVENTS} WHERE object = ? ORDER BY t DESC LIMIT coalesce(?, -1)"

# What a survey counts.
_LENGTHS: Final = "SELECT object, count(*) AS length FROM rows GROUP BY object"
LONG_LOGS: Final = f"{_LENGTHS} HAVING length >= ?"
COUNT_ROWS: Final = f"SELECT coalesce(sum(length), 0), coalesce(max(length), 0) FROM ({_LENGTHS})"
QUEUES: Final = f"{ALL_OBJECTS} WHERE name >= 'queue/' AND name < 'queue0' ORDER BY name LIMIT ?"
