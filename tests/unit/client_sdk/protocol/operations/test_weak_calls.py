"""What only observes, on objects of eventual consistency: from one replica, with the calls that nobody has run."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from quorate.adts.plain_class import Json, PlainClass
from quorate.adts.specification import Invocation, Response
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Accept, Collect
from quorate.client_sdk.protocol.core import work
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.core.values import Done, Failed, Invoke, Operation
from quorate.client_sdk.protocol.operations import own_calls
from quorate.client_sdk.protocol.operations.weak_calls import CALL_WORK, ENTRY_WORK
from quorate.quorums.choices.choice import Consistency
from tests.sim.schedules.hand import Hand


class Tasks:
    """What waits, to be done once at least: nobody decides anything."""

    blind = ("put", "done")
    observing = ("first", "all", "drop")

    def __init__(self) -> None:
        self.items: list[str] = []

    def put(self, item: str) -> None:
        self.items.append(item)

    def done(self, item: str) -> None:
        if item in self.items:
            self.items.remove(item)

    def first(self) -> str | None:
        return self.items[0] if self.items else None

    def all(self) -> list[str]:
        return self.items

    def push(self, item: str) -> int:
        self.items.append(item)
        return len(self.items)

    def count(self) -> int:
        return len(self.items)

    def drop(self) -> int:
        """Changes something, whatever the class says."""
        self.items.clear()
        return 0


TASKS = PlainClass(Tasks)


def on_tasks(operation: str, *args: Any, key: str = "") -> Invoke:
    return Invoke("tasks/t", TASKS, TASKS.call(operation, *args), key)


def tasks(consistency: Consistency = "eventual") -> Hand:
    choice = ChoiceRule("tasks/*", {"Blind/Ok": (0, 1), "Call/Ok": (3, 1)}, consistency=consistency)
    return Hand({}, rules=(choice,), types={"tasks": "shop:Tasks"})


def test_with_eventual_consistency_what_observes_runs_what_one_replica_holds() -> None:
    hand = tasks()
    for item in "ab":
        hand.start("f1", on_tasks("put", item), f"put {item}")
        hand.carry_until(f"put {item}", "f1", "r1")
        hand.drop("f1")
    hand.start("f2", on_tasks("first"), "there")
    hand.carry("f2", "r1")
    assert hand.outcomes["there"] == Done(Response("Ok", ("a",)), "first/Ok", frozenset({"r1"}), is_weak=True)
    hand.drop("f2")
    hand.start("f3", on_tasks("first"), "elsewhere")
    hand.carry("f3", "r2")
    assert hand.outcomes["elsewhere"] == Done(
        Response("Ok", (None,)), "first/Ok", frozenset({"r2"}), is_weak=True
    )


@pytest.mark.parametrize(("operation", "consistency"), [("count", "eventual"), ("first", "atomic")])
def test_what_no_class_names_or_is_of_an_atomic_object_asks_a_quorum(
    operation: str, consistency: Consistency
) -> None:
    hand = tasks(consistency)
    hand.start("f1", on_tasks(operation), "look")
    hand.carry("f1", "r1", "r2")
    assert not hand.outcomes
    hand.settle()
    assert isinstance(done := hand.outcomes["look"], Done)
    assert not done.is_weak


def test_a_strong_look_after_a_weak_one_is_answered_where_another_front_end_has_run_the_calls() -> None:
    """It knows stored calls that have run since: one reply tells it so, and it needs no decision of its own."""
    hand = tasks()
    hand.ask("f1", on_tasks("put", "a"))
    hand.ask("f2", on_tasks("first"))
    hand.ask("f3", on_tasks("count"))
    hand.start("f2", on_tasks("count"), "strong")
    for replica in ("r1", "r2", "r3"):
        assert all(isinstance(each, Collect) and each.ballot is None for each in asked_by(hand, "f2")), (
            "a look"
        )
        hand.carry("f2", replica)
    assert isinstance(done := hand.outcomes["strong"], Done)
    assert done.result == Response("Ok", (1,))


def test_a_strong_look_decides_after_one_reply_however_long_the_log_is() -> None:
    """It must not read on and on while others store."""
    hand = tasks()
    for number in range(own_calls.LOOK_ENTRIES + 1):
        hand.ask("f1", on_tasks("put", str(number)))
    hand.start("f2", on_tasks("count"), "strong")
    hand.carry("f2", "r1")
    assert any(isinstance(each, Collect) and each.ballot is not None for each in asked_by(hand, "f2")), (
        "it decides"
    )


def asked_by(hand: Hand, front: str) -> list[Any]:
    return [packet.send.request for packet in hand.packets if packet.front == front]


def test_what_changes_something_is_decided_whatever_the_class_calls_it() -> None:
    hand = tasks()
    hand.ask("f1", on_tasks("put", "a"))
    assert hand.ask("f2", on_tasks("drop")) == Response("Ok", (0,))
    assert hand.ask("f3", on_tasks("first")) == Response("Ok", (None,))


def stored(hand: Hand, item: str, replica: str, front: str = "f1") -> None:
    """The call is stored at that replica alone."""
    hand.start(front, on_tasks("put", item), f"put {item}")
    hand.carry_until(f"put {item}", front, replica)
    hand.drop(front)


def seen_at(hand: Hand, name: str, replica: str) -> Any:
    """What one front end sees, once this replica has answered."""
    hand.start("looks", on_tasks("all"), name)
    hand.carry_until(name, "looks", replica)
    hand.drop("looks")
    done = hand.outcomes[name]
    assert isinstance(done, Done)
    assert done.is_weak
    return done.result


def listed(*items: str) -> Response:
    return Response("Ok", (Json(json.dumps(items, separators=(",", ":"))),))


def test_a_call_that_comes_in_before_those_that_were_run_is_run_before_them() -> None:
    hand = tasks()
    stored(hand, "a", "r1")
    stored(hand, "b", "r2", "f2")
    assert seen_at(hand, "one", "r2") == listed("b")
    assert seen_at(hand, "both", "r1") == listed("a", "b")


def test_what_was_run_over_another_decided_state_is_run_anew() -> None:
    hand = tasks()
    hand.start("f3", on_tasks("push", "x"), "push")
    while not any(isinstance(packet.send.request, Accept) for packet in hand.packets if packet.front == "f3"):
        hand.carry("f3", "r1", "r2", "r3")
    stored(hand, "b", "r1", "f2")
    assert seen_at(hand, "before", "r1") == listed("b")
    hand.carry("f3", "r1", "r2", "r3")
    assert seen_at(hand, "after", "r1") == listed("x", "b")


def test_under_an_idempotency_key_it_is_decided_and_its_answer_remembered() -> None:
    hand = tasks()
    hand.ask("f1", on_tasks("put", "a"))
    once = hand.ask("f1", on_tasks("all", key="k"))
    hand.ask("f1", on_tasks("put", "b"))
    assert (once, hand.ask("f1", on_tasks("all", key="k"))) == (listed("a"), listed("a"))
    assert seen_at(hand, "without", "r1") == listed("a", "b")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that are run."""
    found: list[str] = []
    right = PlainClass.run

    def run(self: PlainClass, stored: str | None, invocation: Invocation) -> Any:
        found.append(invocation.operation)
        return right(self, stored, invocation)

    monkeypatch.setattr(PlainClass, "run", run)
    monkeypatch.setattr(own_calls, "is_to_run_log", lambda *_: False)
    return found


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others have a turn before each call is run."""

    def wait(self: work.Work, task: Task, size: int) -> Generator[float, Event, bool]:
        until_s = task.now.mono_s + (0.01 if size >= CALL_WORK else 0)
        while task.now.mono_s < until_s:
            yield until_s
        return True

    monkeypatch.setattr(work.Work, "wait", wait)


@pytest.mark.usefixtures("paused")
def test_a_look_that_knows_of_an_earlier_call_does_not_go_on_from_what_another_one_runs(
    runs: list[str],
) -> None:
    hand = tasks()
    stored(hand, "a", "r1")
    stored(hand, "b", "r2", "f2")
    hand.start("looks", on_tasks("all"), "one")
    hand.carry("looks", "r2")
    hand.start("looks", on_tasks("all"), "both")
    hand.carry("looks", "r1")
    assert not hand.outcomes.keys() & {"one", "both"}
    hand.settle()
    assert [str(hand.result(name)) for name in ("one", "both")] == [str(listed("b")), str(listed("a", "b"))]
    assert runs.count("put") == 3


@pytest.mark.usefixtures("paused")
def test_looks_side_by_side_run_each_call_once(runs: list[str]) -> None:
    """Forty looks at 300 calls ran 12,000."""
    hand = tasks()
    for number in range(30):
        hand.ask("f1", on_tasks("put", f"{number}"))
    runs.clear()
    looks: dict[str, Operation] = {f"look {number}": on_tasks("first") for number in range(5)}
    hand.start_all("f2", looks)
    hand.settle()
    assert all(hand.outcomes[name] == hand.outcomes["look 0"] for name in looks)
    assert (runs.count("put"), runs.count("first")) == (30, 5)


def test_what_was_run_is_kept_where_no_time_was_left_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, runs: list[str]
) -> None:
    hand = tasks()
    for number in range(30):
        hand.ask("f1", on_tasks("put", f"{number}"))
    left = 0

    def wait(self: work.Work, task: Task, size: int) -> Generator[float, Event, bool]:
        nonlocal left
        left -= size >= CALL_WORK
        yield from ()
        return left >= 0

    monkeypatch.setattr(work.Work, "wait", wait)
    runs.clear()
    for number in range(3):
        left = 12
        hand.start("f2", on_tasks("first"), f"look {number}")
        hand.settle()
    assert [isinstance(hand.outcomes[f"look {number}"], Done) for number in range(3)] == [False, False, True]
    assert isinstance(failed := hand.outcomes["look 0"], Failed)
    assert failed.detail == "no time was left to run the calls that are stored"
    assert runs.count("put") == 30


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much work each one wanted that waited for its turn."""
    found: list[int] = []
    right = work.Work.wait

    def wait(self: work.Work, task: Task, size: int) -> Generator[float, Event, bool]:
        found.append(size)
        return (yield from right(self, task, size))

    monkeypatch.setattr(work.Work, "wait", wait)
    return found


