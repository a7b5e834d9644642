"""Traces: both formats mean the same, outages are counted by the second, and every fault is named with its line."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.planning.traces import Outages, UpTrace, read_trace
from quorate.quorums.systems.failures import availability
from quorate.quorums.systems.systems import BadQuorums, System, choose, grid, majority
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, quorums_of

EXAMPLE = ["start_s,end_s,up", "0,10,a|b", "10,11,a", "11,13,c", "13,20,a|b|c"]

SECONDS = st.lists(st.frozensets(st.sampled_from(NAMES)), min_size=1, max_size=30)
"""Who is up in each second."""


def intervals_of(seconds: list[frozenset[str]]) -> list[str]:
    """One interval for each second; those that could be one line are left apart."""
    return [
        "start_s,end_s,up",
        *(f"{s + 0.5},{s + 1.5},{'|'.join(sorted(up))}" for s, up in enumerate(seconds)),
    ]


def replicas_of(seconds: list[frozenset[str]]) -> list[str]:
    """The same by replica, from last to first."""
    rows = [f"{name},{s + 0.5},{s + 1.5},{int(name in up)}" for name in NAMES for s, up in enumerate(seconds)]
    return ["replica,start_s,end_s,up", *reversed(rows)]


def both(seconds: list[frozenset[str]]) -> list[UpTrace]:
    return [read_trace(intervals_of(seconds), NAMES), read_trace(replicas_of(seconds), NAMES)]


@UNTIMED
@given(SECONDS, SYSTEMS)
def test_outages_and_availability_are_what_counting_seconds_gives(
    seconds: list[frozenset[str]], system: System
) -> None:
    quorums = quorums_of(system)
    held = "".join("x" if up in quorums else "." for up in seconds)
    runs = [run for run in held.split("x") if run]
    for trace in both(seconds):
        found = trace.outages(system)
        assert found.outages == len(runs)
        assert found.longest_s == max(map(len, runs), default=0)
        assert found.down_s == held.count(".")
        assert found.observed_s == len(seconds)
        assert availability(system, trace.joint()) == Fraction(held.count("x"), len(seconds))


@UNTIMED
@given(SECONDS)
def test_up_shares_are_what_counting_seconds_gives(seconds: list[frozenset[str]]) -> None:
    for trace in both(seconds):
        assert trace.replicas == NAMES
        for name, share in trace.up_shares().items():
            assert share == Fraction(sum(name in up for up in seconds), len(seconds))


def test_the_example_of_the_docstring_holds() -> None:
    trace = read_trace(EXAMPLE)
    assert trace.outages(majority("abc")) == Outages(1, Fraction(3), Fraction(3), Fraction(20))
    assert trace.replicas == ("a", "b", "c")


def test_replicas_that_fail_together_are_seen_by_the_trace_alone() -> None:
    """a and b are down together a tenth of the time; c is always up. Independent replicas would give 0.99."""
    trace = read_trace(["start_s,end_s,up", "0,9,a|b|c", "9,10,c"])
    assert availability(choose(2, "abc"), trace.joint()) == Fraction(9, 10)


def test_lines_may_come_in_any_order_with_blanks_between() -> None:
    trace = read_trace([EXAMPLE[0], EXAMPLE[3], "", EXAMPLE[1], " 10 , 11 , a ", EXAMPLE[4]])
    assert trace == read_trace(EXAMPLE) or trace.intervals == read_trace(EXAMPLE).intervals


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "line 1: write the header start_s,end_s,up or replica,start_s,end_s,up"),
        (["time,up"], "line 1: write the header"),
        (["start_s,end_s,up"], "no interval; add at least one line"),
        (["start_s,end_s,up", "0,1"], "line 2: 2 fields; write start_s,end_s,up"),
        (["start_s,end_s,up", "0,x,a"], "line 2: end_s is 'x'; write seconds"),
        (["start_s,end_s,up", "0,1e400,a"], "line 2: end_s is '1e400'; write seconds"),
        (["start_s,end_s,up", "0,nan,a"], "line 2: end_s is 'nan'; write seconds"),
        (["start_s,end_s,up", "0,1,a", "3,2,a"], "line 3: end_s 2 is not after start_s 3"),
        (["start_s,end_s,up", "0,1,a||b"], "line 2: a replica without a name; write r1|r2"),
        (["start_s,end_s,up", "0,1,a b"], "line 2: 'a b' is no name of one replica; write several as r1|r2"),
        (["start_s,end_s,up", "0,1,a;b"], "line 2: 'a;b' is no name of one replica"),
        (["start_s,end_s,up", "0,1,z"], "line 2: unknown replica 'z'; known are a, b"),
        (
            ["start_s,end_s,up", "0,2,a", "1,3,a"],
            "line 3: the interval starts at 1 s and overlaps that of line 2, which ends at 2 s; let it start there",
        ),
        (
            ["start_s,end_s,up", "0,1,a", "2,3,a"],
            "line 3: nothing is said from 1 s, where line 2 ends, to 2 s; add the missing interval",
        ),
        (["start_s,end_s,up", '0,1,"a'], "line 2: not CSV"),
        (["replica,start_s,end_s,up", "z,0,1,1"], "line 2: unknown replica 'z'"),
        (["replica,start_s,end_s,up", "a,0,1,yes"], "line 2: up is 'yes'; write 1 for up and 0 for down"),
        (["replica,start_s,end_s,up", "a,0,1,1"], "nothing about replica 'b'; add its intervals"),
        (
            ["replica,start_s,end_s,up", "a,0,1,1", "b,0,2,1"],
            "line 3: the trace of b ends at 2 s, that of a at 1 s .line 2.; let all begin and end together",
        ),
        (
            ["replica,start_s,end_s,up", "a,0,1,1", "b,0.5,1,1"],
            "line 3: the trace of b starts at 0.5 s, that of a at 0 s",
        ),
        (
            ["replica,start_s,end_s,up", "a,0,1,1", "a,2,3,0", "b,0,3,1"],
            "line 3: nothing is said of a from 1 s, where line 2 ends, to 2 s",
        ),
        (
            ["replica,start_s,end_s,up", "a,0,2,1", "a,1,3,0", "b,0,3,1"],
            "line 3: the interval of a starts at 1 s and overlaps that of line 2",
        ),
    ],
)
def test_a_bad_trace_is_refused_with_the_line_and_the_remedy(lines: list[str], sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        read_trace(lines, ("a", "b"))


def test_a_grid_is_down_while_no_row_is_whole() -> None:
    trace = read_trace(["start_s,end_s,up", "0,1,a|b", "1,2,a|c", "2,3,b|d", "3,4,c|d", "4,6,"])
    assert trace.outages(grid(["ab", "cd"])) == Outages(2, Fraction(2), Fraction(4), Fraction(6))
