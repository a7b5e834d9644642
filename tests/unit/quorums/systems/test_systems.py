"""Quorum systems against listing every set of up to six replicas."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.choices.minimal import (
    blocking_sets,
    cheapest,
    minimal_quorums,
)
from quorate.quorums.systems.systems import (
    NOBODY,
    BadQuorums,
    Replica,
    System,
    Threshold,
    all_of,
    any_of,
    both,
    choose,
    dual,
    explicit,
    grid,
    is_plain,
    is_quorum,
    votes,
    without,
)
from tests.unit.quorums import listing
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, all_sets, quorums_of, sets


@UNTIMED
@given(SYSTEMS)
def test_a_set_is_a_quorum_when_it_holds_a_union_that_the_definition_gives(system: System) -> None:
    assert {each for each in all_sets(NAMES) if is_quorum(system, each)} == quorums_of(system)


@UNTIMED
@given(SYSTEMS)
def test_the_dual_has_the_sets_that_meet_every_quorum(system: System) -> None:
    quorums = quorums_of(system)
    meeting = {each for each in all_sets(NAMES) if all(each & quorum for quorum in quorums)}
    assert quorums_of(dual(system)) == meeting
    assert dual(dual(system)) == system


@UNTIMED
@given(SYSTEMS, st.sets(st.sampled_from(NAMES)))
def test_without_the_dead_the_quorums_are_those_that_hold_none_of_them(
    system: System, dead: set[str]
) -> None:
    expected = {each for each in quorums_of(system) if not each & dead}
    left = without(system, dead)
    assert (left is None) == (not expected)
    if left is not None:
        assert {each for each in quorums_of(left) if not each & dead} == expected


@UNTIMED
@given(SYSTEMS, SYSTEMS)
def test_both_needs_a_quorum_of_each(one: System, other: System) -> None:
    assert quorums_of(both(one, other)) == quorums_of(one) & quorums_of(other)


@UNTIMED
@given(listing.VOTES, st.integers(0, 18), st.integers(0, 18))
def test_two_sizes_of_the_same_votes_need_the_larger(votes_of: dict[str, int], one: int, other: int) -> None:
    total = sum(votes_of.values())
    first, second = votes(votes_of, min(one, total)), votes(votes_of, min(other, total))
    assert both(first, second) in (first, second)
    assert quorums_of(both(first, second)) == quorums_of(first) & quorums_of(second)


def test_the_examples_of_the_docstrings_hold() -> None:
    second = votes({"a": 2, "b": 1, "c": 1}, 3)
    assert set(minimal_quorums(second)) == sets("ab", "ac")
    assert set(blocking_sets(choose(2, "abc"))) == sets("ab", "ac", "bc")
    assert dual(choose(2, "abc")) == choose(2, "abc")
    rows = grid(["ab", "cd"])
    assert set(minimal_quorums(rows)) == sets("ab", "cd")
    assert set(minimal_quorums(dual(rows))) == sets("ac", "ad", "bc", "bd")
    assert str(rows) == "((a*b) + (c*d))"
    assert str(dual(rows)) == "((a + b)*(c + d))"
    assert without(choose(2, "abc"), {"c"}) == Threshold(2, ((1, Replica("a")), (1, Replica("b"))))
    assert cheapest(votes({"a": 2, "b": 1, "c": 1}, 2), {"a": 5, "b": 1, "c": 1}) == frozenset("bc")


def test_explicit_sets_are_the_quorums() -> None:
    assert set(minimal_quorums(explicit(["ab", "bc", "abc"]))) == sets("ab", "bc")
    assert not is_plain(explicit(["ab", "bc"]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: votes({"a": 1, "b": 1}, 3), "3 votes are needed but there are 2; give 0 to 2"),
        (lambda: votes({"a": -1}, 0), "'a' has -1 votes; give 0 or more"),
        (lambda: choose(-1, "ab"), "-1 votes are needed"),
        (lambda: choose(0, []), "without parts; name at least one"),
        (lambda: grid(["ab", "c"]), "rows of the grid have different lengths"),
        (
            lambda: minimal_quorums(any_of([all_of([f"r{i}" for i in range(101)]), "r0"])),
            "up to 100 replicas, and this one has 101",
        ),
    ],
)
def test_a_system_that_cannot_be_is_refused_with_the_remedy(
    make: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        make()


def test_both_leaves_out_a_quorum_of_nobody_beside_a_single_replica() -> None:
    one = Replica("a")
    assert both(NOBODY, one) == both(one, NOBODY) == one
