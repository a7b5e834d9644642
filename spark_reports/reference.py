"""The same aggregates as on Spark, in plain Python: slow, obvious, and in need of no Java.

It holds everything in memory and is written for reading. It serves two ends: a test holds `engine` equal to it, and
`make_report(..., engine="python")` makes the report of a small run where no Java is to be had.
"""

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from quorate.spark_reports import aggregates as tables
from quorate.spark_reports import contract
from quorate.spark_reports.aggregates import Aggregates, Span, microseconds
from quorate.spark_reports.contract import Choices, RunFiles
from quorate.spark_reports.errors import ReportError

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Operation:
    """One good operation."""

    choice: str
    operation: str
    event_class: str | None
    outcome: str
    start_us: int
    end_us: int
    latency_s: float


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """One good interval of one replica; `up` is 0 or 1."""

    replica: str
    start_us: int
    end_us: int
    up: int


@dataclass(frozen=True, slots=True)
class UpSet:
    """Exactly the replicas with a bit in `up` were up, from start to end."""

    start_us: int
    end_us: int
    up: int
    live_votes: int


Rejects = list[tuple[str, str, str]]
"""Source, reason and line of each row kept aside."""


def aggregate(files: RunFiles, choices: Choices) -> Aggregates:
    """Boil a run down in plain Python.

    Raises:
        ReportError: a file cannot be read, or the replicas are never all observed at the same time.
    """
    rejects: Rejects = []
    operations = list(_operations(files.operations, choices, rejects))
    intervals = _intervals(files.replicas, choices, rejects)
    up_sets = _up_sets(intervals, choices)
    if not up_sets:
        raise contract.never_observed_together(files)
    seen_us = [(op.start_us, op.end_us) for op in operations] + [(i.start_us, i.end_us) for i in intervals]
    span = Span(min(start_us for start_us, _ in seen_us), max(end_us for _, end_us in seen_us))
    return Aggregates(
        span=span,
        up_changes=len(up_sets),
        bins=_sorted(_bins(operations, span)),
        classes=_sorted(_classes(operations)),
        live=_sorted(_live(operations, up_sets)),
        latencies=_sorted(_latencies(operations)),
        replicas=_sorted(_replica_times(intervals)),
        up_sets=_sorted(_up_set_times(up_sets)),
        shortages=_sorted(_shortages(up_sets, choices)),
        down_bins=_sorted(_down_bins(intervals, span)),
        rejected=_sorted(_rejected(rejects)),
    )


def _lines(path: Path) -> Iterator[str]:
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
            for line in lines:
                if line.strip(" \r\n"):
                    yield line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise ReportError(
            f"{path} cannot be read to its end ({error}); write it anew or take it away"
        ) from error


def _operations(paths: Sequence[Path], choices: Choices, rejects: Rejects) -> Iterator[Operation]:
    for path in paths:
        for line in _lines(path):
            row = _json_object(line)
            reason = contract.MALFORMED_JSON if row is None else _operation_reason(row, choices)
            if row is None or reason:
                rejects.append((path.name, reason or "", line))
                continue
            start_us = microseconds(row["start_s"])
            yield Operation(
                choice=row["choice"],
                operation=row["operation"],
                event_class=row.get("event_class"),
                outcome=row["outcome"],
                start_us=start_us,
                end_us=start_us + microseconds(row["latency_s"]),
                latency_s=float(row["latency_s"]),
            )


