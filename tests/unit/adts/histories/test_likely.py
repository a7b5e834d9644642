"""What is tried first. That the verdict does not rest on it, test_search shows."""

from typing import Any

import pytest

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.likely import Likely
from quorate.adts.plain_class import frozen
from quorate.adts.specification import Invocation, Response


def put(value: Any, invoked: int, returned: int = NEVER) -> Call:
    answers = () if returned == NEVER else (Response("Ok"),)
    return Call("p", "x", Invocation("put", (value,)), invoked, returned, answers)


def look(shown: Any, invoked: int, returned: int) -> Call:
    return Call("p", "x", Invocation("look"), invoked, returned, (Response("Ok", (shown,)),))


def tried(*calls: Call) -> list[Any]:
    """The values of what is put, in the order in which it is tried."""
    found = [calls[number] for number in Likely(calls).first(range(len(calls)))]
    return [call.invocation.args[0] for call in found if call.invocation.operation == "put"]


PUT = (put("a", 1, 9), put("b", 2, 8), put("c", 3), put("d", 4, 7))


@pytest.mark.parametrize(
    "shown",
    [frozen(["b", "c", "a"]), frozen({"1": "b", "2": ["c"], "3": {"4": "a"}}), "b, c, a"],
    ids=["list", "object", "text"],
)
def test_what_is_shown_comes_in_the_order_in_which_it_is_shown(shown: Any) -> None:
    assert tried(*PUT, look(shown, 10, 11)) == ["d", "b", "c", "a"]


@pytest.mark.parametrize("shown", [frozen([r'"\b"', '"a"']), r'"\b" and "a"'], ids=["list", "text"])
def test_also_texts_with_quotes(shown: Any) -> None:
    assert tried(put('"a"', 1, 9), put(r'"\b"', 2, 10), look(shown, 11, 12)) == [r'"\b"', '"a"']


def test_also_objects() -> None:
    one, other = frozen({"c": 1}), frozen(["d"])
    assert tried(put(one, 1, 9), put(other, 2, 10), look(frozen([["d"], {"c": 1}]), 11, 12)) == [other, one]


def test_of_two_answers_the_first_one_counts() -> None:
    assert tried(*PUT, look("a", 10, 13), look("c", 11, 12), look("dbca", 14, 15)) == ["c", "a", "d", "b"]


def test_what_no_answer_shows_comes_when_it_returned_and_what_never_did_last() -> None:
    assert tried(*PUT) == ["d", "b", "a", "c"]
    assert tried(*PUT, look("a", 5, 6)) == ["a", "d", "b", "c"]


def test_an_answer_that_came_before_shows_nothing_of_it() -> None:
    assert tried(look("a", 0, 1), put("a", 2, 9), put("b", 3, 8)) == ["b", "a"]


def test_what_is_put_twice_is_shown_where_there_is_one_more() -> None:
    calls = [
        put("a", 1, 2),
        look("a", 3, 4),
        put("a", 5, 20),
        put("b", 6, 19),
        look("ab", 7, 8),
        look("aba", 9, 10),
    ]
    found = Likely(calls).first([2, 3])
    assert found == [3, 2]


def test_small_numbers_are_shown_by_chance() -> None:
    assert tried(put(1, 1, 9), put(2, 2, 8), look(frozen([1, 2]), 10, 11)) == [2, 1]


def test_so_much_of_the_answers_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [*PUT, *(look("", at, at + 1) for at in range(10, 20)), look("e", 20, 21), look("c", 22, 23)]
    assert tried(*calls) == ["d", "b", "a", "c"]
    later = [put("f", 24, 26), look("f", 25, 27)]
    assert tried(*calls, *later) == ["d", "b", "a", "c", "f"]
    monkeypatch.setattr("quorate.adts.histories.likely.CHARS_MAX", 500)
    assert tried(*calls, *later) == ["d", "b", "a", "f", "c"]
