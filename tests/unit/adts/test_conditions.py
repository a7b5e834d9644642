"""When arguments matter, and by which of them objects fall apart."""

from typing import Any

import pytest

from quorate.adts.dependency import dependencies
from quorate.adts.specification import (
    Event,
    SerialSpecification,
)
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.brute_force import (
    instances,
)
from tests.unit.adts.relations import SHORT, Drawn, relation_of, short_relation_of


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
