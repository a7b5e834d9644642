"""The figures of a report: availability measured, beside what two models of failure predict.

`KEYS` documents every key of `figures.json`; a test compares it with the dataclasses. `derive` fills them.

What "available" means here:

* *measured*: operations that were answered, out of all attempts. An operation with unknown outcome got no answer, so
  it counts as not available; `measured_if_unknown_ok` shows the other reading.
* *predicted*: an operation can run while its *normal* event class (`Deq/Ok` for Deq) has both quorums live, that is
  while `needed_votes = max(initial, final)` votes are live. `classes` shows every class by itself.
* An attempt that failed had no event class, so only successes can be counted by class.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from quorate.spark_reports.aggregates import Latency, Rejected
from quorate.spark_reports.confidence import Interval

FORMAT: Final = 1

KEYS: Final[Mapping[str, str]] = {
    "format": "version of this layout; it changes when a key changes its meaning",
    "versions": "what made the report: quorate, python, and spark and java where they ran",
    "keys": "this table",
    "window.start_s": "first moment seen in operations or intervals, in seconds since 1970 (UTC)",
    "window.end_s": "last moment seen, in seconds since 1970 (UTC)",
    "window.known_s": "seconds during which the state of every replica is known; all predictions rest on them",
    "window.up_changes": "number of intervals between two changes within known_s",
    "window.bin_s": "width of a timeline bin, in seconds",
    "replicas[].replica": "name of the replica",
    "replicas[].votes": "its votes",
    "replicas[].observed_s": "seconds covered by its own intervals",
    "replicas[].up_share": "share of observed_s during which it was up",
    "replicas[].up_share_known": "share of known_s during which it was up; the p of predicted_independent",
    "replicas[].outages": "number of its outages; down intervals that touch are one outage",
    "replicas[].longest_outage_s": "seconds of its longest outage",
    "live_votes[].live_votes": "a number of live votes",
    "live_votes[].measured_share": "share of known_s with exactly so many live votes",
    "live_votes[].independent_share": "the same, had the replicas failed independently with their up_share_known",
    "up_sets[].up": "replicas that were up together, all others being down; the longest-lasting sets only",
    "up_sets[].share": "share of known_s during which exactly these were up",
    "operations[].choice": "quorum choice that was run",
    "operations[].adt": "abstract data type of the choice",
    "operations[].operation": "operation, as Deq",
    "operations[].needed_votes": "votes that its normal event class needs live: the larger of its two quorums",
    "operations[].attempts": "finished operations, whatever the outcome",
    "operations[].ok": "operations that were answered",
    "operations[].unavailable": "operations refused because no quorum answered; they certainly did not happen",
    "operations[].unknown": "operations without an answer that may or may not have happened",
    "operations[].measured": "ok / attempts: the measured availability",
    "operations[].low": "lower end of its 95 % confidence interval: the lower of wilson and block_bootstrap",
    "operations[].high": "upper end: the higher of both",
    "operations[].wilson": "95 % interval [low, high], were all attempts independent trials (too narrow in outages)",
    "operations[].block_bootstrap": "95 % interval over blocks of time drawn anew; null if the run is too short",
    "operations[].measured_if_unknown_ok": "availability if every unknown outcome is counted as answered",
    "operations[].predicted_independent": "share of time with needed_votes live, were the replicas independent",
    "operations[].predicted_joint": "share of known_s in which needed_votes were live",
    "operations[].predicted_at_attempts": "share of the attempts begun while needed_votes were live; null if none "
    "began within the known time",
    "operations[].attempts_outside_trace": "attempts begun while the state of some replica is unknown",
    "operations[].ok_while_short": "answered although fewer than needed_votes were live at the start",
    "operations[].failed_while_enough": "not answered although needed_votes were live at the start",
    "comparisons[].adt": "abstract data type",
    "comparisons[].operation": "an operation that was run under both choices",
    "comparisons[].choice": "one quorum choice",
    "comparisons[].other": "another",
    "comparisons[].difference": "measured availability under choice less that under other",
    "comparisons[].low": "lower end of its 95 % interval, the lower of Newcombe's and a paired bootstrap over blocks",
    "comparisons[].high": "upper end: the higher of both",
    "choices[].choice": "a quorum choice of choices.json, run or not",
    "choices[].adt": "its abstract data type",
    "choices[].operation": "one of its operations",
    "choices[].normal_class": "event class that stands for the operation: <operation>/Ok",
    "choices[].needed_votes": "votes that this class needs live",
    "choices[].run": "whether the operation was run under this choice; false: a counterfactual only",
    "choices[].predicted_independent": "as for operations",
    "choices[].predicted_joint": "as for operations: what this choice would have given on this trace",
    "choices[].predicted_at_attempts": "share of all attempts at the operation, under any choice of the ADT, that "
    "began while needed_votes were live",
    "choices[].shortages": "number of periods with fewer than needed_votes live",
    "choices[].longest_shortage_s": "seconds of the longest of them",
    "classes[].choice": "quorum choice",
    "classes[].adt": "its abstract data type",
    "classes[].operation": "operation of the class",
    "classes[].event_class": "event class, as Deq/Empty",
    "classes[].normal": "whether this class stands for its operation",
    "classes[].initial_votes": "votes read before",
    "classes[].final_votes": "votes written after",
    "classes[].needed_votes": "the larger of the two",
    "classes[].ok": "operations answered with this class; failures have no class",
    "classes[].predicted_independent": "as for operations",
    "classes[].predicted_joint": "as for operations",
    "latencies[].choice": "quorum choice",
    "latencies[].operation": "operation",
    "latencies[].outcome": "ok, unavailable or unknown",
    "latencies[].operations": "number of operations",
    "latencies[].p50_s": "median latency, in seconds (nearest rank)",
    "latencies[].p90_s": "90 % took at most this long, in seconds",
    "latencies[].p99_s": "99 % took at most this long, in seconds",
    "latencies[].max_s": "the longest, in seconds",
    "timeline[].choice": "quorum choice",
    "timeline[].operation": "operation",
    "timeline[].attempts": "attempts begun in each bin",
    "timeline[].failed": "attempts of each bin that were unavailable or unknown",
    "downtime[].replica": "name of the replica",
    "downtime[].down_share": "share of each bin during which it was down",
    "rejected[].source": "file name",
    "rejected[].reason": "why rows were kept aside",
    "rejected[].rows": "how many",
    "rejected[].example": "the first of them in text order, cut to 200 characters",
}


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """The time the run covers."""

    start_s: float
    end_s: float
    known_s: float
    up_changes: int
    bin_s: float


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """One replica."""

    replica: str
    votes: int
    observed_s: float
    up_share: float
    up_share_known: float
    outages: int
    longest_outage_s: float


@dataclass(frozen=True, slots=True)
class LiveVoteFigures:
    """How often so many votes were live."""

    live_votes: int
    measured_share: float
    independent_share: float


@dataclass(frozen=True, slots=True)
class UpSetFigures:
    """How long exactly these replicas were up."""

    up: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class ChoiceFigures:
    """One operation under one quorum choice, run or not: the counterfactual."""

    choice: str
    adt: str
    operation: str
    normal_class: str
    needed_votes: int
    run: bool
    predicted_independent: float
    predicted_joint: float
    predicted_at_attempts: float | None
    shortages: int
    longest_shortage_s: float


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """One event class under one quorum choice."""

    choice: str
    adt: str
    operation: str
    event_class: str
    normal: bool
    initial_votes: int
    final_votes: int
    needed_votes: int
    ok: int
    predicted_independent: float
    predicted_joint: float


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """One operation under one quorum choice that was run."""

    choice: str
    adt: str
    operation: str
    needed_votes: int
    attempts: int
    ok: int
    unavailable: int
    unknown: int
    measured: float
    low: float
    high: float
    wilson: Interval
    block_bootstrap: Interval | None
    measured_if_unknown_ok: float
    predicted_independent: float
    predicted_joint: float
    predicted_at_attempts: float | None
    attempts_outside_trace: int
    ok_while_short: int
    failed_while_enough: int


@dataclass(frozen=True, slots=True)
class ComparisonFigures:
    """How much more available an operation was under one choice than under another."""

    adt: str
    operation: str
    choice: str
    other: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One row of the timeline; lists have one entry per bin."""

    choice: str
    operation: str
    attempts: tuple[int, ...]
    failed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DownRow:
    """Down share of a replica in each bin of the timeline."""

    replica: str
    down_share: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a report."""

    format: int
    window: WindowFigures
    replicas: tuple[ReplicaFigures, ...]
    live_votes: tuple[LiveVoteFigures, ...]
    up_sets: tuple[UpSetFigures, ...]
    operations: tuple[OperationFigures, ...]
    comparisons: tuple[ComparisonFigures, ...]
    choices: tuple[ChoiceFigures, ...]
    classes: tuple[ClassFigures, ...]
    latencies: tuple[Latency, ...]
    timeline: tuple[TimelineRow, ...]
    downtime: tuple[DownRow, ...]
    rejected: tuple[Rejected, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give plain lists and dictionaries, for JSON."""
        plain = asdict(self)
        for table in ("latencies", "rejected"):
            plain[table] = [row._asdict() for row in getattr(self, table)]
        return plain
