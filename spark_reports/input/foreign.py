"""Other people's data: traces of up times as CSV, and saved answers of Prometheus range queries for `up`.

Both become the intervals of a run without operations. Reads whole files: such data is short (Prometheus answers with at
most 11,000 samples of a series).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from ...quorums.planning.traces import UpTrace, read_trace
from ...quorums.systems.systems import BadQuorums
from ..model import contract
from ..model.aggregates import Span, microseconds
from ..model.contract import REPLICAS_MAX
from ..model.errors import ReportError
from ..model.period import EVERYTHING, Asked, ReportPeriod, nothing_within
from ..model.phrases import listed
from ..model.places import Place
from . import probes
from .rows import Interval, Reject
from .sources import read_json

LABEL: Final = "instance"
NOT_A_SAMPLE: Final = "not a [time, value] pair"
NOT_UP_OR_DOWN: Final = "value is neither 0 nor 1"
SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Foreign:
    """Intervals of other people's replicas, in the order of their names, and what was kept aside; of the period alone, if one was asked for."""

    replicas: tuple[str, ...]
    intervals: list[Interval]
    read: Mapping[str, int]
    rejects: list[Reject] = field(default_factory=list)
    period: ReportPeriod | None = None


def read_trace_file(path: Place, asked: Asked = EVERYTHING) -> Foreign:
    """Read a trace in one of the two formats of `quorate.quorums.planning.traces`. Who is named anywhere in it is a replica.

    Raises:
        ReportError: it cannot be read, or has nothing of the time that was asked for; the sentence names the line and what to
            write instead.
    """
    try:
        with path.open("r", encoding="utf-8-sig", newline="") as lines:
            trace = read_trace(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} cannot be read as text in UTF-8 ({error})") from error
    except BadQuorums as error:
        raise ReportError(f"{path}: {error}") from error
    _check_count(path, trace.replicas)
    every = Span(_us(trace.intervals[0].start_s), _us(trace.intervals[-1].end_s))
    period = asked.period(lambda: every)
    if period is not None:
        trace = replace(trace, intervals=tuple(_within(trace, period)))
        if not trace.intervals:
            raise nothing_within(path, period, every)
    return Foreign(
        trace.replicas,
        list(_of_trace(trace)),
        {contract.INTERVALS: len(trace.intervals)},
        period=period,
    )


def _within(trace: UpTrace, period: ReportPeriod) -> Iterator[Any]:
    """The parts of a trace's intervals that lie within the period."""
    for each in trace.intervals:
        cut = period.cut(_us(each.start_s), _us(each.end_s))
        if cut is not None:
            start_us, end_us = cut
            yield each._replace(start_s=Fraction(start_us, 10**6), end_s=Fraction(end_us, 10**6))


def _us(seconds: Any) -> int:
    return microseconds(float(seconds))


def _of_trace(trace: UpTrace) -> Iterator[Interval]:
    """Each replica's intervals, one for each stretch in which it did not change."""
    for name in trace.replicas:
        open_at, was_up = trace.intervals[0].start_s, name in trace.intervals[0].up
        for before, after in pairwise(trace.intervals):
            if (name in after.up) != was_up:
                yield _interval(name, open_at, before.end_s, was_up)
                open_at, was_up = after.start_s, not was_up
        yield _interval(name, open_at, trace.intervals[-1].end_s, was_up)


def _interval(name: str, start_s: Any, end_s: Any, up: bool) -> Interval:
    return Interval("", name, _us(start_s), _us(end_s), int(up))


