"""Mistakes in deciding calls on objects of types of one's own (docs/explanation/design.md, "Types of one's own")."""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from quorate.adts.log import Seen, Value
from quorate.adts.plain_class import BadClass, PlainClass, call_in
from quorate.adts.specification import Kind, Response
from quorate.adts.types import queue
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append, Request
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.core.values import CompareAndSet, Done, Invoke, Write
from quorate.client_sdk.protocol.decisions import own_transitions, transitions
from quorate.client_sdk.protocol.decisions.summary_builder import SummaryBuilder
from quorate.client_sdk.protocol.operations import observe, own_calls
from quorate.client_sdk.protocol.operations.cell_parts import StoredPart
from quorate.client_sdk.protocol.operations.context import Machine
from quorate.client_sdk.protocol.operations.shared_round import Alone, SideBySide
from quorate.gc import collection
from quorate.replica.protocol import room
from quorate.simulation.judging.own import Law, check_own
from quorate.simulation.violation import Violation
from tests.sim.own import CODE, Trail
from tests.sim.planted.plant import Planting, patched
from tests.sim.planted.played import Played

TRAIL = PlainClass(Trail)


def run_a_repeat_again() -> Planting:
    """A call under a key that took effect before takes effect again."""

    def invoke(builder: Any, command: transitions.InvokeCommand, *rest: Any) -> Any:
        return real(builder, replace(command, key=""), *rest)

    real = own_transitions._invoke
    return patched(own_transitions, _invoke=invoke)


def forget_answers_that_changed_nothing() -> Planting:
    """A call under a key that changed nothing is not remembered: its repeat may change something."""

    def invoke(builder: Any, command: transitions.InvokeCommand, *rest: Any) -> Any:
        before = builder.value
        with suppress(BadClass):
            if command.type.run(before, command.invocation)[0] == before and not builder.keyed(command.key):
                command = replace(command, key="")
        return real(builder, command, *rest)

    real = own_transitions._invoke
    return patched(own_transitions, _invoke=invoke)


def run_each_from_the_decided_state() -> Planting:
    """Of the calls that one decision grants, each is run on the state before it, not on what the one before it left."""

    def invoke(builder: Any, command: transitions.InvokeCommand, *rest: Any) -> Any:
        builder.value = builder.before.value
        return real(builder, command, *rest)

    real = own_transitions._invoke
    return patched(own_transitions, _invoke=invoke)


def _ended(operation: Invoke, response: Response) -> str:
    return f"{operation.invocation.operation}/{response.condition}"


Looked = Callable[[Invoke, LogCache], Response | None]
"""What a look answers from what it shows, if anything."""


def _look_that(answers: Looked) -> Planting:
    def look(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, Done | None]:
        needed = machine.choice_of(operation.object).initial_of_kind(Kind.DECIDE)
        cache = machine.cache_of(operation.object)
        answered = yield from observe.collect(operation.object, task, machine, needed)
        try:
            response = answers(operation, cache)
        except BadClass:
            return None
        return None if response is None else Done(response, _ended(operation, response), answered)

    return patched(own_calls, _look=look)


def answer_a_change_from_a_look() -> Planting:
    """A call that was seen to change nothing before is answered from a look, though this time it changes something."""
    return _look_that(
        lambda operation, cache: operation.type.run(cache.summary.value, operation.invocation)[1]
    )


def answer_from_what_is_not_decided() -> Planting:
    """A call that changes nothing is answered from a state that some replica accepted, without having it decided."""
    return patched(LogCache, is_decided=property(lambda _: True))


def run_stored_calls_as_they_come() -> Planting:
    """Calls that lie in the log run in the order in which they were seen, not in that of their timestamps."""

    def view(self: SummaryBuilder, seen: dict[str, Seen]) -> list[Seen]:
        shown = real(self, seen)
        return sorted(
            shown, key=lambda found: list(seen).index(found.entry.id) if found.entry.id in seen else -1
        )

    real = SummaryBuilder.view
    return patched(SummaryBuilder, view=view)


def answer_from_stored_calls() -> Planting:
    """A look that shows calls in the log runs them for its answer, and has nothing decided."""

    def answers(operation: Invoke, cache: LogCache) -> Response | None:
        before: str | None = cache.summary.value
        for each in queue.view(cache.summary, cache.by_id()):
            before, _ = operation.type.run(before, call_in(str(each.entry.value)))
        after, response = operation.type.run(before, operation.invocation)
        return response if cache.is_decided and after == before else None

    return _look_that(answers)


def forget_stored_calls_below_a_complete_one() -> Planting:
    """A complete call in the log makes those below it history, as a register's value does."""
    return patched(collection, is_overwritten=lambda adt: True)


def answer_before_all_has_run() -> Planting:
    """Where a decision does not run all calls of the log, callers are answered from what it has run."""

    def fold(builder: Any, found: Any, waiting: list[Seen], *rest: Any) -> Any:
        failed = real(builder, found, waiting, *rest)
        waiting.clear()
        return failed

    real = own_transitions._fold
    return patched(own_transitions, _fold=fold)


def leave_no_word_of_stored_calls() -> Planting:
    """A call that runs, and is not known to be complete, is not noted: its recovery finds it void, and it runs again."""

    def pass_over(self: SummaryBuilder, found: Seen) -> None:
        self.adopted.pop(found.entry.id, None)
        self.horizon = max(self.horizon, found.entry.t)

    return patched(SummaryBuilder, pass_over=pass_over)


