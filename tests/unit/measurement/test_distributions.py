"""Drawn faults as a whole, from the text of a plan, against the laws that it names. Every bound is of statistics: so many
standard deviations, or the 1 % point of Kolmogorov and Smirnov; each is shown to be passed by draws that are a little wrong.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import pytest

from quorate.measurement.plan.plan import Law
from quorate.measurement.plan.plan_check import parse_plan
from quorate.measurement.plan.schedule import Outage, Schedule
from quorate.measurement.run.measuring import schedule_of
from tests.unit.measurement.plans import plan_text

DEVIATIONS: Final = 3.5
"""A right value is further off once in two thousand seeds."""
KOLMOGOROV_99: Final = 1.628
HOUR: Final = 3600.0
DAYS: Final = 1300
LENGTH_H: Final = DAYS * 24.0
MTTF_H: Final = 8.0
MTTR_H: Final = 2.0

Distribution = Callable[[float], float]
"""The share of draws that are not above a value."""


def drawn(*faults: str, seed: int = 11) -> Schedule:
    """Many days, an hour of which is a real second; three replicas in racks a = r1, r2 and b = r3."""
    return schedule_of(parse_plan(plan_text(*faults, duration=f"{DAYS}d", scale=HOUR, seed=seed)))


def process(table: str, law: Law, shape: float, more: str = "") -> str:
    """A table of faults that fail and are repaired by the same law."""
    shapes = f"shape = {shape}\nrepair_shape = {shape}\n" if law == "weibull" else ""
    laws = f'law = "{law}"\nrepair_law = "{law}"\n{shapes}'
    return f'[[{table}]]\nmttf = "{MTTF_H:g}h"\nmttr = "{MTTR_H:g}h"\nkind = "cut"\n{laws}{more}'


def of(schedule: Schedule, replica: str) -> list[Outage]:
    """The outages of one replica."""
    return [each for each in schedule.outages if each.replica == replica]


def weibull(mean: float, shape: float) -> Distribution:
    """The law's distribution; an exponential one is of shape 1."""
    scale = mean / math.gamma(1 + 1 / shape)
    return lambda value: -math.expm1(-((value / scale) ** shape))


def distance(values: Sequence[float], law: Distribution) -> float:
    """How far the values are from a law, in units of the 1 % point: above 1 they are not of it."""
    count = len(values)
    apart = max(
        max((place + 1) / count - law(value), law(value) - place / count)
        for place, value in enumerate(sorted(values))
    )
    return apart * math.sqrt(count) / KOLMOGOROV_99


def relative_variance(shape: float) -> float:
    """Of a Weibull law, in units of its mean squared."""
    return math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1


LAWS = pytest.mark.parametrize(
    ("law", "shape"), [("exponential", 1.0), ("weibull", 0.7), ("weibull", 1.5), ("weibull", 3.0)]
)


@LAWS
def test_times_to_failure_and_to_repair_are_of_the_laws_that_the_plan_names(law: Law, shape: float) -> None:
    outages = of(drawn(process("failures", law, shape, 'replicas = ["r1"]\n')), "r1")
    ups = [later.start_s - earlier.end_s for earlier, later in pairwise(outages)]
    downs = [each.end_s - each.start_s for each in outages[:-1]]  # the last may be cut by the plan's end
    for values, mean in ((ups, MTTF_H), (downs, MTTR_H)):
        assert len(values) > 3000
        assert distance(values, weibull(mean, shape)) < 1
        assert distance(values, weibull(1.15 * mean, shape)) > 1, "a mean that is off would not be seen"
        assert distance(values, weibull(mean, 1.15 * shape)) > 1, "a shape that is off would not be seen"


@LAWS
def test_replicas_are_down_for_the_share_of_time_that_the_means_say(law: Law, shape: float) -> None:
    # Of a process of independent times up and down, the share down varies around mttr / (mttf + mttr) with the variance
    # (mttr^2 var(up) + mttf^2 var(down)) / (mttf + mttr)^3 / length (by the central limit theorem of renewal processes).
    share = MTTR_H / (MTTF_H + MTTR_H)
    variance = 2 * relative_variance(shape) * (MTTF_H * MTTR_H) ** 2 / (MTTF_H + MTTR_H) ** 3 / LENGTH_H
    bound = DEVIATIONS * math.sqrt(variance)
    assert bound < 0.12 * share, "a share that is off by an eighth would not be seen"
    schedule = drawn(process("failures", law, shape))
    for replica in ("r1", "r2", "r3"):
        down_h = sum(each.end_s - each.start_s for each in of(schedule, replica))
        assert down_h / LENGTH_H == pytest.approx(share, abs=bound)


