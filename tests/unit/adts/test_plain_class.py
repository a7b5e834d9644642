"""Plain classes as data types: states, outcomes, values to try, and what is refused with the remedy."""

import asyncio
import json
import random
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, Final, Literal, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.collector import COLLECTOR
from quorate.adts.dependency import Bound, TooLarge, dependencies
from quorate.adts.own import Computed
from quorate.adts.plain_class import BadClass, Json, PlainClass, call_in, call_text, is_plain
from quorate.adts.specification import Invocation, Kind, Response
from quorate.adts.types.stack import Stack
from tests.support.calls import calls
from tests.support.own_types import Odd


class NotThere(Exception):
    pass


class Shelf:
    def put(self) -> None:
        """Inherited operations are operations."""


class Cart(Shelf):
    examples: ClassVar[Any] = {"count": (1, 3)}
    limit = 9
    """No operation, and no state: a constant."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, item: str, count: int = 1) -> None:
        self.items[item] = self.items.get(item, 0) + count

    def remove(self, item: str) -> int:
        self.items["half"] = 1
        if item not in self.items:
            raise NotThere
        return self.items.pop(item)

    def content(self) -> dict[str, int]:
        return self.items

    def _unseen(self) -> None:
        """No operation."""


def after(found: PlainClass, *invocations: Invocation) -> tuple[Any, Response]:
    state, response = found.initial(), Response("")
    for each in invocations:
        state, response = found.step(state, each)
    return state, response


def test_attributes_are_the_state_and_methods_the_operations() -> None:
    cart = PlainClass(Cart)
    assert cart.name == "Cart"
    assert cart.arguments == {
        "put": {},
        "add": {"item": ("a", "b"), "count": (1, 3)},
        "remove": {"item": ("a", "b")},
        "content": {},
    }
    assert cart.results == {"remove/Ok": ("result",), "content/Ok": ("result",)}
    assert cart.initial() == '{"items":{}}'
    assert after(cart, Invocation("add", ("b", 2)), Invocation("add", ("a", 1))) == (
        '{"items":{"a":1,"b":2}}',
        Response("Ok"),
    )
    assert after(cart, Invocation("add", ("b", 2)), Invocation("content"))[1] == Response(
        "Ok", (Json('{"b":2}'),)
    )


def test_an_exception_of_ones_own_is_an_outcome_and_changes_nothing() -> None:
    cart = PlainClass(Cart)
    assert after(cart, Invocation("remove", ("a",))) == ('{"items":{}}', Response("NotThere"))
    assert Computed(cart).kinds == {
        "put": Kind.OBSERVE,
        "add": Kind.BLIND,
        "remove": Kind.DECIDE,
        "content": Kind.OBSERVE,
    }


class Kept:
    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def keep(self, row: list[int]) -> None:
        self.rows.append(row)
        row.append(9)

    examples: ClassVar[Any] = {"row": ([], [1])}


def test_arguments_belong_to_one_step_alone() -> None:
    kept = PlainClass(Kept)
    (call,) = [Invocation("keep", (each,)) for each in kept.arguments["keep"]["row"][1:]]
    assert after(kept, call, call)[0] == '{"rows":[[1,9],[1,9]]}'


class Hinted:
    def choose(
        self, way: Literal["up", "down"], often: int | None, exact: bool, share: float, given: str = "x"
    ) -> None:
        """Does nothing."""


def test_values_to_try_come_from_hints_and_defaults() -> None:
    assert PlainClass(Hinted).arguments["choose"] == {
        "way": ("up", "down"),
        "often": (1, 2, None),
        "exact": (False, True),
        "share": (0.5, 1.5),
        "given": ("x", "a", "b"),
    }


def test_a_class_with_step_is_no_plain_one() -> None:
    assert is_plain(Cart)
    assert not is_plain(Stack)
    assert not is_plain(Cart())


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> None:
        self.count += by

    def read(self) -> int:
        return self.count


def test_a_search_of_states_without_end_stops_where_it_may() -> None:
    short = Bound(nodes_max=20)
    with pytest.raises(TooLarge):
        dependencies(PlainClass(Counter), short)
    found = dependencies(PlainClass(Counter), short._replace(events_min=1))
    assert 1 <= found.events_max < 8
    assert not found.complete
    assert list(found.pairs) == [("read/Ok", "add/Ok")]
    with pytest.raises(TooLarge):
        dependencies(PlainClass(Counter), short._replace(events_min=8))


def made(*, attributes: dict[str, Any] | None = None, **methods: Callable[..., Any]) -> type:
    """A class of these methods, whose objects have these attributes."""

    def start(self: Any) -> None:
        vars(self).update(attributes or {})

    return type("Made", (), {"__init__": start, **methods})


def no_hint(self: Any, item) -> None:  # type: ignore[no-untyped-def]
    """What a user forgets."""


def any_number(self: Any, *items: str) -> None:
    """Of no fixed number."""


def hidden_name(self: Any, _item: str) -> None:
    """A name that no form has."""


def unknown_hint(self: Any, item: "Nowhere") -> None:  # type: ignore[name-defined] # noqa: F821
    """A name that is not there."""


async def later(self: Any) -> None:
    """Not at once."""


def several(self: Any) -> Any:
    yield 1


def fine(self: Any) -> None:
    """Nothing wrong."""


def no_promise(self: Any):  # type: ignore[no-untyped-def]
    """Nothing says that it returns nothing."""


class Level(IntEnum):
    HIGH = 1


class Name(str):
    __slots__ = ()


def holds_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (made(), "no public method"),
        (made(op=no_hint), "op(item): nothing is known to try"),
        (made(op=any_number), "of a fixed number"),
        (made(op=hidden_name), "op(_item): an argument's name does not begin with _"),
        (made(op=unknown_hint), "a hint cannot be read: NameError"),
        (made(op=later), "async or yields"),
        (made(op=several), "async or yields"),
        (made(op=fine, attributes={"seen": {1}}), "the attribute seen is {1}, of type set"),
        (made(op=fine, attributes={"pair": (1, 2)}), "so keep a list"),
        (made(op=fine, attributes={"by": [{1: 2}]}), "the attribute by[0] has the key 1"),
        (made(op=fine, attributes={"far": float("inf")}), "the attribute far is inf"),
        (made(op=fine, attributes={"by": defaultdict(list)}), "of type defaultdict"),
        (made(op=fine, attributes={"by": [OrderedDict(a=1)]}), "the attribute by[0] is OrderedDict"),
        (made(op=fine, attributes={"level": Level.HIGH}), "of type Level"),
        (made(op=fine, attributes={"name": Name("a")}), "of type Name"),
        (made(op=fine, attributes={"by": {Name("a"): 1}}), "the attribute by has the key 'a'"),
        (made(op=fine, attributes={"rows": holds_itself()}), "is nested more than 200 deep, or holds itself"),
        (type("Made", (), {"items": [], "op": fine}), "Made.items belongs to the class"),
        (type("Made", (), {"_items": {}, "op": fine}), "Made._items belongs to the class"),
        (type("Made", (), {"__slots__": ("a",), "op": fine}), "leave them out"),
        (type("Made", (), {"__init__": lambda self, size: None, "op": fine}), "made without arguments"),
        (type("Made", (), {"examples": {"size": (1,)}, "op": fine}), "'size', which is no argument"),
        (type("Made", (), {"examples": {"size": 1}, "op": fine}), "no list of values to try"),
        (type("Made", (), {"examples": 1, "op": fine}), "is no dictionary"),
        (type("Made", (), {"examples": {"size": [{1}]}, "op": fine}), "of type set"),
        (type("Made", (), {"blind": ["op"], "op": fine}), "in a tuple, as ('add',)"),
        (
            type("Made", (), {"blind": "op", "op": fine}),
            "Made.blind is 'op': name the blind operations in a tuple, as ('add',)",
        ),
        (
            type("Made", (), {"blind": ("pop",), "op": fine}),
            "Made.blind names 'pop', which is no operation: these are op",
        ),
        (type("Made", (), {"blind": ("op",), "op": no_promise}), "does not say that it returns None"),
    ],
)
def test_a_class_that_is_no_data_type_is_refused_with_the_remedy(found: type, words: str) -> None:
    with pytest.raises(BadClass) as refused:
        PlainClass(found)
    assert words in str(refused.value)


def slip(self: Any) -> None:
    vars(self).pop("b")


def with_words(self: Any) -> None:
    raise NotThere("here")


def as_set(self: Any) -> Any:
    return {1}


def not_nothing(self: Any) -> None:
    return 1  # type: ignore[return-value]


def keep_chance(self: Any) -> None:
    self.seen = random


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (slip, "raised KeyError: 'b': for an outcome, raise an exception that you define"),
        (with_words, "raise it without arguments"),
        (as_set, "its result is {1}, of type set"),
        (not_nothing, "its hint says None"),
        (keep_chance, "the attribute seen is"),
    ],
)
def test_an_operation_that_does_what_none_may_do_is_told_with_its_state(
    method: Callable[..., Any], words: str
) -> None:
    found = PlainClass(made(op=method, attributes={"a": 1}))
    with pytest.raises(BadClass) as refused:
        found.step(found.initial(), Invocation("op"))
    assert str(refused.value).startswith('op() in the state {"a":1}: ')
    assert words in str(refused.value)


def test_an_argument_that_comes_back_as_something_else_is_refused() -> None:
    kept = PlainClass(Kept)
    for row, words in (([Name("a")], "of type Name"), (holds_itself(), "or holds itself")):
        with pytest.raises(BadClass) as refused:
            kept.call("keep", row)
        assert str(refused.value).startswith("keep: the argument row[0]")
        assert words in str(refused.value)


class Full(Exception):
    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left


def refuse(self: Any) -> None:
    raise Full(3)


def test_the_exception_that_ended_a_call_is_raised_again() -> None:
    found = PlainClass(made(op=refuse))
    _, response = found.step(found.initial(), Invocation("op"))
    assert response == Response("Full")
    with pytest.raises(Full):
        found.answer(response)


def wail(self: Any) -> None:
    raise KeyError(Odd())


def test_a_mistake_that_cannot_even_be_told_is_a_mistake_of_the_class() -> None:
    """Of the front end it would end all that runs."""
    found = PlainClass(made(op=wail))
    with pytest.raises(BadClass, match="raised KeyError: something that cannot be shown"):
        found.run(None, Invocation("op"))


MEANT_FOR_OTHERS = (
    asyncio.CancelledError(),
    GeneratorExit(),
    KeyboardInterrupt(),
    SystemExit(3),
    StopIteration(3),
    BaseException("x"),
    BaseExceptionGroup("both", [GeneratorExit(), KeyboardInterrupt()]),
)
"""What asyncio, generators and Python take for more than a mistake."""


def raiser(error: BaseException) -> Callable[..., Any]:
    def act(*_: Any) -> Any:
        raise error

    return act


TOLD = {
    "raise": "op() in the state {}: raised THIS",
    "raise what says nothing": "op() in the state {}: raised Mute: something that cannot be shown",
    "keep": "op() in the state {}: the attribute kept is something that cannot be shown, of type Bad",
    "keep as key": "op() in the state {}: the attribute kept has the key something that cannot be shown",
    "hide": "op(): THIS",
    "give": "op() in the state {}: its result is something that cannot be shown, of type Bad",
    "give for nothing": "op() in the state {}: returned something that cannot be shown, and its hint",
}
"""By the way of `leaves`."""


def leaves(error: BaseException) -> dict[str, Callable[..., Any]]:
    """Methods that raise it, or leave behind what does when it is looked at."""
    act = raiser(error)
    bad = type(
        "Bad", (), {"__repr__": act, "__eq__": act, "__class__": property(act), "__hash__": object.__hash__}
    )
    mute = type("Mute", (ValueError,), {"__str__": act, "__repr__": act, "__module__": "builtins"})
    hidden = type("Hidden", (), {"__dict__": property(act)})

    def keep(self: Any) -> None:
        self.kept = bad()

    def keep_as_key(self: Any) -> None:
        self.kept = {bad(): 1}

    def hide(self: Any) -> None:
        object.__setattr__(self, "__class__", hidden)

    def give(_: Any) -> Any:
        return bad()

    def give_for_nothing(_: Any) -> None:
        return bad()  # type: ignore[no-any-return]

    return {
        "raise": act,
        "raise what says nothing": raiser(mute()),
        "keep": keep,
        "keep as key": keep_as_key,
        "hide": hide,
        "give": give,
        "give for nothing": give_for_nothing,
    }


@pytest.mark.parametrize("error", MEANT_FOR_OTHERS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("way", TOLD)
def test_nothing_that_a_method_raises_or_leaves_passes(error: BaseException, way: str) -> None:
    """No caller was answered any more, and each kept its place for good."""
    found = PlainClass(made(op=leaves(error)[way]))
    with pytest.raises(BadClass) as refused:
        found.run(None, Invocation("op"))
    assert TOLD[way].replace("THIS", type(error).__name__) in str(refused.value)
    assert COLLECTOR.isenabled()


@pytest.mark.parametrize("error", MEANT_FOR_OTHERS, ids=lambda error: type(error).__name__)
def test_nothing_that_other_code_of_a_class_raises_passes(error: BaseException) -> None:
    act = raiser(error)
    upgraded = PlainClass(type("Made", (), {"version": 2, "upgrade": staticmethod(act), "op": fine}))
    stored = '{"state":{},"version":1}'
    odd = type("Odd", (), {"__class__": property(act)})()
    turned = PlainClass(type("Made", (), {"version": 2, "upgrade": staticmethod(lambda *_: odd), "op": fine}))
    with pytest.raises(BadClass, match=type(error).__name__):
        turned.check(stored)
    for look in (lambda: upgraded.check(stored), lambda: upgraded.run(stored, Invocation("op"))):
        with pytest.raises(BadClass, match=f"raised {type(error).__name__}"):
            look()
    with pytest.raises(BadClass, match="made without arguments"):
        PlainClass(type("Made", (), {"__init__": act, "op": fine}))
    with pytest.raises(BadClass, match="a hint cannot be read"):
        PlainClass(type("Made", (), {"op": hinted(type("Hint", (), {"__class__": property(act)})())}))


def hinted(hint: Any) -> Callable[..., Any]:
    def op(self: Any, item: Any = 1) -> None:
        """A hint of the user's own."""

    op.__annotations__["item"] = hint
    return op


