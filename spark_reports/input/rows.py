"""Rows of a measured run in plain Python: parsed and tested one by one, in the words and the order of `jobs`.

Slow and obvious: the Spark jobs are held equal to it. `reference` counts what comes out of here.
"""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import PurePath
from typing import Any, Final

from ..model import contract
from ..model.aggregates import Span, microseconds
from ..model.errors import ReportError
from ..model.period import ReportPeriod
from ..model.places import Place
from ..model.run_document import Run
from . import parquet_files
from .files import files_of, opened_text


@dataclass(frozen=True, slots=True)
class Operation:
    """One good operation."""

    object: str
    choice: str
    operation: str
    event_class: str | None
    front_end: str
    outcome: str
    start_us: int
    latency_us: int
    latency_s: float

    @property
    def end_us(self) -> int:
        """When it was answered or given up."""
        return self.start_us + self.latency_us


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """One good interval of one replica, or of the way from a front end to it (`front_end` not empty); `up` is 0 or 1."""

    front_end: str
    replica: str
    start_us: int
    end_us: int
    up: int


@dataclass(frozen=True, slots=True, order=True)
class Reject:
    """One row kept aside; `line` is its text, or for Parquet its fields in words."""

    kind: str
    source: str
    reason: str
    line: str


def lines_of(path: Place) -> Iterator[str]:
    """The lines of a text file (`.gz` too) that are not blank.

    Raises:
        ReportError: the file cannot be read to its end.
    """
    try:
        with opened_text(path, errors="replace") as lines:
            for line in lines:
                if line.strip(" \r\n"):
                    yield line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise ReportError(
            f"{path} cannot be read to its end ({error}); write it anew or take it away{_rescue(path)}"
        ) from error


def _rescue(path: Place) -> str:
    if path.suffix != ".gz":
        return ""
    return f"; to keep what can be read: gzip -dc {path.name} > {path.stem}, then take {path.name} away"


