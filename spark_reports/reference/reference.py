"""The same aggregates as on Spark, in plain Python: obvious, in need of no Java, and with everything in memory.

It serves three ends: a test holds `engine` equal to it, a small run is reported on where there is no Java, and other
people's traces, which are short, never wait for Spark to start.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil
from typing import Any, TypeVar

from ..input.rows import Interval, Operation, Reject, clipped
from ..model import aggregates as tables
from ..model import contract
from ..model.aggregates import Aggregates, Span
from ..model.questions import Questions, deciding
from ..model.run_document import Run
from .probing import probed

Key = TypeVar("Key", bound=Hashable)


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


@dataclass(frozen=True, slots=True)
class Input:
    """What was read, good rows only, and the rows kept aside. `seen` are the prober's views of the replicas."""

    run: Run
    span: Span
    operations: Sequence[Operation]
    intervals: Sequence[Interval]
    links: Sequence[Interval]
    seen: Sequence[Interval]
    read: Mapping[str, int]
    rejects: Sequence[Reject]

    @property
    def attempted(self) -> set[tuple[str, str]]:
        """Each quorum choice and operation that was tried."""
        return {(each.choice, each.operation) for each in self.operations}


def aggregate(found: Input, questions: Questions, lag_us: int) -> Aggregates:
    """Boil a run down in plain Python."""
    intervals, links = clipped(found.intervals, found.span), clipped(found.links, found.span)
    linked = linked_front_ends(found.links)
    members = found.run.members(linked)
    up_sets = [
        each for view in members for each in view_up_sets(view, intervals, links, list(found.run.votes))
    ]
    enough = deciding(questions.systems, {each.up for each in up_sets}, list(found.run.votes))
    views = found.run.views(linked)
    return Aggregates(
        span=found.span,
        up_changes=len(up_sets),
        bins=_sorted(_bins(found.operations, found.span)),
        classes=_sorted(_classes(found.operations)),
        starts=_sorted(_starts(found.operations, up_sets, views, questions, enough, lag_us)),
        latencies=_sorted(_latencies(found.operations)),
        replicas=_sorted(_replica_times(intervals)),
        up_sets=_sorted(_up_set_times(up_sets, found.span)),
        outages=_sorted(_outages(up_sets, questions, enough)),
        seen=_sorted(_seen(found.operations)),
        down_bins=_sorted(_down_bins(intervals, found.span)),
        probed=_sorted(probed(intervals, clipped(found.seen, found.span))) if found.seen else (),
        rows=_sorted(_rows(found)),
        rejected=_sorted(_rejected(found.rejects)),
    )


def linked_front_ends(links: Iterable[Interval]) -> tuple[str, ...]:
    """The front ends of which any link is spoken of."""
    return tuple(sorted({each.front_end for each in links}))


def view_up_sets(
    view: str, intervals: Sequence[Interval], links: Sequence[Interval], replicas: Sequence[str]
) -> list[UpSet]:
    """Walk through the moments of change and note who was up between two of them, where all is known."""
    own = [each for each in links if each.front_end == view] if view else []
    watched = {("", name) for name in replicas} | {("link", each.replica) for each in own}
    changes: dict[int, list[tuple[tuple[str, str], int | None]]] = defaultdict(list)
    for kind, rows in (("", intervals), ("link", own)):
        for each in rows:
            changes[each.end_us].insert(0, ((kind, each.replica), None))
            changes[each.start_us].append(((kind, each.replica), each.up))
    state: dict[tuple[str, str], int | None] = dict.fromkeys(watched)
    result = []
    for start_us, end_us in pairwise(sorted(changes)):
        state.update(changes[start_us])
        if None not in state.values():
            up = sum(
                1 << bit
                for bit, name in enumerate(replicas)
                if state["", name] and state.get(("link", name), 1)
            )
            result.append(UpSet(view, start_us, end_us, up))
    return result


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


def _starts(
    operations: Iterable[Operation],
    up_sets: Sequence[UpSet],
    views: Mapping[str, str],
    questions: Questions,
    enough: Mapping[tuple[int, int], bool],
    lag_us: int,
) -> Iterator[tables.StartCount]:
    sets: dict[str, list[UpSet]] = defaultdict(list)
    for each in up_sets:
        sets[each.view].append(each)
    deciders = {number: periods(up_sets, number, enough) for number in set(questions.run_systems.values())}
    counts: Counter[tuple[str, str, str, int | None, bool]] = Counter()
    for op in operations:
        view = views[op.front_end]
        up_set = _at(sets[view], op.start_us)
        own = deciders[questions.run_systems[op.choice, op.operation]].get(view, [])
        period = _at(own, op.start_us)
        near = period is not None and _is_near(op, period, lag_us)
        counts[op.choice, op.operation, op.outcome, up_set.up if up_set else None, near] += 1
    return (tables.StartCount(*key, count) for key, count in counts.items())


