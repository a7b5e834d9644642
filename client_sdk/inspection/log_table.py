"""The logs of all replicas side by side, as lectures draw them. Pure: what replicas answered in, a table out.

One row per timestamp, one column per replica; an entry that a replica does not hold leaves its cell blank. What is delivered
under a lease, or is a dead letter, left the log and is kept in the summary; it has its row all the same. Below, what each
replica has promised and knows to be decided.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET, Struct, to_builtins

from ...adts.log import NO_LEASES, NOTHING, Entry, LeaseCounts, count_leases
from ...adts.plain_class import BadClass, arguments_text, call_in
from ...adts.types.catalogue import adt_of
from ...api_specs.limits import DEFAULTS
from ...api_specs.messages import Collected
from ...timestamps.timestamp import INFINITY, ZERO, Timestamp, wall_us
from .lease_status import LeaseStatus, lease_statuses_of

_BLIND: Final = {"queue": "Enq", "register": "Write", "dictionary": "Put"}
_PART: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^;"])+')
"""What stands between semicolons, those in JSON strings not counted."""


class Column(Struct, frozen=True):
    """One replica's log of an object: events by timestamp, its promises, and what its summary decides.

    `kept` are the entries that its summary keeps, by timestamp: delivered, waiting to be, or dead; `lease_statuses` says how these
    stand, and those in the log that are delayed or expire. `trouble` says why there is nothing to show; `cut` that there are older entries than the page that the replica gave.
    """

    events: dict[Timestamp, str] = {}
    kept: dict[Timestamp, str] = {}
    lease_statuses: dict[Timestamp, LeaseStatus] = {}
    leases: LeaseCounts = NO_LEASES
    horizon: Timestamp = ZERO
    fence: Timestamp = ZERO
    accepted: Timestamp = ZERO
    value: str | None = None
    adopted: tuple[Timestamp, ...] = ()
    trouble: str = ""
    cut: bool = False


class Trace(Struct, frozen=True):
    """The table of one object: replicas in the order of the cluster file, and a short label for each timestamp.

    `now_us` is the moment for which items' states hold, in microseconds since 1970.
    """

    object: str
    columns: dict[str, Column]
    now_us: int = 0

    @property
    def rows(self) -> list[Timestamp]:
        """The timestamps of all events and of what summaries keep, in order."""
        return sorted({t for column in self.columns.values() for t in (*column.events, *column.kept)})

    @property
    def labels(self) -> dict[Timestamp, str]:
        """t1, t2 … for every timestamp that the table shows, in timestamp order; 0 for none yet."""
        shown = set(self.rows)
        for column in self.columns.values():
            shown |= {column.horizon, column.fence, column.accepted, *column.adopted}
        named = sorted(shown - {ZERO, INFINITY})
        return {ZERO: "0", INFINITY: "∞"} | {t: f"t{number}" for number, t in enumerate(named, 1)}

    def cell(self, id: str, t: Timestamp) -> tuple[str, str]:
        """The event that a replica holds at a timestamp, and how it stands with acquire, in words; empty where there is none."""
        column = self.columns[id]
        status = column.lease_statuses.get(t)
        event = column.kept.get(t) or column.events.get(t, "")
        return event, status.words(self.now_us) if status else ""

    def footer(self, full: bool = False) -> list[tuple[str, list[str]]]:
        """The lines below the table: horizon and fence of each replica, and what else its summary holds, if any does."""
        labels = self.labels

        def name(t: Timestamp) -> str:
            return str(t) if full and t != ZERO else labels[t]

        columns = self.columns.values()
        lines = [
            ("horizon", [name(column.horizon) for column in columns]),
            ("fence", [name(column.fence) for column in columns]),
        ]
        if any(column.accepted > column.horizon for column in columns):
            undecided = [
                name(column.accepted) if column.accepted > column.horizon else "" for column in columns
            ]
            lines.append(("accepted", undecided))
        if any(column.adopted for column in columns):
            lines.append(("adopted", [" ".join(map(name, column.adopted)) for column in columns]))
        if any(column.leases != NO_LEASES for column in columns):
            lines.append(("leases", [counted(column.leases) for column in columns]))
        if adt_of(self.object) != "queue" and any(column.accepted > ZERO for column in columns):
            values = [(column.value or "absent") if column.accepted > ZERO else "" for column in columns]
            lines.append(("decided", values))
        return [
            (title, ["" if column.trouble else cell for cell, column in zip(cells, columns, strict=True)])
            for title, cells in lines
        ]

    def as_json(self) -> dict[str, Any]:
        """The same table for programs, with whole timestamps."""
        labels = self.labels
        rows = [
            {
                "t": t,
                "label": labels[t],
                "events": {id: column.events[t] for id, column in self.columns.items() if t in column.events},
                "kept": {id: column.kept[t] for id, column in self.columns.items() if t in column.kept},
                "lease_statuses": {
                    id: to_builtins(column.lease_statuses[t])
                    for id, column in self.columns.items()
                    if t in column.lease_statuses
                },
            }
            for t in self.rows
        ]
        replicas = {
            id: {"reachable": False, "trouble": column.trouble}
            if column.trouble
            else {
                "reachable": True,
                "horizon": column.horizon,
                "fence": column.fence,
                "accepted": column.accepted,
                "adopted": list(column.adopted),
                "value": column.value,
                "leases": to_builtins(column.leases),
                "cut": column.cut,
            }
            for id, column in self.columns.items()
        }
        return {"object": self.object, "rows": rows, "replicas": replicas}


def column_of(object_name: str, answer: Collected, page_max: int, now_us: int) -> Column:
    """What one replica holds of an object, with items' states as they are at `now_us`."""
    events = {row.entry.t: event_text(object_name, row.entry) for row in answer.rows}
    events |= {t: decided_text(event) for t, event in answer.events}
    summary = answer.summary or NOTHING
    return Column(
        events=events,
        kept={entry.t: event_text(object_name, entry) for entry in summary.kept()},
        lease_statuses=lease_statuses_of(summary, answer.rows, now_us),
        leases=count_leases(summary.leases, summary.dead),
        horizon=answer.status.horizon,
        fence=answer.status.fence,
        accepted=summary.horizon,
        value=summary.value,
        adopted=tuple(entry.t for entry in summary.adopted),
        cut=len(answer.rows) >= page_max,
    )


