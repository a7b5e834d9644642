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
"""Less than this waits for nobody."""


class Work:
    """That of one front end: so much in a turn, where who has little to do (`light_bytes`) does not wait, and others look again after
    `pause_s`."""

    def __init__(
        self,
        turn_bytes: int = TURN_BYTES_MAX,
        light_bytes: int = LIGHT_BYTES,
        pause_s: float = SOON_S,
    ) -> None:
        self._turn_bytes: Final = turn_bytes
        self._light_bytes: Final = light_bytes
        self._pause_s: Final = pause_s
        self._done = 0
        self._waiting: Final[deque[Task]] = deque()

    def begin_turn(self) -> None:
        """The event loop has looked after all others."""
        self._done = 0

    def wait(self, task: Task, size: int) -> Generator[float, Event, None]:
        """Wait until so much may be done in this turn, in the order of those who wait; at the deadline it may be done at once."""
        if size < self._light_bytes:
            return
        if self._waiting or self._done >= self._turn_bytes:
            self._waiting.append(task)
            try:
                while (self._waiting[0] is not task or self._done >= self._turn_bytes) and not task.is_late:
                    yield task.now.mono_s + self._pause_s
            finally:
                self._waiting.remove(task)
        self._done += size