def test_looks_of_many_at_a_large_state_are_not_all_run_in_one_turn(
    waited: list[int], runs: list[str]
) -> None:
    """512 at a state of 226 kB held the event loop for 2.7 s."""
    hand = tasks()
    hand.ask("f1", on_tasks("push", "x" * 1000))
    waited.clear()
    hand.start_all("f2", {f"look {number}": on_tasks("first") for number in range(3)})
    hand.settle()
    assert runs.count("first") == 3
    assert [size > 1000 for size in waited if size >= CALL_WORK] == [True] * 3


def test_what_was_run_for_one_look_is_not_run_again_for_the_next(runs: list[str]) -> None:
    """Each of four looks at 4,000 stored calls took ten seconds."""
    hand = tasks()
    for item in "ab":
        hand.ask("f1", on_tasks("put", item))
    runs.clear()
    for number, (ran, first) in enumerate([(["put", "put", "first"], "a"), (["first"], "a")]):
        hand.start("f2", on_tasks("first"), f"look {number}")
        hand.carry("f2", "r1")
        hand.drop("f2")
        assert isinstance(seen := hand.outcomes[f"look {number}"], Done)
        assert seen.result == Response("Ok", (first,))
        assert runs == ran
        runs.clear()
    hand.ask("f1", on_tasks("done", "a"))
    runs.clear()
    hand.start("f2", on_tasks("first"), "last")
    hand.carry("f2", "r1")
    assert isinstance(seen := hand.outcomes["last"], Done)
    assert seen.result == Response("Ok", ("b",))
    assert runs == ["done", "first"]


