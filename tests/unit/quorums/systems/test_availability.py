"""Availability of votes against a brute-force sum over all 2**N up-sets, in exact fractions."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.systems.availability import live_votes_independent, live_votes_joint

REPLICAS = st.lists(
    st.tuples(st.integers(0, 3), st.fractions(0, 1, max_denominator=50)), min_size=1, max_size=6
)


def up_sets(votes: dict[str, int], up: dict[str, Fraction]) -> dict[frozenset[str], Fraction]:
    """The slow, obvious second implementation: the probability of every up-set, one by one."""
    result = {}
    for states in product((False, True), repeat=len(votes)):
        probability = Fraction(1)
        for replica, is_up in zip(votes, states, strict=True):
            probability *= up[replica] if is_up else 1 - up[replica]
        result[frozenset(r for r, is_up in zip(votes, states, strict=True) if is_up)] = probability
    return result


@given(replicas=REPLICAS, live=st.integers(0, 20))
def test_independent_is_the_sum_over_all_up_sets(replicas: list[tuple[int, Fraction]], live: int) -> None:
    votes = {f"r{i}": v for i, (v, _) in enumerate(replicas)}
    up = {f"r{i}": p for i, (_, p) in enumerate(replicas)}
    sets = up_sets(votes, up)
    brute = sum((p for s, p in sets.items() if sum(votes[r] for r in s) == live), start=Fraction(0))
    distribution = live_votes_independent(votes, up)
    assert distribution.get(live, 0) == brute
    assert sum(distribution.values()) == 1
    positive = {live: p for live, p in distribution.items() if p}
    assert {live: p for live, p in live_votes_joint(sets, votes).items() if p} == positive


def test_the_docstring_examples_hold() -> None:
    assert live_votes_independent({"a": 1, "b": 2}, {"a": 0.9, "b": 0.8}) == pytest.approx(
        {0: 0.02, 1: 0.18, 2: 0.08, 3: 0.72}
    )
