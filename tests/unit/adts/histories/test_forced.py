"""Which enqueues wait for others. That no right order is lost, test_search shows."""

import pytest

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.forced import FirstIn, has_distinct_items, is_first_in_first_out
from quorate.adts.own import Computed
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types


def enq(item: str, invoked: int, returned: int = NEVER) -> Call:
    answers = () if returned == NEVER else (Response("Ok"),)
    return Call("p", "q", Invocation("Enq", (item,)), invoked, returned, answers)


def deq(item: str, invoked: int, returned: int = NEVER) -> Call:
    answers = () if returned == NEVER else (Response("Ok", (item,)),)
    return Call("p", "q", Invocation("Deq"), invoked, returned, answers)


def may_come_first(calls: list[Call]) -> list[str]:
    order = FirstIn(calls)
    found = [order.calls[number] for number in order.next(order.start())]
    return [call.invocation.args[0] for call in found if call.invocation.operation == "Enq"]


OVERLAPPING = [enq("a", 1, 9), enq("b", 2, 8)]


@pytest.mark.parametrize(
    ("takes", "first"),
    [
        ([deq("a", 10, 11), deq("b", 12, 13)], ["a"]),
        ([deq("b", 10, 11), deq("a", 12, 13)], ["b"]),
        ([deq("a", 10, 13), deq("b", 12, 15)], ["b", "a"]),
        ([deq("a", 10, 11)], ["a"]),
        ([deq("a", 10, 11), deq("", 3)], ["b", "a"]),
    ],
    ids=["a then b", "b then a", "both at once", "b not taken", "b perhaps taken"],
)
def test_what_was_taken_first_was_put_in_first(takes: list[Call], first: list[str]) -> None:
    assert may_come_first([*OVERLAPPING, *takes]) == first


def test_times_may_be_negative() -> None:
    calls = [enq("a", -90, -80), enq("b", -89, -81), deq("a", -70, -60), deq("", -85)]
    assert may_come_first(calls) == ["b", "a"]


def test_an_item_that_was_taken_was_put_in_before_that() -> None:
    order = FirstIn([enq("a", 1), deq("a", 2, 5)])
    assert [(call.returned, call.is_known) for call in order.calls] == [(5, True), (5, True)]


@pytest.mark.parametrize("is_counted", [False, True])
def test_an_unknown_item_that_nobody_saw_is_left_out_where_nobody_counts(*, is_counted: bool) -> None:
    size = Call("p", "q", Invocation("Size"), 3, 4, (Response("Ok", (1,)),))
    order = FirstIn([enq("a", 1), *([size] if is_counted else [])])
    assert len(order.calls) == 2 * is_counted


def test_a_type_of_ones_own_is_no_queue_whatever_its_name() -> None:
    queue = known_types()["queue"]
    assert is_first_in_first_out(queue)
    assert not is_first_in_first_out(Computed(queue))
    assert not is_first_in_first_out(known_types()["stack"])


def test_equal_items_and_answers_that_are_not_told_apart_force_nothing() -> None:
    assert has_distinct_items([enq("a", 1, 2), enq("b", 1, 2)])
    assert not has_distinct_items([enq("a", 1, 2), enq("a", 3, 4)])
    either = deq("a", 5, 6)._replace(answers=(Response("Ok", (None,)), Response("Empty")))
    assert not has_distinct_items([enq("a", 1, 2), either])