@pytest.mark.parametrize("clears", ["looks", "another"])
def test_what_was_run_of_an_object_that_was_forgotten_since_is_not_shown_again(clears: str) -> None:
    """A look of before the first decision goes on from nothing decided, and so does one of after everything was forgotten."""
    rule = ChoiceRule("tasks/*", {"Blind/Ok": (0, 2), "Call/Ok": (2, 2)}, consistency="eventual")
    hand = Hand({}, rules=(rule,), types={"tasks": "shop:Tasks"})
    hand.ask("f1", on_tasks("put", "a"))
    assert hand.ask("looks", on_tasks("all")) == listed("a")
    hand.ask(clears, on_tasks("drop"))
    hand.carry_commits(clears, *hand.replicas)
    hand.sleep(int((hand.document.memory_s + 1) * 1e6))
    hand.bury("tasks/t")
    assert hand.ask("looks", on_tasks("all")) == listed()


@pytest.fixture
def permits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """So many calls may be run."""
    left = [0]

    def wait(self: work.Work, task: Task, size: int) -> Generator[float, Event, bool]:
        if size < CALL_WORK:  # It only goes through the entries.
            return True
        while left[0] <= 0:
            if task.is_late:
                return False
            yield min(task.deadline_s, task.now.mono_s + 0.1)
        left[0] -= 1
        return True

    monkeypatch.setattr(work.Work, "wait", wait)
    return left