def _at(stretches: Sequence[Any], time_us: int) -> Any:
    """The stretch that holds the moment, or None."""
    index = bisect_right(stretches, time_us, key=lambda each: each.start_us) - 1
    return stretches[index] if index >= 0 and time_us < stretches[index].end_us else None


def _is_near(op: Operation, period: Period, lag_us: int) -> bool:
    """Whether the deciding state changed while the attempt ran, or at most the lag before or after."""
    return (period.changed_before and op.start_us - period.start_us < lag_us) or (
        period.changed_after and op.end_us + lag_us > period.end_us
    )


def _bins(operations: Iterable[Operation], span: Span) -> Iterator[tables.BinCount]:
    counts: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for op in operations:
        counts[op.choice, op.operation, (op.start_us - span.start_us) // span.bin_us][op.outcome] += 1
    for key, by_outcome in counts.items():
        yield tables.BinCount(*key, *(by_outcome[outcome] for outcome in contract.OUTCOMES))


def _classes(operations: Iterable[Operation]) -> Iterator[tables.ClassCount]:
    counts = Counter((op.choice, op.operation, op.outcome, op.event_class) for op in operations)
    return (tables.ClassCount(*key, count) for key, count in counts.items())


def _latencies(operations: Iterable[Operation]) -> Iterator[tables.Latency]:
    groups: dict[tuple[str, str, str | None, str], list[float]] = defaultdict(list)
    for op in operations:
        groups[op.choice, op.operation, op.event_class, op.outcome].append(op.latency_s)
    for key, latencies in groups.items():
        ordered = sorted(latencies)
        at = [ordered[ceil(quantile * len(ordered)) - 1] for quantile in tables.QUANTILES]
        yield tables.Latency(*key, len(ordered), *at)


def _replica_times(intervals: Sequence[Interval]) -> Iterator[tables.ReplicaTime]:
    for replica, rows in groupby(sorted(intervals), key=lambda each: each.replica):
        own = list(rows)
        observed_us = sum(i.end_us - i.start_us for i in own)
        up_us = sum(i.end_us - i.start_us for i in own if i.up)
        down = _lengths((i.start_us, i.end_us) for i in own if not i.up)
        failures = sum(a.end_us == b.start_us and a.up > b.up for a, b in pairwise(own))
        yield tables.ReplicaTime(replica, observed_us, up_us, len(down), max(down, default=0), failures)


def _up_set_times(up_sets: Iterable[UpSet], span: Span) -> Iterator[tables.UpSetTime]:
    times: Counter[tuple[str, int, int]] = Counter()
    for each in up_sets:
        for index, time_us in _by_bin(each.start_us, each.end_us, span):
            times[each.view, index, each.up] += time_us
    return (tables.UpSetTime(*key, time_us) for key, time_us in times.items())


def _by_bin(start_us: int, end_us: int, span: Span) -> Iterator[tuple[int, int]]:
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
        lengths = _lengths(short)
        if lengths:
            yield tables.Outage(number, len(lengths), sum(lengths), max(lengths))


def _seen(operations: Iterable[Operation]) -> Iterator[tables.SeenOutage]:
    groups: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for op in operations:
        groups[op.choice, op.operation].append(op)
    for key, own in groups.items():
        lengths = []
        since_us = None
        for op in sorted(own, key=lambda each: (each.start_us, each.outcome == "ok")):
            if op.outcome != "ok":
                since_us = op.start_us if since_us is None else since_us
            elif since_us is not None:
                if since_us < op.start_us:  # else somebody was answered at that moment
                    lengths.append(op.start_us - since_us)
                since_us = None
        if since_us is not None:
            lengths.append(max(op.end_us for op in own if op.outcome != "ok") - since_us)
        if lengths:
            yield tables.SeenOutage(*key, len(lengths), sum(lengths), max(lengths))


def _lengths(intervals: Iterable[tuple[int, int]]) -> list[int]:
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
            for index, time_us in _by_bin(each.start_us, each.end_us, span):
                down_us[each.replica, index] += time_us
    return (tables.DownBin(*key, time_us) for key, time_us in down_us.items())


def _rows(found: Input) -> Iterator[tables.RowCount]:
    aside = Counter(each.kind for each in found.rejects)
    return (tables.RowCount(kind, read, read - aside[kind]) for kind, read in found.read.items())


def _rejected(rejects: Iterable[Reject]) -> Iterator[tables.Rejected]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in rejects:
        groups[each.source, each.reason].append(each.line)
    for key, lines in groups.items():
        yield tables.Rejected(*key, len(lines), min(lines)[: tables.EXAMPLE_CHARS])


def _sorted(rows: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(sorted(rows, key=tables.sort_key))