def parquet_rows(
    folder: Place, columns: Sequence[str], period: ReportPeriod | None = None, time_column: str = "start_s"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a folder of Parquet files, as (file name, row); otherwise as `parquet_tables`."""
    for path, table in parquet_tables(folder, columns, period, time_column):
        for row in table.to_pylist():
            yield path.name, row


def parquet_tables(
    folder: Place,
    columns: Sequence[str],
    period: ReportPeriod | None = None,
    time_column: str = "start_s",
    only: Collection[Place] | None = None,
) -> Iterator[tuple[Place, Any]]:
    """The files of a folder of Parquet, each as a table of Arrow; folders named `column=value` are columns.

    With a period, folders of other days and row groups of other times are not read: a few rows outside it are still given.
    With `only`, no other file is read.

    Raises:
        ReportError: a file cannot be read; `parquet_files.check` names more that can be wrong.
    """
    from pyarrow import ArrowException, dataset  # noqa: PLC0415 - plain runs need no pyarrow

    try:
        files, base = files_of(folder).dataset(folder)
        found = dataset.dataset(base, filesystem=files, format="parquet", partitioning="hive")
        near = None
        if period is not None:
            first_s, last_s = period.around_s
            near = (dataset.field(time_column) >= first_s) & (dataset.field(time_column) <= last_s)
        own = [name for name in columns if name in found.schema.names]
        for fragment in found.get_fragments():
            path = folder / fragment.path[len(str(base)) + 1 :]
            if (only is None or path in only) and (
                period is None or _may_hold(period, path.relative_to(folder))
            ):
                yield path, fragment.to_table(schema=found.schema, columns=own, filter=near)
    except (ArrowException, OSError) as error:
        raise ReportError(f"{folder} cannot be read ({error}); write it anew or take it away") from error


def _may_hold(period: ReportPeriod, path: PurePath) -> bool:
    """Whether a file may hold rows of the period, by the folder of the day that it lies in."""
    days = [part.partition("=")[2] for part in path.parts if part.startswith("day=")]
    return all(map(period.may_hold_day, days))


def json_object(line: str, numbers: Sequence[str], texts: Sequence[str]) -> dict[str, Any] | None:
    """Parse a line as Spark does: text fields take any value as its text, the others only their own type."""
    try:
        row = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    for field in numbers:
        number = row.get(field)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            return None
        if isinstance(number, int):
            row[field] = _as_float(number)
    answered = row.get("answered")
    if answered is not None and not isinstance(answered, list):
        return None
    for field in texts:
        if field in row:
            row[field] = _text(row[field])
    return row


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _as_float(number: int) -> float:
    """The same as a floating-point number; infinity for one that is too large, as in Spark."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_TEXTS: Final = ("object", "adt", "operation", "event_class", "choice", "front_end", "outcome")


class OperationRows:
    """Reads operations from lines and from Parquet, keeping bad rows aside; with a period, those that began within it."""

    def __init__(self, run: Run, rejects: list[Reject], period: ReportPeriod | None = None) -> None:
        self.run = run
        self.period = period
        self.rejects = rejects
        self.read = 0
        self._objects: Final = run.objects_by_key
        self._choices: Final = {choice.name: choice for choice in run.choices}

    def from_lines(self, paths: Iterable[Place]) -> Iterator[tuple[Operation, str, str]]:
        """The good rows, each with its source and its text."""
        for path in paths:
            for line in lines_of(path):
                row = json_object(line, ("start_s", "latency_s"), _TEXTS)
                yield from self._tested(path.name, line, row)

    def from_parquet(self, folder: Place) -> Iterator[tuple[Operation, str, str]]:
        """The good rows, each with its source and its fields in words."""
        parquet_files.check(folder, parquet_files.OPERATIONS)
        for source, row in parquet_rows(folder, tuple(parquet_files.OPERATIONS), self.period):
            yield from self._tested(source, shown_operation(row), row)

    def _tested(
        self, source: str, line: str, row: dict[str, Any] | None
    ) -> Iterator[tuple[Operation, str, str]]:
        if self.period is not None and not (row and self.period.holds(row.get("start_s"))):
            return
        self.read += 1
        reason = contract.MALFORMED_JSON if row is None else self._reason(row)
        if row is None or reason:
            self.rejects.append(Reject(contract.OPERATIONS, source, reason or "", line))
            return
        yield (
            Operation(
                object=row["object"],
                choice=row["choice"],
                operation=row["operation"],
                event_class=row.get("event_class"),
                front_end=row["front_end"],
                outcome=row["outcome"],
                start_us=microseconds(row["start_s"]),
                latency_us=microseconds(row["latency_s"]),
                latency_s=float(row["latency_s"]),
            ),
            source,
            line,
        )

    def _reason(self, row: Mapping[str, Any]) -> str | None:
        """Give the first reason to keep a row aside; the order is that of `jobs`."""
        for field in contract.OPERATION_FIELDS:
            if row.get(field) is None:
                return contract.MISSING_FIELD + field
        choice = self._choices.get(row["choice"])
        event_class, is_ok = row.get("event_class"), row["outcome"] == "ok"
        own = {each.event_class for each in choice.classes} if choice else set()
        classes = {name for name in own if name.partition("/")[0] == row["operation"]}
        own_choice = self.run.choice_of(row["object"])
        tests = (
            (row["outcome"] not in contract.OUTCOMES, contract.UNKNOWN_OUTCOME),
            (choice is None, contract.UNKNOWN_CHOICE),
            (choice is not None and row["adt"] != choice.adt, contract.OTHER_ADT),
            (own_choice is None, contract.UNKNOWN_OBJECT),
            (own_choice != row["choice"], contract.OTHER_CHOICE),
            (row["front_end"] not in self.run.front_ends, contract.UNKNOWN_FRONT_END),
            (not classes, contract.UNKNOWN_OPERATION),
            (not is_ok and event_class is not None, contract.CLASS_WITHOUT_OK),
            (is_ok and event_class is None, contract.CLASS_MISSING),
            (is_ok and event_class not in classes, contract.UNKNOWN_CLASS),
            (not 0 <= row["start_s"] <= contract.TIME_S_MAX, contract.BAD_START),
            (not 0 <= row["latency_s"] <= contract.TIME_S_MAX, contract.BAD_LATENCY),
            (any(name not in self.run.votes for name in row["answered"]), contract.UNKNOWN_ANSWER),
            (_is_outside(row["start_s"], self.run.window), contract.OUTSIDE_WINDOW),
        )
        return next((reason for holds, reason in tests if holds), None)


def _is_outside(start_s: float, window: Span | None) -> bool:
    if window is None or not isfinite(start_s):
        return False
    return not window.start_us <= microseconds(start_s) < window.end_us


def shown_operation(row: Mapping[str, Any]) -> str:
    """A row of Parquet in words: the fields with commas between, times in whole microseconds."""
    answered = row.get("answered")
    words = [row.get(name) for name in _TEXTS]
    words += [shown_time(row.get(name)) for name in ("start_s", "latency_s")]
    words.append(None if answered is None else "|".join("" if each is None else each for each in answered))
    return ",".join("" if word is None else word for word in words)


def shown_time(seconds: float | None) -> str:
    if seconds is None or not -contract.TIME_S_MAX <= seconds <= contract.TIME_S_MAX:
        return "" if seconds is None else "?"
    return str(microseconds(seconds))


def without_duplicates(found: Iterable[tuple[Operation, str, str]], rejects: list[Reject]) -> list[Operation]:
    """Keep one row of each front end, object, operation and start; of several the one that took least time.

    Two lines of one operation come from a writer that wrote it twice, as lines and as Parquet. Where they contradict, the
    order is latency, outcome, event class, quorum choice, then file and text: any fixed one would do.
    """
    kept = []
    taken: set[tuple[str, str, str, int]] = set()
    for operation, source, line in sorted(found, key=_preference):
        key = operation.front_end, operation.object, operation.operation, operation.start_us
        if key in taken:
            rejects.append(Reject(contract.OPERATIONS, source, contract.DUPLICATE, line))
        else:
            taken.add(key)
            kept.append(operation)
    return kept


def _preference(entry: tuple[Operation, str, str]) -> tuple[Any, ...]:
    operation, source, line = entry
    return (
        operation.latency_us,
        operation.outcome,
        operation.event_class or "",
        operation.choice,
        source,
        line,
    )


def intervals_from(
    path: Place, columns: Sequence[str], run: Run, rejects: list[Reject], period: ReportPeriod | None = None
) -> tuple[list[tuple[Interval, str]], int]:
    """The intervals of `replicas.csv` or `links.csv` that are good by themselves, each with its text, and the rows read.

    With a period, the parts of them that lie within it.

    Raises:
        ReportError: the file cannot be read, or begins with another header.
    """
    check_header(path, columns)
    kind = contract.LINKS if "front_end" in columns else contract.INTERVALS
    parsed: list[tuple[Interval, str]] = []
    read = 0
    header = ",".join(columns)
    for line in lines_of(path):
        if line.strip(" ") == header:
            continue
        fields = [field.strip(" ") for field in line.strip(" ").split(",")]
        reason = _interval_reason(fields, len(columns), run)
        times = None if reason == contract.MALFORMED_CSV else _times_within(fields, period)
        if period is not None and times is None:
            continue
        read += 1
        if reason or times is None:
            rejects.append(Reject(kind, path.name, reason or contract.MALFORMED_CSV, line))
            continue
        front_end = fields[0] if kind == contract.LINKS else ""
        parsed.append((Interval(front_end, fields[-4], *times, int(fields[-1])), line))
    return parsed, read


def _times_within(fields: Sequence[str], period: ReportPeriod | None) -> tuple[int, int] | None:
    """Start and end of a line, cut to the period; None for one that lies outside, or whose times are none."""
    start_s, end_s = float(fields[-3]), float(fields[-2])
    if not (isfinite(start_s) and isfinite(end_s)):
        return None
    start_us, end_us = microseconds(start_s), microseconds(end_s)
    return (start_us, end_us) if period is None else period.cut(start_us, end_us)


def _interval_reason(fields: Sequence[str], columns: int, run: Run) -> str | None:
    if len(fields) != columns or not all(
        re.match(contract.NUMBER_PATTERN, number) for number in fields[-3:-1]
    ):
        return contract.MALFORMED_CSV
    start_s, end_s = float(fields[-3]), float(fields[-2])
    tests = (
        (
            columns == len(contract.LINK_COLUMNS) and fields[0] not in run.front_ends,
            contract.UNKNOWN_FRONT_END,
        ),
        (fields[-4] not in run.votes, contract.UNKNOWN_REPLICA),
        (not (0 <= start_s <= contract.TIME_S_MAX and 0 <= end_s <= contract.TIME_S_MAX), contract.BAD_TIME),
        (fields[-1] not in ("0", "1"), contract.BAD_UP),
        (end_s < start_s, contract.ENDS_BEFORE_START),
    )
    return next((reason for holds, reason in tests if holds), None)


def check_header(path: Place, columns: Sequence[str]) -> None:
    """See that a CSV file begins as it should.

    Raises:
        ReportError: its first line is another one, or it cannot be read.
    """
    try:
        with path.open("r", encoding="utf-8-sig", errors="replace", newline="") as lines:
            first = next(csv.reader([lines.readline().strip()]), [])
    except OSError as error:
        raise ReportError(f"{path} cannot be read ({error}); write it anew") from error
    if tuple(first) != tuple(columns):
        raise ReportError(
            f"{path} begins with {','.join(first)[:80]!r}; its first line must be {','.join(columns)}"
        )


def clipped(intervals: Iterable[Interval], span: Span) -> list[Interval]:
    """The parts of the intervals that lie within the window; what has no length there is left out."""
    found = []
    for each in intervals:
        start_us, end_us = max(each.start_us, span.start_us), min(each.end_us, span.end_us)
        if start_us < end_us:
            found.append(Interval(each.front_end, each.replica, start_us, end_us, each.up))
    return found
