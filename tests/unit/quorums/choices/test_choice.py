"""Quorum choices: what the lecture's tables allow can be built, and one vote less cannot."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Kind, Specification
from quorate.adts.types.catalogue import known_types
from quorate.adts.types.dictionary import Dictionary
from quorate.adts.types.queue import Queue
from quorate.adts.types.register import Register
from quorate.quorums.choices.choice import BadChoice, Ordering, QuorumChoice, Sizes
from quorate.quorums.systems.tally import Quorum, VoteCount

Classes = dict[str, tuple[int, int]]
Row = tuple[Specification, int, Ordering, Classes]


def equal(number: int) -> dict[str, int]:
    return {f"r{each}": 1 for each in range(1, number + 1)}


def votes_needed(quorum: Quorum) -> int:
    assert isinstance(quorum, VoteCount)
    return quorum.needed


def queue_row(enq: int, deq: tuple[int, int], empty: int) -> Classes:
    return {"Enq/Ok": (0, enq), "Deq/Ok": deq, "Deq/Empty": (empty, 0)}


def register_row(read: int, write: tuple[int, int]) -> Classes:
    """The lecture's register has no compare-and-set: here it is written where writes are."""
    return {"Read/Ok": (read, 0), "Write/Ok": write, "Cas/Ok": (max(read, 6 - write[1]), write[1])}


# DESIGN section 8: replicas, ordering, the classes that the table gives.
TABLES: list[Row] = [
    *((Register(), 5, "quorum", register_row(n, (n, 6 - n))) for n in (1, 2, 3)),
    *((Register(), 5, "clock", register_row(n, (0, 6 - n))) for n in (1, 2, 3, 4, 5)),
    *((Queue(), 3, "clock", queue_row(n, (4 - n, n), 4 - n)) for n in (1, 2, 3)),
    *((Queue(), 5, "clock", queue_row(n, (6 - n, n), 6 - n)) for n in (1, 2, 3)),
    (Queue(), 5, "quorum", {"Enq/Ok": (3, 3), "Deq/Ok": (3, 3), "Deq/Empty": (3, 0)}),
]
LESS = [
    (row, name, place)
    for row in TABLES
    for name, sizes in row[3].items()
    for place in (0, 1)
    if sizes[place] > 0 and name != "Cas/Ok"
]


def shown(part: object) -> str:
    """A test id that is the same in every process."""
    return f"{part[0].name}-{part[1:]}" if isinstance(part, tuple) else str(part)


@pytest.mark.parametrize("row", TABLES, ids=shown)
def test_every_choice_of_the_lecture_can_be_built(
    row: Row,
) -> None:
    specification, replicas, ordering, classes = row
    choice = QuorumChoice(specification, equal(replicas), classes, ordering=ordering)
    assert {name: tuple(choice.sizes(name)) for name in classes} == classes


@pytest.mark.parametrize(("row", "name", "place"), LESS, ids=shown)
def test_every_choice_of_the_lecture_is_minimal(row: Row, name: str, place: int) -> None:
    specification, replicas, ordering, classes = row
    initial, final = classes[name]
    less = classes | {name: (initial - 1, final) if place == 0 else (initial, final - 1)}
    with pytest.raises(BadChoice):
        QuorumChoice(specification, equal(replicas), less, ordering=ordering)


def test_the_error_names_the_pair_and_the_sizes() -> None:
    with pytest.raises(
        BadChoice,
        match=r"Deq/Ok does not meet Enq/Ok: initial quorum 2 \+ final quorum 1 must exceed the 3 votes",
    ):
        QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 1), "Deq/Ok": (2, 2)})


def test_classes_left_out_get_majorities_and_the_least_that_meets_them() -> None:
    assert QuorumChoice(Queue(), equal(5)).classes == {
        "Enq/Ok": Sizes(0, 3),
        "Deq/Ok": Sizes(3, 3),
        "Deq/Empty": Sizes(3, 0),
        "Peek/Ok": Sizes(3, 0),
        "Peek/Empty": Sizes(3, 0),
        "Size/Ok": Sizes(3, 0),
    }


def test_initials_left_out_follow_the_finals_given() -> None:
    choice = QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)})
    assert choice.sizes("Deq/Empty") == (1, 0)
    assert choice.sizes("Size/Ok") == (1, 0)


def test_outcomes_left_out_read_what_any_outcome_of_their_operation_needs() -> None:
    """Deq/Empty depends on Enq alone, PutIfAbsent/Present not even on Put; but nobody knows the outcome before reading."""
    queue = QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 3), "Deq/Ok": (2, 2)})
    assert queue.sizes("Deq/Empty") == (2, 0)
    dictionary = QuorumChoice(Dictionary(), equal(3), {"Put/Ok": (0, 1), "Delete/Ok": (0, 3)})
    assert dictionary.sizes("PutIfAbsent/Ok") == (3, 2)
    assert dictionary.sizes("PutIfAbsent/Present") == (3, 0)
    assert dictionary.sizes("Get/Ok") == (3, 0)


def test_a_dequeue_reads_for_its_most_demanding_outcome() -> None:
    choice = QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
    assert votes_needed(choice.initial_of("Deq")) == 3
    smaller = QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 3), "Deq/Ok": (2, 2), "Deq/Empty": (1, 0)})
    assert votes_needed(smaller.initial_of("Deq")) == 2
    assert votes_needed(smaller.initial_of_kind(Kind.DECIDE)) == 2
    assert votes_needed(smaller.final_of_kind(Kind.BLIND)) == 3
    assert votes_needed(smaller.final_of_kind(Kind.DECIDE)) == 2


