"""Operations that would ask replicas for the same: one of them does, and the others wait for what it learns. Pure.

What is asked for may be large, and each replica would send it to each of them.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from .rounds import Event, Expired, Task

_Answer = TypeVar("_Answer")


class Line:
    """Those of one front end. Once one has learnt it, nobody waits any more."""

    __slots__ = ("_asker", "_tasks", "is_over")

    def __init__(self) -> None:
        self._tasks: dict[Task, Expired | None] = {}
        """Each with the refusal that another one was told, if it was."""
        self._asker: Task | None = None
        """The one that asks, or is to."""
        self.is_over = False

    def learn(
        self,
        task: Task,
        ask: Callable[[], Generator[float, Event, _Answer]],
        wake: Callable[[Task], None],
    ) -> Generator[float, Event, _Answer | None]:
        """What `ask` returns; None where another task has learnt it. Where that one fails, or its caller goes, another one asks;
        what the replicas refused it they refuse to all who wait.

        Raises Expired.
        """
        self._tasks[task] = None
        try:
            while not self.is_over and self._asker not in (None, task) and not task.is_late:
                yield task.deadline_s
                if (refused := self._tasks[task]) is not None:
                    raise Expired(refused.detail, refused.answered, is_refused=True, limit=refused.limit)
            if self.is_over:
                return None
            if task.is_late:
                raise Expired("another operation asked the replicas first, and had no answer in time")
            self._asker = task
            learnt = yield from ask()
            self.is_over = True
            self._wake_others(task, wake)
            return learnt
        except Expired as failed:
            if self._asker is task and failed.is_refused:
                self._tasks = dict.fromkeys(self._tasks, failed)
                self._wake_others(task, wake)
                self._asker = None
            raise
        finally:
            del self._tasks[task]
            if self._asker is task:
                self._pass_on(wake)

    def _wake_others(self, task: Task, wake: Callable[[Task], None]) -> None:
        for waiting in self._tasks:  # In order: a seed of the simulation is one run.
            if waiting is not task:
                wake(waiting)

    def _pass_on(self, wake: Callable[[Task], None]) -> None:
        """To whoever has most time left: the others wait for the same answer, and the oldest might have less time than it takes."""
        self._asker = None
        if self._tasks and not self.is_over:
            self._asker = max(self._tasks, key=lambda waiting: waiting.deadline_s)
            wake(self._asker)


class Passage:
    """Tasks of one front end that go on side by side, so many at a time, the first first."""

    __slots__ = ("_under_way", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Task, None] = {}
        self._under_way = 0

    def enter(self, task: Task, most: int, wake: Callable[[Task], None]) -> Generator[float, Event, bool]:
        """Wait until fewer than `most` are under way, of which the task is one until it `leave`s. False: its time is over before."""
        self._waiting[task] = None
        try:
            while next(iter(self._waiting)) is not task or self._under_way >= most:
                yield task.deadline_s
                if task.is_late or task.is_left:
                    return False
            self._under_way += 1
            return True
        finally:
            del self._waiting[task]
            self._wake_first(wake)

    def leave(self, wake: Callable[[Task], None]) -> None:
        """Another one may enter."""
        self._under_way -= 1
        self._wake_first(wake)

    def _wake_first(self, wake: Callable[[Task], None]) -> None:
        if self._waiting:
            wake(next(iter(self._waiting)))
