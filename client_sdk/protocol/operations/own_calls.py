"""Calls on objects of one's own types. One that changes nothing is answered from a look at what is decided; others are decided. Pure.

The argument is that of a read of a cell without entries (`observe`): an initial quorum meets the final quorum of every decision, so a
look shows each one that had ended when it began, or a later one; and what is known to be decided is shown to all who look later. Which
operations change something is learnt: the first call of each looks, and is decided where that shows a change.
"""

from collections.abc import Generator
from typing import Final

from ....adts.log import Value
from ....adts.plain_class import BadClass
from ....adts.specification import Kind, Response
from ....adts.types.catalogue import adt_of
from ..core.rounds import Event, Task
from ..core.values import Done, Invoke
from ..decisions.idempotency import decision_id
from ..decisions.transitions import InvokeCommand, result_bytes
from . import observe
from .context import Machine, OutcomeSteps, decide

LOOK_BYTES_MAX: Final = 4096
"""Of a state and arguments. Looks of many callers may be run in one turn of the event loop; decisions bound what they run together."""


def invoke(operation: Invoke, task: Task, machine: Machine) -> OutcomeSteps:
    """The response of the class."""
    name = operation.invocation.operation
    if not operation.key and (adt_of(operation.object), name) not in machine.changing:
        seen = yield from _look(operation, task, machine)
        if seen is not None:
            response, answered = seen
            return Done(response, f"{name}/{response.condition}", answered)
    command = InvokeCommand(operation.type, operation.invocation, decision_id(name, operation.key))
    verdict = yield from decide(operation.object, command, task, machine)
    return Done(verdict.result, f"{name}/{verdict.result.condition}", verdict.answered)


def _look(
    operation: Invoke, task: Task, machine: Machine
) -> Generator[float, Event, tuple[Response, frozenset[str]] | None]:
    """The response and who showed the state; None where that is large or not decided yet, or where the call changes it, or cannot be
    run."""
    choice = machine.choice_of(operation.object)
    cache = machine.cache_of(operation.object)  # Held: the front end forgets what is idle and nobody holds.
    if _is_large(operation, cache.summary.value):
        return None
    answered = yield from observe.collect(
        operation.object, task, machine, choice.initial_of_kind(Kind.DECIDE)
    )
    before = cache.summary.value
    if not cache.is_decided or _is_large(operation, before):
        return None
    try:
        after, response = operation.type.run(before, operation.invocation)
    except BadClass:
        return None
    if after != before:
        machine.changing.add((adt_of(operation.object), operation.invocation.operation))
        return None
    return None if result_bytes(response) > machine.limits.value_bytes_max else (response, answered)


def _is_large(operation: Invoke, state: Value | None) -> bool:
    return len(state or "") + sum(len(str(each)) for each in operation.invocation.args) > LOOK_BYTES_MAX
