"""The forms that hints give to bodies and answers: what they let through, and how the OpenAPI document describes it."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import jsonschema_rs
import pytest
from msgspec import Meta
from pydantic import ValidationError, create_model

from quorate.adts.hints import fits
from quorate.replica.api.forms import Forms
from quorate.replica.api.object_models import Body


class Color(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    x: int
    y: int


class Line(TypedDict):
    """So many of an item."""

    item: str
    count: NotRequired[int]


class Order(TypedDict, total=False):
    lines: list[Line]
    by: dict[str, Line | None]
    state: Literal["open", "paid", 3]
    instead_of: "Order"
    color: Color


LINE = {"item": "book"}
TEXT, NUMBER, NULL, ANY = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "null"},
    {"description": "Any JSON value"},
)
LINES = {"$ref": "#/$defs/CartLine"}
HINTS: list[tuple[Any, dict[str, Any], list[Any], list[Any]]] = [
    (str, TEXT, ["a"], [1, None]),
    (None, NULL, [None], [0]),
    (Literal["a", 1], {"enum": ["a", 1]}, ["a", 1], ["b", 2]),
    (Optional[str], {"anyOf": [TEXT, NULL]}, ["a", None], [1]),  # noqa: UP045 - as older code has it
    (list[int], {"type": "array", "items": NUMBER}, [[], [1]], [["a"], 1]),
    (list, {"type": "array", "items": ANY}, [[], ["a"]], [{}]),
    (dict, {"type": "object", "additionalProperties": ANY}, [{}, {"a": 1}], [[]]),
    (
        Line,
        LINES,
        [LINE, LINE | {"count": 1}],
        [{}, {"count": 1}, LINE | {"count": "1"}, LINE | {"much": 1}, []],
    ),
    (list[Line], {"type": "array", "items": LINES}, [[], [LINE]], [LINE, [{}]]),
    (
        dict[str, Line | None],
        {"type": "object", "additionalProperties": {"anyOf": [LINES, NULL]}},
        [{"a": LINE, "b": None}],
        [{"a": {}}],
    ),
    (
        list[dict[str, Color]],
        {"type": "array", "items": {"type": "object", "additionalProperties": ANY}},
        [[{"a": 1}]],
        [[1]],
    ),
    (Color | Line, ANY, ["red", {}], []),
    (Color, ANY, ["red", 1], []),
    (Literal[Color.RED], ANY, ["red", 1], []),
    (dict[int, str], ANY, [{}, []], []),
    (tuple[int, int], ANY, [[1, 2], 3], []),
    (Point, ANY, [{"x": 1}, 3], []),
    (Pair, ANY, [[1, 2], 3], []),
    (Any, ANY, [1, None], []),
]
"""Each with what describes it, values that it lets through, and others."""


def holder_of(hint: Any) -> Any:
    """A body with one member `value`."""
    return create_model("Holder", __base__=Body, value=(Forms("Cart").of(hint), ...))


def schema_of(hint: Any) -> Any:
    """How a document describes this member; and what this refers to."""
    whole = holder_of(hint).model_json_schema()
    value = whole["properties"]["value"]
    return {name: each for name, each in value.items() if each != "Value"}, whole.get("$defs", {})


@pytest.mark.parametrize(("hint", "schema", "right", "wrong"), HINTS)
def test_a_hint_is_described_as_it_is_checked(
    hint: Any, schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    model = holder_of(hint)
    described, parts = schema_of(hint)
    assert described == schema
    validator = jsonschema_rs.validator_for(described | {"$defs": parts})
    for value in right:
        assert fits(value, hint)
        assert model(value=value).value == value
        assert validator.is_valid(value), value
    for value in wrong:
        assert not fits(value, hint)
        with pytest.raises(ValidationError):
            model(value=value)
        assert not validator.is_valid(value), value


def test_a_typed_dict_is_an_object_with_its_members_and_may_hold_its_own_kind() -> None:
    described, parts = schema_of(Order)
    assert described == {"$ref": "#/$defs/CartOrder"}
    assert parts["CartLine"] == {
        "title": "CartLine",
        "description": "So many of an item.",
        "type": "object",
        "properties": {"item": TEXT | {"title": "Item"}, "count": NUMBER | {"title": "Count"}},
        "required": ["item"],
        "additionalProperties": False,
    }
    answer = create_model("Answer", value=(Forms("Cart").of(Line), ...))
    assert answer.model_json_schema()["$defs"]["CartLine"] == parts["CartLine"], "in answers as in bodies"
    order = parts["CartOrder"]
    assert "required" not in order
    assert order["properties"]["state"]["enum"] == ["open", "paid", 3]
    assert order["properties"]["instead_of"] == {"$ref": "#/$defs/CartOrder"}
    assert order["properties"]["color"] == ANY | {"title": "Color"}
    nested = {"lines": [LINE], "instead_of": {"by": {"ann": None}, "instead_of": {}}}
    model = holder_of(Order)
    assert model(value=nested).value == nested
    with pytest.raises(ValidationError, match=r"value\.instead_of\.lines"):
        model(value={"instead_of": {"lines": 1}})


def test_members_whose_hints_cannot_be_read_may_be_anything() -> None:
    unread = TypedDict("unread", {"who": "Nowhere"})  # type: ignore[name-defined] # noqa: F821, UP013
    described, parts = schema_of(unread)
    assert described == {"$ref": "#/$defs/Cartunread"}
    assert parts["Cartunread"]["properties"] == {"who": ANY | {"title": "Who"}}
    assert parts["Cartunread"]["required"] == ["who"]


SAID: list[tuple[Any, dict[str, Any], Any]] = [
    (Annotated[int, Meta(ge=1, description="How many")], NUMBER | {"description": "How many"}, 0),
    (Annotated[Line, Meta(title="A line")], LINES | {"title": "A line"}, LINE),
    (
        Annotated[list[Line] | None, Meta(min_length=1)],
        {"anyOf": [{"type": "array", "items": LINES}, NULL]},
        [],
    ),
    (
        list[Annotated[str, Meta(pattern="^(?!b)", title="Name")]],
        {"type": "array", "items": TEXT | {"title": "Name"}},
        ["b"],
    ),
    (
        Annotated[Annotated[str, Meta(title="Name")], Meta(description="Whose")],
        TEXT | {"title": "Name", "description": "Whose"},
        "",
    ),
    (Annotated[str, "a note of the author's"], TEXT, ""),
]
"""Each with what describes it, and a value that it lets through, whatever the bounds."""


@pytest.mark.parametrize(("hint", "schema", "value"), SAID)
def test_what_is_said_of_a_hint_is_told_but_for_bounds_which_nobody_checks(
    hint: Any, schema: dict[str, Any], value: Any
) -> None:
    described, _ = schema_of(hint)
    assert described == schema
    model = holder_of(hint)
    assert model(value=value).value == value
