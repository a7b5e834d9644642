"""Is there an order of the calls that serial objects would have answered as these were? Exact (Wing and Gong 1993, Lowe 2017).

Over (calls placed, states of the objects), each visited once. The likeliest call is tried first, on and on. From a dead end the search goes back to the
latest visit from which not all was tried and to the earliest in turn: a mistake just made is mended soon, and one made at the beginning, too.
"""

from collections import deque
from collections.abc import Mapping, Sequence
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


_Visit = tuple[Any, int]
"""The calls that are placed, and the number of the states after them."""


class _Search:
    def __init__(self, specifications: Mapping[str, SerialSpecification], order: Order) -> None:
        self._order = order
        self._steps = Steps(specifications, order)

    def run(self, visits_max: int) -> Found:
        """See `search`."""
        order, steps = self._order, self._steps
        start = longest = steps.start()
        came: dict[_Visit, tuple[int, _Visit, int]] = {start: (0, start, -1)}
        """Of each visit: how many calls are placed, the visit before it, and the call that led from there."""
        if order.is_done(start[0]):
            return self._found(True, came, start, ())
        left = deque([(start, steps.further(*start))])
        """The visits from which not all was tried, the earliest first."""
        is_ahead = is_latest = True
        while left:
            is_last = is_ahead or is_latest
            visit, further = left[-1] if is_last else left[0]
            is_ahead = False
            for number, placed, state in further:
                after = placed, state
                if after in came:
                    continue
                is_ahead = True
                count = came[visit][0] + 1
                came[after] = count, visit, number
                if order.is_done(placed):
                    return self._found(True, came, after, ())
                if len(came) > visits_max:
                    raise Inconclusive(f"no answer after {visits_max} steps over {len(order.calls)} calls")
                if count > came[longest][0]:
                    longest = after
                left.append((after, steps.further(*after)))
                break
            else:
                is_latest = not is_latest
                (left.pop if is_last else left.popleft)()
        stuck = [number for number in order.next(longest[0]) if number < order.known]
        until = order.passed(placed for placed, _ in came)
        return self._found(False, came, longest, stuck)._replace(until=until)

    def _found(
        self,
        is_right: bool,
        came: Mapping[_Visit, tuple[int, _Visit, int]],
        last: _Visit,
        stuck: Sequence[int],
    ) -> Found:
        calls = self._order.calls
        states = self._steps.states(last[1])
        path = list[int]()
        while came[last][0]:
            _, last, number = came[last]
            path.append(number)
        return Found(
            is_right,
            tuple(calls[number] for number in reversed(path)),
            states,
            tuple(calls[number] for number in stuck),
            len(came),
        )
