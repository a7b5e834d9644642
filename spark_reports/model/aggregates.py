"""The small tables that a measured run is boiled down to, whoever boils it down.

Two implementations fill them, `jobs` on Spark and `reference` in plain Python, and a test holds them equal. Everything
after this point (`figures`) is arithmetic on a few hundred rows.

Times are whole microseconds: their sums are exact, so they do not depend on the order in which Spark adds them up.
Each table is sorted by its first columns, so that equal runs give equal tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from typing import Any, Final, NamedTuple

BINS: Final = 240
"""Columns of the timeline; also the finest grain of the block bootstrap."""

QUANTILES: Final = (0.5, 0.9, 0.99, 1.0)
"""Latency quantiles by nearest rank; on Spark exact up to `QUANTILE_ACCURACY` rows a group, then within 1/that."""

QUANTILE_ACCURACY: Final = 10_000
EXAMPLE_CHARS: Final = 200


def microseconds(seconds: float) -> int:
    """Round seconds to whole microseconds, halves up: the one rule that Java and Python can share."""
    return floor(seconds * 1e6 + 0.5)


def sort_key(row: Any) -> list[tuple[bool, Any]]:
    """Order rows by their columns, None before everything else."""
    return [(value is not None, value) for value in row]


class Span(NamedTuple):
    """The window of the measurement; without one, from the first to the last moment that is spoken of."""

    start_us: int
    end_us: int

    @property
    def bin_us(self) -> int:
        """Width of a timeline bin; rounded up, so that the last bin holds the end."""
        return (self.end_us - self.start_us) // BINS + 1


class BinCount(NamedTuple):
    """Operations that started in one bin of the timeline."""

    choice: str
    operation: str
    bin: int
    ok: int
    unavailable: int
    unknown: int


class DayCount(NamedTuple):
    """Operations that started on one of `days.days_of`, by its number."""

    choice: str
    operation: str
    day: int
    attempts: int
    ok: int


class ClassCount(NamedTuple):
    """Operations of one outcome; `event_class` is None unless the outcome is ok."""

    choice: str
    operation: str
    outcome: str
    event_class: str | None
    operations: int


class StartCount(NamedTuple):
    """Operations that started while their front end saw exactly the up-set `up`; None where it is not known.

    `near`: whether the state that decides about this operation changed within the stated time.
    """

    choice: str
    operation: str
    outcome: str
    up: int | None
    near: bool
    operations: int


class Latency(NamedTuple):
    """Latency of the operations of one outcome, in seconds."""

    choice: str
    operation: str
    event_class: str | None
    outcome: str
    operations: int
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float


class ReplicaTime(NamedTuple):
    """What one replica did, over the time its own intervals cover; `failures` are changes from up to down."""

    replica: str
    observed_us: int
    up_us: int
    outages: int
    longest_outage_us: int
    failures: int


class UpSetTime(NamedTuple):
    """How long, within one bin of the timeline, a view showed exactly these replicas up.

    `up` has bit i set for the i-th replica. A view is what some front ends see: `run_document.Run.views`.
    """

    view: str
    bin: int
    up: int
    time_us: int


class UpSpan(NamedTuple):
    """A time in which a view showed exactly these replicas up; the view ``""`` is that of the replicas, which is always there."""

    view: str
    start_us: int
    end_us: int
    up: int


class Outage(NamedTuple):
    """Periods in which some front end had too little for a quorum system, by the system's number in the questions.

    What several views show at once, or one right after the other, is one period.
    """

    system: int
    periods: int
    total_us: int
    longest_us: int


class SeenOutage(NamedTuple):
    """Runs of attempts that were not answered, from the first of them to the next that was, whoever made them."""

    choice: str
    operation: str
    periods: int
    total_us: int
    longest_us: int


class DownBin(NamedTuple):
    """How long a replica was down within one bin of the timeline; bins without down time are left out."""

    replica: str
    bin: int
    down_us: int


class Probed(NamedTuple):
    """What a prober made of one replica, over the time in which both the truth and its view are known."""

    replica: str
    watched_us: int
    agreed_us: int
    outages: int
    detected: int
    false_alarms: int
    detection_us: int
    detection_max_us: int
    recoveries: int
    recovery_us: int


class RowCount(NamedTuple):
    """Rows of one kind, and how many of them are good."""

    kind: str
    read: int
    used: int


class Rejected(NamedTuple):
    """Rows kept aside for one reason; the example is the first in text order, cut to `EXAMPLE_CHARS`."""

    source: str
    reason: str
    rows: int
    example: str


def together(parts: Iterable[Rejected]) -> tuple[Rejected, ...]:
    """Add up what was kept aside in several parts of the input."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for source, reason, rows, example in parts:
        before, first = found.get((source, reason), (0, example))
        found[source, reason] = before + rows, min(first, example)
    return tuple(sorted((Rejected(*key, *value) for key, value in found.items()), key=sort_key))


@dataclass(frozen=True, slots=True)
class Aggregates:
    """All tables of one run; `up_changes` is the number of intervals between changes within the known time.

    Only `spans` has as many rows as there were changes, in the order of time: what switches quorums as replicas fail depends on it.
    """

    span: Span
    up_changes: int
    bins: tuple[BinCount, ...]
    days: tuple[DayCount, ...]
    classes: tuple[ClassCount, ...]
    starts: tuple[StartCount, ...]
    latencies: tuple[Latency, ...]
    replicas: tuple[ReplicaTime, ...]
    up_sets: tuple[UpSetTime, ...]
    spans: tuple[UpSpan, ...]
    outages: tuple[Outage, ...]
    seen: tuple[SeenOutage, ...]
    down_bins: tuple[DownBin, ...]
    probed: tuple[Probed, ...]
    rows: tuple[RowCount, ...]
    rejected: tuple[Rejected, ...]
