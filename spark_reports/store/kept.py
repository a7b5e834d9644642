"""Reads the days that a store keeps, those of the time that is asked for, into what a report is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..input.probe_rows import intervals_of
from ..input.probes import Edge, Spacing
from ..input.sources import PROBES, Source
from ..model import contract
from ..model.aggregates import Rejected
from ..model.days import span_of_dates
from ..model.errors import ReportError
from ..model.period import Asked, ReportPeriod, nothing_within
from ..model.run_document import Run
from ..reference import loading
from ..reference.trace import Input
from .folder import ClusterFolder
from .manifest import Facts, Manifest, all_facts
from .updating import check_asked


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """What is kept of some days: the trace, without rows kept aside, and how many of these there are."""

    trace: Input
    rejected: tuple[Rejected, ...]


def read_kept(
    folder: ClusterFolder, asked: Asked, step_us: int | None, votes: Mapping[str, int]
) -> KeptTrace:
    """Read the days of the time that is asked for, and no others.

    Args:
        folder: the cluster's part of the store, which nobody writes.
        asked: whole days, or everything.
        step_us: the distance of two samples, if it is said once more.
        votes: votes by replica; empty for those that the store has.

    Raises:
        ReportError: nothing of that time is kept, it is not one of whole days, or a file of the store cannot be read; the step or the votes are not those of the store, or the replicas are never all observed at the same time.
    """
    kept = folder.manifest()
    if kept is None or not kept.days:
        raise ReportError(f"{folder.place} keeps no day yet: its input had no row that says a time")
    check_asked(folder, kept, step_us, votes)
    period, days = _days(folder, kept, asked)
    facts = _facts(kept, days, with_undated=period is None)
    run = _run(folder, kept, facts, votes)
    edges: dict[str, list[Edge]] = {}
    for day in days:
        for replica, edge in folder.edges(kept.days[day].edges):
            edges.setdefault(replica, []).append(edge)
    seen = intervals_of(edges, Spacing(kept.step_us))
    read = {contract.OPERATIONS: 0, contract.PROBES: facts.rows}
    trace = loading.with_up_times(Source(PROBES, folder.place), loading.Part(run, period, (), seen, read, []))
    return KeptTrace(trace, facts.rejected)


def _days(folder: ClusterFolder, kept: Manifest, asked: Asked) -> tuple[ReportPeriod | None, list[str]]:
    """The time that counts, None for all, and the dates of the days that lie within."""
    known = span_of_dates(min(kept.days), max(kept.days))
    period = asked.period(lambda: known)
    if period is None:
        return None, list(kept.days)
    if not period.is_of_whole_days():
        raise ReportError(
            f"{folder.place} keeps whole days (UTC), and the report is asked for {period}: give --from and --to as dates and --last "
            "in days, or leave --store out"
        )
    days = [day for day in kept.days if period.cut(*span_of_dates(day, day)) is not None]
    if not days:
        raise nothing_within(folder.place, period, known)
    return period, days


def _facts(kept: Manifest, days: list[str], *, with_undated: bool) -> Facts:
    parts = [kept.days[day].facts for day in days]
    return all_facts(parts + ([each.undated for each in kept.files.values()] if with_undated else []))


def _run(folder: ClusterFolder, kept: Manifest, facts: Facts, votes: Mapping[str, int]) -> Run:
    """The run of the replicas that the days name, with their votes."""
    left_out = sorted(set(facts.replicas) - set(votes)) if votes and not kept.votes else []
    if left_out:
        raise ReportError(
            f"{folder.place} keeps samples of {', '.join(left_out)}, which --votes leaves out: name all of them, or begin another "
            "--cluster with these --votes"
        )
    return loading.run_of_probes(Run({}), facts.replicas, dict(votes or kept.votes))
