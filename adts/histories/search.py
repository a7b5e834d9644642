"""Is there an order of the calls that serial objects would have answered as these were? Exact (Wing and Gong 1993, Lowe 2017).

Depth first over (calls placed, states of the objects), each visited once.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..specification import SerialSpecification
from .calls import NEVER, Call
from .forced import FirstIn, has_distinct_items, is_first_in_first_out
from .orders import Model, Order, order_of
from .steps import Steps

VISITS_MAX: Final = 2_000_000
"""Visits of a search, before it is given up: about a gigabyte of memory and a minute."""


class Inconclusive(Exception):
    """The search was given up: the history is shown neither right nor wrong."""


class Found(NamedTuple):
    """What a search came to: an order of all calls that took effect; or, if `is_right` is False, the longest that it met, the
    states after that by object, and the calls of which none could come next."""

    is_right: bool
    order: tuple[Call, ...]
    states: Mapping[str, Any]
    stuck: tuple[Call, ...]
    visits: int
    until: float = NEVER
    """If it is not right, and in real time: what was known at this moment has no right order either; unless what came later forced something."""


def search(
    specifications: Mapping[str, SerialSpecification],
    calls: Sequence[Call],
    model: Model = Model.LINEARIZABLE,
    visits_max: int = VISITS_MAX,
    *,
    may_be_forced: bool = True,
) -> Found:
    """Look for an order of calls on objects, whose specifications are given by the objects' names. Unless it `may_be_forced`, what
    the items of a queue force (`forced`) is not used: that takes longer, and goes on where they contradict each other.

    Takes time exponential in the number of calls that overlap, at worst. Raises Inconclusive beyond `visits_max`.
    """
    order = forced_order(specifications, calls, model) if may_be_forced else order_of(model, calls)
    return search_in(specifications, order, visits_max)


def search_in(
    specifications: Mapping[str, SerialSpecification], order: Order, visits_max: int = VISITS_MAX
) -> Found:
    """Look for an order of calls among those that `order` allows. Raises Inconclusive beyond `visits_max`."""
    return _Search(specifications, order).run(visits_max)


def forced_order(
    specifications: Mapping[str, SerialSpecification], calls: Sequence[Call], model: Model
) -> Order:
    """What the model says of these calls, and where they are those of one queue, what its items force."""
    are_queues = [is_first_in_first_out(each) for each in specifications.values()]
    if model is Model.LINEARIZABLE and are_queues == [True] and has_distinct_items(calls):
        return FirstIn(calls)
    return order_of(model, calls)


class _Search:
    def __init__(self, specifications: Mapping[str, SerialSpecification], order: Order) -> None:
        self._order = order
        self._steps = Steps(specifications, order)

    def run(self, visits_max: int) -> Found:
        """See `search`."""
        order = self._order
        start, state = self._steps.start()
        if order.is_done(start):
            return self._found(True, [], state, (), 0)
        path: list[int] = []
        seen: set[tuple[Hashable, int]] = {(start, state)}
        branches = [self._steps.further(start, state)]
        longest: tuple[list[int], Any, int] = [], start, state
        while branches:
            branch = next(branches[-1], None)
            if branch is None:
                branches.pop()
                if path:
                    path.pop()
                continue
            number, placed, state = branch
            if (placed, state) in seen:
                continue
            if order.is_done(placed):
                return self._found(True, [*path, number], state, (), len(seen))
            seen.add((placed, state))
            if len(seen) > visits_max:
                raise Inconclusive(f"no answer after {visits_max} steps over {len(order.calls)} calls")
            path.append(number)
            branches.append(self._steps.further(placed, state))
            if len(path) > len(longest[0]):
                longest = list(path), placed, state
        numbers, placed, state = longest
        stuck = [number for number in order.next(placed) if number < order.known]
        until = order.passed(placed for placed, _ in seen)
        return self._found(False, numbers, state, stuck, len(seen))._replace(until=until)

    def _found(
        self, is_right: bool, numbers: Sequence[int], state: int, stuck: Sequence[int], visits: int
    ) -> Found:
        calls = self._order.calls
        return Found(
            is_right,
            tuple(calls[number] for number in numbers),
            self._steps.states(state),
            tuple(calls[number] for number in stuck),
            visits,
        )
