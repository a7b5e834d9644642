"""Places for commands that wait for decisions: callers have so many at a time, on however many objects, and take turns. Pure.

What decisions on one object work on together is bounded. Those of one caller on seven hundred objects were all under way at
once, and the messages of everybody else waited for theirs.
"""

from collections.abc import Callable, Generator
from typing import Final

from msgspec import Struct

from ....api_specs.limits import PLACES_MAX
from .rounds import Event, Task
from .turns import Shares, Turns


class _Waiting(Struct, eq=False):
    """A task that waits for places, or waited."""

    task: Task
    size: int
    has_come: bool = False
    is_over: bool = False


class Places:
    """Those of one front end, which `wake`s tasks. Who takes turns with nobody, as a client's own operations, needs none."""

    def __init__(self, wake: Callable[[Task], None]) -> None:
        self._wake: Final = wake
        self._shares: Final = Shares(PLACES_MAX)
        self._waiting: Final[Turns[_Waiting]] = Turns()

    def take(self, task: Task, size: int) -> Generator[float, Event, bool]:
        """Wait for places, which the task then has to `give` back. False: its deadline has passed before, or its caller has gone.

        Where one is free it takes as many as it needs, or a large command would wait for ever beside small ones; but a quarter at most.
        """
        if task.turn is None or self._shares.may_take(task.turn):
            self._hold(task, size)
            return True
        waiting = _Waiting(task, size)
        self._waiting.add(task.turn, waiting)
        is_taken = False
        try:
            while not (waiting.has_come or task.is_late or task.is_left):
                yield task.deadline_s
            is_taken = waiting.has_come and not (task.is_late or task.is_left)
        finally:
            waiting.is_over = True
            if waiting.has_come and not is_taken:
                self.give(task, size)
        return is_taken

    def give(self, task: Task, size: int) -> None:
        """What the task took is free again."""
        if task.turn is None:
            return
        self._shares.give(task.turn, self._shares.fitted(size))
        while (waiting := self._waiting.pop(self._shares.may_take)) is not None:
            if not waiting.is_over:
                self._hold(waiting.task, waiting.size)
                waiting.has_come = True
                self._wake(waiting.task)

    def _hold(self, task: Task, size: int) -> None:
        if task.turn is not None:
            self._shares.take(task.turn, self._shares.fitted(size))
