"""Calls on objects of one's own types. One of a blind operation is stored as it is; others look. One that changes nothing is answered from
a look at what is decided; others are decided. Pure.

The argument for a look is that of a read of a cell without entries (`observe`): an initial quorum meets the final quorum of every decision
and of every stored call, so a look shows each one that had ended when it began, or a later one; and what is known to be decided is shown to
all who look later. Where a call lies in the log that no decision has run yet, an answer must be decided: an older one may still come in
before it. Which operations change something is learnt: the first call of each looks, and is decided where that shows a change.
"""

from collections.abc import Generator
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from ....adts.log import Value
from ....adts.plain_class import OK, BadClass, call_text
from ....adts.specification import Kind, Response
from ....adts.types.catalogue import adt_of
from ....api_specs.messages import Commit
from ....api_specs.problems import LIMITS, Limit
from ....api_specs.values import is_deeper, text_bytes, waiting_weight, work_bytes
from ....quorums.systems.tally import VoteCount
from ....timestamps.timestamp import Timestamp
from ..core.line import Line
from ..core.log_cache import LogCache
from ..core.rounds import Event, Expired, Gathering, Reconfigured, Resolved, Task
from ..core.values import Done, Failed, Invoke, Outcome
from ..decisions.idempotency import decision_id
from ..decisions.own_transitions import result_bytes
from ..decisions.transitions import FoldCommand, InvokeCommand
from . import observe, weak_calls
from .blind import NOBODY, Blind
from .context import Machine, OperationFailed, OutcomeSteps, decide, looking, pause, read_clocks

FOLD_EVERY: Final = 512
"""One in so many stored calls has the log's calls run, so that about as many lie there where nobody looks; of large ones,"""
FOLD_BYTES: Final = 16 * 1024
"""as many as have so many bytes: whoever stores them learns how large the state is."""
FOLD_SHARE: Final = 4
"""Or as fill this part of the room that replicas have for calls that have not run."""
FOLD_WAIT_S: Final = 1.0
"""Its caller waits for the run, at most so long: else calls would be stored more quickly than they are run. The call is done in any case."""
VAIN_S: Final = 0.02
"""How long to wait, twice as long each time, before a call is sent again to replicas that had no room, though nothing was left to be run: some may
not have heard of it;"""
VAIN_MAX: Final = 4
"""and how often, where nobody stores it."""
STORED_BYTES_MAX: Final = 4096
"""Of a call that is stored, as `work_bytes` counts them: as a state has at most `state_bytes_max`, many find room in it that nobody has run yet."""
FULL: Final[Limit] = "log-full"
WAITING: Final = Failed(
    FULL,
    "as many calls of the object wait to be run as replicas may store, and they cannot be run now: too few replicas answer, one of the calls "
    "cannot be run, or more are stored than are run",
    definite=True,
)
LOOK_ENTRIES: Final = 32
"""Of a log, that a look asks for at once: one above the horizon ends it."""
LOOK_BYTES_MAX: Final = 4096
"""Of a state and arguments. Looks of many callers may be run in one turn of the event loop; decisions bound what they run together."""


def invoke(operation: Invoke, task: Task, machine: Machine) -> OutcomeSteps:
    """The response of the class."""
    name = operation.invocation.operation
    if weak_calls.is_weak(operation, machine):
        seen = yield from weak_calls.look(operation, task, machine)
        if seen is not None:
            return seen
    cache = machine.cache_of(operation.object)  # Held: what is learnt of the object counts below.
    if stored_text(operation, machine) is not None and not cache.is_met:
        yield from _meet(cache, task, machine)
    text = stored_text(operation, machine)
    if text is not None and (stored := (yield from _store(operation, text, task, machine))) is not None:
        return stored
    if _may_look(operation, machine) and (seen := (yield from _look(operation, task, machine))) is not None:
        return seen
    command = InvokeCommand(operation.type, operation.invocation, decision_id(name, operation.key))
    try:
        verdict = yield from decide(operation.object, command, task, machine)
    except OperationFailed as failed:
        is_refused = failed.outcome.reason in LIMITS and _may_look(operation, machine)
        if not is_refused or (seen := (yield from _settled_look(operation, task, machine))) is None:
            raise
        return seen
    return Done(verdict.result, f"{name}/{verdict.result.condition}", verdict.answered)


def _may_look(operation: Invoke, machine: Machine) -> bool:
    """Whether a look may do, as far as is known."""
    is_large = _is_large(operation, machine.cache_of(operation.object).summary.value)
    changes = (adt_of(operation.object), operation.invocation.operation) in machine.changing
    return not operation.key and not changes and not is_large