def test_a_hint_that_fails_later_is_told() -> None:
    class Hint:
        is_bad = False

        def __eq__(self, other: object) -> bool:
            if self.is_bad:
                raise asyncio.CancelledError
            return self is other

        __hash__ = object.__hash__

        def __call__(self) -> None:
            """Hints are called types."""

    found = PlainClass(type("Made", (), {"examples": {"item": (1,)}, "op": hinted(Hint())}))
    Hint.is_bad = True
    with pytest.raises(BadClass, match="op: CancelledError"):
        found.call("op", 1)


@pytest.mark.parametrize(
    "base",
    [BaseException, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration],
)
def test_an_outcome_ends_no_more_than_its_call(base: type[BaseException]) -> None:
    """A client raises it again on its event loop, which a SystemExit ends."""
    found = PlainClass(made(op=raiser(type("Own", (base,), {})())))
    with pytest.raises(BadClass, match="raised Own: an outcome derives from Exception"):
        found.run(None, Invocation("op"))


def test_an_outcome_that_cannot_be_made_again_is_told() -> None:
    class Once(Exception):
        is_made = False

        def __new__(cls) -> Self:
            if cls.is_made:
                raise SystemExit
            cls.is_made = True
            return super().__new__(cls)

    found = PlainClass(made(op=raiser(Once())))
    _, response = found.run(None, Invocation("op"))
    with pytest.raises(BadClass, match="Once cannot be made without arguments: SystemExit"):
        found.answer(response)


