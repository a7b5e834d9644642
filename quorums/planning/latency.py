"""How long a quorum takes to answer, from what each replica's answers take. Pure.

Owns distributions of answer times and what follows for rounds in which all replicas are asked and the first quorum to
answer ends the wait, as the SDK does. Nothing is simulated: the chance that a quorum has answered within t is the
availability of the quorum when each replica is "up" with its chance to have answered within t.

Assumed: answer times of different replicas, and of different rounds, are independent. Sums of floats: chances are right to
1e-12, times that differ by less than a billionth of a millisecond are the same.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ...adts.specification import EventClass, operation_of
from ..choices.assignment import Assignment, is_empty
from ..systems.failures import Independent, Model, availability
from ..systems.systems import BadQuorums, System, is_quorum, replicas_of

POINTS_MAX: Final = 1000
_ROUNDING: Final = 1e-12
_SAME_MS: Final = 1e-9
_BISECT_MS: Final = 1e-3


@dataclass(frozen=True)
class AnswerTime:
    """A distribution of times in milliseconds: rising times, and the chance of an answer within each.

    The last chance may be below 1: then sometimes there is no answer.
    """

    times_ms: tuple[float, ...]
    within: tuple[float, ...]

    def chance(self, time_ms: float) -> float:
        """The chance of an answer within `time_ms`."""
        index = bisect_right(self.times_ms, time_ms)
        return self.within[index - 1] if index else 0.0

    def quantile_ms(self, q: float) -> float | None:
        """The least time within which a share q of all requests is answered; None when fewer ever are."""
        if q <= 0:
            return 0.0
        for time_ms, share in zip(self.times_ms, self.within, strict=True):
            if share >= q - _ROUNDING:
                return time_ms
        return None


AT_ONCE: Final = AnswerTime((0.0,), (1.0,))


def answer_time(points: Iterable[tuple[float, float]], whose: str = "the replica") -> AnswerTime:
    """The distribution with these times in milliseconds and their weights.

    Example: `answer_time([(5, 9), (50, 1)])` is 5 ms nine times in ten, else 50 ms. One point is a constant.

    Raises:
        BadQuorums: no weight, a negative time or weight, or more than POINTS_MAX points.
    """
    weights: dict[float, float] = {}
    for time_ms, weight in points:
        if not (0 <= time_ms < float("inf") and 0 <= weight < float("inf")):
            raise BadQuorums(f"{whose}: {time_ms} ms with weight {weight}; give numbers of 0 or more")
        weights[time_ms] = weights.get(time_ms, 0.0) + weight
    if not any(weights.values()):
        raise BadQuorums(f"{whose}: no answer time has a weight; give at least one")
    if len(weights) > POINTS_MAX:
        raise BadQuorums(f"{whose}: {len(weights)} answer times; give at most {POINTS_MAX}, as quantiles")
    times = sorted(weights)
    total = sum(weights.values())
    within = [min(1.0, each / total) for each in accumulate(weights[time] for time in times)]
    within[-1] = 1.0
    return AnswerTime(tuple(times), tuple(within))


def of_quorum(
    system: System, times: Mapping[str, AnswerTime], model: Model[float] | None = None
) -> AnswerTime:
    """How long until a quorum has answered, when all are asked at once; who is down does not answer.

    Derivation on `choose(2; a, b, c)`, each answering in 1 ms or 10 ms with 1/2: within 1 ms each is there with 1/2, so two
    are with 3/8 + 1/8 = 1/2; within 10 ms all are. Replicas without a time here answer at once.
    """
    if is_quorum(system, ()):
        return AT_ONCE
    known = {name: times.get(name, AT_ONCE) for name in replicas_of(system)}
    up = Independent(dict.fromkeys(known, 1.0)) if model is None else model
    moments = sorted({time for each in known.values() for time in each.times_ms})
    within = [
        availability(system, up, {name: each.chance(moment) for name, each in known.items()})
        for moment in moments
    ]
    return AnswerTime(tuple(moments), tuple(within))


def of_event(
    assignment: Assignment, event_class: EventClass, times: Mapping[str, AnswerTime]
) -> list[AnswerTime]:
    """The rounds of an event while all replicas are up: initial quorum, then final one; a round that asks nobody is left
    out. `Assignment.surviving` gives the assignment while some are known to be down.
    """
    systems = (assignment.initials[operation_of(event_class)], assignment.finals[event_class])
    return [of_quorum(system, times) for system in systems if not is_empty(system)]


def chance_of_sum(rounds: Sequence[AnswerTime], time_ms: float) -> float:
    """The chance that up to two rounds, one after the other, are over within `time_ms`."""
    if not rounds:
        return 1.0
    first = rounds[0]
    if len(rounds) == 1:
        return first.chance(time_ms)
    before = (0.0, *first.within[:-1])
    return sum(
        (share - earlier) * rounds[1].chance(time_ms - taken + _SAME_MS)
        for taken, share, earlier in zip(first.times_ms, first.within, before, strict=True)
    )


def quantile_ms(rounds: Sequence[AnswerTime], q: float) -> float | None:
    """The least time within which a share q of requests is answered; None when fewer ever are.

    For two rounds it is one of the sums of their times: bisection finds where, then the sums there are tried in turn.
    """
    if not rounds:
        return 0.0
    if len(rounds) == 1:
        return rounds[0].quantile_ms(q)
    low, high = 0.0, sum(each.times_ms[-1] for each in rounds)
    if chance_of_sum(rounds, high) < q - _ROUNDING:
        return None
    while high - low > _BISECT_MS and (middle := (low + high) / 2) not in (low, high):
        if chance_of_sum(rounds, middle) >= q - _ROUNDING:
            high = middle
        else:
            low = middle
    while chance_of_sum(rounds, low) < q - _ROUNDING:
        low = _next_sum(rounds, low)
    return low


def mean_ms(rounds: Sequence[AnswerTime]) -> float | None:
    """The mean time of all rounds together; None when some requests are never answered."""
    if any(each.within[-1] < 1 - _ROUNDING for each in rounds):
        return None
    return sum(
        time_ms * (share - earlier)
        for each in rounds
        for time_ms, share, earlier in zip(each.times_ms, each.within, (0.0, *each.within[:-1]), strict=True)
    )


def _next_sum(rounds: Sequence[AnswerTime], time_ms: float) -> float:
    one, other = rounds
    sums = []
    for taken in one.times_ms:
        index = bisect_right(other.times_ms, time_ms - taken + _SAME_MS)
        if index < len(other.times_ms):
            sums.append(taken + other.times_ms[index])
    return min(sums)
