"""Optimal strategies: against a plain linear program over all quorums, by hand, and against quoracle."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add, mul
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quorate.adts.types.queue import Queue
from quorate.quorums.choices.assignment import of_choice, of_pair
from quorate.quorums.choices.choices import constraints_of, minimal_choices
from quorate.quorums.planning import strategy as strategy_module
from quorate.quorums.planning.cost import Workload, rounds_of
from quorate.quorums.planning.strategy import Limits, MissingSolver, best_strategy, with_spare
from quorate.quorums.systems.systems import (
    BadQuorums,
    System,
    choose,
    dual,
    explicit,
    grid,
    majority,
    votes,
)
from tests.unit.quorums.listing import NAMES, SYSTEMS, all_sets, minimal, quorums_of
from tests.unit.quorums.workloads import FILE, reads_and_writes

QUEUE = constraints_of(Queue(), ["Enq", "Deq"])
CLOSE = 1e-7


def least_load(
    reads: System, writes: System, read: float, capacities: tuple[dict[str, float], dict[str, float]]
) -> float:
    """The textbook program: a column for each minimal quorum, listed dumbly; no price, no generation."""
    of_kind = [sorted(minimal(quorums_of(each)), key=sorted) for each in (reads, writes)]
    columns = [(kind, quorum) for kind in (0, 1) for quorum in of_kind[kind]]
    share = (read, 1 - read)
    rows = [
        [share[kind] * (name in quorum) / capacities[kind][name] for kind, quorum in columns] + [-1.0]
        for name in NAMES
    ]
    sums = [[float(kind == which) for kind, _ in columns] + [0.0] for which in (0, 1)]
    from scipy.optimize import linprog  # noqa: PLC0415 - every worker reads this file, and one runs it

    found = linprog([0.0] * len(columns) + [1.0], A_ub=rows, b_ub=[0.0] * 6, A_eq=sums, b_eq=[1.0, 1.0])
    assert found.status == 0
    return float(found.fun)


CAPACITIES = st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from([0.5, 1.0, 2.0])))


@settings(deadline=None, max_examples=40)
@given(SYSTEMS, st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), CAPACITIES, CAPACITIES, st.booleans())
def test_no_strategy_over_all_quorums_has_less_load(
    reads: System, read: float, for_reads: dict[str, float], for_writes: dict[str, float], lists: bool
) -> None:
    """Both ways: all columns at once, and columns generated from prices."""
    writes = dual(reads)
    assume(all(quorums_of(each) and frozenset() not in quorums_of(each) for each in (reads, writes)))
    workload = Workload(((1.0, {"Read/Ok": read, "Write/Ok": 1 - read}),), for_reads, for_writes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy_module, "_LISTED_UP_TO", 8 if lists else 0)
        found = best_strategy(of_pair(FILE, reads), workload)
    assert found.load == pytest.approx(least_load(reads, writes, read, (for_reads, for_writes)), abs=CLOSE)
    assert found.bound is not None
    assert found.bound <= found.load + 1e-12
    assert found.load - found.bound < CLOSE


def test_the_grid_of_the_docstring() -> None:
    found = best_strategy(of_pair(FILE, grid(["ab", "cd"])), reads_and_writes(0.5))
    assert found.load == pytest.approx(0.5)
    assert found.capacity == pytest.approx(2)
    assert found.messages == pytest.approx(4)


@pytest.mark.parametrize("replicas", [3, 9, 15, 25])
def test_a_majority_of_equal_replicas_has_the_load_of_a_fair_share(replicas: int) -> None:
    """Naor and Wool 1998: k of N has load k / N; with 25 there are 5 million minimal quorums, and none is listed."""
    names = [f"r{index}" for index in range(replicas)]
    found = best_strategy(of_pair(FILE, majority(names)), reads_and_writes(0.7))
    assert found.load == pytest.approx((replicas // 2 + 1) / replicas, abs=1e-9)
    assert found.bound == pytest.approx(found.load, abs=1e-9)


def test_a_dequeue_loads_those_it_reads_and_those_it_writes() -> None:
    """Three replicas, Deq (2, 2), nothing but Deq/Ok: 4 accesses over 3 replicas, 4/3 each. Half Enq (0, 2): 3/3."""
    votes_of = dict.fromkeys("abc", 1)
    choice = minimal_choices(QUEUE, votes_of)[1]
    assignment = of_choice(QUEUE, choice, votes_of)
    for mix, load, messages in (({"Deq/Ok": 1}, 4 / 3, 8), ({"Deq/Ok": 1, "Enq/Ok": 1}, 1.0, 6)):
        found = best_strategy(assignment, Workload(((1.0, mix),)))
        assert found.load == pytest.approx(load)
        assert found.messages == pytest.approx(messages)
    assert [rounds_of(assignment, name) for name in QUEUE.classes] == [1, 2, 1]


def test_one_strategy_serves_several_mixes() -> None:
    """Mostly reads by day, mostly writes by night: the load is averaged over both, and one mix alone is no worse."""
    assignment = of_pair(FILE, explicit(["ab", "cd"]))
    mixes = [{"Read/Ok": 0.9, "Write/Ok": 0.1}, {"Read/Ok": 0.2, "Write/Ok": 0.8}]
    both = best_strategy(assignment, Workload(((3.0, mixes[0]), (1.0, mixes[1]))))
    alone = [best_strategy(assignment, Workload(((1.0, mix),))).load for mix in mixes]
    assert both.load >= 0.75 * alone[0] + 0.25 * alone[1] - CLOSE
    assert both.load == pytest.approx(0.5)


def test_limits_trade_one_cost_for_another() -> None:
    """Reads of {a} or {b, c, d}: the small quorum saves messages, the large one spares a."""
    reads = explicit(["a", "bcd"])
    assignment = of_pair(FILE, reads)
    workload = reads_and_writes(1.0)
    assert best_strategy(assignment, workload).load == pytest.approx(0.5)
    cheap = best_strategy(assignment, workload, optimise="messages")
    assert cheap.messages == pytest.approx(2)
    assert cheap.load == pytest.approx(1)
    limited = best_strategy(assignment, workload, limits=Limits(messages=3))
    assert limited.messages == pytest.approx(3)
    assert limited.load == pytest.approx(0.75)
    assert best_strategy(
        assignment, workload, optimise="messages", limits=Limits(load=0.75)
    ).messages == pytest.approx(3)
    with pytest.raises(BadQuorums, match="no strategy keeps messages within 1 "):
        best_strategy(assignment, workload, limits=Limits(messages=1))


def test_of_strategies_with_as_few_messages_the_one_with_the_least_load_is_taken() -> None:
    """Whichever two of three are asked, there are four messages: all three are asked alike."""
    found = best_strategy(of_pair(FILE, majority("abc")), reads_and_writes(0.5), optimise="messages")
    assert (found.messages, found.load) == pytest.approx((4, 2 / 3))


def test_with_one_to_spare_any_member_may_fail() -> None:
    for system in (choose(2, "abcd"), votes({"a": 2, "b": 1, "c": 1, "d": 1}, 2), grid(["ab", "cd"])):
        quorums = quorums_of(system, "abcd")
        expected = {
            each
            for each in all_sets("abcd")
            if all(each - {name} in quorums for name in each) and each in quorums
        }
        if not expected:
            with pytest.raises(BadQuorums, match="can spare 1"):
                with_spare(system, 1)
        else:
            assert quorums_of(with_spare(system, 1), "abcd") == expected
    spare = best_strategy(of_pair(FILE, choose(2, "abcd"), choose(3, "abcd")), reads_and_writes(1.0), spare=1)
    assert spare.load == pytest.approx(0.75)
    with pytest.raises(BadQuorums, match="can spare 2 replicas; ask for fewer"):
        with_spare(majority("abc"), 2)


def test_while_replicas_are_dead_the_plan_is_made_of_the_others() -> None:
    assignment = of_pair(FILE, majority("abcde"))
    left = assignment.surviving({"a", "b"})
    assert left is not None
    assert best_strategy(left, reads_and_writes(0.5)).load == pytest.approx(1)
    assert assignment.surviving({"a", "b", "c"}) is None


def test_without_scipy_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)

    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == "scipy":
                raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(MissingSolver, match=r"pip install 'quorate\[plan\]'"):
        best_strategy(of_pair(FILE, majority("abc")), reads_and_writes(0.5))


# quoracle: reads, writes and an expression for both sides.


@contextmanager
def quoracle() -> Iterator[Any]:
    """The library; pulp and matplotlib warn about themselves as they are imported and called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("quoracle")