def counted(leases: LeaseCounts) -> str:
    """How many items of a queue are delivered, wait to be, and are dead letters, in words; empty where none are."""
    parts = ((leases.held, "held"), (leases.waiting, "waiting"), (leases.dead, "dead"))
    return ", ".join(f"{number} {word}" for number, word in parts if number)


def event_text(object_name: str, entry: Entry) -> str:
    """A log entry as its event: `[Enq("x"); Ok()]`."""
    if entry.value is None:
        return "[Delete(); Ok()]"
    value = "…" if entry.value is UNSET else entry.value
    if (name := _BLIND.get(adt_of(object_name))) is not None:
        return f"[{name}({value}); Ok()]"
    return f"[{_call_shown(value)}; Ok()]"


def _call_shown(text: str) -> str:
    """A call of a blind operation, as the log of an object of one's own type keeps it."""
    try:
        call = call_in(text)
    except BadClass:
        return text
    return f"{call.operation}({arguments_text(call)[1:-1]})"


def decided_text(text: str) -> str:
    """Decided events, one or more as `Deq();Ok("x")` with semicolons between them, in the form of `event_text`."""
    parts = [part.strip() for part in _PART.findall(text)]
    return " ".join(f"[{'; '.join(parts[at : at + 2])}]" for at in range(0, len(parts), 2))


def traces_of(
    replies: Mapping[str, Mapping[str, Collected] | str],
    wanted: str,
    page_max: int = DEFAULTS.page_entries_max,
    now_us: int = 0,
) -> list[Trace]:
    """One table for each object that some replica knows; an empty one for `wanted` when none does.

    `now_us` is the time by which leases are over and delays have passed. `replies` gives for each replica its objects, or the sentence that says why it gave none.
    """
    known = {name for reply in replies.values() if not isinstance(reply, str) for name in reply}
    names = sorted(name for name in known if name == wanted or name.startswith(wanted + "/"))
    return [
        Trace(name, {id: _column(name, reply, page_max, now_us) for id, reply in replies.items()}, now_us)
        for name in names or [wanted]
    ]


def _column(name: str, reply: Mapping[str, Collected] | str, page_max: int, now_us: int) -> Column:
    if isinstance(reply, str):
        return Column(trouble=reply)
    return column_of(name, reply[name], page_max, now_us) if name in reply else Column()


def when(t: Timestamp) -> str:
    """The wall-clock time that a timestamp names, in UTC to the microsecond."""
    return datetime.fromtimestamp(wall_us(t) / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
