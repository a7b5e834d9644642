"""Whether the calls of an object of one's own type are those of a single copy, by the search that `quorate check` uses.

Owns how the class is asked. The order of blind calls among each other rests on clocks; no other order does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from ...adts.histories import calls as judged
from ...adts.histories.search import Inconclusive, search
from ...adts.plain_class import BadClass, PlainClass
from ...adts.specification import EventClass, Invocation, Response
from ..history import NEVER, Call
from ..violation import Violation
from .checkers import shown

VISITS_MAX: Final = 12_000
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
    translated = [_judged(law.name, call) for call in (calls if is_exact else _widened(calls, law.blind))]
    try:
        found = search({law.name: law}, translated, visits_max=VISITS_MAX)
    except Inconclusive:
        return 1
    if not found.is_right:
        raise NoOrder(f"{name} is not linearizable ({law.name}):\n{shown(calls)}", translated)
    return 0


def _widened(calls: Sequence[Call], blind: Collection[str]) -> list[Call]:
    """The calls, of which blind ones begin as soon as the last other one has ended, and end when the next other one begins."""
    others = [call for call in calls if call.operation not in blind]
    ends, begins = sorted(call.returned for call in others), sorted(call.invoked for call in others)

    def wide(call: Call) -> Call:
        before, after = bisect_left(ends, call.invoked), bisect_right(begins, call.returned)
        invoked = ends[before - 1] + 1 if before else 0
        is_bound = call.is_known and after < len(begins)
        returned = begins[after] - 1 if is_bound else NEVER - call.is_known
        return replace(call, invoked=invoked, returned=returned)

    return [wide(call) if call.operation in blind else call for call in calls]


def _judged(name: str, call: Call) -> judged.Call:
    begun = judged.Call(call.who, name, Invocation(call.operation, call.args), call.invoked)
    if not call.is_known:
        return begun
    condition, *results = call.results
    return begun._replace(returned=call.returned, answers=(Response(condition, tuple(results)),))
