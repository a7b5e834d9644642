"""What may come next, and to what it leads."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.orders import Model, order_of
from quorate.adts.histories.steps import Steps
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types
from quorate.adts.types.counter import Counter

REGISTER = {"r": known_types()["register"]}


def call(operation: str, *args: Any, results: tuple[Any, ...] = (), until: float = 9) -> Call:
    answers = (Response("Ok", results),) if until < NEVER else ()
    return Call("p", "r", Invocation(operation, args), 1, until, answers)


def states_after(*calls: Call) -> list[tuple[str, Mapping[str, Any]]]:
    """Each first step: its operation, and the states after it."""
    order = order_of(Model.LINEARIZABLE, calls)
    steps = Steps(REGISTER, order)
    return [
        (order.calls[number].invocation.operation, steps.states(state))
        for number, _, state in steps.further(*steps.start())
    ]


def test_each_call_that_may_come_next_is_a_step() -> None:
    found = states_after(call("Write", 1), call("Write", 2))
    assert found == [("Write", {"r": 1}), ("Write", {"r": 2})]


def test_a_read_that_fits_is_the_only_step_and_one_that_does_not_is_none() -> None:
    assert states_after(call("Write", 1), call("Read", results=(None,))) == [("Read", {"r": None})]
    assert states_after(call("Write", 1), call("Read", results=(1,))) == [("Write", {"r": 1})]


@pytest.mark.parametrize(("value", "count"), [(1, 1), (None, 0)])
def test_of_calls_of_unknown_outcome_that_are_alike_one_is_a_step_where_it_changes_something(
    value: int | None, count: int
) -> None:
    unknown = [call("Cas", None, value, until=NEVER) for _ in range(3)]
    assert len(states_after(call("Read", results=(1,)), *unknown)) == count


def test_a_state_is_one_number_however_it_is_reached() -> None:
    order = order_of(Model.LINEARIZABLE, [call("Write", 1), call("Cas", None, 1, until=NEVER)])
    steps = Steps(REGISTER, order)
    assert len({state for _, _, state in steps.further(*steps.start())}) == 1


def test_an_object_is_asked_once_what_an_invocation_does_in_a_state() -> None:
    """However many calls ask that, and whatever they were answered."""

    class Asked(Counter):
        asked: ClassVar[list[Invocation]] = []

        def step(self, state: int, invocation: Invocation) -> tuple[int, Response]:
            self.asked.append(invocation)
            return super().step(state, invocation)

    order = order_of(Model.LINEARIZABLE, [call("Read", results=(value,)) for value in (3, 4, 5, 4)])
    steps = Steps({"r": Asked()}, order)
    assert not list(steps.further(*steps.start()))
    assert not list(steps.further(*steps.start()))
    assert Asked.asked == [Invocation("Read")]


def test_a_call_that_may_have_been_answered_in_two_ways_is_the_only_step_too() -> None:
    class Either(Counter):
        def outcomes(self, state: int, invocation: Invocation) -> Iterable[tuple[int, Response]]:
            del invocation
            return [(state, Response("Ok", (value,))) for value in (1, 2)]

    both = (Response("Ok", (1,)), Response("Ok", (2,)))
    calls = [Call("p", "r", Invocation("Read"), 1, 9, both), call("Read", results=(1,))]
    steps = Steps({"r": Either()}, order_of(Model.LINEARIZABLE, calls))
    assert [number for number, _, _ in steps.further(*steps.start())] == [0]
