"""Operations that ask for the same: who asks, who waits, and who goes on when one has ended."""

from collections.abc import Generator

import pytest

from quorate.client_sdk.protocol.core.line import Line, Passage
from quorate.client_sdk.protocol.core.rounds import Event, Expired, Task
from quorate.timestamps.clock import Now
from tests.unit.client_sdk.protocol.core.test_rounds import DEADLINE_S, Post


class Asking:
    """Tasks in one line, what came of each, and who asks: he has an answer, or none, when the test says so."""

    def __init__(self) -> None:
        self.line = Line()
        self.asks: list[Task] = []
        self.woken: list[Task] = []
        self.refusal: Expired | None = None
        self.came: dict[Task, str | None] = {}
        self.steps: dict[Task, Generator[float, Event, str | None]] = {}

    def join(self, deadline_s: float = DEADLINE_S) -> Task:
        task = Task(len(self.steps), Post(), Now(0.0, 0), deadline_s)
        self.steps[task] = self.line.learn(task, lambda: self._ask(task), self._wake)
        self.go_on(task)
        return task

    def _ask(self, task: Task) -> Generator[float, Event, str]:
        self.asks.append(task)
        yield DEADLINE_S
        if task.is_late:
            raise Expired("nobody answered")
        if self.refusal is not None:
            raise self.refusal
        return "told"

    def _wake(self, task: Task) -> None:
        self.woken.append(task)

    def go_on(self, task: Task) -> None:
        try:
            self.steps[task].send(None)
        except StopIteration as stop:
            self.came[task] = stop.value

    def go_on_woken(self) -> None:
        woken, self.woken = self.woken, []
        for task in woken:
            self.go_on(task)


def test_one_asks_and_all_who_came_meanwhile_go_on_when_it_has_been_told() -> None:
    asking = Asking()
    first, *others = [asking.join() for _ in range(4)]
    assert asking.asks == [first]
    asking.go_on(others[0])
    assert not asking.came, "it was woken for nothing"
    asking.go_on(first)
    assert asking.came == {first: "told"}
    assert asking.woken == others
    asking.go_on_woken()
    assert asking.came == {first: "told"} | dict.fromkeys(others)
    assert not asking.woken, "each is woken once, however many wait"
    last = asking.join()
    assert asking.came[last] is None, "nobody asks or waits any more"
    assert asking.asks == [first]


@pytest.mark.parametrize("is_late", [True, False], ids=["nobody answers it", "its caller has gone"])
def test_where_the_first_one_fails_the_one_with_most_time_left_asks(is_late: bool) -> None:
    """The oldest one, with little time left, could not be told in time, nor could any after it, as long as calls kept coming."""
    asking = Asking()
    first, second = asking.join(), asking.join()
    third = asking.join(2 * DEADLINE_S)
    if is_late:
        first.now = Now(DEADLINE_S, 0)
        with pytest.raises(Expired, match="nobody answered"):
            asking.go_on(first)
    else:
        asking.steps[first].close()
    assert asking.woken == [third]
    fourth = asking.join()
    asking.go_on(second)
    assert asking.asks == [first], "it is the third one's turn"
    asking.go_on_woken()
    assert asking.asks == [first, third]
    asking.go_on(third)
    assert asking.woken == [second, fourth]


def test_what_is_refused_one_is_refused_all_who_wait_at_once() -> None:
    """Each of them asked in turn: of five hundred, three hundred waited until their deadlines."""
    asking = Asking()
    first, *others = [asking.join() for _ in range(3)]
    asking.refusal = Expired("r1: another cluster", ["r1"], is_refused=True, limit="log-full")
    with pytest.raises(Expired, match="another cluster"):
        asking.go_on(first)
    assert asking.woken == others
    for each in others:
        with pytest.raises(Expired, match="another cluster") as caught:
            asking.go_on(each)
        assert caught.value.is_refused
        assert caught.value.limit == "log-full"
        assert caught.value.answered == frozenset({"r1"})
    assert asking.woken == others, "nobody is to ask"
    last = asking.join()
    assert asking.asks == [first, last]


def test_who_is_to_ask_when_its_deadline_has_passed_asks_nobody() -> None:
    asking = Asking()
    first, second = asking.join(), asking.join()
    second.now = Now(DEADLINE_S, 0)
    asking.steps[first].close()
    assert asking.woken == [second]
    with pytest.raises(Expired, match="another operation asked the replicas first"):
        asking.go_on(second)
    third = asking.join()
    assert asking.asks == [first, third]


def test_who_waits_waits_until_its_deadline_and_leaves_the_others_as_they_are() -> None:
    asking = Asking()
    first, second, third = (asking.join() for _ in range(3))
    second.now = Now(DEADLINE_S, 0)
    with pytest.raises(Expired, match="another operation asked the replicas first"):
        asking.go_on(second)
    assert not asking.woken
    asking.go_on(first)
    assert asking.woken == [third]


def test_so_many_go_on_side_by_side_and_the_others_in_their_order() -> None:
    passage, entered, woken = Passage(), dict[Task, bool](), list[Task]()
    tasks = [Task(number, Post(), Now(0.0, 0), DEADLINE_S) for number in range(5)]
    steps = {task: passage.enter(task, 2, woken.append) for task in tasks}

    def go_on(task: Task) -> None:
        try:
            steps[task].send(None)
        except StopIteration as stop:
            entered[task] = stop.value

    for task in tasks:
        go_on(task)
    assert entered == dict.fromkeys(tasks[:2], True)
    woken.clear()
    go_on(tasks[3])
    assert tasks[3] not in entered, "it was woken for nothing"
    passage.leave(woken.append)
    assert woken == [tasks[2]]
    go_on(tasks[2])
    assert entered[tasks[2]] is True, "its turn has come"
    passage.leave(woken.append)
    steps[tasks[3]].close()
    assert woken[-1] is tasks[4], "who goes lets the next one in"
    go_on(tasks[4])
    assert entered[tasks[4]] is True


def test_who_has_no_turn_before_its_deadline_does_not_enter() -> None:
    passage, tasks = Passage(), [Task(number, Post(), Now(0.0, 0), DEADLINE_S) for number in range(2)]
    first, second = (passage.enter(task, 1, lambda _: None) for task in tasks)
    with pytest.raises(StopIteration):
        next(first)
    next(second)
    tasks[1].now = Now(DEADLINE_S, 0)
    with pytest.raises(StopIteration) as ended:
        second.send(None)
    assert ended.value.value is False
    passage.leave(lambda _: None)
    third = passage.enter(tasks[0], 1, lambda _: None)
    with pytest.raises(StopIteration) as ended:
        next(third)
    assert ended.value.value is True