def half(self: Any) -> None:
    raise ValueError("\ud800")


def half_kept(self: Any) -> None:
    vars(self)["\ud800"] = {1}


@pytest.mark.parametrize("method", [half, half_kept])
def test_why_not_can_be_sent(method: Callable[..., Any]) -> None:
    """REST answered with an error of its own."""
    with pytest.raises(BadClass) as refused:
        PlainClass(made(op=method)).run(None, Invocation("op"))
    assert "\\ud800" in str(refused.value).encode().decode()


class Shed:
    def __init__(self) -> None:
        self.rows: list[Any] = []

    def keep(self, row: list[Any]) -> None:
        self.rows.append(row)

    examples: ClassVar[Any] = {"row": ([], [1])}


def test_numbers_far_from_1_are_read_by_python_wherever_they_stand() -> None:
    """For each the parser takes 7 microseconds: calls of 100 bytes on states of 258 KB of them silenced a replica for seconds."""
    found, far = PlainClass(Shed), [1e300, -1e-300, 1.5e300] * 100
    call = found.call("keep", far)
    assert calls(lambda: found.call("keep", far))["_double"] == 300, "to see whether it comes back"
    state, _ = found.run(None, call)
    assert calls(lambda: found.run(None, call))["_double"] == 600, "the argument, and the state afterwards"
    again = found.call("keep", [])
    assert calls(lambda: found.run(state, again))["_double"] == 600, "the state before, and afterwards"
    text = '{"rows":[[' + ",".join(["1e300,-1e-300,1.5e300"] * 100) + "]]}"
    assert state == f'{{"state":{text},"version":1}}'


