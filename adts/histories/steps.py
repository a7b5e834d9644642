"""The steps of an order that is being looked for: which call may come next, and what states it leaves.

A call that returned and never changes anything is placed as soon as it may be and its answer fits, and nothing else is tried then: wherever
it stood in a right order, it can stand here. So reads do not branch. That asks for a specification which says what changes (`changes`);
without it each call branches. A call whose outcome is unknown is placed where it changes something, or never.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any

from ..specification import Event, EventClass, Invocation, Response, SerialSpecification, outcomes_of
from .orders import Order


class Steps:
    """What may come next, and to what it leads. States and calls are small numbers: a state is compared with others once, when it is first
    met."""

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

    def start(self) -> tuple[Any, int]:
        """No call is placed, and the objects are new."""
        return self._order.start(), self._number(tuple(each.initial() for each in self._specifications))

    def states(self, state: int) -> Mapping[str, Any]:
        """The states that a number stands for, by object."""
        return dict(zip(self._objects, self._states[state], strict=True))

    def further(self, placed: Any, state: int) -> Iterator[tuple[int, Any, int]]:
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
