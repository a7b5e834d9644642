"""The steps of an order that is being looked for: which call may come next, and what states it leaves.

A call that returned and never changes anything is placed as soon as it may be and its answer fits, and nothing else is tried then: wherever
it stood in a right order, it can stand here. So reads do not branch. That asks for a specification which says what changes (`changes`);
without it each call branches. A call whose outcome is unknown is placed where it changes something, or never.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..specification import Event, EventClass, Invocation, Response, SerialSpecification, outcomes_of
from .likely import Likely
from .orders import Order

UNTOLD: Final = -1
"""The number of each response that no call was answered with."""


class Steps:
    """What may come next, and to what it leads. States, calls and responses are small numbers: a state is compared with others once, when it is
    first met. An object is asked once what an invocation does in a state, however many calls ask that."""

    def __init__(self, specifications: Mapping[str, SerialSpecification], order: Order) -> None:
        self._order = order
        self._likely = Likely(order.calls)
        self._objects = list(specifications)
        self._specifications = list(specifications.values())
        self._states: list[tuple[Hashable, ...]] = []
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        places = {name: place for place, name in enumerate(self._objects)}
        questions: dict[tuple[int, Invocation], int] = {}
        kinds: dict[tuple[int, tuple[Response, ...]], int] = {}
        self._kind_of = list[int]()
        for call in order.calls:
            question = questions.setdefault((places[call.object], call.invocation), len(questions))
            self._kind_of.append(kinds.setdefault((question, call.answers), len(kinds)))
        self._questions = list(questions)
        self._responses: dict[Response, int] = {}
        self._outcomes: list[dict[int, tuple[tuple[int, int], ...]]] = [{} for _ in questions]
        """What each question does, by the state in which it is asked: (state after it, response)."""
        self._kinds = [(question, frozenset(map(self._told, answers))) for question, answers in kinds]
        """The question that calls of a kind ask, and the responses that they may have had; any, where there is none."""
        self._never_changes = [
            self._is_without_effect(*self._questions[question], answers) for question, answers in kinds
        ]

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
        """(call, placed, state) of each step from here, the likeliest first."""
        order, kind_of, never_changes = self._order, self._kind_of, self._never_changes
        known, left = order.known, []
        for number in order.next(placed):
            if number < known and never_changes[kind_of[number]]:
                after = self._after(kind_of[number], state)
                if not after:
                    continue
                if set(after) == {state}:
                    return iter(((number, order.with_one(placed, number), state),))
            left.append(number)
        return self._branches(placed, state, left)

    def _branches(self, placed: Any, state: int, numbers: Sequence[int]) -> Iterator[tuple[int, Any, int]]:
        """What each of these calls leads to; an object is asked when the branch is looked at."""
        order, known = self._order, self._order.known
        alike = set()
        for number in self._likely.first(numbers) if len(numbers) > 1 else numbers:
            kind = self._kind_of[number]
            if number < known:
                for new in self._after(kind, state):
                    yield number, order.with_one(placed, number), new
            elif kind not in alike:
                alike.add(kind)  # They can be swapped: one stands for all.
                for new in self._after(kind, state):
                    if new != state:
                        yield number, order.with_one(placed, number), new

    def _after(self, kind: int, state: int) -> list[int]:
        """The states after a call of that kind, by each outcome that agrees with its answer."""
        question, answers = self._kinds[kind]
        outcomes = self._outcomes[question]
        found = outcomes.get(state)
        if found is None:
            found = outcomes[state] = self._asked(question, state)
        return [after for after, response in found if not answers or response in answers]

    def _asked(self, question: int, state: int) -> tuple[tuple[int, int], ...]:
        place, invocation = self._questions[question]
        states, responses = self._states[state], self._responses
        before = states[place]
        return tuple(
            (
                state if after is before else self._number((*states[:place], after, *states[place + 1 :])),
                responses.get(response, UNTOLD),
            )
            for after, response in outcomes_of(self._specifications[place], before, invocation)
        )

    def _told(self, response: Response) -> int:
        return self._responses.setdefault(response, len(self._responses))

    def _number(self, states: tuple[Hashable, ...]) -> int:
        number = self._numbers.setdefault(states, len(self._states))
        if number == len(self._states):
            self._states.append(states)
        return number