def _settled_look(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, Done | None]:
    """As a look, once the calls in the log have run: full replicas have more room to settle what is there than for what may change it."""
    try:
        yield from decide(operation.object, FoldCommand(operation.type), task, machine)
    except OperationFailed:
        return None
    return (yield from _look(operation, task, machine))


def _meet(cache: LogCache, task: Task, machine: Machine) -> Generator[float, Event, None]:
    """Have some replica tell of the object. A front end that does not know the state stores calls for which there is no room; many that
    end after one call would fill the object."""
    needed = VoteCount(machine.choice_of(cache.name).votes, 1)
    ask = partial(read_clocks, cache.name, task, machine, needed)
    yield from cache.first_call.learn(task, ask, machine.wake)


def stored_text(operation: Invoke, machine: Machine) -> Value | None:
    """The call as it is stored; None where it may not run later: not blind; under a key, which a decision remembers whichever callers have a
    class that says so; or large or nested deeply, or on a state that is large, as far as is known: there may be no room for it then."""
    if operation.key or operation.invocation.operation not in operation.type.blind:
        return None
    text = Value(call_text(operation.invocation))
    room = machine.limits.state_bytes_max - text_bytes(machine.cache_of(operation.object).summary.value or "")
    is_small = work_bytes(text) <= STORED_BYTES_MAX and text_bytes(text) <= room
    is_small = is_small and _share_of_room(operation, text, machine) <= 1
    return text if is_small and not is_deeper(text.encode(), machine.limits.stored_depth_max) else None


def stored_end(operation: Invoke) -> Done:
    """How a stored call ends."""
    return Done(Response(OK), f"{operation.invocation.operation}/{OK}", NOBODY)


def _share_of_room(operation: Invoke, text: Value, machine: Machine) -> float:
    """Which part of the room for calls that wait to be run at each replica this one takes, on the state that is known; more than 1 where there is never room."""
    weight = waiting_weight(1, work_bytes(text), machine.cache_of(operation.object).summary.value)
    return weight / max(1, machine.limits.waiting_bytes_max(len(machine.choice_of(operation.object).votes)))


def is_to_run_log(operation: Invoke, text: Value, machine: Machine) -> bool:
    """Whether this stored call is one of those that see to it that the log does not grow."""
    size = text_bytes(text)
    share = FOLD_SHARE * _share_of_room(operation, text, machine)
    return machine.random() < max(1 / FOLD_EVERY, size / FOLD_BYTES, share)


def run_log(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, None]:
    """Have the calls in the log run, and learn how large the state is then; wait for that, but not for long."""
    left_s = task.deadline_s - task.now.mono_s
    until_s = task.now.mono_s + min(FOLD_WAIT_S, left_s / 2)
    with suppress(Expired, Reconfigured):
        if not (yield from _finds_quorums(operation, until_s, task, machine)):
            return
        machine.ask(operation.object, FoldCommand(operation.type), task)
        while task.now.mono_s < until_s and not task.is_left:
            if isinstance((yield until_s), Resolved):
                break
        # They may have been run by another front end, which did not tell.
        round_ = looking(operation.object, task, machine)
        yield from round_.wait(lambda: bool(round_.replies), until_s)


def _finds_quorums(
    operation: Invoke, until_s: float, task: Task, machine: Machine
) -> Generator[float, Event, bool]:
    """Whether so many replicas answer a look as a decision needs.

    A decision begins with a fence, below which nothing is stored any more. Where it could not be made, for too few replicas answer, calls that are
    on their way would be refused, and their outcomes unknown: so it is not begun unless enough answer a look.
    """
    choice = machine.choice_of(operation.object)
    needed = choice.initial_of_kind(Kind.DECIDE), choice.final_of_kind(Kind.DECIDE)
    round_ = looking(operation.object, task, machine)
    return (yield from round_.wait(lambda: all(each.is_met_by(round_.replies) for each in needed), until_s))


