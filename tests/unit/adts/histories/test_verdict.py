"""Objects and parts are judged alone where they may be."""

import random
from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from quorate.adts.dependency import Bound, dependencies
from quorate.adts.histories import verdict
from quorate.adts.histories.calls import Call
from quorate.adts.histories.orders import Model
from quorate.adts.histories.verdict import Typed, verdicts
from quorate.adts.own import Computed
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.histories.every_order import in_some_order, random_calls

HISTORIES = 250


def typed(adt: str) -> Typed:
    specification = known_types()[adt]
    return Typed(specification, dependencies(specification).split_by)


@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize(
    "objects", [("dictionary",), ("set",), ("register", "queue"), ("dictionary", "counter")]
)
def test_the_verdict_is_that_of_every_order(objects: tuple[str, ...], model: Model) -> None:
    types = {adt: typed(adt) for adt in objects}
    specifications = {name: each.specification for name, each in types.items()}
    both = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = random_calls(specifications, random.Random(seed), 5)
        expected = in_some_order(specifications, calls, model)
        found = list(verdicts(types, calls, model))
        assert all(each.found is not None and each.found.is_right for each in found) == expected, (
            f"seed {seed}"
        )
        both[expected] += 1
    assert model is Model.SERIALIZABLE or min(both.values()) >= 3, both


def put(key: str, value: str, invoked: int) -> Call:
    return Call("p", "d", Invocation("Put", (key, value)), invoked, invoked + 1, (Response("Ok"),))


def get(key: str, value: str, invoked: int) -> Call:
    return Call("p", "d", Invocation("Get", (key,)), invoked, invoked + 1, (Response("Ok", (value,)),))


def test_each_key_is_judged_alone_and_the_wrong_one_is_named() -> None:
    calls = [put("j", "a", 1), put("k", "b", 3), get("j", "a", 5), get("k", "z", 7)]
    found = list(verdicts({"d": typed("dictionary")}, calls, Model.LINEARIZABLE))
    assert [(each.part, each.calls, each.found is not None and each.found.is_right) for each in found] == [
        ("j", 2, True),
        ("k", 2, False),
    ]


def test_who_looks_at_all_keys_is_judged_with_all() -> None:
    items = frozenset({("j", "a")})
    look = Call("p", "d", Invocation("Items"), 5, 6, (Response("Ok", (items,)),))
    calls = [put("j", "a", 1), put("k", "b", 3), look]
    *parts, whole = verdicts({"d": typed("dictionary")}, calls, Model.LINEARIZABLE)
    assert all(each.found is not None and each.found.is_right for each in parts)
    assert (whole.part, whole.calls) == (None, 3)
    assert whole.found is not None
    assert not whole.found.is_right


def test_a_search_that_is_given_up_is_no_verdict() -> None:
    (found,) = verdicts({"d": typed("register")}, _crossing(8), Model.LINEARIZABLE, visits_max=5)
    assert found.found is None


def _crossing(writes: int) -> list[Call]:
    calls = [
        Call("p", "d", Invocation("Write", (f"v{number}",)), number, 100, (Response("Ok"),))
        for number in range(writes)
    ]
    return [*calls, Call("p", "d", Invocation("Read"), 200, 201, (Response("Ok", ("v",)),))]


class Late:
    """A counter that Clear sets to 0 from 2 on: a search of one event does not learn that it changes anything."""

    name = "late"
    arguments: Mapping[str, Mapping[str, tuple[Any, ...]]] = {"Add": {}, "Clear": {}, "Count": {}}
    results: Mapping[str, tuple[str, ...]] = {"Count/Ok": ("count",)}

    def initial(self) -> Hashable:
        return 0

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        match invocation.operation:
            case "Add":
                return state + 1, Response("Ok")
            case "Clear":
                return (0 if state >= 2 else state), Response("Ok")
        return state, Response("Ok", (state,))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_verdict_does_not_rest_on_how_far_dependencies_were_searched(count: int) -> None:
    """Where Clear is taken for a call that changes nothing, it is placed first, and no order with it last is tried."""
    late = Computed(Late(), Bound(events_max=1))
    assert late.changes == {"Add/Ok"}

    def call(operation: str, invoked: int, returned: int, *results: int) -> Call:
        return Call("p", "x", Invocation(operation), invoked, returned, (Response("Ok", results),))

    calls = [call("Add", 1, 2), call("Add", 3, 4), call("Clear", 0, 10), call("Count", 11, 12, count)]
    (verdict,) = verdicts({"x": Typed(late)}, calls, Model.LINEARIZABLE)
    assert verdict.found is not None
    assert verdict.found.is_right == (count != 1)
    calls[2] = call("Clear", 5, 6)
    (verdict,) = verdicts({"x": Typed(late)}, calls, Model.LINEARIZABLE)
    assert verdict.found is not None
    assert verdict.found.is_right == (count == 0), "it does change something there"


def test_what_takes_long_is_given_up_where_something_is_wrong_and_else_searched_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdict, "FIRST_VISITS", 3)
    long = [put("j", value, 1)._replace(returned=9) for value in "abcd"]
    long += [get("j", value, 10 + at) for at, value in enumerate("a")]
    long = [each._replace(object="long") for each in long]
    types = {name: typed("dictionary") for name in ("long", "d")}
    [alone] = verdicts({"long": types["long"]}, long, Model.LINEARIZABLE)
    assert alone.is_right
    assert alone.found is not None
    assert alone.found.visits > 3
    beside = list(verdicts(types, [*long, get("k", "z", 1)], Model.LINEARIZABLE))
    assert [(each.objects, each.found is None, each.is_wrong) for each in beside] == [
        (("long",), True, False),
        (("d",), False, True),
    ]
