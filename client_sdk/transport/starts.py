"""Operations of many callers that begin in one turn of the event loop, begun in one call of the machine.

Owns which of them those are. Each keeps an outcome of its own; what the machine makes of their beginning together is the
machine's. Must not know how an operation runs.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, Final

from ...api_specs.limits import ENTRY_BYTES, Limits
from ...api_specs.values import text_bytes
from ...timestamps.clock import Now
from ..protocol.core.values import Enqueue, Operation, Outcome, Write

STARTS_MAX: Final = 256
"""Operations begun together: more would wait for each other's messages to be made."""
SAME_DIGITS: Final = 2
"""Of operations that have a second or more, those whose time is over in the same hundredth are begun together, with the time of the earliest."""
BYTES_MAX: Final = 256 * 1024
"""What they weigh: a small one should not wait for many large ones to be sent."""


class Start:
    """One operation, when it was asked for, how long it may take since, and its caller. `number` is the machine's, once it has begun."""

    __slots__ = ("asked", "caller", "deadline_s", "missed", "number", "operation", "traced", "turn")

    def __init__(
        self, operation: Operation, deadline_s: float, asked: Now, traced: Sequence[Any], turn: Hashable
    ) -> None:
        self.operation: Final = operation
        self.deadline_s: Final = deadline_s
        self.asked: Final = asked
        self.turn: Final = turn
        """Who takes turns with others."""
        self.traced: Final = traced
        """Its span, if it has one."""
        self.caller: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        """Who waits for the outcome."""
        self.missed: Outcome | None = None
        """The outcome, where it came to a caller that was cancelled."""
        self.number = 0

    def answer(self, outcome: Outcome) -> None:
        """It has come to this."""
        if not self.caller.done():
            self.caller.set_result(outcome)
        elif self.caller.cancelled():
            self.missed = outcome

    @property
    def until_s(self) -> float:
        """When its time is over."""
        return self.asked.mono_s + self.deadline_s


Begin = Callable[[Sequence[Start], float, Now], None]


class Starts:
    """Has operations with the same deadline begun by `begin`, all of one turn at once, as far as they fit one message; of two turns where
    callers come `by_connections`, which are read one after the other: with 21 that ask at a time, a fifth more are done a second. `begin` is told
    how long they may take, and since when: this process may be stopped in between. `now` tells the time."""

    def __init__(
        self, begin: Begin, limits: Limits, now: Callable[[], Now], *, by_connections: bool = False
    ) -> None:
        self._begin: Final = begin
        self._now: Final = now
        self._asked = now()
        self._by_connections: Final = by_connections
        self._starts_max: Final = min(STARTS_MAX, limits.requests_max)
        self._bytes_max: Final = min(BYTES_MAX, limits.body_bytes_max // 2)
        self._waiting: list[Start] = []

    def add(
        self,
        operation: Operation,
        deadline_s: float,
        traced: Sequence[Any] = (),
        turn: Hashable = None,
        asked: Now | None = None,
    ) -> Start:
        """The operation is begun in the next turn, or the one after, unless its caller goes away before. `asked`: when it was asked for,
        where that was before."""
        if not self._waiting:
            self._asked = self._now()
            loop = asyncio.get_running_loop()
            if self._by_connections:
                loop.call_soon(loop.call_soon, self._begin_all)
            else:
                loop.call_soon(self._begin_all)
        start = Start(operation, deadline_s, asked or self._asked, traced, turn)
        self._waiting.append(start)
        return start

    def take(self) -> list[Start]:
        """Those that wait; they are not begun."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _begin_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        by_deadline: dict[float, list[Start]] = {}
        for start in waiting:
            if not start.caller.done():
                until_s = start.until_s
                same_s = round(until_s, SAME_DIGITS) if start.deadline_s >= 1 else until_s
                by_deadline.setdefault(same_s, []).append(start)
        for started in by_deadline.values():
            earliest = min(started, key=_until_s)
            for group in self._groups(started):
                self._begin(group, earliest.deadline_s, earliest.asked)

    def _groups(self, starts: Sequence[Start]) -> list[list[Start]]:
        groups: list[list[Start]] = []
        size = self._bytes_max
        for start in starts:
            own = _bytes_of(start.operation)
            if size + own > self._bytes_max or len(groups[-1]) >= self._starts_max:
                groups.append([])
                size = 0
            groups[-1].append(start)
            size += own
        return groups


_until_s: Final = attrgetter("until_s")


def _bytes_of(operation: Operation) -> int:
    """About what its request weighs."""
    match operation:
        case Enqueue():
            values = operation.values
            return ENTRY_BYTES * (1 + len(values)) + text_bytes("".join(values))
        case Write(value=str() as value):
            return ENTRY_BYTES + text_bytes(value)
    return ENTRY_BYTES
