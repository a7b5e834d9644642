"""What a prober's samples say: how long each one speaks, and the up and down intervals that follow. Pure.

Owns the rule, in two steps. `edges_of` boils a part of the samples down to the few that matter: those of a day, of a chunk
of time (`quorate.spark_reports.spark.probe_jobs` does that on Spark, for as many as there are), or all. `merged` makes
intervals of the edges of all parts. The parts may be cut at any moments: the intervals are the same.

A sample of a replica at t says that it is up, or down, from t on:

* until the replica's next sample, if that comes within one and a half steps: probes jitter;
* until the next sample, if that says the same and at most `lost_max` samples are missing between: probes get lost, and
  an outage of two hours must not count as seventy because one sample in a hundred is missing;
* else for one step. What follows is unknown, neither up nor down.

Samples of one moment that say the same count as one. Where they contradict each other, all samples of that moment are
kept aside: none of them speaks. A moment lies in one part.

A sample of a replica is one whole number, `packed`: in their order samples stand by time, and down before up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Final, NamedTuple

from ..model.errors import ReportError

FIELDS: Final = ("replica", "time_s", "up", "latency_s")
LOST_MAX: Final = 3
"""So many samples in a row may be missing: at one loss in a hundred, four in a row are missing once in 10**8."""

STEP_US_MAX: Final = 86_400_000_000
FIRST_SAMPLES: Final = 4096
"""The usual step is that of the earliest so many samples."""

CONTRADICTS: Final = "contradicts another probe of the same replica at the same moment"


class Interval(NamedTuple):
    """A replica was up (1) or down (0) from `start_us` until `end_us`."""

    replica: str
    start_us: int
    end_us: int
    up: int


@dataclass(frozen=True, slots=True)
class Spacing:
    """How far apart samples are, and how many in a row may be missing.

    Raises:
        ReportError: the step is not between a microsecond and a day, or the number is negative.
    """

    step_us: int
    lost_max: int = LOST_MAX

    def __post_init__(self) -> None:
        """Refuse what no prober does."""
        if not 1 <= self.step_us <= STEP_US_MAX:
            raise ReportError(
                f"a step between probes of {self.step_us / 1e6:g} s is none; give one of at most a day"
            )
        if self.lost_max < 0:
            raise ReportError(f"{self.lost_max} lost probes cannot be bridged; give 0 or more")

    @property
    def next_us(self) -> int:
        """The longest way to the next sample with none missing between."""
        return self.step_us * 3 // 2

    @property
    def same_us(self) -> int:
        """The longest way to the next sample that is bridged when it says the same."""
        return self.step_us * (2 * self.lost_max + 3) // 2


def packed(time_us: int, up: int) -> int:
    """Give a sample of a replica as one number."""
    return time_us << 1 | up


class Edge(NamedTuple):
    """A sample with which a run begins, or the first or last one of its part.

    A run is a stretch of samples that say the same, none too far from the next.

    Attributes:
        sample: it, `packed`.
        before: the sample before it in the part; None for the first one.
    """

    sample: int
    before: int | None


class Edges(NamedTuple):
    """The edges of one replica in one part, in order of time, and the moments (microseconds) that are contradicted."""

    edges: list[Edge]
    contradicted: list[int]


def edges_of(samples: Iterable[int], spacing: Spacing) -> Edges:
    """Boil down one replica's samples of one part, `packed` and in any order."""
    ordered = sorted(samples)
    edges = _edges(ordered, spacing)
    # Sorted, the samples of one moment that say down stand just before those that say up, so that a run begins between them.
    clashes = [each for each in edges if each.before is not None and each.before ^ each.sample == 1]
    contradicted = [each.sample >> 1 for each in clashes]
    if contradicted:
        moments = set(contradicted)
        edges = _edges([each for each in ordered if each >> 1 not in moments], spacing)
    return Edges(edges, contradicted)


def _edges(ordered: Sequence[int], spacing: Spacing) -> list[Edge]:
    """The edges of samples in order, where none contradict each other."""
    if not ordered:
        return []
    far = 2 * spacing.same_us  # samples that say the same are twice as far apart, as numbers, as their times
    edges = [Edge(ordered[0], None)]
    edges += [
        Edge(sample, before)
        for before, sample in pairwise(ordered)
        if (before ^ sample) & 1 or sample - before > far
    ]
    if edges[-1].sample != ordered[-1]:
        edges.append(Edge(ordered[-1], ordered[-2]))
    return edges


def merged(replica: str, edges: Iterable[Edge], spacing: Spacing) -> Iterator[Interval]:
    """Give the intervals of one replica, in order of time, from the edges of all parts, in any order.

    The last sample of a part is an edge too: what stands before the first one of a part is the edge before it.
    """
    start: int | None = None
    last = 0
    for sample, known_before in sorted(edges, key=itemgetter(0)):
        before = last if known_before is None else known_before
        if start is None:
            start = sample
        elif (before ^ sample) & 1 or (sample >> 1) - (before >> 1) > spacing.same_us:
            next_us, last_us = sample >> 1, before >> 1
            end_us = next_us if next_us - last_us <= spacing.next_us else last_us + spacing.step_us
            yield Interval(replica, start >> 1, end_us, start & 1)
            start = sample
        last = sample
    if start is not None:
        yield Interval(replica, start >> 1, (last >> 1) + spacing.step_us, start & 1)


class Reading(NamedTuple):
    """What the samples say, by replica and time, and the contradicted moments (replica, time)."""

    intervals: list[Interval]
    contradicted: list[tuple[str, int]]


def read_samples(samples: Iterable[tuple[str, int, int]], spacing: Spacing) -> Reading:
    """Turn samples (replica, time in microseconds, up) in any order into intervals."""
    said: dict[str, list[int]] = {}
    for replica, time_us, up in samples:
        said.setdefault(replica, []).append(packed(time_us, up))
    found = {replica: edges_of(said[replica], spacing) for replica in sorted(said)}
    return Reading(
        [each for replica, own in found.items() for each in merged(replica, own.edges, spacing)],
        [(replica, time_us) for replica, own in found.items() for time_us in own.contradicted],
    )


def usual_step_us(samples: Iterable[tuple[str, int, int]]) -> int:
    """Give the median distance of neighbouring samples of a replica, among the `FIRST_SAMPLES` earliest.

    Raises:
        ReportError: no replica has two samples among them.
    """
    first = sorted((time_us, replica) for replica, time_us, _ in samples)[:FIRST_SAMPLES]
    times: dict[str, list[int]] = {}
    for time_us, replica in first:
        times.setdefault(replica, []).append(time_us)
    distances = [
        later - earlier for own in times.values() for earlier, later in pairwise(own) if later > earlier
    ]
    if not distances:
        raise no_step()
    return int(median(distances))


def no_step() -> ReportError:
    """Give the error for probes that do not show how often they were sent."""
    return ReportError(
        "the probes do not show how often they were sent: no replica has two; give the step with --step SECONDS"
    )