CASES: list[tuple[str, Any, Any]] = [
    ("majority of 5", lambda q, n: q.majority(n[:5]), lambda s: majority(s[:5])),
    ("majority of 7", lambda q, n: q.majority(n[:7]), lambda s: majority(s[:7])),
    ("2 of 3 halves", lambda q, n: q.choose(2, [n[0] * n[1], n[2] * n[3], n[4]]), None),
    (
        "grid 2x3",
        lambda q, n: reduce(add, (reduce(mul, n[at : at + 3]) for at in (0, 3))),
        lambda s: grid([s[:3], s[3:6]]),
    ),
    (
        "grid 3x3",
        lambda q, n: reduce(add, (reduce(mul, n[at : at + 3]) for at in (0, 3, 6))),
        lambda s: grid([s[:3], s[3:6], s[6:9]]),
    ),
    (
        "shared",
        lambda q, n: n[0] * n[1] + n[1] * n[2] + n[2] * n[0],
        lambda s: explicit([[s[0], s[1]], [s[1], s[2]], [s[0], s[2]]]),
    ),
]


@pytest.mark.parametrize("name", [name for name, _, _ in CASES])
@pytest.mark.parametrize("read", [0.0, 0.3, 0.75, 1.0])
def test_quoracle_finds_the_same_optimum(name: str, read: float) -> None:
    theirs, ours = next((a, b) for each, a, b in CASES if each == name)
    names = [f"r{index}" for index in range(9)]
    capacity = {each: 1.0 + index % 3 for index, each in enumerate(names)}
    system = ours(names) if ours else choose(2, [grid([names[:2]]), grid([names[2:4]]), names[4]])
    found = best_strategy(
        of_pair(FILE, system),
        Workload(((1.0, {"Read/Ok": read, "Write/Ok": 1 - read}),), capacity, capacity),
    )
    with quoracle() as q:
        nodes = [q.Node(each, capacity=capacity[each]) for each in names]
        judged = q.QuorumSystem(reads=theirs(q, nodes))
        assert found.load == pytest.approx(judged.load(read_fraction=read), abs=1e-6)
        assert found.capacity == pytest.approx(judged.capacity(read_fraction=read), rel=1e-6)