@pytest.mark.parametrize(
    "number", ["1e300", "-1.5e300", "1e-300", "5e-324", "0.1", "0.12345678901234568", "1e23", "-0.0", "1e308"]
)
def test_a_number_of_a_state_stays_as_it_is(number: str) -> None:
    found = PlainClass(Shed)
    state, _ = found.run(f'{{"state":{{"rows":[[{number}]]}},"version":1}}', found.call("keep", []))
    assert state == f'{{"state":{{"rows":[[{number}],[]]}},"version":1}}'


def test_blind_operations_are_named_by_the_class() -> None:
    assert PlainClass(type("Made", (), {"blind": ("op",), "op": fine})).blind == {"op"}
    assert PlainClass(made(op=fine)).blind == frozenset()
    assert PlainClass(made(blind=fine)).blind == frozenset(), "an operation of that name"


@pytest.mark.parametrize("args", [(), (1,), ("a", None, 0.5), (Json("[1]"), "é")])
def test_a_call_is_kept_as_text(args: tuple[Any, ...]) -> None:
    call = Invocation("add", args)
    assert call_in(call_text(call)) == call


@pytest.mark.parametrize("text", ["", "1", "[]", '["add"]', "[1,[]]", '["add",{}]', '["add",[],1]', "["])
def test_text_that_is_no_call_is_told(text: str) -> None:
    with pytest.raises(BadClass, match="is no call"):
        call_in(text)


