"""Minimal quorums: listed, counted, the cheapest, what blocks them, and who misses whom; against the plain definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.choices.minimal import (
    blocking_sets,
    cheapest,
    check_meets,
    count_of_sets,
    disjoint_quorums,
    least_size,
    minimal_quorums,
    resilience,
)
from quorate.quorums.systems.diagrams import MinimalSets
from quorate.quorums.systems.systems import (
    NOBODY,
    BadQuorums,
    System,
    Threshold,
    any_of,
    choose,
    dual,
    grid,
    majority,
    replicas_of,
    votes,
)
from tests.unit.quorums import listing
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, all_sets, quorums_of, sets


@UNTIMED
@given(SYSTEMS)
def test_the_least_size_is_that_of_the_smallest_quorum(system: System) -> None:
    least = min(map(len, quorums_of(system)), default=len(replicas_of(system)))
    assert least_size(system) == least


@UNTIMED
@given(SYSTEMS)
def test_minimal_quorums_hold_no_other_and_are_all_there(system: System) -> None:
    expected = listing.minimal(quorums_of(system))
    found = minimal_quorums(system)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert set(MinimalSets(system)) == expected
    assert MinimalSets(system).count() == len(expected)
    assert count_of_sets(system) in (0, len(expected))


@UNTIMED
@given(SYSTEMS)
def test_blocking_sets_are_the_smallest_whose_loss_leaves_no_quorum(system: System) -> None:
    everyone = frozenset(NAMES)
    quorums = quorums_of(system)
    blocking = {each for each in all_sets(NAMES) if everyone - each not in quorums}
    assert set(blocking_sets(system)) == listing.minimal(blocking)
    least = min((len(each) for each in blocking), default=len(replicas_of(system)) + 1)
    assert resilience(system) == least - 1


@UNTIMED
@given(SYSTEMS, st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_the_cheapest_quorum_has_the_least_price_of_all(system: System, amounts: list[int]) -> None:
    prices = {name: float(amount) for name, amount in zip(NAMES, amounts, strict=True)}
    found = cheapest(system, prices)
    every = listing.minimal(quorums_of(system))
    if found is None:
        assert not every
        return
    assert found in every
    assert sum(prices[name] for name in found) == min(sum(prices[name] for name in each) for each in every)


@UNTIMED
@given(
    listing.VOTES, st.integers(1, 18), st.lists(st.sampled_from([1.0, 2.0, 5.0, 9.0]), min_size=6, max_size=6)
)
def test_the_cheapest_quorum_of_votes_has_the_least_price_of_all(
    votes_of: dict[str, int], needed: int, amounts: list[float]
) -> None:
    prices = dict(zip(NAMES, amounts, strict=True))
    system = votes(votes_of, min(needed, sum(votes_of.values())))
    found = cheapest(system, prices)
    assert found is not None
    assert found in listing.minimal(quorums_of(system))
    assert sum(prices[name] for name in found) == min(
        sum(prices[name] for name in each) for each in quorums_of(system)
    )


@UNTIMED
@given(SYSTEMS, SYSTEMS)
def test_two_systems_miss_each_other_exactly_when_two_of_their_quorums_do(one: System, other: System) -> None:
    pairs = [(a, b) for a in quorums_of(one) for b in quorums_of(other) if not a & b]
    found = disjoint_quorums(one, other)
    assert (found is None) == (not pairs)
    if found is not None:
        assert not found[0] & found[1]
        assert found[0] in listing.minimal(quorums_of(one))
        assert found[1] in listing.minimal(quorums_of(other))


@UNTIMED
@given(listing.VOTES, st.integers(0, 18), st.integers(0, 18))
def test_votes_of_the_same_replicas_miss_each_other_exactly_when_two_sets_do(
    votes_of: dict[str, int], one: int, other: int
) -> None:
    total = sum(votes_of.values())
    first, second = votes(votes_of, min(one, total)), votes(votes_of, min(other, total))
    pairs = [(a, b) for a in quorums_of(first) for b in quorums_of(second) if not a & b]
    found = disjoint_quorums(first, second)
    assert (found is None) == (not pairs)
    if found is not None:
        assert found[0] in listing.minimal(quorums_of(first))
        assert found[1] in listing.minimal(quorums_of(second))


def test_a_replica_without_votes_is_in_no_minimal_quorum_and_blocks_nothing() -> None:
    weak = votes({"a": 1, "b": 0, "c": 0}, 1)
    assert set(minimal_quorums(weak)) == set(blocking_sets(weak)) == sets("a")
    assert replicas_of(weak) == ("a", "b", "c")


def test_a_part_that_nobody_need_satisfy_is_there_anyway() -> None:
    """Found by the listing: `a + choose(0; b)` has the empty quorum, so {a} is not minimal."""
    assert minimal_quorums(any_of(["a", choose(0, "b")])) == (frozenset(),)
    assert set(minimal_quorums(choose(2, ["a", "c", choose(0, "b")]))) == sets("a", "c")


def test_nobody_is_needed_for_an_empty_quorum_and_nothing_blocks_it() -> None:
    assert minimal_quorums(NOBODY) == (frozenset(),)
    assert blocking_sets(NOBODY) == ()
    assert resilience(votes({"a": 1, "b": 1}, 0)) == 2
    assert resilience(Threshold(1, ())) == -1


def test_twenty_five_replicas_of_votes_need_no_listing() -> None:
    """2**25 sets would take minutes."""
    weights = {f"r{index}": 1 + index % 3 for index in range(25)}
    total = sum(weights.values())
    read, write = votes(weights, 20), votes(weights, total - 19)
    assert disjoint_quorums(read, write) is None
    missed = disjoint_quorums(read, votes(weights, total - 20))
    assert missed is not None
    assert not missed[0] & missed[1]
    assert resilience(read) == 10  # the eight of 3 votes and three of 2 leave 19
    with pytest.raises(BadQuorums, match="more than 100000 minimal quorums"):
        minimal_quorums(majority([f"r{index}" for index in range(25)]))


def test_a_pair_that_misses_is_refused_with_a_quorum_of_each() -> None:
    with pytest.raises(BadQuorums, match=r"reads miss writes: \{a, b\} and \{c, d\} share no replica"):
        check_meets(grid(["ab", "cd"]), grid(["ab", "cd"]), "reads miss writes")
    check_meets(grid(["ab", "cd"]), dual(grid(["ab", "cd"])))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7).filter(any), st.data())
def test_minimal_quorums_of_votes_are_counted_as_they_are_listed(
    weights: list[int], data: st.DataObject
) -> None:
    votes_of = {f"r{at}": weight for at, weight in enumerate(weights)}
    system = votes(votes_of, data.draw(st.integers(1, sum(weights))))
    assert count_of_sets(system) == len(minimal_quorums(system))


def test_votes_in_which_a_replica_stands_twice_do_not_miss_themselves() -> None:
    system = choose(1, ["b", "b"])
    assert disjoint_quorums(system, system) is None
