"""What may come next. That searches over these orders are right, test_search shows."""

from collections.abc import Iterator

import pytest

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.orders import Model, Order, order_of
from quorate.adts.specification import Invocation, Response


def call(process: str, invoked: int, returned: int = NEVER) -> Call:
    answers = () if returned == NEVER else (Response("Ok"),)
    return Call(process, "x", Invocation("Write", (invoked,)), invoked, returned, answers)


def all_orders(order: Order) -> Iterator[str]:
    """Every order in which all may be placed, as the moments of invocation."""

    def further(placed: object, text: str) -> Iterator[str]:
        if len(text) == len(order.calls):
            yield text
            return
        for number in order.next(placed) if not order.is_done(placed) else ():
            yield from further(order.with_one(placed, number), text + str(order.calls[number].invoked))

    yield from further(order.start(), "")


CALLS = [call("a", 1, 4), call("b", 2, 3), call("a", 5, 8), call("b", 6, 7)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Model.LINEARIZABLE, {"1256", "2156", "1265", "2165"}),
        (Model.SEQUENTIAL, {"1256", "1265", "1526", "2156", "2165", "2615"}),
        (Model.SERIALIZABLE, None),
    ],
)
def test_real_time_counts_for_all_or_for_one_process_or_for_nobody(
    model: Model, expected: set[str] | None
) -> None:
    found = list(all_orders(order_of(model, CALLS)))
    assert len(found) == len(set(found)) == (24 if expected is None else len(expected))
    assert expected is None or set(found) == expected


def test_a_call_of_unknown_outcome_may_come_at_any_time_after_it_was_invoked() -> None:
    order = order_of(Model.LINEARIZABLE, [call("a", 1, 2), call("b", 3, 4), call("c", 2)])
    assert [each.invoked for each in order.calls] == [1, 3, 2]
    assert order.known == 2
    assert set(all_orders(order)) == {"213", "123"}


def test_what_overlaps_at_a_moment_may_come_in_both_orders() -> None:
    assert set(all_orders(order_of(Model.LINEARIZABLE, [call("a", 1, 3), call("b", 3, 4)]))) == {"13", "31"}


def test_what_none_has_passed_is_the_return_of_the_first_call_that_none_has_placed() -> None:
    order = order_of(Model.LINEARIZABLE, CALLS)
    second = order.with_one(order.start(), 1)
    both = order.with_one(second, 0)
    assert order.passed([second, order.start()]) == 3
    assert order.passed([order.start(), order.with_one(both, 2), both]) == 8
    assert order_of(Model.SERIALIZABLE, CALLS).passed([0]) == NEVER


@pytest.mark.parametrize("model", Model)
def test_long_lanes_are_made_in_time_that_grows_with_their_length(model: Model) -> None:
    """What comes before each of 20,000 calls of one process, or alike, is not looked for among all."""
    calls = [call("a", number, number)._replace(invocation=Invocation("Read")) for number in range(20_000)]
    order, placed = order_of(model, calls), order_of(model, calls).start()
    for number in range(5):
        assert order.next(placed) == [number]
        placed = order.with_one(placed, number)
