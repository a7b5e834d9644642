"""Hints that say what JSON has, and the values that fit them."""

from enum import Enum
from typing import Any, Literal, Optional

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


@pytest.mark.parametrize("hint", [Color, tuple[int, int], dict[int, str], set[str], list[Color], Any])
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