def read_prometheus(
    paths: Iterable[Place], label: str = LABEL, step_s: float | None = None, asked: Asked = EVERYTHING
) -> Foreign:
    """Read saved answers of range queries; one replica for each value of `label`.

    Args:
        paths: JSON files as the HTTP API answers `query_range`; several may hold parts of one time.
        label: the label that tells replicas apart.
        step_s: seconds between samples; None for their median distance.
        asked: of which time.

    Raises:
        ReportError: a file is no such answer, lacks the label, holds two series for one replica, or nothing of the time that was
            asked for.
    """
    paths = list(paths)
    every = [(path, series) for path in paths for series in _series(path, label)]
    met: dict[str, tuple[Place, _Series]] = {}
    for path, series in every:
        _check_same(series, path, *met.setdefault(series.replica, (path, series)), label)
    period = asked.period(lambda: _known(every))
    own = every if period is None else [(path, series.within(period)) for path, series in every]
    by_path: dict[Place, list[tuple[str, int, int]]] = {path: [] for path, _ in own}
    rejects: list[Reject] = []
    for path, series in own:
        by_path[path] += _samples(path, series, rejects)
    samples = [each for own_samples in by_path.values() for each in own_samples]
    if not samples and period is not None and not rejects:
        raise nothing_within(listed([str(path) for path in paths[:SHOWN_MAX]]), period, _known(every))
    if not samples:
        raise _no_sample(rejects)
    step_us = _common_step_us(by_path) if step_s is None else microseconds(step_s)
    # An answer of Prometheus has no lost samples: where one is missing, it knew nothing.
    found = probes.read_samples(samples, probes.Spacing(step_us, lost_max=0))
    contradicted = set(found.contradicted)
    rejects += [
        Reject(contract.PROBES, "samples", probes.CONTRADICTS, f"{name} {time_us} {up}")
        for name, time_us, up in samples
        if (name, time_us) in contradicted
    ]
    return Foreign(
        tuple(sorted({name for name, _, _ in samples})),
        [Interval("", *each) for each in found.intervals],
        {contract.PROBES: sum(len(series.values) for _, series in own)},
        rejects,
        period,
    )


def _known(found: Iterable[tuple[Place, "_Series"]]) -> Span | None:
    """From the first sample to the last; None where no time can be told."""
    anytime = ReportPeriod(None, None)
    times = [microseconds(each[0]) for _, series in found for each in series.within(anytime).values]
    return Span(min(times), max(times) + 1) if times else None


@dataclass(frozen=True, slots=True)
class _Series:
    replica: str
    metric: Mapping[str, Any]
    values: list[Any]

    def within(self, period: ReportPeriod) -> "_Series":
        """The series with the values alone whose time lies within the period."""
        return replace(
            self,
            values=[
                each
                for each in self.values
                if isinstance(each, list) and each and _is_number(each[0]) and period.holds(each[0])
            ],
        )


def _check_same(series: _Series, path: Place, first_path: Place, first: _Series, label: str) -> None:
    """See that a replica is the same series in two files: those of two jobs are not one time of one replica."""
    for name in sorted(series.metric.keys() | first.metric.keys()):
        one, other = first.metric.get(name), series.metric.get(name)
        if one != other:
            raise ReportError(
                f"{first_path} and {path} hold different series with {label}={series.replica!r} "
                f"({name} is {one!r} and {other!r}); narrow the query to one job, or name another label with --label"
            )


def _common_step_us(by_path: Mapping[Place, Sequence[tuple[str, int, int]]]) -> int:
    """The samples' median distance. By the shorter of two, the samples of the longer would speak for too little."""
    steps: dict[Place, int] = {}
    for path, own in by_path.items():
        with suppress(ReportError):  # Too few samples to tell.
            steps[path] = probes.usual_step_us(own)
    if not steps:
        return probes.usual_step_us([each for own in by_path.values() for each in own])
    short, long = min(steps, key=lambda path: steps[path]), max(steps, key=lambda path: steps[path])
    if 2 * steps[long] > 3 * steps[short]:
        raise ReportError(
            f"{short} has samples {steps[short] / 1e6:g} s apart, {long} {steps[long] / 1e6:g} s; "
            f"ask for both with one step, or give the longer: --step {steps[long] / 1e6:g}"
        )
    return steps[long]


