"""Drawn faults: the same for the same seed, alternating, within the plan, and with the means that the plan asks for."""

import random
from collections import defaultdict
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.measurement.plan.plan import Duration, Law, Process
from quorate.measurement.plan.plan_check import parse_plan
from quorate.measurement.plan.schedule import Parting, Schedule, downs, period
from quorate.measurement.run.measuring import schedule_of, streams
from tests.unit.measurement.plans import plan_text

FAILURES = '[[failures]]\nmttf = "2h"\nmttr = "30m"\n'
OUTAGES = '[[outages]]\nmttf = "3h"\nmttr = "1h"\nkind = "cut"\n'
PARTITION = '[[partitions]]\nfront_ends = ["f1"]\nreplicas = ["r1", "r3"]\nmttf = "2h"\nmttr = "1h"\n'


def schedule(*faults: str, seed: int = 1) -> Schedule:
    """What a plan of a day in 100 s draws."""
    return schedule_of(parse_plan(plan_text(*faults, seed=seed)))


def test_same_seed_draws_the_same_and_another_does_not() -> None:
    assert schedule(FAILURES, OUTAGES, PARTITION) == schedule(FAILURES, OUTAGES, PARTITION)
    assert schedule(FAILURES).outages != schedule(FAILURES, seed=2).outages


def test_draws_are_those_that_were_committed() -> None:
    # Whoever reports a run by its plan and seed must find it again in a later version.
    first = schedule(FAILURES).outages[0]
    assert (first.replica, round(first.start_s, 6), round(first.end_s, 6)) == ("r2", 2.436326, 2.840726)


def test_a_further_process_leaves_the_draws_of_the_others() -> None:
    alone = schedule(FAILURES).outages
    both = schedule(FAILURES, OUTAGES, PARTITION).outages
    assert tuple(each for each in both if each.cause == "failures 1") == alone


def test_a_rack_takes_all_its_replicas_down_at_once_and_no_other() -> None:
    by_cause: dict[tuple[str, float, float], set[str]] = defaultdict(set)
    for each in schedule(OUTAGES).outages:
        by_cause[each.cause, each.start_s, each.end_s].add(each.replica)
    assert {(cause, frozenset(replicas)) for (cause, _, _), replicas in by_cause.items()} == {
        ("outages 1, rack a", frozenset({"r1", "r2"})),
        ("outages 1, rack b", frozenset({"r3"})),
    }


def test_planned_outages_roll_over_the_replicas_in_real_time() -> None:
    rolling = '[[planned]]\nat = "1h"\nfor = "30m"\nstagger = "1h"\nreplicas = ["r2", "r1"]\nkind = "stop"\n'
    hour_s = 100 / 24
    first, second = schedule(rolling).outages
    assert (first.replica, first.kind) == ("r2", "stop")
    assert (first.start_s, first.end_s) == pytest.approx((hour_s, 1.5 * hour_s))
    assert second.replica == "r1"
    assert second.start_s == pytest.approx(2 * hour_s)


def test_an_outage_that_would_outlast_the_plan_ends_with_it() -> None:
    (only,) = schedule('[[planned]]\nat = "23h"\nfor = "9h"\nreplicas = ["r1"]\n').outages
    assert only.end_s == pytest.approx(100)


def test_a_partition_parts_the_named_and_no_others() -> None:
    partings = schedule(PARTITION).partings
    assert {(each.asker, each.replica) for each in partings} == {("f1", "r1"), ("f1", "r3")}
    planned = '[[partitions]]\nfront_ends = ["f2"]\nreplicas = ["r1"]\nat = "12h"\nfor = "6h"\n'
    assert schedule(planned).partings == (Parting(50.0, 75.0, "f2", "r1", "partitions 1"),)


def test_a_partition_between_replicas_lets_neither_side_reach_the_other() -> None:
    between = '[[partitions]]\nreplicas = ["r1"]\nother_replicas = ["r2", "r3"]\nat = "12h"\nfor = "6h"\n'
    partings = schedule(between).partings
    assert {(each.start_s, each.end_s) for each in partings} == {(50.0, 75.0)}
    ways = [(each.asker, each.replica) for each in partings]
    assert sorted(ways) == [("r1", "r2"), ("r1", "r3"), ("r2", "r1"), ("r3", "r1")]


@given(
    seed=st.integers(0, 2**32),
    laws=st.tuples(*[st.sampled_from(["exponential", "weibull"])] * 2),
    shapes=st.tuples(*[st.floats(0.3, 5)] * 2),
    means=st.tuples(*[st.floats(0.5, 50)] * 2),
)
@settings(max_examples=200)
def test_times_down_alternate_with_times_up_within_the_plan(
    seed: int, laws: tuple[Law, Law], shapes: tuple[float, float], means: tuple[float, float]
) -> None:
    process = Process(
        mttf=Duration(means[0]),
        mttr=Duration(means[1]),
        law=laws[0],
        shape=shapes[0],
        repair_law=laws[1],
        repair_shape=shapes[1],
    )
    last_s = 0.0
    for start_s, end_s in downs(process, 100.0, random.Random(seed).random):
        assert last_s < start_s < end_s <= 100
        last_s = end_s


@pytest.mark.parametrize(("law", "shape"), [("exponential", 1.0), ("weibull", 0.7), ("weibull", 2.5)])
def test_draws_have_the_mean_and_the_median_of_their_law(law: Law, shape: float) -> None:
    uniform = streams(7)("a test")
    drawn = sorted(period(law, 10.0, shape, uniform) for _ in range(40_000))
    # The mean's own standard error is at most 0.75 % of it for these shapes.
    assert fmean(drawn) == pytest.approx(10.0, rel=0.03)
    # Median of a Weibull law of scale s: s * ln(2) ** (1 / shape); as a share of the mean, by gamma(1 + 1/shape).
    share = {1.0: 0.6931, 0.7: 0.4680, 2.5: 0.9734}[shape]
    assert drawn[20_000] == pytest.approx(10 * share, rel=0.03)


def test_a_long_plan_is_down_for_the_share_that_its_means_say() -> None:
    process = Process(mttf=Duration(30.0), mttr=Duration(10.0), law="weibull", shape=1.5)
    drawn = list(downs(process, 400_000.0, streams(3)("a test")))
    assert len(drawn) == pytest.approx(10_000, rel=0.03)
    assert sum(end_s - start_s for start_s, end_s in drawn) / 400_000 == pytest.approx(0.25, rel=0.04)


def test_lists_are_in_the_order_of_time() -> None:
    drawn = schedule(FAILURES, OUTAGES).outages
    assert list(drawn) == sorted(drawn, key=lambda each: each.start_s)
    assert all(each.end_s <= 100 for each in drawn)