def _json_object(line: str) -> dict[str, Any] | None:
    """Parse a line as Spark does: text fields take any value as its text, the others only their own type."""
    try:
        row = json.loads(line, parse_constant=_refuse)
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    for field in ("start_s", "latency_s"):
        number = row.get(field)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            return None
    answered = row.get("answered")
    if answered is not None and not isinstance(answered, list):
        return None
    for field in ("object", "adt", "operation", "event_class", "choice", "front_end", "outcome"):
        if field in row:
            row[field] = _text(row[field])
    return row


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _operation_reason(row: dict[str, Any], choices: Choices) -> str | None:
    """Give the first reason to keep a row aside; the order is that of `jobs`."""
    for field in contract.OPERATION_FIELDS:
        if row.get(field) is None:
            return contract.MISSING_FIELD + field
    own = [c for c in choices.classes if c.choice == row["choice"]]
    event_class, is_ok = row.get("event_class"), row["outcome"] == "ok"
    classes = {c.event_class for c in own if c.operation == row["operation"]}
    tests = (
        (row["outcome"] not in contract.OUTCOMES, contract.UNKNOWN_OUTCOME),
        (not own, contract.UNKNOWN_CHOICE),
        (row["adt"] not in {c.adt for c in own}, contract.OTHER_ADT),
        (not classes, contract.UNKNOWN_OPERATION),
        (not is_ok and event_class is not None, contract.CLASS_WITHOUT_OK),
        (is_ok and event_class is None, contract.CLASS_MISSING),
        (is_ok and event_class not in classes, contract.UNKNOWN_CLASS),
        (not 0 <= row["start_s"] <= contract.TIME_S_MAX, contract.BAD_START),
        (not 0 <= row["latency_s"] <= contract.TIME_S_MAX, contract.BAD_LATENCY),
        (any(replica not in choices.votes for replica in row["answered"]), contract.UNKNOWN_ANSWER),
    )
    return next((reason for holds, reason in tests if holds), None)


def _intervals(path: Path, choices: Choices, rejects: Rejects) -> list[Interval]:
    parsed: list[tuple[Interval, str]] = []
    for line in _lines(path):
        if line.strip(" ") == contract.INTERVALS_HEADER:
            continue
        fields = [field.strip(" ") for field in line.strip(" ").split(",")]
        reason = _interval_reason(fields, choices)
        if reason:
            rejects.append((path.name, reason, line))
        else:
            replica, start, end, up = fields
            times = microseconds(float(start)), microseconds(float(end))
            parsed.append((Interval(replica, *times, int(up)), line))
    good = []
    ended_us: dict[str, int] = {}
    for interval, line in sorted(parsed):
        if interval.start_us < ended_us.get(interval.replica, interval.start_us):
            rejects.append((path.name, contract.OVERLAPS, line))
        else:
            good.append(interval)
        ended_us[interval.replica] = max(interval.end_us, ended_us.get(interval.replica, interval.end_us))
    return good


def _interval_reason(fields: Sequence[str], choices: Choices) -> str | None:
    if len(fields) != 4 or not all(re.match(contract.NUMBER_PATTERN, number) for number in fields[1:3]):
        return contract.MALFORMED_CSV
    start_s, end_s = float(fields[1]), float(fields[2])
    tests = (
        (fields[0] not in choices.votes, contract.UNKNOWN_REPLICA),
        (not (0 <= start_s <= contract.TIME_S_MAX and 0 <= end_s <= contract.TIME_S_MAX), contract.BAD_TIME),
        (fields[3] not in ("0", "1"), contract.BAD_UP),
        (end_s < start_s, contract.ENDS_BEFORE_START),
    )
    return next((reason for holds, reason in tests if holds), None)


def _up_sets(intervals: Sequence[Interval], choices: Choices) -> list[UpSet]:
    """Walk through the moments of change and ask, between two of them, for each replica's state."""
    bits = {replica: 1 << index for index, replica in enumerate(choices.votes)}
    moments = sorted({i.start_us for i in intervals} | {i.end_us for i in intervals})
    result = []
    for start_us, end_us in pairwise(moments):
        now = [i for i in intervals if i.start_us <= start_us and end_us <= i.end_us]
        if len(now) == len(choices.votes):
            up = [i.replica for i in now if i.up]
            live_votes = sum(choices.votes[replica] for replica in up)
            result.append(UpSet(start_us, end_us, sum(bits[replica] for replica in up), live_votes))
    return result


