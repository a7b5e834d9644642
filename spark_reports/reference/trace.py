"""From up and down intervals to joint up-sets and outages, in plain Python, whichever engine counts the operations.

Nothing is sampled at a fixed step: the unit is the interval between two changes, so the cost grows with the number of
changes and not with the length of the run. They are few: Spark brings those that it finds in probes to the driver.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, TypeVar

from ..input.rows import Interval, Operation, Reject, clipped
from ..model import aggregates as tables
from ..model.aggregates import Aggregates, Span
from ..model.period import ReportPeriod
from ..model.questions import Questions, deciding
from ..model.run_document import Run
from .overlaps import states
from .probing import probed

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Input:
    """What was read, good rows only, and the rows kept aside. `seen` are the prober's views of the replicas, `period` the time whose rows count.

    On Spark, which counts operations itself, there are none here.
    """

    run: Run
    span: Span
    operations: Sequence[Operation]
    intervals: Sequence[Interval]
    links: Sequence[Interval]
    seen: Sequence[Interval]
    read: Mapping[str, int]
    rejects: Sequence[Reject]
    period: ReportPeriod | None = None

    @property
    def attempted(self) -> set[tuple[str, str]]:
        """Each quorum choice and operation that was tried."""
        return {(each.choice, each.operation) for each in self.operations}

    @property
    def linked(self) -> tuple[str, ...]:
        """The front ends of which any link is spoken of."""
        return tuple(sorted({each.front_end for each in self.links}))


@dataclass(frozen=True, slots=True)
class UpSet:
    """In this view exactly the replicas with a bit in `up` were up, from start to end."""

    view: str
    start_us: int
    end_us: int
    up: int


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch in which a view showed enough, or too little, and whether it touches one of the other kind."""

    start_us: int
    end_us: int
    enough: bool
    changed_before: bool
    changed_after: bool


def up_sets_of(found: Input) -> list[UpSet]:
    """The up-sets of every view, in the order of time."""
    intervals, links = clipped(found.intervals, found.span), clipped(found.links, found.span)
    views, replicas = found.run.members(found.linked), list(found.run.votes)
    return [each for view in views for each in view_up_sets(view, intervals, links, replicas)]


def view_up_sets(
    view: str, intervals: Sequence[Interval], links: Sequence[Interval], replicas: Sequence[str]
) -> list[UpSet]:
    """Walk through the moments of change and note who was up between two of them, where all is known."""
    own = [each for each in links if each.front_end == view] if view else []
    watched = {("", name) for name in replicas} | {("link", each.replica) for each in own}
    rows = [(("", each.replica), each) for each in intervals]
    rows += [(("link", each.replica), each) for each in own]
    result = []
    for start_us, end_us, state in states(rows):
        if all(state.get(one) is not None for one in watched):
            up = sum(
                1 << bit
                for bit, name in enumerate(replicas)
                if state["", name] and state.get(("link", name), 1)
            )
            result.append(UpSet(view, start_us, end_us, up))
    return result


def enough_of(up_sets: Iterable[UpSet], questions: Questions, run: Run) -> dict[tuple[int, int], bool]:
    """For each (number of a system, up-set), whether the up-set holds a quorum of it."""
    return deciding(questions.systems, {each.up for each in up_sets}, list(run.votes))


def periods(
    up_sets: Sequence[UpSet], number: int, enough: Mapping[tuple[int, int], bool]
) -> dict[str, list[Period]]:
    """For each view, the stretches with and without enough for the system of that number."""
    found: dict[str, list[Period]] = {}
    for view, own in groupby(up_sets, key=lambda each: each.view):
        stretches: list[list[Any]] = []
        for each in own:
            holds = enough[number, each.up]
            touches = bool(stretches) and stretches[-1][1] == each.start_us
            if touches and stretches[-1][2] == holds:
                stretches[-1][1] = each.end_us
            else:
                stretches.append([each.start_us, each.end_us, holds, touches])
        ends = [after[3] for after in stretches[1:]] + [False]
        found[view] = [
            Period(start_us, end_us, holds, before, after)
            for (start_us, end_us, holds, before), after in zip(stretches, ends, strict=True)
        ]
    return found


def deciding_periods(
    up_sets: Sequence[UpSet], questions: Questions, enough: Mapping[tuple[int, int], bool]
) -> dict[int, dict[str, list[Period]]]:
    """The periods of each system that decides about an operation that was tried."""
    return {number: periods(up_sets, number, enough) for number in set(questions.run_systems.values())}