def is_down(outages: Sequence[Outage]) -> list[bool]:
    """Once a day, which is so much longer than an outage that one look tells little of the next."""
    times = [24.0 * day for day in range(1, DAYS)]
    return [any(each.start_s <= time < each.end_s for each in outages) for time in times]


def correlation(some: list[bool], others: list[bool]) -> float:
    """Of two columns of yes and no."""
    count, first, second = len(some), sum(some), sum(others)
    both = sum(one and other for one, other in zip(some, others, strict=True))
    spread = first * (count - first) * second * (count - second)
    return (count * both - first * second) / math.sqrt(spread)


def test_a_rack_s_replicas_fail_together_and_racks_and_replicas_by_themselves() -> None:
    racks = drawn(process("outages", "weibull", 1.5))
    first, second, other = (is_down(of(racks, name)) for name in ("r1", "r2", "r3"))
    bound = DEVIATIONS / math.sqrt(DAYS - 1)
    assert first == second
    assert abs(correlation(first, other)) < bound
    alone = [is_down(of(drawn(process("failures", "exponential", 1)), name)) for name in ("r1", "r2", "r3")]
    assert max(abs(correlation(alone[0], alone[1])), abs(correlation(alone[0], alone[2]))) < bound


def test_rack_outages_and_failures_together_are_correlated_as_much_as_their_means_say() -> None:
    """With q the share of each, a replica is down for 1 - (1 - q)^2, and two of a rack together for q + (1 - q) q^2."""
    both = drawn(process("outages", "exponential", 1), process("failures", "exponential", 1))
    down = {name: is_down(of(both, name)) for name in ("r1", "r2", "r3")}
    q = MTTR_H / (MTTF_H + MTTR_H)
    one, two = 1 - (1 - q) ** 2, q + (1 - q) * q**2
    for looks in down.values():
        assert sum(looks) / (DAYS - 1) == pytest.approx(one, abs=sigmas(one))
    for name, expected in (("r2", two), ("r3", one**2)):
        together = [first and second for first, second in zip(down["r1"], down[name], strict=True)]
        assert sum(together) / (DAYS - 1) == pytest.approx(expected, abs=sigmas(expected))
    assert two - one**2 > 2 * sigmas(two), "racks that fail by replicas would not be seen"


def sigmas(share: float) -> float:
    """How far a share of the looks may be from what is expected."""
    return DEVIATIONS * math.sqrt(share * (1 - share) / (DAYS - 1))


def test_partitions_are_drawn_by_their_laws_too_of_which_each_is_its_own() -> None:
    parted = drawn(
        '[[partitions]]\nfront_ends = ["f1"]\nreplicas = ["r1", "r2"]\nmttf = "8h"\nmttr = "2h"\n'
        'repair_law = "weibull"\nrepair_shape = 3\n'
    ).partings
    assert [(each.start_s, each.end_s) for each in parted if each.replica == "r1"] == [
        (each.start_s, each.end_s) for each in parted if each.replica == "r2"
    ]
    mine = [each for each in parted if each.replica == "r1"]
    assert distance([b.start_s - a.end_s for a, b in pairwise(mine)], weibull(MTTF_H, 1.0)) < 1
    assert distance([each.end_s - each.start_s for each in mine[:-1]], weibull(MTTR_H, 3.0)) < 1


def test_planned_outages_take_exactly_what_was_planned() -> None:
    """However many replicas roll, however the other faults are drawn: planned time is no matter of chance."""
    rolling = (
        '[[planned]]\nat = "30d"\nfor = "6h"\nstagger = "8h"\nreplicas = ["r1", "r2", "r3"]\nkind = "stop"\n'
    )
    schedule = drawn(rolling, process("failures", "exponential", 1))
    planned = [each for each in schedule.outages if each.cause == "planned 1"]
    assert [each.replica for each in planned] == ["r1", "r2", "r3"]
    for place, each in enumerate(planned):
        assert (each.start_s, each.end_s) == pytest.approx((720 + 8 * place, 726 + 8 * place))
