"""The tables of operations from the few rows that Spark groups them to. Plain Python: nothing here asks Spark."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from ..model import aggregates as tables
from ..model import contract
from ..reference.seen_outages import Stretch, joined, outages


class Group(NamedTuple):
    """Operations of one choice, operation, event class and outcome: their latency, and when the first and the last began."""

    choice: str
    operation: str
    event_class: str | None
    outcome: str
    operations: int
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float
    first_us: int
    last_us: int


class Cell(NamedTuple):
    """Operations counted alike by `outcome_jobs.count_attempts`: by bin and day, where `near` is None, else by up-set."""

    choice: str
    operation: str
    outcome: str
    bin: int | None
    day: int | None
    up: int | None
    near: bool | None
    operations: int


class Aside(NamedTuple):
    """Rows of one kind kept aside for one reason; the example is the first in text order, cut."""

    kind: str
    source: str
    reason: str
    rows: int
    example: str


def kinds(aside: Iterable[Aside]) -> Counter[str]:
    """Count the rows kept aside by kind."""
    counts: Counter[str] = Counter()
    for each in aside:
        counts[each.kind] += each.rows
    return counts


def rejected(aside: Iterable[Aside]) -> Iterator[tables.Rejected]:
    """Count the rows kept aside by source and reason; files of two kinds may have one name."""
    groups: dict[tuple[str, str], list[Aside]] = defaultdict(list)
    for each in aside:
        groups[each.source, each.reason].append(each)
    for key, own in groups.items():
        yield tables.Rejected(*key, sum(each.rows for each in own), min(each.example for each in own))


def classes(groups: Iterable[Group]) -> Iterator[tables.ClassCount]:
    """Count by choice, operation, outcome and event class."""
    return (tables.ClassCount(g.choice, g.operation, g.outcome, g.event_class, g.operations) for g in groups)


def latencies(groups: Iterable[Group]) -> Iterator[tables.Latency]:
    """Give the latency of each group."""
    return (tables.Latency._make(group[: len(tables.Latency._fields)]) for group in groups)


def bins(cells: Iterable[Cell]) -> Iterator[tables.BinCount]:
    """Count outcomes by choice, operation and bin of the timeline."""
    counts: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for cell in cells:
        if cell.bin is not None:
            counts[cell.choice, cell.operation, cell.bin][cell.outcome] += cell.operations
    for key, by_outcome in counts.items():
        yield tables.BinCount(*key, *(by_outcome[outcome] for outcome in contract.OUTCOMES))


def days(cells: Iterable[Cell]) -> Iterator[tables.DayCount]:
    """Count attempts and answers by choice, operation and day."""
    counts: dict[tuple[str, str, int], Counter[bool]] = defaultdict(Counter)
    for cell in cells:
        if cell.day is not None:
            counts[cell.choice, cell.operation, cell.day][cell.outcome == "ok"] += cell.operations
    return (tables.DayCount(*key, by_ok.total(), by_ok[True]) for key, by_ok in counts.items())


def starts(cells: Iterable[Cell]) -> Iterator[tables.StartCount]:
    """Count by the up-set at the start, and whether a change was near."""
    for cell in cells:
        if cell.near is not None:
            yield tables.StartCount(
                cell.choice, cell.operation, cell.outcome, cell.up, cell.near, cell.operations
            )


def seen(stretches: Iterable[tuple[str, str, int, Stretch]]) -> Iterator[tables.SeenOutage]:
    """Join the stretches of each choice and operation, which come with their numbers, in any order."""
    in_order = sorted(stretches, key=itemgetter(0, 1, 2))
    for (choice, operation), own in groupby(in_order, key=lambda each: each[:2]):
        yield from outages(choice, operation, reduce(joined, (each[3] for each in own)))
