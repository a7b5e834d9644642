"""Weak answers: old ones are right, what nobody gave is not. Empty ones: right at a moment at which nothing waits."""

from typing import Any

import pytest

from quorate.adts.log import Entry, Leased, Value
from quorate.adts.plain_class import Json
from quorate.simulation.history import Call
from quorate.simulation.judging.checkers import check_empty, check_weak
from quorate.simulation.scenarios.leased import TIMED
from quorate.simulation.violation import Violation
from quorate.timestamps.timestamp import make

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


A, B = Value('"a"'), Value('"b"')
T = make(1, 0, "t")
EMPTY = Call("Deq", (), 4, 9)


@pytest.mark.parametrize(
    "others",
    [
        [],
        [Call("Enq", (A,), 1, 5)],
        [Call("Enq", (A,), 1)],
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 8, 12, (A,))],
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 8)],
        [Call("Enq", (A,), 1, 2), Call("Acquire", (), 8, 12, (Leased(Entry("1", T, A)),))],
        [Call("Enq", (A,), 1, 2), Call("Enq", (B,), 6, 7), Call("Deq", (), 6, 7, (A,))],
        [Call("Enq", (Value(f'"{TIMED}"'),), 1, 2)],
    ],
)
def test_nothing_is_right_at_a_moment_at_which_no_item_certainly_waits(others: list[Call]) -> None:
    check_empty("queue/q", [EMPTY, *others])


@pytest.mark.parametrize("empty", [EMPTY, Call("Acquire", (), 4, 9)])
@pytest.mark.parametrize(
    "others",
    [
        [Call("Enq", (A,), 1, 4)],
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 9, 12, (A,))],
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 9)],
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 9, 12, (A,)), Call("Deq", (), 20, 22, (A,))],
        # One waits before, and the other one after.
        [Call("Enq", (A,), 1, 2), Call("Deq", (), 7, 8, (A,)), Call("Enq", (B,), 5, 6)],
    ],
)
def test_nothing_is_wrong_where_one_item_or_another_waits_all_the_time(
    empty: Call, others: list[Call]
) -> None:
    with pytest.raises(Violation, match="it was empty, though an item waited"):
        check_empty("queue/q", [empty, *others])
