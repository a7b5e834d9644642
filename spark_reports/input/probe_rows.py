"""A prober's rows in plain Python: parsed and tested one by one, and made into intervals by the rule of `probes`."""

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any, Final

from ..model import contract
from ..model.aggregates import Span, microseconds
from ..model.period import ReportPeriod
from ..model.run_document import Run
from . import parquet_files, probes
from .rows import Interval, Reject, json_object, lines_of, parquet_rows
from .sources import Source

_NUMBERS: Final = ("time_s", "up", "latency_s")


def read_probes(
    source: Source, run: Run, step_us: int | None, rejects: list[Reject], period: ReportPeriod | None = None
) -> tuple[list[Interval], int]:
    """The intervals that the probes of a source speak for, and the number of rows read; with a period, of those sent within it.

    `step_us` is the usual distance of two probes of one replica; None for the median of the first ones.

    Raises:
        ReportError: a file cannot be read, or the probes do not show how often they were sent.
    """
    good: list[tuple[str, int, int]] = []
    texts: list[tuple[str, str]] = []
    read = 0
    for name, line, row in _rows(source, period):
        read += 1
        reason = contract.MALFORMED_JSON if row is None else _reason(row, run)
        if row is None or reason:
            rejects.append(Reject(contract.PROBES, name, reason or "", line))
            continue
        good.append((row["replica"], microseconds(row["time_s"]), int(row["up"])))
        texts.append((name, line))
    spacing = probes.Spacing(probes.usual_step_us(good) if step_us is None else step_us)
    found = probes.read_samples(good, spacing)
    contradicted = set(found.contradicted)
    rejects += [
        Reject(contract.PROBES, name, probes.CONTRADICTS, line)
        for (replica, time_us, _), (name, line) in zip(good, texts, strict=True)
        if (replica, time_us) in contradicted
    ]
    return [Interval("", *each) for each in found.intervals], read


def _rows(source: Source, period: ReportPeriod | None) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    for name, line, row in _every(source, period):
        if period is None or (row and period.holds(row.get("time_s"))):
            yield name, line, row


def _every(source: Source, period: ReportPeriod | None) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    for path in source.probe_lines:
        for line in lines_of(path):
            yield path.name, line, json_object(line, _NUMBERS, ("replica",))
    if source.probe_parquet is not None:
        parquet_files.check(source.probe_parquet, parquet_files.PROBES, parquet_files.PROBES_OPTIONAL)
        for name, row in parquet_rows(source.probe_parquet, probes.FIELDS, period, "time_s"):
            yield name, f"{row.get('replica')},{row.get('time_s')},{row.get('up')}", row


def _reason(row: Mapping[str, Any], run: Run) -> str | None:
    """Give the first reason to keep a probe aside; the order is that of `probe_jobs`."""
    for field in contract.PROBE_FIELDS:
        if row.get(field) is None:
            return contract.MISSING_FIELD + field
    latency_s = row.get("latency_s")
    # A frame library writes a missing number as NaN: a probe without an answer.
    told_s = 0.0 if latency_s is None or isnan(latency_s) else latency_s
    tests = (
        (row["replica"] not in run.votes, contract.UNKNOWN_REPLICA),
        (not 0 <= row["time_s"] <= contract.TIME_S_MAX, contract.BAD_TIME),
        (row["up"] not in (0, 1), contract.BAD_UP),
        (not 0 <= told_s <= contract.TIME_S_MAX, contract.BAD_LATENCY),
    )
    return next((reason for holds, reason in tests if holds), None)


def names_in(source: Source, period: ReportPeriod | None = None) -> tuple[str, ...]:
    """The replicas that a source of probes alone speaks of, sorted."""
    rows = (row for _, _, row in _rows(source, period) if row is not None)
    return tuple(sorted({row["replica"] for row in rows if row.get("replica")}))


def known(source: Source) -> Span | None:
    """From the first sample to the last; None where no time can be told."""
    times = [
        microseconds(row["time_s"])
        for _, _, row in _rows(source, ReportPeriod(None, None))
        if row is not None
    ]
    return Span(min(times), max(times) + 1) if times else None
