"""What a prober's samples say: how long each one speaks, and the up and down intervals that follow. Plain Python.

Owns the rule; `quorate.spark_reports.spark.probe_jobs` does the same on Spark, for as many samples as there are.

A sample of a replica at t says that it is up, or down, from t on:

* until the replica's next sample, if that comes within one and a half steps: probes jitter;
* until the next sample, if that says the same and at most `lost_max` samples are missing between: probes get lost, and
  an outage of two hours must not count as seventy because one sample in a hundred is missing;
* else for one step. What follows is unknown, neither up nor down.

Samples of one moment that say the same count as one. Where they contradict each other, all samples of that moment are
kept aside: none of them speaks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
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


class Reading(NamedTuple):
    """What the samples say, by replica and time, and the contradicted moments (replica, time)."""

    intervals: list[Interval]
    contradicted: list[tuple[str, int]]


def read_samples(samples: Iterable[tuple[str, int, int]], spacing: Spacing) -> Reading:
    """Turn samples (replica, time in microseconds, up) in any order into intervals."""
    said: dict[str, dict[int, set[int]]] = {}
    for replica, time_us, up in samples:
        said.setdefault(replica, {}).setdefault(time_us, set()).add(up)
    intervals: list[Interval] = []
    contradicted: list[tuple[str, int]] = []
    for replica in sorted(said):
        moments = said[replica]
        contradicted += [(replica, time_us) for time_us in sorted(moments) if len(moments[time_us]) > 1]
        clear = {time_us: ups.pop() for time_us, ups in moments.items() if len(ups) == 1}
        intervals += _intervals_of(replica, clear, spacing)
    return Reading(intervals, contradicted)


def _intervals_of(replica: str, clear: Mapping[int, int], spacing: Spacing) -> list[Interval]:
    """Let each sample of one replica speak, and join what touches and says the same."""
    times = sorted(clear)
    intervals: list[Interval] = []
    for time_us, next_us in zip(times, [*times[1:], None], strict=True):
        end_us = time_us + spacing.step_us
        if next_us is not None:
            agrees = clear[next_us] == clear[time_us]
            if next_us - time_us <= (spacing.same_us if agrees else spacing.next_us):
                end_us = next_us
        last = intervals[-1] if intervals else None
        if last is not None and last.end_us == time_us and last.up == clear[time_us]:
            intervals[-1] = last._replace(end_us=end_us)
        else:
            intervals.append(Interval(replica, time_us, end_us, clear[time_us]))
    return intervals


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