def call_that_ended_ahead_of_time() -> None:
    """f1, whose clock is right, puts a. f2 stores add(x) by a clock that is a second ahead, and is told that it is done. Then f1 puts b,
    without a look before: it has learnt that a put is a change."""
    hand = Played(types={"own": CODE})
    hand.wall_errors_us["f2"] = 1_000_000
    for front, operation, arguments in (("f1", "put", ("a",)), ("f2", "add", ("x",)), ("f1", "put", ("b",))):
        hand.ask(front, Invoke("own/x", TRAIL, TRAIL.call(operation, *arguments)))
    for name, calls in hand.history.calls.items():
        check_own(name, Law(lambda: TRAIL), calls, is_exact=True)


def store_calls_without_a_bound() -> Planting:
    """Replicas store as many calls as come, though no decision runs them."""
    return patched(room, refused_call=lambda *_: None)


def begin_anew_though_it_may_be_stored() -> Planting:
    """A call for which a replica has no room begins anew, under another timestamp, though another one has stored it."""
    real = StoredPart._make_room

    def make_room(self: StoredPart, *, is_at_large: bool) -> Alone:
        return real(self, is_at_large=False)

    return patched(StoredPart, _make_room=make_room)


def send_again_what_has_ended() -> Planting:
    """A round sends the call that begins anew elsewhere again, with the others that go on: one that had not heard of it stores it."""

    def requests_to(self: SideBySide, replica: str) -> tuple[Request, ...]:
        is_repeat = replica in self._asked
        self._asked.add(replica)
        return tuple([part.request_to(replica, is_repeat=is_repeat) for part in self._parts])

    return patched(SideBySide, _requests_to=requests_to)


FEW: Final = Limits(value_bytes_max=6000)
"""A state of 3,000 bytes at most for which calls are stored, and 1,000 bytes of calls that wait at each replica."""


def add(text: str) -> Invoke:
    return Invoke("own/x", TRAIL, TRAIL.call("add", text))


def look() -> Invoke:
    return Invoke("own/x", TRAIL, TRAIL.call("look"))


def judge_by_a_look(hand: Played) -> None:
    """Another front end looks at what has come of it, by two replicas; all calls are judged."""
    hand.start("f3", look(), "look")
    hand.finish("look", "f3", "r2", "r3")
    hand.settle()
    for name, calls in hand.history.calls.items():
        if name == "own/x":
            check_own(name, Law(lambda: TRAIL), calls, is_exact=True)


def calls_while_no_decision_is_made() -> None:
    """f1 stores calls, and none of its messages that would have them run arrives. Then all is well, and f2 looks."""
    hand = Played(types={"own": CODE}, limits=FEW)
    hand.ask("f1", look())
    for number in range(60):
        hand.start("f1", add("x" * 100), name := f"add {number}")
        while name not in hand.outcomes:
            hand.packets = [each for each in hand.packets if isinstance(each.send.request, Append)]
            if hand.packets:
                hand.arrive("f1")
            else:
                hand.sleep()
    hand.drop("f1")
    hand.start("f2", look(), "look")
    hand.settle()
    if not isinstance(outcome := hand.outcomes["look"], Done):
        raise Violation(f"on a healthy cluster {outcome}")


def _with_calls_at(*full: str) -> Played:
    """f1 has stored calls at these replicas, which have no room for more; the third knows of none."""
    hand = Played(types={"own": CODE}, limits=FEW, clock=ClockSettings(front_end_error_s=0.0))
    for front in ("f1", "f2"):
        hand.ask(front, look())
    for number in range(4):
        hand.start("f1", add(f"{number}" + "x" * 100), f"add {number}")
        hand.carry("f1", *full)
        hand.drop("f1")
    return hand


def call_for_which_some_have_no_room() -> None:
    """f1 has stored calls at r2 and r3, of which r1 knows nothing. f2 stores add(last), which r1 takes late, and the others have no room for."""
    hand = _with_calls_at("r2", "r3")
    hand.start("f2", add("last" + "x" * 100), "last")
    hand.carry("f2", "r2", "r3")
    while len(hand.packets) < 2:
        hand.sleep()
    hand.settle()
    hand.ask("f3", look())
    for name, calls in hand.history.calls.items():
        check_own(name, Law(lambda: TRAIL), calls, is_exact=True)


def call_given_up_beside_a_write() -> None:
    """r1 and r2 are full of f1's calls, and another front end has fenced y at r1. f2 stores add(last) and writes y in one turn, when r3 is in another
    configuration. The call begins anew, and is stored at r1 and r2. Then r3, which knows of no call, hears what the write's round sends again."""
    hand = _with_calls_at("r1", "r2")
    hand.vanish("f1")
    hand.wall_errors_us["f0"] = 10_000
    hand.start("f0", CompareAndSet("register/y", None, Value("0")), "fencing", is_noted=False)
    hand.reach("f0", "r1")
    hand.vanish("f0")
    hand.start_together("f2", {"last": add("last" + "x" * 100), "write": Write("register/y", Value("1"))})
    hand.carry("f2", "r1", "r2")
    hand.fail("f2", definite=True, epoch=1)
    hand.go_until(Append, "f2", "r1", "r2")
    hand.carry_only(Append, "f2", "r1", "r2")
    hand.drop("f2")
    hand.wake("f2")
    hand.carry("f2", "r3")
    hand.drop("f2")
    judge_by_a_look(hand)
