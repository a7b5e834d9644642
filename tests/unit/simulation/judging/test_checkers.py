"""Weak answers: old ones are right, what nobody gave is not."""

from typing import Any

import pytest

from quorate.adts.plain_class import Json
from quorate.simulation.history import Call
from quorate.simulation.judging.checkers import check_weak
from quorate.simulation.violation import Violation

GIVEN = [
    Call("Write", ("a",), 1, 2, ("Ok",)),
    Call("Cas", ("a", "b"), 3, 4, ("Fail",)),
    Call("Write", ("late",), 9, 10),
]
PUT = [Call("put", (item,), at, at + 1, ("Ok",)) for at, item in ((1, "a"), (3, "a"), (5, "b"), (9, "late"))]


@pytest.mark.parametrize("value", [None, "a", "b"])
def test_a_value_that_was_given_is_right_however_old(value: str | None) -> None:
    check_weak("register/r", [Call("Read", (), 6, 7, (value,))], GIVEN)


@pytest.mark.parametrize("value", ["c", "late"])
def test_a_value_that_nobody_had_given_by_then_is_wrong(value: str) -> None:
    with pytest.raises(Violation, match="nobody gave"):
        check_weak("register/r", [Call("Read", (), 6, 7, (value,))], GIVEN)


def look(text: str) -> list[Call]:
    results: tuple[Any, ...] = ("Ok", Json(text))
    return [Call("look", (), 6, 7, results)]


@pytest.mark.parametrize("text", ["[]", '["a"]', '["b","a","a"]'])
def test_what_an_object_of_ones_own_type_lists_was_given_so_often(text: str) -> None:
    check_weak("own/x", look(text), PUT)


@pytest.mark.parametrize("text", ['["c"]', '["b","b"]', '["a","a","a"]', '["late"]'])
def test_it_lists_nothing_more_often(text: str) -> None:
    with pytest.raises(Violation, match="nobody gave"):
        check_weak("own/x", look(text), PUT)
