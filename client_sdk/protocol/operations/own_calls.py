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
from ....api_specs.limits import STATE_BYTES_MAX
from ....api_specs.problems import LIMITS
from ....api_specs.values import is_deeper, text_bytes, work_bytes
from ....quorums.systems.tally import VoteCount
from ..core.log_cache import LogCache
from ..core.rounds import Event, Expired, Reconfigured, Resolved, Task
from ..core.values import Done, Invoke
from ..decisions.idempotency import decision_id
from ..decisions.own_transitions import result_bytes
from ..decisions.transitions import FoldCommand, InvokeCommand
from . import observe, weak_calls
from .blind import NOBODY, Blind
from .context import Machine, OperationFailed, OutcomeSteps, decide, looking, read_clocks

FOLD_EVERY: Final = 512
"""One in so many stored calls has the log's calls run, so that about as many lie there where nobody looks; of large ones,"""
FOLD_BYTES: Final = 16 * 1024
"""as many as have so many bytes: whoever stores them learns how large the state is."""
FOLD_WAIT_S: Final = 1.0
"""Its caller waits for the run, at most so long: else calls would be stored more quickly than they are run. The call is done in any case."""
STORED_BYTES_MAX: Final = 4096
"""Of a call that is stored, as `work_bytes` counts them: as a state has at most STATE_BYTES_MAX, many find room in it that nobody has run yet."""
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
    if (text := stored_text(operation, machine)) is not None:
        return (yield from _store(operation, text, task, machine))
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
    most = min(STATE_BYTES_MAX, machine.limits.value_bytes_max // 2)
    room = most - text_bytes(machine.cache_of(operation.object).summary.value or "")
    is_small = work_bytes(text) <= STORED_BYTES_MAX and text_bytes(text) <= room
    return text if is_small and not is_deeper(text.encode(), machine.limits.value_depth_max // 2) else None


def stored_end(operation: Invoke) -> Done:
    """How a stored call ends."""
    return Done(Response(OK), f"{operation.invocation.operation}/{OK}", NOBODY)


def is_to_run_log(text: Value, machine: Machine) -> bool:
    """Whether this stored call is one of those that see to it that the log does not grow."""
    return machine.random() < max(1 / FOLD_EVERY, text_bytes(text) / FOLD_BYTES)


def run_log(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, None]:
    """Have the calls in the log run, and learn how large the state is then; wait for that, but not for long.

    A decision begins with a fence, below which nothing is stored any more. Where it could not be made, for too few replicas answer, calls that are
    on their way would be refused, and their outcomes unknown: so it is not begun unless enough answer a look.
    """
    choice = machine.choice_of(operation.object)
    needed = choice.initial_of_kind(Kind.DECIDE), choice.final_of_kind(Kind.DECIDE)
    left_s = task.deadline_s - task.now.mono_s
    until_s = task.now.mono_s + min(FOLD_WAIT_S, left_s / 2)
    with suppress(Expired, Reconfigured):
        round_ = looking(operation.object, task, machine)
        if not (
            yield from round_.wait(lambda: all(each.is_met_by(round_.replies) for each in needed), until_s)
        ):
            return
        machine.ask(operation.object, FoldCommand(operation.type), task)
        while task.now.mono_s < until_s and not task.is_left:
            if isinstance((yield until_s), Resolved):
                break
        # They may have been run by another front end, which did not tell.
        round_ = looking(operation.object, task, machine)
        yield from round_.wait(lambda: bool(round_.replies), until_s)


def _store(operation: Invoke, text: Value, task: Task, machine: Machine) -> OutcomeSteps:
    """Store the call in the object's log, beside no other one."""
    done = stored_end(operation)
    outcome = yield from Blind(operation.object, task, machine).run((text,), done.event_class)
    if isinstance(outcome, Done):
        if is_to_run_log(text, machine):
            yield from run_log(operation, task, machine)
        return replace(outcome, result=done.result)
    return outcome


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
