"""Quorum systems assigned to events: who is needed, and which assignments cannot be."""

from fractions import Fraction

import pytest

from quorate.adts.types.queue import Queue
from quorate.quorums.choices.assignment import Assignment, availability_of, is_empty, of_choice, of_pair
from quorate.quorums.choices.choices import constraints_of, minimal_choices
from quorate.quorums.choices.minimal import minimal_quorums
from quorate.quorums.systems.failures import Independent
from quorate.quorums.systems.systems import (
    NOBODY,
    BadQuorums,
    choose,
    dual,
    explicit,
    grid,
    is_quorum,
    majority,
    votes,
)
from tests.unit.quorums.workloads import FILE


def test_an_assignment_that_can_miss_is_refused_with_a_quorum_of_each() -> None:
    with pytest.raises(
        BadQuorums, match=r"Read depends on Write/Ok and can miss it: \{a, b\} and \{c, d\} share no replica"
    ):
        of_pair(FILE, grid(["ab", "cd"]), grid(["ab", "cd"]))
    with pytest.raises(BadQuorums, match="Write/Ok changes the state and is stored nowhere"):
        Assignment(FILE, {"Read": majority("abc")}, {})


def test_an_event_needs_its_operations_initial_and_its_own_final_quorum() -> None:
    assignment = of_pair(FILE, explicit(["a", "b"]), explicit(["ab"]))
    assert is_quorum(assignment.needed("Read/Ok"), "a")
    assert not is_quorum(assignment.needed("Write/Ok"), "a")
    assert is_quorum(assignment.needed("Write/Ok"), "ab")


def test_an_operation_needs_what_each_of_its_outcomes_needs() -> None:
    constraints = constraints_of(Queue(), ["Enq", "Deq"])
    empty_too = {"Enq/Ok": explicit(["a"]), "Deq/Ok": explicit(["b"])}
    assignment = Assignment(constraints, {"Deq": explicit(["ab"]), "Enq": NOBODY}, empty_too)
    assert is_quorum(assignment.needed_of("Enq"), "a")
    assert not is_quorum(assignment.needed_of("Deq"), "a")
    assert is_quorum(assignment.needed_of("Deq"), "ab")


def test_a_change_that_is_stored_nowhere_is_refused() -> None:
    with pytest.raises(BadQuorums, match="Write/Ok changes the state and is stored nowhere"):
        Assignment(FILE, {"Read": majority("abc")}, {"Write/Ok": NOBODY})


def test_a_system_without_a_quorum_is_refused() -> None:
    with pytest.raises(BadQuorums, match="Read can never find its quorum"):
        Assignment(FILE, {"Read": dual(choose(0, "ab"))}, {"Write/Ok": majority("abc")})


def test_writes_go_to_the_dual_of_reads_unless_something_else_is_said() -> None:
    assignment = of_pair(FILE, grid(["ab", "cd"]))
    assert assignment.finals["Write/Ok"] == dual(grid(["ab", "cd"]))
    assert assignment.initials["Write"] == NOBODY


def test_who_survives_has_the_same_quorums_without_the_dead() -> None:
    assignment = of_pair(FILE, majority("abc"))
    left = assignment.surviving("c")
    assert left is not None
    assert set(minimal_quorums(left.initials["Read"])) == {frozenset("ab")}
    assert assignment.surviving("bc") is None


def test_availability_weighs_each_class_by_its_share_of_the_mix() -> None:
    assignment = of_pair(FILE, explicit(["a", "b"]), explicit(["ab"]))
    half = Fraction(1, 2)
    model = Independent({"a": half, "b": half})
    mix = {"Read/Ok": Fraction(1), "Write/Ok": Fraction(3)}
    assert availability_of(assignment, model, mix) == (Fraction(3, 4) + 3 * Fraction(1, 4)) / 4


def test_numbers_of_votes_become_systems() -> None:
    votes_of = {"a": 1, "b": 1, "c": 1}
    choice = minimal_choices(FILE, votes_of)[0]
    assignment = of_choice(FILE, choice, votes_of, label="some")
    sizes = choice.classes["Read/Ok"]
    assert assignment.label == "some"
    assert assignment.initials["Read"] == votes(votes_of, sizes.initial)
    assert is_empty(assignment.initials["Write"])
