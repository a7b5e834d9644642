"""Answers of eventual consistency: which of them fit no order of the other calls. Pure.

An answer is *explained* when the calls of atomic consistency and it have a right order in real time together, and with the answers that
returned and were explained before it. So the history is gone through from return to return, with the ways in which the calls until then can have
been ordered. Where no way is left for a call of atomic consistency, an answer was taken for explained that is not: it is looked for backwards, and
left out.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from ..specification import SerialSpecification
from .calls import Call
from .orders import Model
from .search import VISITS_MAX, Inconclusive, forced_order
from .steps import Steps

WAYS_MAX: Final = 2_000
"""In which the calls until a moment can have been ordered: with more of them, what comes later is not judged."""

_Way = tuple[tuple[int, int, int], int]
"""The calls that are placed (see `RealTime`), and the number of the state after them."""


class Anomalies(NamedTuple):
    """What was found of the weak answers about an object: of those that were `judged`, `missed` fit no order."""

    object: str
    weak: int
    judged: int
    missed: tuple[Call, ...]


def anomalies(
    name: str, specification: SerialSpecification, calls: Sequence[Call], visits_max: int = VISITS_MAX
) -> Anomalies | None:
    """Judge the weak answers among the calls on an object, in the order in which they came. None where the other calls have no right order.
    After `visits_max` steps, or where there are too many ways, what comes later is not judged."""
    told = [call for call in calls if call.is_known or not call.is_weak]
    judge = _Judge(name, specification, told, visits_max)
    try:
        if not judge.run():
            return None
    except Inconclusive:
        pass
    return Anomalies(name, sum(call.is_weak for call in told), judge.judged, judge.missed)


class _Judge:
    def __init__(
        self, name: str, specification: SerialSpecification, calls: Sequence[Call], visits_max: int
    ) -> None:
        self._order = forced_order({name: specification}, calls, Model.LINEARIZABLE)
        self._steps = Steps({name: specification}, self._order)
        self._visits_left = visits_max
        self._number = 0
        """Of the call that is looked at: those before it are placed."""
        self._missed: list[int] = []
        self._explained: list[tuple[int, set[_Way]]] = []
        """Each with the ways before it."""

    @property
    def missed(self) -> tuple[Call, ...]:
        """The weak answers that fit no order."""
        return tuple(self._order.calls[number] for number in self._missed)

    @property
    def judged(self) -> int:
        """How many weak answers were looked at."""
        return len(self._missed) + len(self._explained)

    def run(self) -> bool:
        """Judge; whether the other calls have a right order. Raises Inconclusive."""
        order = self._order
        ways = {self._steps.start()}
        while self._number < order.known:
            after = self._after(self._number, ways)
            if order.calls[self._number].is_weak:
                if after:
                    self._explained.append((self._number, ways))
                else:
                    self._missed.append(self._number)
            elif not after:
                if (before := self._last_right()) is None:
                    return False
                self._number, ways = before
                self._missed = [*(number for number in self._missed if number < self._number), self._number]
            ways = after or self._left_out(self._number, ways)
            self._number += 1
        return True

    def _last_right(self) -> tuple[int, set[_Way]] | None:
        """The last weak answer, and the ways before it, from which the call that is looked at can be reached if it and all weak ones that follow are
        left out. Those explained since are forgotten."""
        while self._explained:
            number, before = self._explained.pop()
            ways = before
            for each in range(number, self._number + 1):
                is_weak = self._order.calls[each].is_weak
                ways = self._left_out(each, ways) if is_weak else self._after(each, ways)
            if ways:
                return number, before
        return None

    def _after(self, number: int, ways: set[_Way]) -> set[_Way]:
        """The ways to have placed one more call as well, the next that returned; without those that are as another one but for more calls of
        unknown outcome: whatever can follow them can follow that one."""
        found = set[_Way]()
        seen: dict[tuple[int, int, int], list[int]] = {}
        serial = count()
        left = list[tuple[int, int, _Way]]()
        for way in ways:
            heappush(left, (way[0][2].bit_count(), next(serial), way))
        while left:
            if self._visits_left < 0 or len(seen) > WAYS_MAX:
                raise Inconclusive("the calls until a moment have too many orders")
            _, _, ((base, window, of_unknown), state) = heappop(left)
            less = seen.setdefault((base, window, state), [])
            if any(of_unknown & each == each for each in less):
                continue
            less.append(of_unknown)
            if base > number:
                found.add(((base, window, of_unknown), state))
                continue
            for _, placed, then in self._steps.further((base, window, of_unknown), state):
                self._visits_left -= 1
                heappush(left, (placed[2].bit_count(), next(serial), (placed, then)))
        return found

    def _left_out(self, number: int, ways: set[_Way]) -> set[_Way]:
        """With a weak answer placed, whatever it says."""
        with_one: Any = self._order.with_one
        return {(placed if placed[0] > number else with_one(placed, number), state) for placed, state in ways}
