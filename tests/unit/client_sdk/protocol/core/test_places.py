"""Places for commands that wait for decisions: who has one, who waits, and what a task that ends while it waits leaves."""

from collections.abc import Callable, Generator, Hashable

import pytest

from quorate.api_specs.limits import PLACES_MAX
from quorate.client_sdk.protocol.core.places import Places
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.timestamps.clock import Now
from tests.unit.client_sdk.protocol.core.test_rounds import DEADLINE_S, Post

HALF = PLACES_MAX // 2


class Asking:
    """Tasks that ask for places, and what came of each."""

    def __init__(self) -> None:
        self.places = Places(self._go_on)
        self.came: list[Task] = []
        """Those that have places, in the order in which they got them."""
        self.failed: list[Task] = []
        self.steps: dict[Task, Generator[float, Event, bool]] = {}

    def ask(self, turn: Hashable, size: int = 1) -> Task:
        """A new task of this caller, which takes places or waits for them."""
        task = Task(len(self.steps), Post(), Now(0.0, 0), DEADLINE_S)
        task.turn = turn
        self.steps[task] = self.places.take(task, size)
        self._go_on(task)
        return task

    def ask_often(self, turn: Hashable, times: int) -> list[Task]:
        """The same so many times."""
        return [self.ask(turn) for _ in range(times)]

    def _go_on(self, task: Task) -> None:
        try:
            self.steps[task].send(None)
        except StopIteration as stop:
            (self.came if stop.value else self.failed).append(task)

    def expire(self, task: Task) -> None:
        """Its deadline has passed."""
        task.now = Now(DEADLINE_S, 0)
        self._go_on(task)

    def leave(self, task: Task) -> None:
        """Its caller has gone."""
        task.is_left = True
        self._go_on(task)

    def close(self, task: Task) -> None:
        """It is driven no more."""
        self.steps[task].close()


def test_one_caller_has_half_and_the_others_of_it_wait_for_those_to_be_given_back() -> None:
    asking = Asking()
    many = asking.ask_often("many", HALF + 3)
    assert asking.came == many[:HALF]
    asking.places.give(many[0], 1)
    assert asking.came == many[: HALF + 1]


def test_another_caller_does_not_wait_for_those_that_do() -> None:
    asking = Asking()
    asking.ask_often("many", PLACES_MAX)
    assert asking.ask("one") in asking.came


def test_a_large_one_leaves_places_for_others() -> None:
    """One of two megabytes took more than there are, and others waited until it was done."""
    asking = Asking()
    large = [asking.ask("many", 10 * PLACES_MAX) for _ in range(9)]
    assert asking.came == large[:2]
    assert asking.ask("one") in asking.came
    asking.places.give(large[0], 10 * PLACES_MAX)
    assert large[2] in asking.came


def test_who_waits_take_turns() -> None:
    asking = Asking()
    held = [asking.ask_often(f"caller {number}", PLACES_MAX) for number in range(20)]
    first = [asking.ask("a"), asking.ask("a"), asking.ask("b")]
    assert not set(first) & set(asking.came)
    for tasks in held:
        for task in tasks:
            if task not in asking.came:
                asking.close(task)
    before = len(asking.came)
    for task in held[0][:6]:
        asking.places.give(task, 1)
    assert asking.came[before:] == [first[0], first[2], first[1]]


def test_what_takes_more_places_leaves_fewer_and_needs_no_more_than_one_that_is_free() -> None:
    """A command that takes many would wait for ever beside small ones that come and go."""
    asking = Asking()
    asking.ask_often("many", HALF - 1)
    large = asking.ask("many", size=HALF)
    assert large in asking.came
    waiting = asking.ask("many")
    asking.places.give(asking.came[0], 1)
    assert waiting not in asking.came
    asking.places.give(large, HALF)
    assert waiting in asking.came


def test_who_takes_turns_with_nobody_needs_no_place() -> None:
    asking = Asking()
    tasks = asking.ask_often(None, PLACES_MAX + 1)
    assert asking.came == tasks
    for task in tasks:
        asking.places.give(task, 1)
    assert len(asking.ask_often("many", PLACES_MAX)) > len(asking.came) - len(tasks) == HALF


@pytest.mark.parametrize("end", [Asking.expire, Asking.leave, Asking.close])
def test_one_that_ends_while_it_waits_takes_no_place(end: Callable[[Asking, Task], None]) -> None:
    asking = Asking()
    many = asking.ask_often("many", HALF + 2)
    end(asking, many[HALF])
    assert asking.failed == ([] if end is Asking.close else [many[HALF]])
    asking.places.give(many[0], 1)
    assert asking.came == [*many[:HALF], many[HALF + 1]]


def test_a_place_that_came_too_late_goes_to_the_next() -> None:
    asking = Asking()
    many = asking.ask_often("many", HALF + 2)
    many[HALF].now = Now(DEADLINE_S, 0)
    asking.places.give(many[0], 1)
    assert asking.failed == [many[HALF]]
    assert asking.came == [*many[:HALF], many[HALF + 1]]
