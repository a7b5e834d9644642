"""What a strategy costs, and what is no workload, mix or strategy."""

from fractions import Fraction

import pytest

from quorate.quorums.choices.assignment import of_pair
from quorate.quorums.planning.cost import Access, Workload, evaluate, one_mix, slots_of
from quorate.quorums.planning.latency import answer_time
from quorate.quorums.planning.strategy import Limits, best_strategy
from quorate.quorums.systems.systems import (
    BadQuorums,
    grid,
    majority,
)
from tests.unit.quorums.workloads import FILE, reads_and_writes


def test_waiting_is_for_the_slowest_member() -> None:
    times = {name: answer_time([(ms, 1)]) for name, ms in zip("abcd", (1, 2, 30, 40), strict=True)}
    workload = Workload(((1.0, {"Read/Ok": 1}),), times=times)
    assignment = of_pair(FILE, grid(["ab", "cd"]))
    assert best_strategy(assignment, workload, optimise="wait").wait_ms == pytest.approx(2)
    even = best_strategy(assignment, workload)
    assert even.wait_ms == pytest.approx(21)
    limited = best_strategy(assignment, workload, limits=Limits(wait_ms=11.5))
    assert limited.wait_ms == pytest.approx(11.5)
    assert limited.load == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("mix", "sentence"),
    [
        ({"Peek/Ok": 1}, "the mix names 'Peek/Ok'; event classes here are Write/Ok, Read/Ok"),
        ({"Read/Ok": -1}, "gives Read/Ok the share -1"),
        ({"Read/Ok": 0}, "the mix holds nothing"),
    ],
)
def test_a_mix_that_means_nothing_is_refused(mix: dict[str, float], sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        one_mix(FILE, mix)


def test_draws_that_are_no_strategy_are_refused() -> None:
    workload = reads_and_writes(1.0)
    slots = slots_of(of_pair(FILE, majority("abc")), workload)
    read = Access("Read", False)
    for draw, sentence in (
        (((frozenset("a"), 1.0),), "is no quorum of"),
        (((frozenset("ab"), 0.5),), "sum to 0.5, not to 1"),
        (((frozenset("ab"), 2.0), (frozenset("ac"), -1.0)), "drawn with -1.0"),
    ):
        with pytest.raises(BadQuorums, match=sentence):
            evaluate(slots, {read: draw}, workload)


def test_bad_workloads_are_refused() -> None:
    with pytest.raises(BadQuorums, match="no mix"):
        Workload(())
    with pytest.raises(BadQuorums, match="capacity of replica 'a' is 0"):
        Workload(((1.0, {"Read/Ok": 1}),), {"a": 0})


def test_shares_are_exact_whatever_their_sum() -> None:
    assert one_mix(FILE, {"Read/Ok": Fraction(1, 3), "Write/Ok": Fraction(1, 3)}) == {
        "Read/Ok": 0.5,
        "Write/Ok": 0.5,
    }
