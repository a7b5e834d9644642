"""Counts the operations of a run in plain Python: obvious, in need of no Java, and with everything in memory.

It serves three ends: a test holds `engine` equal to it, a report is made where there is no Java, and `--engine python` does not
wait for Spark to start.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from ..input.rows import Operation
from ..model import aggregates as tables
from ..model import contract
from ..model.aggregates import Aggregates, Span
from ..model.days import Days, days_of
from ..model.questions import Questions
from .trace import Input, Period, UpSet, aggregate_trace, deciding_periods, enough_of, in_order, up_sets_of


def aggregate(found: Input, questions: Questions, lag_us: int) -> Aggregates:
    """Boil a run down in plain Python."""
    up_sets = up_sets_of(found)
    enough = enough_of(up_sets, questions, found.run)
    deciders = deciding_periods(up_sets, questions, enough)
    views = found.run.views(found.linked)
    return replace(
        aggregate_trace(found, up_sets, questions, enough),
        bins=in_order(_bins(found.operations, found.span)),
        days=in_order(_days(found.operations, days_of(found.span, found.run.time_scale))),
        classes=in_order(_classes(found.operations)),
        starts=in_order(_starts(found.operations, up_sets, views, questions, deciders, lag_us)),
        latencies=in_order(_latencies(found.operations)),
        seen=in_order(_seen(found.operations)),
    )


def _starts(
    operations: Iterable[Operation],
    up_sets: Sequence[UpSet],
    views: Mapping[str, str],
    questions: Questions,
    deciders: Mapping[int, Mapping[str, Sequence[Period]]],
    lag_us: int,
) -> Iterator[tables.StartCount]:
    sets: dict[str, list[UpSet]] = defaultdict(list)
    for each in up_sets:
        sets[each.view].append(each)
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


def _days(operations: Iterable[Operation], days: Days) -> Iterator[tables.DayCount]:
    counts: dict[tuple[str, str, int], Counter[bool]] = defaultdict(Counter)
    for op in operations:
        counts[op.choice, op.operation, days.number(op.start_us)][op.outcome == "ok"] += 1
    return (tables.DayCount(*key, by_ok.total(), by_ok[True]) for key, by_ok in counts.items())


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
