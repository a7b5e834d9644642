"""The figures of a report: availability measured, beside what two models of failure predict, for each quorum choice.

`keys.KEYS` documents every key of `figures.json`; a test compares it with these dataclasses. `derive` fills them.

What the words mean here:

* *measured*: operations that were answered, out of all attempts. An operation with unknown outcome got no answer, so
  it counts as not available; `measured_if_unknown_ok` shows the other reading.
* *enough*: the replicas that the front end can reach hold an initial and a final quorum of the operation's *normal*
  event class (`Deq/Ok` for Deq). `classes` shows every class by itself.
* *predicted*: the share of the time with enough, from the up-sets as they lasted together (*joint*), or from each
  replica's own share of the time as if replicas failed independently (*independent*). Both rest on the same moments.
* *seen by front ends*: where links are cut, each front end sees its own up-sets; times are then summed over front
  ends, each counting once.
* An attempt that failed had no event class, so only successes can be counted by class.

All times are seconds as they were measured; `window.time_scale` says how many seconds of the plan each stands for.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from .aggregates import Latency, Rejected
from .confidence import Interval
from .errors import ReportError

FORMAT: Final = 2


class _Layout(msgspec.Struct, frozen=True):
    format: int


_LAYOUT: Final = msgspec.json.Decoder(_Layout).decode


def check_layout(text: bytes) -> None:
    """Raises ReportError unless this is the text of a `figures.json` of this layout; the sentence goes on from the name of the file."""
    try:
        layout = _LAYOUT(text).format
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReportError(
            f"is damaged, or of an earlier release ({error}): make the report again with quorate report"
        ) from None
    if layout != FORMAT:
        raise ReportError(f"has format {layout}, and this release reads {FORMAT}: make the report again")


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """Where the figures come from."""

    kind: str
    name: str
    files: tuple[str, ...]
    engine: str
    front_ends: tuple[str, ...]
    links: bool
    prober_step_s: float | None
    plan: str | None
    made: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """The time the figures cover."""

    start_s: float
    end_s: float
    known_s: float
    up_changes: int
    bin_s: float
    blocks: int | None
    time_scale: float
    lag_s: float
    from_s: float | None = None
    to_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """One replica."""

    replica: str
    votes: int
    rack: str | None
    observed_s: float
    up_share: float
    up_share_known: float
    outages: int
    longest_outage_s: float
    mttf_s: float | None
    mttr_s: float | None


@dataclass(frozen=True, slots=True)
class PairFigures:
    """How far two replicas fail together."""

    replica: str
    other: str
    both_down: float
    both_down_independent: float
    phi: float | None


@dataclass(frozen=True, slots=True)
class CorrelationFigures:
    """How far replicas fail together."""

    variance_ratio: float | None
    pairs: tuple[PairFigures, ...]


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
class OutageFigures:
    """Times without enough: how many, all together, the longest, the mean (mean time to recovery)."""

    outages: int
    total_s: float
    longest_s: float
    mean_s: float | None


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """measured = predicted_independent + the sum of these five, but for rounding."""

    correlation: float
    timing: float
    detection: float
    rest: float
    unknown_state: float


@dataclass(frozen=True, slots=True)
class SurpriseFigures:
    """Attempts that ended otherwise than the up-set at their start would have it."""

    failed_near_change: int
    ok_near_change: int
    unavailable_while_enough: int
    unknown_while_enough: int
    ok_while_short: int
    outside_trace: int


@dataclass(frozen=True, slots=True)
class GapFigures:
    """Measured availability less a prediction; the outages of the run are in both, so this varies less than either."""

    difference: float
    low: float | None
    high: float | None
    certain: bool


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """One operation under one quorum choice that was run."""

    choice: str
    adt: str
    operation: str
    normal_class: str
    initial: str
    final: str
    needed: str
    needed_votes: int | None
    attempts: int
    ok: int
    unavailable: int
    unknown: int
    measured: float
    low: float
    high: float
    wilson: Interval
    block_bootstrap: Interval | None
    by_outage: Interval | None
    measured_if_unknown_ok: float
    predicted_independent: float
    predicted_joint: float
    predicted_at_attempts: float | None
    joint_agrees: bool
    independent_agrees: bool
    joint_gap: GapFigures
    independent_gap: GapFigures
    cause: CauseFigures | None
    surprises: SurpriseFigures
    trace: OutageFigures
    seen: OutageFigures


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """One event class under one quorum choice that was run."""

    choice: str
    adt: str
    operation: str
    event_class: str
    normal: bool
    initial: str
    final: str
    needed_votes: int | None
    ok: int
    measured: float | None
    predicted_independent: float
    predicted_joint: float
    trace: OutageFigures


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
    predicted_joint: float
    certain: bool


@dataclass(frozen=True, slots=True)
class ClaimFigures:
    """The lecture's claim, for one operation: a typed choice against a read/write choice; both were run."""

    adt: str
    typed: str
    read_write: str
    operation: str
    blind: bool
    difference: float
    low: float
    high: float
    predicted_joint: float
    certain: bool


@dataclass(frozen=True, slots=True)
class CandidateFigures:
    """One quorum choice, run or not, over all operations of the mix."""

    choice: str
    adt: str
    kind: str
    run_as: str | None
    served: float
    low: float | None
    high: float | None
    served_independent: float
    quorum_size: float | None
    on_front: bool
    dominated_by: str | None
    recommended: bool


@dataclass(frozen=True, slots=True)
class CounterfactualFigures:
    """One operation under one quorum choice, run or not: what it would have given on this trace."""

    choice: str
    adt: str
    kind: str
    run_as: str | None
    operation: str
    normal_class: str
    initial: str
    final: str
    needed_votes: int | None
    predicted_independent: float
    predicted_joint: float
    low: float | None
    high: float | None
    by_outage: Interval | None
    predicted_at_attempts: float | None
    trace: OutageFigures