def test_who_takes_the_place_of_one_that_left_goes_on_only_from_calls_that_it_knows(
    permits: list[int], runs: list[str]
) -> None:
    """It ran two calls again on a state that had them, and a third look was shown that."""
    hand = tasks()
    for item, replica, front in (("1", "r1", "f1"), ("3", "r2", "f2"), ("5", "r1", "f1")):
        stored(hand, item, replica, front)
    for name, within_s in (("one", 5.0), ("other", 6.0)):
        hand.start_all("looks", {name: on_tasks("all")}, within_s)
        hand.carry("looks", "r1")
    stored(hand, "6", "r1")
    for name, within_s, replica in (("more", 15.0, "r1"), ("most", 10.0, "r2")):
        hand.start_all("looks", {name: on_tasks("all")}, within_s)
        hand.carry("looks", replica)
    hand.cancel("looks", "one")
    permits[0] = 2
    while permits[0]:
        hand.sleep()
    hand.cancel("looks", "more")
    permits[0] = 100
    hand.settle()
    assert [str(hand.result(name)) for name in ("other", "most")] == [
        str(listed("1", "5")),
        str(listed("1", "3", "5", "6")),
    ]
    assert runs.count("put") <= 2 + 4 + 2


def test_who_waits_for_what_another_look_runs_is_told_what_was_missing(permits: list[int]) -> None:
    hand = tasks()
    hand.ask("f1", on_tasks("put", "a"))
    hand.start_all("f2", {name: on_tasks("all") for name in ("one", "other")})
    hand.settle()
    for name in ("one", "other"):
        failed = hand.outcomes[name]
        assert isinstance(failed, Failed)
        assert failed.detail == "no time was left to run the calls that are stored"
        assert failed.answered
    assert permits == [0]


class Text:
    """Doubles with each call."""

    blind = ("double",)
    observing = ("length", "whole")

    def __init__(self) -> None:
        self.text = "x"

    def double(self) -> None:
        self.text += self.text

    def length(self) -> int:
        return len(self.text)

    def whole(self) -> list[str]:
        return [self.text] * 40


TEXT = PlainClass(Text)


