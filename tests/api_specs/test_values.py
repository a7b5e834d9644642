"""Values: what is a value, its one text form, and the sentence for what is none."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api_specs.limits import Limits
from quorate.api_specs.values import BadValue, from_value, to_value

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES)
def test_a_value_comes_back_as_it_went_in(value: Any) -> None:
    assert from_value(to_value(value)) == value
    assert json.loads(to_value(value)) == value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), SCALARS))
def test_equal_dicts_are_equal_text(value: dict[str, Any]) -> None:
    assert to_value(value) == to_value(dict(reversed(value.items())))


def test_text_has_no_blanks_and_sorted_keys() -> None:
    assert (
        to_value({"b": [1, 2.5, None], "a": {"y": True, "x": "é"}})
        == '{"a":{"x":"é","y":true},"b":[1,2.5,null]}'
    )
    assert to_value((1, "x")) == '[1,"x"]'


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


class _Real(float):
    pass


def test_subclasses_of_scalars_are_taken_for_what_they_are() -> None:
    assert to_value([_Text("x"), _Whole(3), _Real(1.5), {_Text("k"): 1}]) == '["x",3,1.5,{"k":1}]'


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (math.nan, "the value is nan"),
        ({"a": [1, math.inf]}, r"the value at \.a\[1\] is inf"),
        ([1 << 64], r"\[0\] is an integer beyond 64 bits"),
        (-(1 << 63) - 1, "beyond 64 bits"),
        ("\ud800", "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"a": {1: 2}}, r"the value at \.a has the key 1"),
        ({"a": b"x"}, "of type bytes"),
        ({1, 2}, "of type set"),
        ("x" * 100, "102 bytes of JSON: at most 100"),
    ],
)
def test_what_is_no_value_is_named_with_its_place(bad: Any, sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        to_value(bad, Limits(value_bytes_max=100))


def test_nesting_ends_at_the_limit() -> None:
    limits = Limits(value_depth_max=3)
    assert to_value([[["deep"]]], limits) == '[[["deep"]]]'
    with pytest.raises(BadValue, match=r"nested deeper than 3"):
        to_value([[[["deeper"]]]], limits)
    assert to_value([[[]]], limits) == "[[[]]]"


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadValue, match="nested deeper"):
        to_value(endless)


def test_a_value_that_holds_itself_twice_ends_at_the_size_limit() -> None:
    doubling: list[Any] = []
    doubling += [doubling, doubling]
    with pytest.raises(BadValue, match="over 1000 bytes"):
        to_value(doubling, Limits(value_bytes_max=1000))