@dataclass(frozen=True, slots=True)
class MixFigures:
    """One operation's share of the mix."""

    operation: str
    share: float


@dataclass(frozen=True, slots=True)
class AgainstFigures:
    """The recommended choice against another."""

    choice: str
    kind: str
    run: bool
    served: float
    difference: float
    low: float | None
    high: float | None
    certain: bool


@dataclass(frozen=True, slots=True)
class QuorumFigures:
    """The quorums of one event class of a choice."""

    event_class: str
    initial: str
    final: str
    needed_votes: int | None


@dataclass(frozen=True, slots=True)
class RecommendationFigures:
    """The choice that would have served the largest share of the mix, of one data type; `objects` are those to give it to."""

    adt: str
    choice: str
    kind: str
    run_as: str | None
    mix: tuple[MixFigures, ...]
    mix_from: str
    served: float
    low: float | None
    high: float | None
    tied: tuple[str, ...]
    against: tuple[AgainstFigures, ...]
    quorums: tuple[QuorumFigures, ...]
    objects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdaptiveClassFigures:
    """One event class under the best fixed choice and under the best standing rule."""

    event_class: str
    fixed: float
    adaptive: float


@dataclass(frozen=True, slots=True)
class AdaptiveFigures:
    """The standing rule that would have served most of the mix, of those that were tried, beside the recommended choice alone; `objects` are those to
    give it to."""

    adt: str
    fixed: str
    normal: str
    fallback: str
    down: tuple[str, ...]
    live_below: int | None
    after_s: float
    served: float
    served_fixed: float
    difference: float
    low: float | None
    high: float | None
    certain: bool
    wins: bool
    switches: int
    joint_s: float
    fallback_s: float
    tried: int
    classes: tuple[AdaptiveClassFigures, ...]
    normal_quorums: tuple[QuorumFigures, ...]
    fallback_quorums: tuple[QuorumFigures, ...]
    objects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SummaryFigures:
    """One operation under the recommended choice, or under one in force; all from joint up-sets, in seconds of the plan where time was scaled."""

    adt: str
    operation: str
    choice: str
    run_as: str | None
    recommended: bool
    present: bool
    available: float
    downtime_month_s: float
    outages: int
    longest_s: float
    mttr_s: float | None


@dataclass(frozen=True, slots=True)
class RegimeFigures:
    """One operation in a stretch of time in which one quorum choice was in force; all from joint up-sets."""

    adt: str
    regime: int
    from_s: float
    to_s: float
    choice: str
    operation: str
    known_s: float
    available: float | None
    downtime_s: float
    outages: int
    longest_s: float
    mttr_s: float | None
    recommended: str
    recommended_available: float | None


@dataclass(frozen=True, slots=True)
class AsItWasFigures:
    """One operation, or the whole mix, over all regimes: with the choice that was in force at each time, beside one choice or rule all along."""

    adt: str
    operation: str | None
    available: float
    recommended: str
    recommended_available: float
    adaptive_available: float | None


@dataclass(frozen=True, slots=True)
class DayFigures:
    """What one day took of an error budget."""

    day: str
    total: float
    spent: float
    burn_rate: float


@dataclass(frozen=True, slots=True)
class ObjectiveFigures:
    """One service level objective under one quorum choice: its error budget, and what became of it."""

    objective: str
    target: float
    adt: str
    choice: str
    run_as: str | None
    present: bool
    unit: str
    total: float
    availability: float
    budget: float
    spent: float
    left: float
    burn_rate: float
    met: bool
    days: tuple[DayFigures, ...]


@dataclass(frozen=True, slots=True)
class VerdictFigures:
    """One quorum choice against all objectives of its type."""

    adt: str
    choice: str
    run_as: str | None
    present: bool
    valid: bool
    met: bool
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProberFigures:
    """What the prober made of one replica, against the truth."""

    replica: str
    watched_s: float
    agreed: float | None
    outages: int
    detected: int
    missed: int
    false_alarms: int
    detection_mean_s: float | None
    detection_max_s: float | None
    recovery_mean_s: float | None


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
class RowFigures:
    """How many rows of one kind were read, and what became of them."""

    kind: str
    read: int
    used: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a report."""

    format: int
    source: SourceFigures
    window: WindowFigures
    replicas: tuple[ReplicaFigures, ...]
    correlation: CorrelationFigures
    live_votes: tuple[LiveVoteFigures, ...]
    up_sets: tuple[UpSetFigures, ...]
    operations: tuple[OperationFigures, ...]
    classes: tuple[ClassFigures, ...]
    comparisons: tuple[ComparisonFigures, ...]
    claim: tuple[ClaimFigures, ...]
    candidates: tuple[CandidateFigures, ...]
    counterfactuals: tuple[CounterfactualFigures, ...]
    recommendations: tuple[RecommendationFigures, ...]
    adaptive: tuple[AdaptiveFigures, ...]
    latencies: tuple[Latency, ...]
    prober: tuple[ProberFigures, ...]
    timeline: tuple[TimelineRow, ...]
    downtime: tuple[DownRow, ...]
    rows: tuple[RowFigures, ...]
    rejected: tuple[Rejected, ...]
    objectives: tuple[ObjectiveFigures, ...] = ()
    verdicts: tuple[VerdictFigures, ...] = ()
    summary: tuple[SummaryFigures, ...] = ()
    regimes: tuple[RegimeFigures, ...] = ()
    as_it_was: tuple[AsItWasFigures, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give plain lists and dictionaries, for JSON."""
        plain = asdict(self)
        for table in ("latencies", "rejected"):
            plain[table] = [row._asdict() for row in getattr(self, table)]
        return plain
