"""Availability of any system under every model of failure, in exact fractions, against listing all up-sets."""

from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.systems.failures import Group, Groups, Independent, Joint, availability
from quorate.quorums.systems.systems import (
    NOBODY,
    BadQuorums,
    Replica,
    System,
    Threshold,
    both,
    choose,
    dual,
    grid,
    votes,
)
from tests.unit.quorums.listing import CHANCES, NAMES, SYSTEMS, UNTIMED, all_sets, probability_of, quorums_of

GROUPS = st.lists(
    st.tuples(st.frozensets(st.sampled_from(NAMES)), st.sampled_from([Fraction(1, 2), Fraction(4, 5)])),
    max_size=3,
)


@UNTIMED
@given(SYSTEMS, CHANCES)
def test_independent_is_the_sum_over_all_up_sets(system: System, up: dict[str, Fraction]) -> None:
    assert availability(system, Independent(up)) == probability_of(quorums_of(system), up)


@UNTIMED
@given(SYSTEMS, CHANCES, GROUPS)
def test_groups_are_the_sum_over_all_up_sets_and_all_groups(
    system: System, up: dict[str, Fraction], drawn: list[tuple[frozenset[str], Fraction]]
) -> None:
    groups = tuple(Group(f"g{index}", members, chance) for index, (members, chance) in enumerate(drawn))
    quorums = quorums_of(system)
    expected = Fraction(0)
    for states in product((True, False), repeat=len(groups)):
        weight = Fraction(1)
        alive = frozenset(NAMES)
        for group, is_up in zip(groups, states, strict=True):
            weight *= group.up if is_up else 1 - group.up
            alive = alive if is_up else alive - group.members
        held = {each for each in all_sets(NAMES) if each & alive in quorums}
        expected += weight * probability_of(held, up)
    assert availability(system, Groups(up, groups)) == expected


def test_fractions_stay_exact_after_floats_that_are_equal_to_some_of_them() -> None:
    inner = Threshold(0, ((0, Replica("a")),))
    system = Threshold(2, ((0, inner), (2, Replica("c"))))
    rough = availability(system, Independent({"a": 0.0, "c": 0.9}))
    exact = availability(system, Independent({"a": Fraction(0), "c": Fraction(9, 10)}))
    assert (rough, exact) == (0.9, Fraction(9, 10))
    assert isinstance(exact, Fraction)


@UNTIMED
@given(SYSTEMS, st.dictionaries(st.frozensets(st.sampled_from(NAMES)), st.fractions(1, 9), min_size=1))
def test_joint_is_the_share_of_the_up_sets_that_hold_a_quorum(
    system: System, weights: dict[frozenset[str], Fraction]
) -> None:
    quorums = quorums_of(system)
    held = sum((weight for each, weight in weights.items() if each in quorums), Fraction(0))
    assert availability(system, Joint(weights)) == held / sum(weights.values())


@UNTIMED
@given(SYSTEMS, CHANCES, CHANCES)
def test_a_chance_to_answer_thins_out_who_is_up(
    system: System, up: dict[str, Fraction], answers: dict[str, Fraction]
) -> None:
    chances = {name: up[name] * answers[name] for name in NAMES}
    assert availability(system, Independent(up), answers) == probability_of(quorums_of(system), chances)


@UNTIMED
@given(SYSTEMS, CHANCES)
def test_floats_agree_with_fractions_to_1e_12(system: System, up: dict[str, Fraction]) -> None:
    exact = availability(system, Independent(up))
    rounded = availability(system, Independent({name: float(p) for name, p in up.items()}))
    assert abs(rounded - float(exact)) < 1e-12


def test_the_examples_of_the_docstring_hold() -> None:
    two = choose(2, "abc")
    nine = dict.fromkeys("abc", Fraction(9, 10))
    assert availability(two, Independent(nine)) == Fraction(972, 1000)
    rack = Groups(
        {"a": Fraction(1), "b": Fraction(1), "c": Fraction(9, 10)},
        (Group("rack", frozenset("ab"), Fraction(9, 10)),),
    )
    assert availability(two, rack) == Fraction(9, 10)


GIFFORD = [
    ((1, 0, 0), 1, 1, 1.0e-2, 1.0e-2),
    ((2, 1, 1), 2, 3, 2.0e-4, 1.0e-2),
    ((1, 1, 1), 1, 3, 1.0e-6, 3.0e-2),
]


@pytest.mark.parametrize(("weights", "read", "write", "read_blocked", "write_blocked"), GIFFORD)
def test_gifford_blocking_probabilities(
    weights: tuple[int, ...], read: int, write: int, read_blocked: float, write_blocked: float
) -> None:
    """Gifford 1979, section 2.3: three example files, each representative down with 0.01; two digits are printed."""
    votes_of = dict(zip("abc", weights, strict=True))
    up = Independent(dict.fromkeys("abc", Fraction(99, 100)))
    for needed, printed in ((read, read_blocked), (write, write_blocked)):
        blocked = 1 - availability(votes(votes_of, needed), up)
        assert float(f"{float(blocked):.0e}") == printed


def test_twenty_five_replicas_of_weighted_votes_are_exact() -> None:
    """The tail of a binomial by Pascal's triangle, where every replica has the same p; no set is listed."""
    p = Fraction(9, 10)
    names = [f"r{index}" for index in range(25)]
    expected = sum(comb(25, k) * p**k * (1 - p) ** (25 - k) for k in range(13, 26))
    assert availability(choose(13, names), Independent(dict.fromkeys(names, p))) == expected
    twice = votes(dict.fromkeys(names, 2), 25)
    assert availability(twice, Independent(dict.fromkeys(names, p))) == expected


def test_twenty_replicas_of_any_system_are_exact() -> None:
    """A grid of 4 rows of 5 and its dual: P(row and one of each row) by hand, for rows are independent."""
    names = [f"r{index}" for index in range(20)]
    rows = grid([names[start : start + 5] for start in range(0, 20, 5)])
    p = Fraction(9, 10)
    up = Independent(dict.fromkeys(names, p))
    full, touched = p**5, 1 - (1 - p) ** 5
    assert availability(both(rows, dual(rows)), up) == touched**4 - (touched - full) ** 4


def test_an_empty_quorum_is_always_there() -> None:
    assert availability(NOBODY, Independent({"a": 0.0})) == 1
    assert availability(choose(0, "ab"), Joint({frozenset[str](): 1.0})) == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Independent({"a": 1.5}), "'a' is 1.5; give a number from 0 to 1"),
        (lambda: Independent({"a": float("nan")}), "'a' is nan"),
        (lambda: Group("rack", frozenset("a"), -1), "group 'rack' is -1; give"),
        (
            lambda: Groups({"a": 1.0}, (Group("rack", frozenset("z"), 0.5),)),
            "group 'rack' holds the unknown replica 'z'; known are a",
        ),
        (
            lambda: Groups({"a": 1.0}, (Group("rack", frozenset("a"), 0.5),) * 13),
            "13 failure groups; give at most 12",
        ),
        (
            # The search exchanges replicas that are alike: it must not take those of two racks of one name for such.
            lambda: Groups(
                {"a": 1.0, "b": 1.0}, (Group("k", frozenset("a"), 0.9), Group("k", frozenset("b"), 0.5))
            ),
            "group 'k' is given twice",
        ),
        (lambda: Joint({frozenset("a"): -1.0}), r"up-set \{a\} has weight -1.0"),
        (lambda: Joint({frozenset("a"): 0.0}), "no up-set has a positive weight"),
    ],
)
def test_bad_probabilities_are_named(make: Any, sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        make()
