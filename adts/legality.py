"""Which histories of a data type are legal, over a few sample invocations: as walks through numbered positions. Pure.

Owns the step from "states and responses" to "events that may come next". Must not know what is asked about histories.

A *position* is what a history leads to: the set of states in which the object may be after it. For a deterministic type
that is one state. An event may come next when some of these states has an outcome with its response (the subset
construction of automata theory), so that legality is exact for types that may answer in several ways, too. Histories
with the same position have the same futures; a search needs to look at each position once, not at each history.
"""

from collections.abc import Hashable, Mapping
from itertools import product
from typing import Final

from .specification import Event, Invocation, SerialSpecification, outcomes_of

START: Final = 0
"""The position of the empty history."""


class Legality:
    """The legal histories of a type over the sample invocations that it declares.

    Positions and events are small numbers, given in the order in which they are met, which is the same in every run.
    """

    def __init__(self, specification: SerialSpecification) -> None:
        self._specification: Final = specification
        self._invocations: Final = invocations_of(specification)
        self.events: Final[list[Event]] = []
        self._event_numbers: Final[dict[Event, int]] = {}
        self._states: Final[list[tuple[Hashable, ...]]] = []
        self._positions: Final[dict[frozenset[Hashable], int]] = {}
        self._moves: Final[dict[int, Mapping[int, int]]] = {}
        self._position_of([specification.initial()])

    def moves(self, position: int) -> Mapping[int, int]:
        """The events that may come next, each with the position after it."""
        if position not in self._moves:
            self._moves[position] = self._moves_from(self._states[position])
        return self._moves[position]

    def _moves_from(self, states: tuple[Hashable, ...]) -> Mapping[int, int]:
        after: dict[Event, list[Hashable]] = {}
        for invocation, state in product(self._invocations, states):
            for new, response in outcomes_of(self._specification, state, invocation):
                after.setdefault(Event(invocation, response), []).append(new)
        return {self._event_number(event): self._position_of(new) for event, new in after.items()}

    def _event_number(self, event: Event) -> int:
        number = self._event_numbers.setdefault(event, len(self.events))
        if number == len(self.events):
            self.events.append(event)
        return number

    def _position_of(self, states: list[Hashable]) -> int:
        """The number of a set of states. Kept as met, not as a set: the order of a set of texts differs from run to run."""
        position = self._positions.setdefault(frozenset(states), len(self._states))
        if position == len(self._states):
            self._states.append(tuple(dict.fromkeys(states)))
        return position


def invocations_of(specification: SerialSpecification) -> list[Invocation]:
    """Every operation with every combination of its sample arguments."""
    return [
        Invocation(operation, args)
        for operation, samples in specification.arguments.items()
        for args in product(*samples.values())
    ]
