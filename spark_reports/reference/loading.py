"""Reads a whole source in plain Python, into what `reference` counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..input import foreign, probe_rows, rows, sources
from ..input.foreign import Foreign
from ..input.rows import Interval, Operation, OperationRows, Reject
from ..input.sources import Source
from ..model import contract
from ..model.aggregates import Span
from ..model.errors import ReportError
from ..model.period import EVERYTHING, Asked, ReportPeriod, nothing_within, run_within
from ..model.phrases import listed, moment
from ..model.places import Place
from ..model.run_document import Run, read_run
from . import overlaps
from .trace import Input


def load(source: Source, run: Run, step_us: int | None, period: ReportPeriod | None = None) -> Input:
    """Read a measured run, or a prober's samples alone; with a period, what lies within it.

    Raises:
        ReportError: a file cannot be read, or the replicas are never all observed at the same time.
    """
    rejects: list[Reject] = []
    read: dict[str, int] = {}
    reader = OperationRows(run, rejects, period)
    found = list(reader.from_lines(source.operation_lines))
    if source.operation_parquet is not None:
        found += reader.from_parquet(source.operation_parquet)
    operations = rows.without_duplicates(found, rejects)
    read[contract.OPERATIONS] = reader.read
    seen: list[Interval] = []
    if source.has_probes():
        seen, read[contract.PROBES] = probe_rows.read_probes(source, run, step_us, rejects, period)
    part = Part(run, period, operations, seen, read, rejects)
    return with_up_times(source, part)


@dataclass(frozen=True, slots=True)
class Part:
    """What was read before the files of up times. Those of the period alone, if there is one."""

    run: Run
    period: ReportPeriod | None
    operations: Sequence[Operation]
    seen: list[Interval]
    read: dict[str, int]
    rejects: list[Reject]


def with_up_times(source: Source, part: Part) -> Input:
    """Add the up times of replicas and links to what was read already; where there are none, those that a prober saw.

    Raises:
        ReportError: a file cannot be read, or the replicas are never all observed at the same time.
    """
    intervals, links = part.seen, list[Interval]()
    if source.replicas is not None:
        intervals = _up_times(source.replicas, contract.REPLICA_COLUMNS, part)
    if source.links is not None:
        links = _up_times(source.links, contract.LINK_COLUMNS, part)
    return Input(
        run=part.run,
        span=span_of(part.run, intervals, source),
        operations=part.operations,
        intervals=intervals,
        links=links,
        seen=part.seen if source.replicas is not None else [],
        read=part.read,
        rejects=part.rejects,
        period=part.period,
    )


def _up_times(path: Place, columns: Sequence[str], part: Part) -> list[Interval]:
    """The disjoint intervals of a file; notes the number of rows read, and what is kept aside."""
    kind = contract.LINKS if columns == contract.LINK_COLUMNS else contract.INTERVALS
    found, part.read[kind] = rows.intervals_from(path, columns, part.run, part.rejects, part.period)
    intervals, aside = overlaps.settled(found)
    part.rejects.extend(Reject(kind, path.name, reason, line) for line, reason in aside)
    return intervals


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
        period=chosen.period,
    )


def span_of(run: Run, intervals: list[Interval], source: Source) -> Span:
    """The window of the run, or all the time that the intervals speak of.

    Raises:
        ReportError: there is no interval.
    """
    if run.window is not None:
        return run.window
    if not intervals:
        raise never_observed_together(source, run.votes, {})
    return Span(min(each.start_us for each in intervals), max(each.end_us for each in intervals))


def read_foreign(source: Source, label: str, step_s: float | None, asked: Asked = EVERYTHING) -> Foreign:
    """Read a trace or answers of Prometheus, of the time that was asked for."""
    if source.kind == sources.TRACE:
        return foreign.read_trace_file(source.foreign[0], asked)
    return foreign.read_prometheus(source.foreign, label, step_s, asked)


def probes_within(source: Source, votes: Mapping[str, int], asked: Asked) -> tuple[Run, ReportPeriod | None]:
    """What is known of the replicas of a prober's samples alone, and the time that counts.

    Raises:
        ReportError: there is no sample of that time, none names a replica, or `votes` names another one.
    """
    period = asked.period(lambda: probe_rows.known(source))
    names = probe_rows.names_in(source, period)
    if period is not None and not names:
        raise nothing_within(source.place, period, probe_rows.known(source))
    return run_of_probes(Run({}), names, votes), period


def run_and_period(run: Run, asked: Asked) -> tuple[Run, ReportPeriod | None]:
    """A measured run with its window cut to the time that was asked for, and that time.

    Raises:
        ReportError: they have no time in common.
    """
    period = asked.period(lambda: run.window)
    return run_within(run, period), period


def run_of_probes(run: Run, names: tuple[str, ...], votes: Mapping[str, int]) -> Run:
    """The run behind a prober's samples alone: the replicas that they name, or that `votes` does.

    Raises:
        ReportError: no sample names a replica, or `votes` names another one.
    """
    if not names:
        raise ReportError(
            "there is no probe that names a replica; each is to have replica, time_s and up (docs/reference/measurements.md)"
        )
    _, chosen = foreign.select(Foreign(names, [], {}), votes)
    return replace(run, votes=chosen)


def never_observed_together(
    source: Source, replicas: Iterable[str], known: Mapping[tuple[str, str], tuple[int, int]]
) -> ReportError:
    """Give the error for a trace in which the state of every replica is known at no moment.

    Args:
        source: what was read.
        replicas: the names of all of them.
        known: for each replica, and each link of a front end to one, the first and last moment of which anything is known.
    """
    silent = [name for name in replicas if ("", name) not in known]
    if silent:
        why = f"within the time that is reported on, nothing good is known of {listed(silent)}"
    else:
        first = min(known, key=lambda one: known[one][1])
        last = max(known, key=lambda one: known[one][0])
        if known[first][1] <= known[last][0]:
            why = (
                f"{_named(first)} is known until {moment(known[first][1])} only, {_named(last)} from "
                f"{moment(known[last][0])} on only"
            )
        else:
            why = f"whenever the others are known, one of {listed([_named(one) for one in sorted(known)])} is not"
    return ReportError(
        f"{source.place}: at no moment is the state of every replica known: {why}; give good intervals or samples of each "
        "over one common time, or leave replicas out (with --votes, where there is no run.json)"
    )


def _named(one: tuple[str, str]) -> str:
    front_end, replica = one
    return f"the link from {front_end} to {replica}" if front_end else replica


def check_observed(source: Source, found: Input, up_sets: Sequence[object]) -> None:
    """See that the state of every replica is known at some moment; ReportError where it never is."""
    if not up_sets:
        cut = [*rows.clipped(found.intervals, found.span), *rows.clipped(found.links, found.span)]
        if found.period is not None and not cut:
            raise nothing_within(source.replicas or source.place, found.period, _known(source, found.run))
        raise never_observed_together(source, found.run.votes, known_of(cut))


def _known(source: Source, run: Run) -> Span | None:
    """The time that the up times of replicas speak of; where a prober stands in for them, the window of the run."""
    if source.replicas is None:
        return None if source.document is None else read_run(source.document).window
    found, _ = rows.intervals_from(source.replicas, contract.REPLICA_COLUMNS, run, [])
    times = [moment_us for each, _ in found for moment_us in (each.start_us, each.end_us)]
    return Span(min(times), max(times)) if times else None


def known_of(intervals: Iterable[Interval]) -> dict[tuple[str, str], tuple[int, int]]:
    """For each replica and link, the first and last moment that its intervals speak of."""
    known: dict[tuple[str, str], tuple[int, int]] = {}
    for each in intervals:
        one = each.front_end, each.replica
        start_us, end_us = known.get(one, (each.start_us, each.end_us))
        known[one] = min(start_us, each.start_us), max(end_us, each.end_us)
    return known
