"""Reads a whole source in plain Python, into what `reference` counts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quorate.spark_reports import contract, foreign, overlaps, probe_rows, rows, sources
from quorate.spark_reports.aggregates import Span
from quorate.spark_reports.errors import ReportError
from quorate.spark_reports.foreign import Foreign
from quorate.spark_reports.reference import Input
from quorate.spark_reports.rows import Interval, OperationRows, Reject
from quorate.spark_reports.run_document import Run
from quorate.spark_reports.sources import Source


def load(source: Source, run: Run, step_us: int | None) -> Input:
    """Read a measured run, or a prober's samples alone.

    Raises:
        ReportError: a file cannot be read, or the replicas are never all observed at the same time.
    """
    rejects: list[Reject] = []
    read: dict[str, int] = {}
    reader = OperationRows(run, rejects)
    found = list(reader.from_lines(source.operation_lines))
    if source.operation_parquet is not None:
        found += reader.from_parquet(source.operation_parquet)
    operations = rows.without_duplicates(found, rejects)
    read[contract.OPERATIONS] = reader.read
    seen: list[Interval] = []
    if source.has_probes():
        seen, read[contract.PROBES] = probe_rows.read_probes(source, run, step_us, rejects)
    intervals = seen
    if source.replicas is not None:
        intervals, read[contract.INTERVALS] = _up_times(
            source.replicas, contract.REPLICA_COLUMNS, run, rejects
        )
    links: list[Interval] = []
    if source.links is not None:
        links, read[contract.LINKS] = _up_times(source.links, contract.LINK_COLUMNS, run, rejects)
    return Input(
        run=run,
        span=span_of(run, intervals, source),
        operations=operations,
        intervals=intervals,
        links=links,
        seen=seen if source.replicas is not None else [],
        read=read,
        rejects=rejects,
    )


def _up_times(
    path: Path, columns: Sequence[str], run: Run, rejects: list[Reject]
) -> tuple[list[Interval], int]:
    """The disjoint intervals of a file, and the number of rows read."""
    found, read = rows.intervals_from(path, columns, run, rejects)
    intervals, aside = overlaps.settled(found)
    kind = contract.LINKS if columns == contract.LINK_COLUMNS else contract.INTERVALS
    rejects += [Reject(kind, path.name, reason, line) for line, reason in aside]
    return intervals, read


def load_foreign(found: Foreign, votes: Mapping[str, int], source: Source) -> Input:
    """Take other people's replicas, of which only those in `votes` count."""
    chosen, all_votes = foreign.select(found, votes)
    run = Run(votes=all_votes)
    return Input(
        run=run,
        span=span_of(run, chosen.intervals, source),
        operations=[],
        intervals=chosen.intervals,
        links=[],
        seen=[],
        read=chosen.read,
        rejects=chosen.rejects,
    )


def span_of(run: Run, intervals: list[Interval], source: Source) -> Span:
    """The window of the run, or all the time that the intervals speak of.

    Raises:
        ReportError: there is no interval.
    """
    if run.window is not None:
        return run.window
    if not intervals:
        raise never_observed_together(source)
    return Span(min(each.start_us for each in intervals), max(each.end_us for each in intervals))


def read_foreign(source: Source, label: str, step_s: float | None) -> Foreign:
    """Read a trace or answers of Prometheus."""
    if source.kind == sources.TRACE:
        return foreign.read_trace_file(source.foreign[0])
    return foreign.read_prometheus(source.foreign, label, step_s)


def run_of_probes(run: Run, names: tuple[str, ...], votes: Mapping[str, int]) -> Run:
    """The run behind a prober's samples alone: the replicas that they name, or that `votes` does.

    Raises:
        ReportError: no sample names a replica, or `votes` names another one.
    """
    if not names:
        raise ReportError(
            "there is no probe that names a replica; each is to have replica, time_s and up (docs/measurements.md)"
        )
    _, chosen = foreign.select(Foreign(names, [], {}), votes)
    return replace(run, votes=chosen)


def never_observed_together(source: Source) -> ReportError:
    """Give the error for a trace in which the state of every replica is known at no moment."""
    return ReportError(
        f"{source.place}: at no moment is the state of every replica known; give good intervals or samples of each "
        "replica over one common time"
    )
