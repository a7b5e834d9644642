"""The computed dependency relations: equal to the declared tables, to those of a brute-force search, and enough.

p depends on q when inserting q can make p illegal: h1·h2·p and h1·q·h2 are legal, h1·q·h2·p is not (DESIGN section 8).
"""

from typing import Any

import pytest

from quorate.adts.dependency import Bound, TooLarge, dependencies
from quorate.adts.specification import (
    Invocation,
    Response,
)
from quorate.adts.types.bounded_counter import BoundedCounter
from quorate.adts.types.catalogue import SPECIFICATIONS, known_types
from quorate.adts.types.queue import Queue
from tests.unit.adts.brute_force import (
    Narrowed,
    instances,
    is_legal,
    least_lengths,
    legal_histories,
    wrong_answer,
)
from tests.unit.adts.relations import SHORT, Drawn, relation_of, short_relation_of


@pytest.mark.parametrize("adt", known_types())
def test_the_declared_table_is_the_computed_one(adt: str) -> None:
    specification, relation = known_types()[adt], relation_of(adt)
    assert dict(specification.depends) == dict(relation.table)
    assert specification.changes == relation.changes
    assert dict(specification.kinds) == dict(relation.kinds)
    assert set(specification.arguments) == set(specification.kinds)
    assert set(specification.results) <= set(relation.classes)


def test_the_calculus_knows_what_the_service_offers_and_what_the_issue_lists() -> None:
    further = ["file", "directory", "counter", "bounded-counter", "account", "set"]
    further += ["stack", "priority-queue", "semiqueue", "eventual-queue"]
    assert list(known_types()) == [*SPECIFICATIONS, *further]
    assert all(name == specification.name for name, specification in known_types().items())


@pytest.mark.parametrize("adt", known_types())
def test_every_witness_is_one_and_none_needs_more_than_three_events(adt: str) -> None:
    specification, relation = known_types()[adt], relation_of(adt)
    for pair, (h1, q, h2, p) in relation.pairs.items():
        assert (p.event_class, q.event_class) == pair
        assert is_legal(specification, (*h1, *h2, p))
        assert is_legal(specification, (*h1, q, *h2))
        assert not is_legal(specification, (*h1, q, *h2, p))
        assert len(h1) + 1 + len(h2) <= 3


@pytest.mark.parametrize("adt", SHORT)
def test_brute_force_finds_the_same_pairs_at_the_same_lengths(adt: str) -> None:
    specification, events_max = SHORT[adt]
    found = least_lengths(instances(specification, events_max))
    assert found == {
        pair: len(witness.h1) + 1 + len(witness.h2) for pair, witness in short_relation_of(adt).pairs.items()
    }
    for shorter in range(1, events_max):
        relation = dependencies(specification, Bound(shorter))
        assert set(relation.pairs) == {pair for pair, length in found.items() if length <= shorter}


@pytest.mark.parametrize("adt", SHORT)
def test_quorums_that_follow_the_table_make_every_answer_right(adt: str) -> None:
    """Herlihy's theorem, on all short histories: who saw what a response depends on, and what that depends on, answers
    right."""
    specification, events_max = SHORT[adt]
    assert wrong_answer(specification, relation_of(adt.partition(" ")[0]).table, events_max) is None


@pytest.mark.parametrize("adt", SHORT)
def test_no_pair_of_a_table_can_be_left_out(adt: str) -> None:
    specification, events_max = SHORT[adt]
    relation = short_relation_of(adt)
    for p, q in relation.pairs:
        less = dict(relation.table) | {p: relation.table[p] - {q}}
        assert wrong_answer(specification, less, events_max) is not None, (p, q)


@pytest.mark.parametrize(
    ("adt", "length", "arguments"),
    [
        ("set", 3, {}),
        ("directory", 3, {"value": ("a",)}),
        ("dictionary", 2, {"value": ("a",), "old": (None, "a"), "new": (None, "b")}),
    ],
    ids=["set", "directory", "dictionary"],
)
def test_what_may_follow_a_history_is_what_may_follow_its_part(
    adt: str, length: int, arguments: dict[str, tuple[Any, ...]]
) -> None:
    """So that each key or element may be an object of its own, with a log of its own."""
    parts = Narrowed(known_types()[adt], relation_of(adt).split, **arguments)
    possible = {event for history in legal_histories(parts, length) for event in history}
    for history in legal_histories(parts, length):
        for event in possible:
            part = tuple(each for each in history if each.invocation.args[0] == event.invocation.args[0])
            assert is_legal(parts, (*history, event)) == is_legal(parts, (*part, event))


FINITE = {"register", "dictionary", "file", "directory", "bounded-counter", "set"}


def test_a_search_says_whether_it_saw_all() -> None:
    assert {name for name in known_types() if relation_of(name).complete} == FINITE
    assert not dependencies(known_types()["directory"], Bound(2)).complete


def test_a_complete_search_found_what_a_much_longer_one_finds() -> None:
    for name in sorted(FINITE):
        longer, found = dependencies(known_types()[name], Bound(12)), relation_of(name)
        assert (longer.pairs, longer.conditions) == (found.pairs, found.conditions)


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_the_limit_of_a_bounded_counter_does_not_matter(limit: int) -> None:
    assert dependencies(BoundedCounter(limit), Bound(12)).table == BoundedCounter.depends


def test_a_bounded_counter_has_room_for_one_at_least() -> None:
    with pytest.raises(ValueError, match="limit of a bounded counter is 0: it must be at least 1"):
        BoundedCounter(0)


