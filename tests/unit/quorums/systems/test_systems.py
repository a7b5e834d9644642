"""Quorum systems against listing every set of up to six replicas."""

import random
from collections.abc import Callable
from fractions import Fraction

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
from quorate.quorums.systems.diagrams import Diagram, MinimalSets, diagram
from quorate.quorums.systems.failures import Independent, availability
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
    majority,
    replicas_of,
    votes,
    without,
)
from tests.unit.quorums import listing
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, all_sets, quorums_of


@UNTIMED
@given(SYSTEMS)
def test_a_set_is_a_quorum_when_it_holds_a_union_that_the_definition_gives(system: System) -> None:
    assert {each for each in all_sets(NAMES) if is_quorum(system, each)} == quorums_of(system)


@UNTIMED
@given(SYSTEMS)
def test_the_least_size_is_that_of_the_smallest_quorum(system: System) -> None:
    least = min(map(len, quorums_of(system)), default=len(replicas_of(system)))
    assert least_size(system) == least


@UNTIMED
@given(SYSTEMS)
def test_the_diagram_leads_to_yes_for_each_quorum(system: System) -> None:
    found = diagram(system, NAMES)
    assert {each for each in all_sets(NAMES) if leads_to_yes(found, each)} == quorums_of(system)


def leads_to_yes(found: Diagram, replicas: frozenset[str]) -> bool:
    place = found.root
    while place > 1:
        node = found.nodes[place]
        place = node.high if found.order[node.level] in replicas else node.low
    return place == 1


@UNTIMED
@given(SYSTEMS, SYSTEMS)
def test_diagrams_are_equal_exactly_when_the_quorums_are(one: System, other: System) -> None:
    are_equal = diagram(one, NAMES) == diagram(other, NAMES)
    assert are_equal == (quorums_of(one) == quorums_of(other))


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
def test_the_dual_has_the_sets_that_meet_every_quorum(system: System) -> None:
    quorums = quorums_of(system)
    meeting = {each for each in all_sets(NAMES) if all(each & quorum for quorum in quorums)}
    assert quorums_of(dual(system)) == meeting
    assert dual(dual(system)) == system


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


def sets(*words: str) -> set[frozenset[str]]:
    return {frozenset(word) for word in words}


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


@pytest.mark.parametrize(("rows", "width"), [(2, 2), (3, 4), (3, 7), (7, 3), (5, 5), (2, 12), (10, 10)])
def test_a_grid_read_and_written_is_computed_exactly_whatever_its_size(rows: int, width: int) -> None:
    """A row and one of each row. All rows are hit, less those hits without a whole row: a closed form (Cheung 1990)."""
    names = [f"r{at}" for at in range(rows * width)]
    reads = grid([names[at : at + width] for at in range(0, len(names), width)])
    needed = both(reads, dual(reads))
    up = Fraction(9, 10)
    hit, whole = 1 - (1 - up) ** width, up**width
    share = availability(needed, Independent(dict.fromkeys(names, up)))
    assert share == hit**rows - (hit - whole) ** rows
    assert least_size(needed) == width + rows - 1
    assert resilience(needed) == min(width, rows) - 1
    assert disjoint_quorums(reads, dual(reads)) is None
    assert count_of_sets(needed) == rows * width ** (rows - 1)


def test_a_grid_of_twenty_five_agrees_with_drawn_failures() -> None:
    names = [f"r{at}" for at in range(25)]
    reads = grid([names[at : at + 5] for at in range(0, 25, 5)])
    needed = both(reads, dual(reads))
    exact = availability(needed, Independent(dict.fromkeys(names, 0.7)))
    draw = random.Random(5)
    held = sum(is_quorum(needed, {name for name in names if draw.random() < 0.7}) for _ in range(20_000))
    assert abs(held / 20_000 - exact) < 4 * (exact * (1 - exact) / 20_000) ** 0.5


def test_a_system_without_structure_is_refused_before_it_fills_the_memory() -> None:
    """Pairs whose partners stand far apart in the order: each of 25 replicas has to be remembered."""
    pairs = [all_of([f"a{at}", f"b{at}"]) for at in range(25)]
    apart = all_of([any_of([f"a{at}" for at in range(25)]), any_of([f"b{at}" for at in range(25)])])
    with pytest.raises(BadQuorums, match="more than 500000 nodes of a decision diagram"):
        least_size(all_of([apart, any_of(pairs)]))


def test_a_pair_that_misses_is_refused_with_a_quorum_of_each() -> None:
    with pytest.raises(BadQuorums, match=r"reads miss writes: \{a, b\} and \{c, d\} share no replica"):
        check_meets(grid(["ab", "cd"]), grid(["ab", "cd"]), "reads miss writes")
    check_meets(grid(["ab", "cd"]), dual(grid(["ab", "cd"])))


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