def _no_sample(rejects: Sequence[Reject]) -> ReportError:
    if rejects:
        first = rejects[0]
        return ReportError(
            f"{first.source}: none of {len(rejects)} samples can be used; the first, {first.line[:100]}: {first.reason}"
        )
    return ReportError(
        "there is no sample that says 0 or 1; ask for `up` over a time in which it was scraped"
    )


def _series(path: Place, label: str) -> list[_Series]:
    document = read_json(path)
    if isinstance(document, dict) and document.get("status") == "error":
        raise ReportError(f"{path} holds an error of Prometheus ({document.get('error')}); ask again")
    data = document.get("data", document) if isinstance(document, dict) else None
    kind = data.get("resultType") if isinstance(data, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    if kind != "matrix" or not isinstance(result, list):
        raise ReportError(
            f"{path} holds {f'a {kind}' if kind else 'no answer of Prometheus'}; save the answer of a range query "
            "(/api/v1/query_range), whose resultType is matrix"
        )
    found: dict[str, _Series] = {}
    for index, entry in enumerate(result):
        series = _one_series(f"{path}: series {index + 1}", entry, label)
        if series.replica in found:
            raise ReportError(
                f"{path} holds two series with {label}={series.replica!r}; narrow the query to one job, or name another "
                "label with --label"
            )
        found[series.replica] = series
    _check_count(path, found)
    return list(found.values())


def _one_series(place: str, entry: Any, label: str) -> _Series:
    metric = entry.get("metric") if isinstance(entry, dict) else None
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(metric, dict) or not isinstance(values, list):
        raise ReportError(f"{place} lacks its metric or its values; save the whole answer")
    if not isinstance(metric.get(label), str) or not metric[label]:
        known = ", ".join(name for name in metric if name != "__name__") or "none"
        raise ReportError(f"{place} has no label {label!r} (it has: {known}); name one with --label")
    return _Series(metric[label], metric, values)


def _samples(path: Place, series: _Series, rejects: list[Reject]) -> Iterator[tuple[str, int, int]]:
    for value in series.values:
        reason = None
        if not (isinstance(value, list) and len(value) == 2 and _is_number(value[0])):
            reason = NOT_A_SAMPLE
        elif not 0 <= value[0] <= contract.TIME_S_MAX:
            reason = contract.BAD_TIME
        elif _number(value[1]) not in (0.0, 1.0):
            reason = NOT_UP_OR_DOWN
        if reason is None:
            yield series.replica, microseconds(value[0]), int(_number(value[1]))
        else:
            rejects.append(Reject(contract.PROBES, path.name, reason, f"{series.replica}: {value}"))


def _number(text: Any) -> float:
    """The value of a sample, which Prometheus writes as text; NaN for whatever is no number."""
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_count(path: Place, replicas: Iterable[str]) -> None:
    names = list(replicas)
    if len(names) > REPLICAS_MAX * 64:
        raise ReportError(f"{path} speaks of {len(names)} replicas; narrow the query to those of one object")


def select(found: Foreign, votes: Mapping[str, int]) -> tuple[Foreign, dict[str, int]]:
    """Keep the replicas that `votes` names, all of them with one vote each where it names none.

    Raises:
        ReportError: `votes` names a replica that the data does not have, or more are left than a report holds.
    """
    for name in votes:
        if name not in found.replicas:
            shown = ", ".join(found.replicas[:SHOWN_MAX]) + (", …" if len(found.replicas) > SHOWN_MAX else "")
            raise ReportError(f"--votes names {name!r}, of which the data says nothing; it has {shown}")
    chosen = dict(votes) or dict.fromkeys(found.replicas, 1)
    if len(chosen) > REPLICAS_MAX:
        raise ReportError(
            f"the data has {len(chosen)} replicas, a report holds {REPLICAS_MAX}; name those that keep the object with "
            "--votes a=1,b=1,…"
        )
    if not sum(chosen.values()):
        raise ReportError("--votes gives no replica a vote; give at least one of them one")
    kept = [each for each in found.intervals if each.replica in chosen]
    return replace(found, replicas=tuple(chosen), intervals=kept), chosen
