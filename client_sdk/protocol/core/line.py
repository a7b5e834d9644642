"""Operations that would ask replicas for the same: one of them does, and the others wait for what it learns. Pure.

What is asked for may be large, and each replica would send it to each of them.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from .rounds import Event, Expired, Task

_Answer = TypeVar("_Answer")


class Line:
    """Those of one front end, in the order in which they came. Once one has learnt it, nobody waits any more."""

    __slots__ = ("_tasks", "is_over")

    def __init__(self) -> None:
        self._tasks: dict[Task, None] = {}
        self.is_over = False

    def learn(
        self,
        task: Task,
        ask: Callable[[], Generator[float, Event, _Answer]],
        wake: Callable[[Task], None],
    ) -> Generator[float, Event, _Answer | None]:
        """What `ask` returns; None where another task has learnt it. Where that one fails, or its caller goes, the next one asks.

        Raises Expired.
        """
        self._tasks[task] = None
        try:
            while not (self.is_over or self._is_first(task)):
                if task.is_late:
                    raise Expired("another operation asked the replicas first, and had no answer in time")
                yield task.deadline_s
            if self.is_over:
                return None
            learnt = yield from ask()
            self.is_over = True
            for waiting in list(self._tasks)[1:]:
                wake(waiting)
            return learnt
        finally:
            was_to_ask = self._is_first(task) and not self.is_over
            del self._tasks[task]
            if was_to_ask and self._tasks:
                wake(next(iter(self._tasks)))

    def _is_first(self, task: Task) -> bool:
        return next(iter(self._tasks)) is task