STORED: list[Any] = [None, True, 1, 10**20, 0.5, "a", [1], {"a": 1}]


@pytest.mark.parametrize(
    "args", [[], *([each] for each in STORED), *(["a", each] for each in STORED), ["a", 1, 2]]
)
def test_a_call_may_be_stored_where_it_may_be_made(args: list[Any]) -> None:
    class Made:
        blind = ("op",)

        def op(self, a: str | list[int], b: int = 1) -> None:
            pass

    found, text = PlainClass(Made), json.dumps(["op", args], separators=(",", ":"))
    try:
        found.call("op", *args)
    except BadClass as error:
        with pytest.raises(BadClass, match=re.escape(str(error))):
            found.check_stored(text)
    else:
        found.check_stored(text)


_PARTS: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


class Keeper:
    """Keeps whatever it is given."""

    blind = ("keep",)
    examples: ClassVar[dict[str, Any]] = {"what": ("x",)}

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def keep(self, what: Any) -> None:
        """Keep it."""
        self.kept.append(what)


@given(_PARTS)
def test_a_call_may_be_stored_as_it_is_written_and_brings_the_state_no_more(what: Any) -> None:
    found = PlainClass(Keeper)
    call = found.call("keep", what)
    text = call_text(call)
    found.check_stored(text)
    state, _ = found.run(None, call)
    arguments = text.removeprefix('["keep",').removesuffix("]")
    assert state == f'{{"state":{{"kept":{arguments}}},"version":1}}'


