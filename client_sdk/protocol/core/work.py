"""Work of one turn of the event loop: decisions on large states wait for one another, so that everybody else has turns between. Pure.

A batch of answers from a replica lets decisions on many objects go on at one moment. Each is bounded; together they took seconds.
"""

from collections import deque
from collections.abc import Generator
from typing import Final

from .rounds import SOON_S, Event, Task

TURN_BYTES_MAX: Final = 1024 * 1024
"""Of states and arguments that decisions work on in one turn, together, or one alone: work of some hundredths of a second."""
LIGHT_BYTES: Final = 64 * 1024
"""Less than this waits for none that has more."""


class Work:
    """That of one front end: so much in a turn, where light decisions (below `light_bytes`) do not wait for others. Who waits looks again
    after `pause_s`."""

    def __init__(
        self, turn_bytes: int = TURN_BYTES_MAX, light_bytes: int = LIGHT_BYTES, pause_s: float = SOON_S
    ) -> None:
        self._light_bytes: Final = light_bytes
        self._light: Final = _Lane(turn_bytes, pause_s)
        self._heavy: Final = _Lane(turn_bytes, pause_s)

    def begin_turn(self) -> None:
        """The event loop has looked after all others."""
        self._light.done = self._heavy.done = 0

    def wait(self, task: Task, size: int) -> Generator[float, Event, bool]:
        """Wait until so much may be done in this turn, in the order of those who wait. False: the deadline has passed before."""
        return (yield from (self._light if size < self._light_bytes else self._heavy).wait(task, size))


class _Lane:
    """Those that wait for one another."""

    def __init__(self, turn_bytes: int, pause_s: float) -> None:
        self.done = 0
        """In this turn."""
        self._turn_bytes: Final = turn_bytes
        self._pause_s: Final = pause_s
        self._waiting: Final[deque[Task]] = deque()

    def wait(self, task: Task, size: int) -> Generator[float, Event, bool]:
        """As of `Work`."""
        if self._waiting or self.done >= self._turn_bytes:
            self._waiting.append(task)
            try:
                while self._waiting[0] is not task or self.done >= self._turn_bytes:
                    yield task.now.mono_s + self._pause_s
                    if task.is_late:
                        return False
            finally:
                self._waiting.remove(task)
        self.done += size
        return True
