"""The computed dependency relations: equal to the declared tables, to those of a brute-force search, and enough.

p depends on q when inserting q can make p illegal: h1·h2·p and h1·q·h2 are legal, h1·q·h2·p is not (DESIGN section 8).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from quorate.adts.dependency import Bound, Relation, TooLarge, dependencies
from quorate.adts.own import Computed
from quorate.adts.specification import (
    Event,
    Invocation,
    Response,
    SerialSpecification,
    Specification,
    outcomes_of,
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
    next_events,
    short_lists,
    wrong_answer,
)

SHORT = short_lists()


@cache
def relation_of(adt: str) -> Relation:
    return dependencies(known_types()[adt])


@cache
def short_relation_of(adt: str) -> Relation:
    specification, events_max = SHORT[adt]
    return dependencies(specification, Bound(events_max))


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
    further += ["stack", "priority-queue", "semiqueue"]
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


def fields(specification: SerialSpecification, event: Event, prime: str = "") -> dict[str, Any]:
    """Arguments and results by name, slowly."""
    names = [
        *specification.arguments[event.invocation.operation],
        *specification.results.get(event.event_class, ()),
    ]
    values = [*event.invocation.args, *event.response.results]
    return dict(zip([name + prime for name in names], values, strict=True))


@pytest.mark.parametrize("adt", SHORT)
def test_conditions_hold_in_every_instance_and_equal_keys_are_not_overlooked(adt: str) -> None:
    specification, events_max = SHORT[adt]
    relation = short_relation_of(adt)
    may_be_unequal = dict.fromkeys(relation.pairs, False)
    for _, q, _, p in instances(specification, events_max):
        pair = p.event_class, q.event_class
        values = {"null": None} | fields(specification, p) | fields(specification, q, "'")
        for left, comparison, right in relation.conditions[pair]:
            one, other = values[left], values[right]
            assert one == other if comparison == "=" else one != other
            assert comparison in "=≠" or (one < other) == (comparison == "<")
        may_be_unequal[pair] |= "key" not in values or "key'" not in values or values["key"] != values["key'"]
    for pair, unequal in may_be_unequal.items():
        if adt.endswith("of two keys"):
            assert ("key = key'" in map(str, relation.conditions[pair])) != unequal


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


CONDITIONS = {
    ("queue", "Deq/Ok", "Enq/Ok"): ["item ≠ item'"],
    ("queue", "Deq/Ok", "Deq/Ok"): ["item = item'"],
    ("priority-queue", "Deq/Ok", "Enq/Ok"): ["item > item'"],
    ("semiqueue", "Deq/Ok", "Deq/Ok"): ["item = item'"],
    ("dictionary", "Get/Ok", "Put/Ok"): ["key = key'", "value ≠ value'"],
    ("dictionary", "PutIfAbsent/Present", "Cas/Ok"): ["new' = null", "key = key'"],
    ("dictionary", "Size/Ok", "Put/Ok"): [],
    ("set", "Member/True", "Remove/Ok"): ["element = element'"],
    ("register", "Cas/Ok", "Write/Ok"): ["old ≠ value'"],
    ("account", "Debit/Ok", "Debit/Ok"): [],
}


@pytest.mark.parametrize(("adt", "p", "q"), CONDITIONS, ids=str)
def test_it_is_recognised_when_arguments_matter(adt: str, p: str, q: str) -> None:
    assert list(map(str, relation_of(adt).conditions[p, q])) == CONDITIONS[adt, p, q]


SPLIT = {
    "dictionary": ("key", ("Put", "Delete", "Get", "PutIfAbsent", "Cas")),
    "directory": ("key", ("Put", "Insert", "Update", "Delete", "Lookup")),
    "set": ("element", ("Insert", "Remove", "Member")),
}


@pytest.mark.parametrize("adt", known_types())
def test_objects_that_fall_apart_are_recognised(adt: str) -> None:
    relation = relation_of(adt)
    assert (relation.split_by, relation.split) == SPLIT.get(adt, (None, ()))


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
    parts = Narrowed(known_types()[adt], SPLIT[adt][1], **arguments)
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


@pytest.mark.parametrize("adt", known_types())
def test_a_type_of_ones_own_is_completed_by_the_search(adt: str) -> None:
    declared = known_types()[adt]
    own: Specification = Computed(Narrowed(declared))
    assert (own.name, own.kinds, own.changes) == (adt, declared.kinds, declared.changes)
    assert own.depends == declared.depends
    for history in legal_histories(declared, 1):
        assert next_events(own, history) == next_events(declared, history)


def test_a_type_of_ones_own_may_answer_in_several_ways() -> None:
    own = Computed(Narrowed(known_types()["semiqueue"]))
    assert list(outcomes_of(own, ("a", "b"), Invocation("Deq"))) == [
        (("b",), Response("Ok", ("a",))),
        (("a",), Response("Ok", ("b",))),
    ]


class Drawn:
    """A type drawn as its answers: `answers[state, operation]` is the state after it, and the term. No answer: it waits."""

    name = "drawn"
    results: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - a test's constant

    def __init__(self, start: str, arguments: Mapping[str, tuple[str, ...]], answers: dict[Any, Any]) -> None:
        self.arguments = {name: {"x": values} if values else {} for name, values in arguments.items()}
        self._start = start
        self._answers = answers

    def initial(self) -> str:
        return self._start

    def step(self, state: str, invocation: Invocation) -> tuple[str, Response]:
        return self.outcomes(state, invocation)[0]

    def outcomes(self, state: str, invocation: Invocation) -> list[tuple[str, Response]]:
        found = self._answers.get((state, invocation.operation, *invocation.args))
        return [] if found is None else [(found[0], Response(found[1]))]


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


def test_objects_do_not_fall_apart_where_an_operation_changes_all_parts() -> None:
    """Two lamps with one main switch."""
    lit = {"": "", "a": "a", "b": "b", "ab": "ab"}
    on = {(state, "On", x): ("".join(sorted({*state, x})), "Ok") for state in lit for x in "ab"}
    look = {(state, "Look", x): (state, str(x in state)) for state in lit for x in "ab"}
    off = {(state, "AllOff"): ("", "Ok") for state in lit}
    lamps = {"On": ("a", "b"), "Look": ("a", "b")}
    assert dependencies(Drawn("", lamps, on | look)).split == ("On", "Look")
    whole = dependencies(Drawn("", lamps | {"AllOff": ()}, on | look | off))
    assert (whole.split_by, whole.split) == (None, ())
    assert list(map(str, whole.conditions["Look/False", "On/Ok"])) == ["x = x'"]


def test_objects_do_not_fall_apart_where_one_part_takes_the_place_of_another() -> None:
    """A locker for one thing: whether it is full depends on things of any name."""
    put = {("", "Put", x): (x, "Ok") for x in "ab"} | {(y, "Put", x): (y, "Full") for x in "ab" for y in "ab"}
    has = {(state, "Has", x): (state, str(x == state)) for state in ("", "a", "b") for x in "ab"}
    locker = dependencies(Drawn("", {"Put": ("a", "b"), "Has": ("a", "b")}, put | has))
    assert list(map(str, locker.conditions["Has/False", "Put/Ok"])) == ["x = x'"]
    assert locker.conditions["Put/Ok", "Put/Ok"] == ()
    assert (locker.split_by, locker.split) == (None, ())