class Room:
    """Makes room for one call that is to be stored, where replicas have none: it has those run that wait. One call of a front end does so for all of them."""

    def __init__(self, operation: Invoke, machine: Machine) -> None:
        self._operation: Final = operation
        self._machine: Final = machine
        self._vain = 0

    def make(self, task: Task) -> Generator[float, Event, bool]:
        """Whether to try again: they have run, or may have, where a replica has not heard of it yet; and the call is still one to be stored."""
        operation, machine = self._operation, self._machine
        cache = machine.cache_of(operation.object)
        machine.count("calls without room")
        before, cache.is_full = cache.after, True
        if cache.room.is_over:
            cache.room = Line()
        try:
            yield from cache.room.learn(task, partial(self._run, cache, before, task), machine.wake)
            is_able = stored_text(operation, machine) is not None
        except Expired:
            is_able = False
        except Reconfigured:
            return True
        if cache.after > before:
            self._vain = 0
            return True
        self._vain += 1
        yield from pause(task, min(task.now.mono_s + VAIN_S * 2.0**self._vain, task.deadline_s))
        return is_able and self._vain <= VAIN_MAX

    def _run(self, cache: LogCache, before: Timestamp, task: Task) -> Generator[float, Event, None]:
        """Have them run, by whomever. Raises Expired where they could not be, which is true for all that wait unless this one's time is over."""
        operation, machine = self._operation, self._machine
        until_s = min(task.now.mono_s + FOLD_WAIT_S, task.deadline_s)
        is_run = yield from _finds_quorums(operation, until_s, task, machine)
        if is_run and cache.after == before:
            try:
                yield from decide(operation.object, FoldCommand(operation.type), task, machine)
            except OperationFailed:
                is_run = False
        if not is_run:
            raise Expired(WAITING.detail, is_refused=not task.is_late, limit=FULL)
        yield from self._tell(cache, task)

    def _tell(self, cache: LogCache, task: Task) -> Generator[float, Event, None]:
        """Tell replicas what is decided, before the call is sent again: a proposer tells it with messages that may wait, or be lost."""
        if not cache.is_decided:
            return
        choice, ballot, summary = self._machine.choice_of(cache.name), cache.ballot, cache.summary
        holders = {replica for replica, accepted in cache.accepted_by.items() if accepted == ballot}

        def request(replica: str) -> Commit:
            return Commit(cache.name, ballot, summary.horizon, None if replica in holders else summary)

        round_, final = Gathering(task, request, choice.votes), choice.final_of_kind(Kind.BLIND)
        with suppress(Expired):
            yield from round_.wait(lambda: final.is_met_by(round_.replies), task.now.mono_s + FOLD_WAIT_S)


def _store(
    operation: Invoke, text: Value, task: Task, machine: Machine
) -> Generator[float, Event, Outcome | None]:
    """Store the call in the object's log, beside no other one. None where it is to be decided: there was no room, and the state is found to be large.

    Where replicas had no room for the latest one, no more are under way than may find room: of many, each replica would take others, and their
    outcomes were unknown.
    """
    cache = machine.cache_of(operation.object)
    if not cache.is_full:
        return (yield from _stored(operation, text, task, machine))
    most = int(1 / _share_of_room(operation, text, machine))
    if not (yield from cache.passage.enter(task, most, machine.wake)):
        return WAITING
    try:
        return (yield from _stored(operation, text, task, machine))
    finally:
        cache.passage.leave(machine.wake)


def _stored(
    operation: Invoke, text: Value, task: Task, machine: Machine
) -> Generator[float, Event, Outcome | None]:
    """As `_store`. Where there was no room for the latest one, those that wait run first. While they cannot, nothing is sent that a silent replica
    might store: so it is certain that the call was not done."""
    done, cache, room = stored_end(operation), machine.cache_of(operation.object), Room(operation, machine)
    if cache.is_full and not (yield from room.make(task)):
        return WAITING if stored_text(operation, machine) is not None else None
    outcome = yield from Blind(operation.object, task, machine, room=room).run((text,), done.event_class)
    if isinstance(outcome, Done):
        cache.is_full = False
        if is_to_run_log(operation, text, machine):
            yield from run_log(operation, task, machine)
        return replace(outcome, result=done.result)
    is_decided = outcome.reason == FULL and stored_text(operation, machine) is None
    return None if is_decided else outcome


def _look(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, Done | None]:
    """The response from what is decided; None where that is not decided yet, or large, where calls lie in the log, or where this one
    changes the state, or cannot be run."""
    choice = machine.choice_of(operation.object)
    cache = machine.cache_of(operation.object)  # Held: the front end forgets what is idle and nobody holds.
    needed = choice.initial_of_kind(Kind.DECIDE)
    look = partial(
        observe.collect, operation.object, task, machine, needed, limit=LOOK_ENTRIES, to_first=True
    )
    answered = yield from cache.first_look.learn(task, look, machine.wake)
    if answered is None:
        if _is_large(operation, cache.summary.value):  # Each of those who wait would have it sent again.
            return None
        answered = yield from look()
    before = cache.summary.value
    is_whole = cache.is_decided and not cache.summary.adopted and not cache.has_entries
    if not is_whole or _is_large(operation, before):
        return None
    try:
        after, response = operation.type.run(before, operation.invocation)
    except BadClass:
        return None
    if after != before:
        machine.changing.add((adt_of(operation.object), operation.invocation.operation))
        return None
    if result_bytes(response) > machine.limits.value_bytes_max:
        return None
    return Done(response, f"{operation.invocation.operation}/{response.condition}", answered)


def _is_large(operation: Invoke, state: Value | None) -> bool:
    return len(state or "") + sum(len(str(each)) for each in operation.invocation.args) > LOOK_BYTES_MAX