@pytest.mark.parametrize(
    "args",
    [
        "[1e15]",
        "[1E5]",
        "[-0]",
        "[1.50]",
        "[ 1]",
        '["\\u0061"]',
        '[{"b":1,"a":2}]',
        '[{"a":1,"a":1}]',
        "[1] ",
    ],
)
def test_a_call_that_is_not_as_it_is_written_is_not_stored(args: str) -> None:
    """`1e15` has 4 characters, and 18 in a state: calls within their bound made a state that no value may be."""
    with pytest.raises(BadClass, match=r"^\[.* is not as calls are written: \[\"keep\",\["):
        PlainClass(Keeper).check_stored(f'["keep",{args}]')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("17", "17 is no call"),
        ('["look",[]]', "look is no blind operation of Made: its calls are not stored"),
        ('["nope",[]]', "Made has no operation 'nope'"),
    ],
)
def test_only_calls_of_blind_operations_are_stored(text: str, words: str) -> None:
    class Made:
        blind = ("op",)

        def op(self) -> None:
            pass

        def look(self) -> int:
            return 1

    with pytest.raises(BadClass, match=words):
        PlainClass(Made).check_stored(text)


def test_an_operation_changes_something_or_only_looks() -> None:
    class Made:
        blind = ("op",)
        observing = ("op",)

        def op(self) -> None:
            pass

    with pytest.raises(BadClass, match="Made: blind and observing both name op"):
        PlainClass(Made)


@pytest.mark.parametrize("attribute", ["blind", "observing"])
def test_operations_are_named_in_a_tuple(attribute: str) -> None:
    made = type("Made", (), {attribute: ["op"], "op": lambda self: None})
    with pytest.raises(BadClass, match=f"{attribute} is .*name the {attribute} operations in a tuple"):
        PlainClass(made)


@pytest.mark.parametrize("version", [1, 2])
def test_a_state_that_is_that_of_a_new_object_is_kept_as_none(version: int) -> None:
    class Switch:
        def __init__(self) -> None:
            self.is_on = False

        def turn(self) -> bool:
            self.is_on = not self.is_on
            return self.is_on

    given = {"version": version, "upgrade": staticmethod(lambda state, _: state)} if version > 1 else {}
    found = PlainClass(type("Switch", (Switch,), given))
    once, _ = found.run(None, Invocation("turn"))
    assert once == f'{{"state":{{"is_on":true}},"version":{version}}}'
    twice, response = found.run(once, Invocation("turn"))
    assert (twice, response.results) == (None, (False,))
