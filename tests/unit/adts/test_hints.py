"""Hints that say what JSON has, and the values that fit them."""

from enum import Enum
from typing import Any, Literal, NotRequired, Optional, TypedDict

import pytest

from quorate.adts.hints import fits, is_json, shown


class Color(Enum):
    RED = "red"


FITTING: list[tuple[Any, list[Any], list[Any]]] = [
    (str, ["", "a"], [1, None]),
    (int, [0, -1], [True, 1.0, "1"]),
    (float, [1, 1.5], [True, "1"]),
    (bool, [True], [1, 0]),
    (None, [None], [0, ""]),
    (Literal["a", 1], ["a", 1], ["b", True, 1.0]),
    (list[int], [[], [1]], [(1,), [1, "a"], 1]),
    (dict[str, list[str]], [{}, {"a": ["b"]}], [{"a": "b"}, []]),
    (int | None, [1, None], ["a"]),
    (Optional[str], ["a", None], [1]),  # noqa: UP045 - as older code has it
]


@pytest.mark.parametrize(("hint", "right", "wrong"), FITTING)
def test_values_fit_a_hint_or_do_not(hint: Any, right: list[Any], wrong: list[Any]) -> None:
    assert is_json(hint)
    assert [value for value in right if not fits(value, hint)] == []
    assert [value for value in wrong if fits(value, hint)] == []


class Bid(TypedDict):
    who: str
    amounts: list[int]
    until: NotRequired[float]


BID = {"who": "ann", "amounts": [1]}
FORMS: list[tuple[Any, list[Any], list[Any]]] = [
    (
        Bid,
        [BID, BID | {"until": 1}],
        [{}, {"who": "ann"}, BID | {"by": 1}, BID | {"amounts": 1}, BID | {"until": "x"}, []],
    ),
    (list[Bid], [[], [BID]], [[3], BID, [BID, {}]]),
    (dict[str, Bid | None], [{"a": BID, "b": None}], [{"a": 1}]),
    (list, [[], [1, "a"]], ["abc", {}]),
    (dict, [{}, {"a": 1}], [[]]),
    (list[Any], [[1, "a"]], ["abc"]),
    (list[Color], [["red"]], ["red"]),
    (dict[str, Color], [{"a": "red"}], [["a"]]),
]


@pytest.mark.parametrize(("hint", "right", "wrong"), FORMS)
def test_lists_and_dictionaries_are_told_from_others_whatever_they_hold(
    hint: Any, right: list[Any], wrong: list[Any]
) -> None:
    assert [value for value in right if not fits(value, hint)] == []
    assert [value for value in wrong if fits(value, hint)] == []


def test_what_the_items_of_a_form_may_be_is_free_where_its_hints_cannot_be_read() -> None:
    unread = TypedDict("unread", {"who": "Nowhere"})  # type: ignore[name-defined] # noqa: F821, UP013
    assert fits({"who": 1}, unread)
    assert not fits({}, unread)


@pytest.mark.parametrize("hint", [Color, tuple[int, int], dict[int, str], set[str], Any, Color | str])
def test_anything_fits_a_hint_that_says_more_than_json_has(hint: Any) -> None:
    assert not is_json(hint)
    assert fits("red", hint)


def test_a_hint_is_shown_as_it_is_written() -> None:
    assert [shown(hint) for hint in (str, list[int], int | None, Literal["a"])] == [
        "str",
        "list[int]",
        "int | None",
        "Literal['a']",
    ]
