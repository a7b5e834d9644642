"""Work of one turn of the event loop: what goes together, what waits, and in which order."""

from collections.abc import Generator

from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.core.work import LIGHT_BYTES, TURN_BYTES_MAX, Work
from quorate.timestamps.clock import Now
from tests.unit.client_sdk.protocol.core.test_rounds import DEADLINE_S, Post


class Working:
    """Tasks that want to work, and which of them did, in order."""

    def __init__(self) -> None:
        self.work = Work()
        self.done: list[int] = []
        self._waiting: dict[int, Generator[float, Event, None]] = {}
        self._tasks: list[Task] = []

    def begin(self, size: int) -> int:
        """A new task does so much, or waits."""
        task = Task(len(self._tasks), Post(), Now(0.0, 0), DEADLINE_S)
        self._tasks.append(task)
        self._waiting[task.number] = self.work.wait(task, size)
        self._go_on(task.number)
        return task.number

    def turn(self, now_s: float = 0.0) -> None:
        """The next turn of the event loop: all that wait look again."""
        self.work.begin_turn()
        for number in list(self._waiting):
            self._tasks[number].now = Now(now_s, 0)
            self._go_on(number)

    def close(self, number: int) -> None:
        """It is driven no more."""
        self._waiting.pop(number).close()

    def _go_on(self, number: int) -> None:
        try:
            next(self._waiting[number])
        except StopIteration:
            del self._waiting[number]
            self.done.append(number)


HALF = TURN_BYTES_MAX // 2


def test_so_much_is_done_in_one_turn_and_one_that_is_larger_alone() -> None:
    working = Working()
    for size in (HALF, HALF, HALF, 9 * TURN_BYTES_MAX, HALF):
        working.begin(size)
    assert working.done == [0, 1]
    working.turn()
    assert working.done == [0, 1, 2, 3]
    working.turn()
    assert working.done == [0, 1, 2, 3, 4]


def test_who_waits_goes_in_the_order_of_coming_and_newcomers_wait_behind() -> None:
    working = Working()
    for _ in range(4):
        working.begin(TURN_BYTES_MAX)
    working.work.begin_turn()
    late = working.begin(LIGHT_BYTES)
    for _ in range(4):
        working.turn()
    assert working.done == [0, 1, 2, 3, late]


def test_small_states_wait_for_nobody() -> None:
    working = Working()
    working.begin(TURN_BYTES_MAX)
    waiting = working.begin(TURN_BYTES_MAX)
    small = working.begin(LIGHT_BYTES - 1)
    assert working.done == [0, small]
    working.turn()
    assert working.done == [0, small, waiting]


def test_one_that_is_driven_no_more_or_late_holds_up_nobody() -> None:
    working = Working()
    for _ in range(4):
        working.begin(TURN_BYTES_MAX)
    working.close(1)
    working.turn()
    assert working.done == [0, 2]
    working.turn(DEADLINE_S)
    working.begin(LIGHT_BYTES)
    working.turn()
    assert working.done == [0, 2, 3, 4]
