"""Is there an order of the calls that serial objects would have answered as these were? Exact (Wing and Gong 1993, Lowe 2017).

Depth first over (calls placed, states of the objects), each visited once. A call that returned and never changes anything is
placed as soon as it may be and its answer fits, and nothing else is tried then: wherever it stood in a right order, it can stand
here. So reads do not branch. That asks for a specification which says what changes (`changes`); without it each call branches.
A call whose outcome is unknown is placed where it changes something, or never.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..specification import Event, EventClass, Invocation, Response, SerialSpecification, outcomes_of
from .calls import Call
from .forced import FirstIn, has_distinct_items, is_first_in_first_out
from .orders import Model, Order, order_of

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
    order = _forced(specifications, calls, model) if may_be_forced else order_of(model, calls)
    return search_in(specifications, order, visits_max)


def search_in(
    specifications: Mapping[str, SerialSpecification], order: Order, visits_max: int = VISITS_MAX
) -> Found:
    """Look for an order of calls among those that `order` allows. Raises Inconclusive beyond `visits_max`."""
    return _Search(specifications, order).run(visits_max)


def _forced(specifications: Mapping[str, SerialSpecification], calls: Sequence[Call], model: Model) -> Order:
    are_queues = [is_first_in_first_out(each) for each in specifications.values()]
    if model is Model.LINEARIZABLE and are_queues == [True] and has_distinct_items(calls):
        return FirstIn(calls)
    return order_of(model, calls)


class _Search:
    """States and calls as small numbers: a state is compared with others once, when it is first met."""

    def __init__(self, specifications: Mapping[str, SerialSpecification], order: Order) -> None:
        self._order = order
        self._objects = list(specifications)
        self._specifications = list(specifications.values())
        self._states: list[tuple[Hashable, ...]] = []
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        kinds: dict[tuple[int, Invocation, tuple[Response, ...]], int] = {}
        places = {name: place for place, name in enumerate(self._objects)}
        self._kind_of = [
            kinds.setdefault((places[call.object], call.invocation, call.answers), len(kinds))
            for call in order.calls
        ]
        self._kinds = list(kinds)
        self._never_changes = [self._is_without_effect(*kind) for kind in kinds]
        self._effects: list[dict[int, tuple[int, ...]]] = [{} for _ in kinds]

    def _is_without_effect(self, place: int, invocation: Invocation, answers: tuple[Response, ...]) -> bool:
        changes: Collection[EventClass] | None = getattr(self._specifications[place], "changes", None)
        if changes is None:
            return False
        return not any(Event(invocation, answer).event_class in changes for answer in answers)

    def run(self, visits_max: int) -> Found:
        """See `search`."""
        order, start = self._order, self._order.start()
        state = self._number(tuple(each.initial() for each in self._specifications))
        if order.is_done(start):
            return self._found(True, [], state, (), 0)
        path: list[int] = []
        seen: set[tuple[Hashable, int]] = {(start, state)}
        branches = [self._further(start, state)]
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
            branches.append(self._further(placed, state))
            if len(path) > len(longest[0]):
                longest = list(path), placed, state
        numbers, placed, state = longest
        stuck = [number for number in order.next(placed) if number < order.known]
        return self._found(False, numbers, state, stuck, len(seen))

    def _found(
        self, is_right: bool, numbers: Sequence[int], state: int, stuck: Sequence[int], visits: int
    ) -> Found:
        calls = self._order.calls
        return Found(
            is_right,
            tuple(calls[number] for number in numbers),
            dict(zip(self._objects, self._states[state], strict=True)),
            tuple(calls[number] for number in stuck),
            visits,
        )

    def _further(self, placed: Any, state: int) -> Iterator[tuple[int, Any, int]]:
        """(call, placed, state) of each step from here."""
        order, kind_of = self._order, self._kind_of
        numbers = order.next(placed)
        steps = []
        for number in numbers:
            if number >= order.known:
                break
            effects = self._effects_of(kind_of[number], state)
            if effects == (state,) and self._never_changes[kind_of[number]]:
                return iter(((number, order.with_one(placed, number), state),))
            if effects:
                steps.append((number, effects))
        alike = set()
        for number in numbers:
            if number >= order.known and (kind := kind_of[number]) not in alike:
                alike.add(kind)  # They can be swapped: one stands for all.
                effects = self._effects_of(kind, state)
                if changes := tuple(new for new in effects if new != state):
                    steps.append((number, changes))
        return ((number, order.with_one(placed, number), new) for number, effects in steps for new in effects)

    def _effects_of(self, kind: int, state: int) -> tuple[int, ...]:
        """The states after a call of that kind, by each outcome that agrees with its answer."""
        effects = self._effects[kind].get(state)
        if effects is None:
            effects = self._effects[kind][state] = self._computed(kind, state)
        return effects

    def _computed(self, kind: int, state: int) -> tuple[int, ...]:
        place, invocation, answers = self._kinds[kind]
        states = self._states[state]
        found = outcomes_of(self._specifications[place], states[place], invocation)
        new = [after for after, response in found if not answers or response in answers]
        return tuple(
            dict.fromkeys(self._number((*states[:place], after, *states[place + 1 :])) for after in new)
        )

    def _number(self, states: tuple[Hashable, ...]) -> int:
        number = self._numbers.setdefault(states, len(self._states))
        if number == len(self._states):
            self._states.append(states)
        return number
