"""Whether the calls of an object of one's own type are those of a single copy, by the search that `quorate check` uses.

Owns how the class is asked. The order of blind calls among each other rests on clocks; no other order does.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ...adts.histories import calls as judged
from ...adts.histories.orders import Model, order_of
from ...adts.histories.search import Inconclusive, search_in
from ...adts.plain_class import BadClass, PlainClass
from ...adts.specification import EventClass, Invocation, Response
from ..history import Call
from ..violation import Violation
from .checkers import shown

VISITS_MAX: Final = 60_000
STEPS_MAX: Final = 100_000
"""Steps that are remembered; where code is loaded for each, a step takes a millisecond."""


class NoOrder(Violation):
    """No single copy could have given these answers. `calls` are all calls of the object, as `adts.histories` has them."""

    def __init__(self, text: str, calls: Sequence[judged.Call]) -> None:
        super().__init__(text)
        self.calls: Final = calls


class Law:
    """What a class says, as a serial specification: `copied` gives the copy of its code that takes a step. Where that is a new one
    each time, nothing that the class keeps outside of the state can answer.

    A step that the code is not able to take has no outcome: nothing is done then.
    """

    def __init__(self, copied: Callable[[], PlainClass]) -> None:
        found = copied()
        self.name: Final = found.name
        self.blind: Final = found.blind
        self.arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = found.arguments
        self.results: Final[Mapping[EventClass, tuple[str, ...]]] = found.results
        self._copied: Final = copied
        self._initial: Final = found.initial()
        self._known: Final = lru_cache(STEPS_MAX)(self._taken)

    def initial(self) -> Hashable:
        """See SerialSpecification."""
        return self._initial

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification. Raises BadClass."""
        return self._copied().step(state, invocation)

    def outcomes(self, state: Any, invocation: Invocation) -> Iterable[tuple[Any, Response]]:
        """See Nondeterministic."""
        return self._known(state, invocation)

    def _taken(self, state: Any, invocation: Invocation) -> tuple[tuple[Any, Response], ...]:
        try:
            return (self.step(state, invocation),)
        except BadClass:
            return ()


def check_own(name: str, law: Law, calls: Sequence[Call], *, is_exact: bool) -> int:
    """Check all calls of one object. Returns the number of searches that were given up (0 or 1); raises NoOrder. Unless it `is_exact`,
    clocks are worse than declared: then one blind call may come before another that ended before it began."""
    translated = [_judged(law.name, call) for call in calls]
    order = order_of(Model.LINEARIZABLE, translated) if is_exact else ByWrongClocks(translated, law.blind)
    try:
        found = search_in({law.name: law}, order, VISITS_MAX)
    except Inconclusive:
        return 1
    if not found.is_right:
        raise NoOrder(f"{name} is not linearizable ({law.name}):\n{shown(calls)}", translated)
    return 0


class ByWrongClocks:
    """Real time, but for blind calls among each other. What is placed are bits."""

    def __init__(self, calls: Sequence[judged.Call], blind: Collection[str]) -> None:
        self.calls: Sequence[judged.Call] = sorted(calls, key=lambda call: (not call.is_known, call.returned))
        self.known: int = sum(call.is_known for call in calls)
        self._all = (1 << self.known) - 1
        are_blind = [call.invocation.operation in blind for call in self.calls]
        self._before = [
            sum(
                1 << other
                for other, earlier in enumerate(self.calls[: self.known])
                if earlier.returned < call.invoked and not (are_blind[other] and are_blind[number])
            )
            for number, call in enumerate(self.calls)
        ]

    def start(self) -> int:
        """See Order."""
        return 0

    def is_done(self, placed: int) -> bool:
        """See Order."""
        return placed & self._all == self._all

    def next(self, placed: int) -> list[int]:
        """See Order."""
        return [
            number
            for number, before in enumerate(self._before)
            if not placed >> number & 1 and before & ~placed == 0
        ]

    def with_one(self, placed: int, number: int) -> int:
        """See Order."""
        return placed | 1 << number

    def passed(self, met: Iterable[int]) -> float:
        """See Order."""
        return judged.NEVER


def _judged(name: str, call: Call) -> judged.Call:
    begun = judged.Call(call.who, name, Invocation(call.operation, call.args), call.invoked)
    if not call.is_known:
        return begun
    condition, *results = call.results
    return begun._replace(returned=call.returned, answers=(Response(condition, tuple(results)),))