def test_a_quorum_left_out_is_never_larger_than_there_are_votes() -> None:
    """Whoever reads nobody can meet no change, however many store it."""
    with pytest.raises(BadChoice, match=r"Read/Ok does not meet Cas/Ok: initial quorum 0 \+ final quorum 3"):
        QuorumChoice(Register(), equal(3), {"Read/Ok": (0, 0)})


def test_order_by_quorum_needs_blind_operations_that_meet() -> None:
    """Without clocks a second Enq must read above the first: its initial quorum meets the first one's final quorum."""
    with pytest.raises(BadChoice, match="Enq/Ok does not meet Deq/Ok"):
        QuorumChoice(Queue(), equal(3), {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, ordering="quorum")
    choice = QuorumChoice(Queue(), equal(3), ordering="quorum")
    assert choice.sizes("Enq/Ok") == (2, 2)


@pytest.mark.parametrize(
    ("votes", "classes", "sentence"),
    [
        ({"r1": 0}, {}, "no votes at all"),
        ({}, {}, "no votes at all"),
        ({"r1": 1}, {"Push/Ok": (0, 1)}, "no event class 'Push/Ok': use Enq/Ok"),
        ({"r1": 1}, {"Enq/Ok": (0, 2)}, r"Enq/Ok \[0, 2\]: a quorum has 0 to 1 votes here"),
        ({"r1": 1}, {"Enq/Ok": (-1, 1)}, "0 to 1 votes"),
        ({"r1": 1}, {"Enq/Ok": (0, 0)}, "must have at least 1 vote"),
    ],
)
def test_a_choice_that_fits_nothing_is_refused_with_a_reason(
    votes: dict[str, int], classes: Classes, sentence: str
) -> None:
    with pytest.raises(BadChoice, match=sentence):
        QuorumChoice(Queue(), votes, classes)


def sets_of(votes: dict[str, int], least: int) -> list[frozenset[str]]:
    """All sets of replicas with at least so many votes."""
    everyone = sorted(votes)
    sets = (frozenset(some) for size in range(len(everyone) + 1) for some in combinations(everyone, size))
    return [some for some in sets if VoteCount(votes, least).is_met_by(some)]


@given(
    st.sampled_from(list(known_types().values())),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.sampled_from(["clock", "quorum"]),
    st.data(),
)
def test_what_can_be_built_meets_and_what_cannot_has_no_vote_to_spare(
    specification: Specification, weights: list[int], ordering: Ordering, data: st.DataObject
) -> None:
    """By listing all sets: in a choice that stands, quorums of dependent classes share a replica, whatever the votes.
    Where each replica has one vote, a choice that is refused has dependent quorums that share none.
    """
    votes = {f"r{number}": weight for number, weight in enumerate(weights)}
    total = sum(weights)
    size = st.integers(0, total)
    given_classes = data.draw(
        st.fixed_dictionaries({}, optional={name: st.tuples(size, size) for name in specification.depends})
    )
    try:
        choice = QuorumChoice(specification, votes, given_classes, ordering=ordering)
    except BadChoice as error:
        if "does not meet" not in str(error) or set(weights) != {1}:
            return
        name, other = str(error).split(":")[0].split(" does not meet ")
        with_defaults = QuorumChoice(specification, votes, ordering=ordering).classes
        final = given_classes.get(other, with_defaults[other])[1]
        initial = given_classes[name][0]
        assert any(not one & two for one, two in product(sets_of(votes, initial), sets_of(votes, final)))
        return
    for name, others in specification.depends.items():
        for other in others:
            initials, finals = (
                sets_of(votes, choice.sizes(name).initial),
                sets_of(votes, choice.sizes(other).final),
            )
            assert all(one & two for one, two in product(initials, finals))


def test_with_eventual_consistency_what_observes_reads_anyone_and_all_else_as_before() -> None:
    atomic = QuorumChoice(Queue(), equal(5), {"Enq/Ok": (0, 1)})
    eventual = QuorumChoice(Queue(), equal(5), {"Enq/Ok": (0, 1)}, consistency="eventual")
    assert eventual.is_weak
    assert not atomic.is_weak
    observing = {"Peek/Ok", "Peek/Empty", "Size/Ok"}
    assert {name: eventual.sizes(name) for name in observing} == dict.fromkeys(observing, Sizes(1, 0))
    others = atomic.classes.keys() - observing
    assert {name: eventual.sizes(name) for name in others} == {name: atomic.sizes(name) for name in others}
    assert votes_needed(eventual.anyone) == 1


def test_with_eventual_consistency_an_observer_may_read_more_but_not_nobody() -> None:
    choice = QuorumChoice(Register(), equal(5), {"Read/Ok": (2, 0)}, consistency="eventual")
    assert choice.sizes("Read/Ok") == (2, 0)
    assert choice.sizes("Write/Ok") == (0, 3), "no write need meet it"
    with pytest.raises(BadChoice, match=r"Read/Ok \[0, 0\] reads nobody"):
        QuorumChoice(Register(), equal(3), {"Read/Ok": (0, 0)}, consistency="eventual")
