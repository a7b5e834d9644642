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
        self.late: list[int] = []
        """Those whose deadline came before."""
        self._waiting: dict[int, Generator[float, Event, bool]] = {}
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
        except StopIteration as stop:
            del self._waiting[number]
            (self.done if stop.value else self.late).append(number)


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


def test_small_states_wait_for_no_large_ones_but_for_so_many_small_ones() -> None:
    working = Working()
    working.begin(TURN_BYTES_MAX)
    waiting = working.begin(TURN_BYTES_MAX)
    light = [working.begin(LIGHT_BYTES - 1) for _ in range(20)]
    at_once = TURN_BYTES_MAX // (LIGHT_BYTES - 1) + 1
    assert working.done == [0, *light[:at_once]]
    working.turn()
    assert working.done == [0, *light[:at_once], waiting, *light[at_once:]]


def test_one_that_is_driven_no_more_holds_up_nobody() -> None:
    working = Working()
    for _ in range(4):
        working.begin(TURN_BYTES_MAX)
    working.close(1)
    working.turn()
    assert working.done == [0, 2]
    working.turn()
    assert working.done == [0, 2, 3]


def test_whose_deadline_comes_first_does_nothing_any_more() -> None:
    """All who waited did all of it then, in one turn, and for nobody."""
    working = Working()
    for _ in range(4):
        working.begin(TURN_BYTES_MAX)
    working.turn(DEADLINE_S)
    assert (working.done, working.late) == ([0], [1, 2, 3])
    assert working.begin(TURN_BYTES_MAX) in working.done
