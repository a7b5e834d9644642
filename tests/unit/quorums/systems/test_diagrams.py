"""Decision diagrams: the quorums that they lead to, grids, and how far they go."""

import random
from fractions import Fraction

import pytest
from hypothesis import given

from quorate.quorums.choices.minimal import (
    count_of_sets,
    disjoint_quorums,
    least_size,
    resilience,
)
from quorate.quorums.systems.diagrams import Diagram, diagram
from quorate.quorums.systems.failures import Independent, availability
from quorate.quorums.systems.systems import (
    BadQuorums,
    System,
    all_of,
    any_of,
    both,
    dual,
    grid,
    is_quorum,
)
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, all_sets, quorums_of


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