def _bins(operations: Iterable[Operation], span: Span) -> Iterator[tables.BinCount]:
    counts: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for op in operations:
        counts[op.choice, op.operation, (op.start_us - span.start_us) // span.bin_us][op.outcome] += 1
    for key, by_outcome in counts.items():
        yield tables.BinCount(*key, *(by_outcome[outcome] for outcome in contract.OUTCOMES))


def _classes(operations: Iterable[Operation]) -> Iterator[tables.ClassCount]:
    counts = Counter((op.choice, op.operation, op.outcome, op.event_class) for op in operations)
    return (tables.ClassCount(*key, count) for key, count in counts.items())


def _live(operations: Iterable[Operation], up_sets: Sequence[UpSet]) -> Iterator[tables.LiveCount]:
    def live_at(time_us: int) -> int | None:
        return next((u.live_votes for u in up_sets if u.start_us <= time_us < u.end_us), None)

    counts = Counter((op.choice, op.operation, op.outcome == "ok", live_at(op.start_us)) for op in operations)
    return (tables.LiveCount(*key, count) for key, count in counts.items())


def _latencies(operations: Iterable[Operation]) -> Iterator[tables.Latency]:
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for op in operations:
        groups[op.choice, op.operation, op.outcome].append(op.latency_s)
    for key, latencies in groups.items():
        ordered = sorted(latencies)
        at = [ordered[ceil(quantile * len(ordered)) - 1] for quantile in tables.QUANTILES]
        yield tables.Latency(*key, len(ordered), *at)


def _replica_times(intervals: Sequence[Interval]) -> Iterator[tables.ReplicaTime]:
    for replica in {i.replica for i in intervals}:
        own = [i for i in intervals if i.replica == replica]
        observed_us = sum(i.end_us - i.start_us for i in own)
        up_us = sum(i.end_us - i.start_us for i in own if i.up)
        down = _periods((i.start_us, i.end_us) for i in own if not i.up)
        yield tables.ReplicaTime(replica, observed_us, up_us, len(down), max(down, default=0))


def _up_set_times(up_sets: Iterable[UpSet]) -> Iterator[tables.UpSetTime]:
    times: Counter[int] = Counter()
    for up_set in up_sets:
        times[up_set.up] += up_set.end_us - up_set.start_us
    return (tables.UpSetTime(up, time_us) for up, time_us in times.items())


def _shortages(up_sets: Sequence[UpSet], choices: Choices) -> Iterator[tables.Shortage]:
    for needed in {c.needed for c in choices.classes}:
        short = _periods((u.start_us, u.end_us) for u in up_sets if u.live_votes < needed)
        if short:
            yield tables.Shortage(needed, len(short), max(short))


def _periods(intervals: Iterable[tuple[int, int]]) -> list[int]:
    """Give the lengths of the periods that touching intervals form together; intervals without length are none."""
    periods: list[tuple[int, int]] = []
    for start_us, end_us in sorted(i for i in intervals if i[1] > i[0]):
        if periods and periods[-1][1] == start_us:
            periods[-1] = (periods[-1][0], end_us)
        else:
            periods.append((start_us, end_us))
    return [end_us - start_us for start_us, end_us in periods]


def _down_bins(intervals: Iterable[Interval], span: Span) -> Iterator[tables.DownBin]:
    down_us: Counter[tuple[str, int]] = Counter()
    for interval in intervals:
        if interval.up or interval.end_us == interval.start_us:
            continue
        first = (interval.start_us - span.start_us) // span.bin_us
        last = (interval.end_us - 1 - span.start_us) // span.bin_us
        for index in range(first, last + 1):
            bin_start_us = span.start_us + index * span.bin_us
            end_us = min(interval.end_us, bin_start_us + span.bin_us)
            down_us[interval.replica, index] += end_us - max(interval.start_us, bin_start_us)
    return (tables.DownBin(*key, time_us) for key, time_us in down_us.items())


def _rejected(rejects: Rejects) -> Iterator[tables.Rejected]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source, reason, line in rejects:
        groups[source, reason].append(line)
    for key, lines in groups.items():
        yield tables.Rejected(*key, len(lines), min(lines)[: tables.EXAMPLE_CHARS])


def _sorted(rows: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(sorted(rows, key=tables.sort_key))