def test_a_witness_is_a_history_on_one_line() -> None:
    pairs = relation_of("queue").pairs
    assert str(pairs["Deq/Ok", "Deq/Ok"]) == "[Enq(a); Ok()] +[Deq(); Ok(a)] ![Deq(); Ok(a)]"
    assert str(pairs["Deq/Ok", "Enq/Ok"]) == "+[Enq(a); Ok()] [Enq(b); Ok()] ![Deq(); Ok(b)]"
    items = relation_of("dictionary").pairs["Items/Ok", "Delete/Ok"]
    assert str(items) == "[Put(j, a); Ok()] +[Delete(j); Ok()] ![Items(); Ok({(j, a)})]"


MORE = {
    "item": ("a", "b", "c"),
    "value": ("a", "b", "c"),
    "key": ("j", "k", "l"),
    "element": ("a", "b", "c"),
    "old": (None, "a", "b", "c"),
    "new": (None, "a", "b", "c"),
    "amount": (1, 2, 3, 5),
}


@pytest.mark.parametrize("adt", known_types())
def test_more_arguments_change_nothing(adt: str) -> None:
    """The samples are enough: three of each find the same pairs and conditions as two."""
    specification, relation = known_types()[adt], relation_of(adt)
    more = MORE | {"item": (1, 2, 3, 4, 5)} if adt == "priority-queue" else MORE
    wide = dependencies(Narrowed(specification, None, **more), Bound(5))
    assert (wide.table, wide.conditions) == (relation.table, relation.conditions)
    assert (wide.split_by, wide.split) == (relation.split_by, relation.split)


class WaitingQueue:
    """A queue whose Deq waits for an item: with none it has no outcome."""

    name = "waiting-queue"
    arguments = Queue.arguments
    results = Queue.results

    def initial(self) -> tuple[Any, ...]:
        return ()

    def step(self, state: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[Any, ...], Response]:
        return Queue().step(state, invocation)

    def outcomes(
        self, state: tuple[Any, ...], invocation: Invocation
    ) -> list[tuple[tuple[Any, ...], Response]]:
        after, response = self.step(state, invocation)
        return [(after, response)] if response.condition == "Ok" else []


def test_a_relation_that_is_enough_need_not_be_the_only_one() -> None:
    """For a queue that waits, Enq may depend on Enq in place of Deq on Enq: neither relation contains the other."""
    waiting = Narrowed(WaitingQueue(), ("Enq", "Deq"))
    computed = dependencies(waiting).table
    assert computed == {"Enq/Ok": frozenset(), "Deq/Ok": {"Enq/Ok", "Deq/Ok"}}
    other = {"Enq/Ok": frozenset({"Enq/Ok"}), "Deq/Ok": frozenset({"Deq/Ok"})}
    neither = {"Enq/Ok": frozenset[str](), "Deq/Ok": frozenset({"Deq/Ok"})}
    assert wrong_answer(waiting, computed, 5) is None
    assert wrong_answer(waiting, other, 5) is None
    assert wrong_answer(waiting, neither, 5) is not None


class Coin:
    """A coin that is thrown unseen, and looked at: after Throw it lies on either side, and only Look tells on which.

    Its state does not follow from its history, so that legality is a matter of sets of states.
    """

    name = "coin"
    arguments: dict[str, dict[str, tuple[Any, ...]]] = {"Throw": {}, "Look": {}}  # noqa: RUF012 - a test's constant
    results: dict[str, tuple[str, ...]] = {"Look/Ok": ("side",)}  # noqa: RUF012

    def initial(self) -> str:
        return "heads"

    def step(self, state: str, invocation: Invocation) -> tuple[str, Response]:
        return self.outcomes(state, invocation)[0]

    def outcomes(self, state: str, invocation: Invocation) -> list[tuple[str, Response]]:
        if invocation.operation == "Throw":
            return [("heads", Response("Ok")), ("tails", Response("Ok"))]
        return [(state, Response("Ok", (state,)))]


def test_what_a_history_leaves_open_is_searched_as_a_set_of_states() -> None:
    """A Throw makes no answer wrong. A Look does: it settles what was open, and is an event that others must see."""
    relation = dependencies(Coin(), Bound(5))
    assert relation.complete
    assert set(relation.pairs) == {("Look/Ok", "Look/Ok")}
    assert str(relation.pairs["Look/Ok", "Look/Ok"]) == (
        "[Throw(); Ok()] +[Look(); Ok(heads)] ![Look(); Ok(tails)]"
    )
    assert relation.changes == {"Throw/Ok", "Look/Ok"}
    assert least_lengths(instances(Coin(), 4)) == {("Look/Ok", "Look/Ok"): 2}


def test_a_search_is_bounded() -> None:
    with pytest.raises(TooLarge, match="'queue' looks at more than 10 pairs of positions: declare fewer"):
        dependencies(known_types()["queue"], Bound(6, nodes_max=10))
    with pytest.raises(ValueError, match="events_max is 0"):
        dependencies(known_types()["queue"], Bound(0))


def test_a_long_way_to_a_witness_is_told_in_order_and_a_search_that_ends_before_it_is_not_complete() -> None:
    """Stairs that say where one stands: no event of h2 is legal with and without another step."""
    stairs = Drawn(
        "0",
        {"Step": ()},
        {("0", "Step"): ("1", "First"), ("1", "Step"): ("2", "Second"), ("2", "Step"): ("3", "Third")},
    )
    short, long = dependencies(stairs, Bound(2)), dependencies(stairs, Bound(4))
    assert (short.complete, long.complete) == (False, True)
    assert set(long.pairs) - set(short.pairs) == {("Step/Third", "Step/Third")}
    assert str(long.pairs["Step/Third", "Step/Third"]) == (
        "[Step(); First()] [Step(); Second()] +[Step(); Third()] ![Step(); Third()]"
    )