@pytest.mark.parametrize(("times", "operation"), [(22, "length"), (15, "whole")])
def test_a_state_or_an_answer_that_no_decision_may_have_is_not_shown(times: int, operation: str) -> None:
    """25 calls made an answer of 32 MiB."""
    choice = ChoiceRule("text/*", {"Blind/Ok": (0, 1), "Call/Ok": (3, 1)}, consistency="eventual")
    hand = Hand({}, rules=(choice,), types={"text": "shop:Text"})
    for number in range(times):
        hand.start("f1", Invoke("text/t", TEXT, TEXT.call("double"), ""), f"double {number}")
        hand.carry_until(f"double {number}", "f1", "r1")
        hand.drop("f1")
    hand.start("f2", Invoke("text/t", TEXT, TEXT.call(operation), ""), "look")
    hand.settle()
    failed = hand.outcomes["look"]
    assert isinstance(failed, Failed)
    assert failed.reason == "refused"
    assert "1048576" in failed.detail


def test_where_a_stored_call_cannot_be_run_looks_are_refused_as_decisions_are() -> None:
    class Old:
        blind = ("odd",)

        def odd(self) -> None:
            pass

    old = PlainClass(Old)
    hand = tasks()
    hand.ask("f1", Invoke("tasks/t", old, old.call("odd"), ""))
    hand.start_all("f2", {name: on_tasks("all") for name in ("one", "other")})
    hand.settle()
    for name in ("one", "other"):
        failed = hand.outcomes[name]
        assert isinstance(failed, Failed)
        assert "quorate repair" in failed.detail


def test_looks_that_know_of_an_earlier_call_run_them_all_together(
    permits: list[int], runs: list[str]
) -> None:
    """Ten looks ran 340 calls, of 31."""
    hand = tasks()
    stored(hand, "early", "r2", "f0")
    for number in range(30):
        stored(hand, f"{number}", "r1")
    hand.start("looks", on_tasks("all"), "first")
    hand.carry("looks", "r1")
    looks: dict[str, Operation] = {f"look {number}": on_tasks("all") for number in range(10)}
    hand.start_all("looks", looks)
    hand.carry("looks", "r2")
    permits[0] = 1_000
    hand.settle()
    assert all(hand.result(name) == hand.result("look 0") for name in looks)
    assert runs.count("put") <= 30 + 31


def test_what_was_run_counts_as_memory_of_the_front_end() -> None:
    """States of ten objects took 2.7 MB, of which nothing was counted."""
    choice = ChoiceRule("text/*", {"Blind/Ok": (0, 1), "Call/Ok": (3, 1)}, consistency="eventual")
    hand = Hand({}, rules=(choice,), types={"text": "shop:Text"})
    for number in range(14):
        hand.start("f1", Invoke("text/t", TEXT, TEXT.call("double"), ""), f"double {number}")
        hand.carry_until(f"double {number}", "f1", "r1")
        hand.drop("f1")
    hand.start("f2", Invoke("text/t", TEXT, TEXT.call("length"), ""), "look")
    before = hand.cache("f2", "text/t").taken
    hand.carry_until("look", "f2", "r1")
    assert hand.cache("f2", "text/t").taken - before > 2**14


def test_to_go_through_a_long_log_is_work_of_a_turn(waited: list[int], runs: list[str]) -> None:
    """512 looks at 4,000 entries held the event loop for half a second."""
    hand = tasks()
    for number in range(9):
        hand.ask("f1", on_tasks("put", f"{number}"))
    waited.clear()
    hand.ask("f2", on_tasks("first"))
    assert waited[0] == 9 * ENTRY_WORK
    assert len(waited) == 1 + 9 + 1
    assert runs


def test_it_looks_again_where_something_was_thrown_away_before_it_went_through_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand = tasks()
    stored(hand, "a", "r1")
    right = work.Work.wait

    def wait(self: work.Work, task: Task, size: int) -> Generator[float, Event, bool]:
        monkeypatch.setattr(work.Work, "wait", right)
        hand.cache("looks", "tasks/t").lives += 1
        return (yield from right(self, task, size))

    monkeypatch.setattr(work.Work, "wait", wait)
    hand.start("looks", on_tasks("all"), "look")
    hand.carry("looks", "r1")
    assert "look" not in hand.outcomes
    hand.carry("looks", "r1")
    assert hand.result("look") == listed("a")