def aggregate_trace(
    found: Input, up_sets: Sequence[UpSet], questions: Questions, enough: Mapping[tuple[int, int], bool]
) -> Aggregates:
    """The tables of a run, but for those of operations, which are empty."""
    intervals = clipped(found.intervals, found.span)
    return Aggregates(
        span=found.span,
        up_changes=len(up_sets),
        bins=(),
        days=(),
        classes=(),
        starts=(),
        latencies=(),
        replicas=in_order(_replica_times(intervals)),
        up_sets=in_order(_up_set_times(up_sets, found.span)),
        spans=tuple(_spans(up_sets, intervals, list(found.run.votes))),
        outages=in_order(_outages(up_sets, questions, enough)),
        seen=(),
        down_bins=in_order(_down_bins(intervals, found.span)),
        probed=in_order(probed(intervals, clipped(found.seen, found.span))),
        rows=row_counts(found.read, Counter(each.kind for each in found.rejects)),
        rejected=tables.together(
            tables.Rejected(each.source, each.reason, 1, each.line[: tables.EXAMPLE_CHARS])
            for each in found.rejects
        ),
    )


def _spans(
    up_sets: Sequence[UpSet], intervals: Sequence[Interval], replicas: Sequence[str]
) -> Iterator[tables.UpSpan]:
    views = {each.view for each in up_sets}
    own = () if "" in views else view_up_sets("", intervals, (), replicas)
    for each in (*own, *up_sets):
        yield tables.UpSpan(each.view, each.start_us, each.end_us, each.up)


def in_order(rows: Iterable[Key]) -> tuple[Key, ...]:
    """The rows of a table, sorted by their columns."""
    return tuple(sorted(rows, key=tables.sort_key))


def _replica_times(intervals: Sequence[Interval]) -> Iterator[tables.ReplicaTime]:
    for replica, rows in groupby(sorted(intervals), key=lambda each: each.replica):
        own = list(rows)
        observed_us = sum(i.end_us - i.start_us for i in own)
        up_us = sum(i.end_us - i.start_us for i in own if i.up)
        down = lengths((i.start_us, i.end_us) for i in own if not i.up)
        failures = sum(a.end_us == b.start_us and a.up > b.up for a, b in pairwise(own))
        yield tables.ReplicaTime(replica, observed_us, up_us, len(down), max(down, default=0), failures)


def _up_set_times(up_sets: Iterable[UpSet], span: Span) -> Iterator[tables.UpSetTime]:
    times: Counter[tuple[str, int, int]] = Counter()
    for each in up_sets:
        for index, time_us in by_bin(each.start_us, each.end_us, span):
            times[each.view, index, each.up] += time_us
    return (tables.UpSetTime(*key, time_us) for key, time_us in times.items())


def by_bin(start_us: int, end_us: int, span: Span) -> Iterator[tuple[int, int]]:
    """Each bin that the interval touches, and how long."""
    first = (start_us - span.start_us) // span.bin_us
    last = (end_us - 1 - span.start_us) // span.bin_us
    for index in range(first, last + 1):
        bin_start_us = span.start_us + index * span.bin_us
        yield index, min(end_us, bin_start_us + span.bin_us) - max(start_us, bin_start_us)


def _outages(
    up_sets: Sequence[UpSet], questions: Questions, enough: Mapping[tuple[int, int], bool]
) -> Iterator[tables.Outage]:
    for number in range(len(questions.systems)):
        views = periods(up_sets, number, enough).values()
        short = ((each.start_us, each.end_us) for own in views for each in own if not each.enough)
        found = lengths(short)
        if found:
            yield tables.Outage(number, len(found), sum(found), max(found))


def lengths(intervals: Iterable[tuple[int, int]]) -> list[int]:
    """Give the lengths of the periods that intervals which touch or overlap form together."""
    stretches: list[tuple[int, int]] = []
    for start_us, end_us in sorted(intervals):
        if stretches and start_us <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end_us, stretches[-1][1]))
        else:
            stretches.append((start_us, end_us))
    return [end_us - start_us for start_us, end_us in stretches]


def _down_bins(intervals: Iterable[Interval], span: Span) -> Iterator[tables.DownBin]:
    down_us: Counter[tuple[str, int]] = Counter()
    for each in intervals:
        if not each.up:
            for index, time_us in by_bin(each.start_us, each.end_us, span):
                down_us[each.replica, index] += time_us
    return (tables.DownBin(*key, time_us) for key, time_us in down_us.items())


def row_counts(read: Mapping[str, int], aside: Mapping[str, int]) -> tuple[tables.RowCount, ...]:
    """The table of rows, from the rows read of each kind and those kept aside."""
    return in_order(tables.RowCount(kind, rows, rows - aside.get(kind, 0)) for kind, rows in read.items())
