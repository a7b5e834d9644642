"""The operations, each as the protocol runs it (DESIGN section 2). Pure: generators over replies.

Blind ones are in `blind`, observing ones in `observe`; deciding ones are commands to the object's proposer.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ....api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    PeekCommand,
    SettleCommand,
)
from ....quorums.choices.choice import BadChoice
from ..core.rounds import Event, Expired, Reconfigured, Task
from ..core.values import (
    Acquire,
    Carry,
    ClearDeadLetters,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Invoke,
    Items,
    Operation,
    Peek,
    PurgeDelayed,
    PutIfAbsent,
    QueueSize,
    Read,
    ReadLeases,
    ReadRepair,
    Repair,
    Serve,
    Settle,
    Write,
)
from ..decisions.idempotency import decision_id
from ..decisions.lease_table import ClearCommand, PurgeDelayedCommand
from ..decisions.pending import CommandResult
from ..decisions.transitions import RepairCommand
from . import everywhere, observe, outboxes, own_calls, queue_looks
from .blind import Blind, done_as
from .context import Machine, OperationFailed, OutcomeSteps, decide, pause
from .enqueue_round import enqueue


def run(operation: Operation, task: Task, machine: Machine) -> OutcomeSteps:
    """The outcome of one operation."""
    return (yield from goes_on(operation, _RUNS[type(operation)](operation, task, machine), task, machine))


def goes_on(operation: Operation, steps: OutcomeSteps, task: Task, machine: Machine) -> OutcomeSteps:
    """The outcome of one that runs by these steps; from its beginning, where the cluster's configuration changed before it stored anything."""
    while True:
        try:
            return (yield from ended(operation, steps))
        except Reconfigured:
            machine.count("begun again in a new configuration")
            task.renew()
            steps = _RUNS[type(operation)](operation, task, machine)


def ended(operation: Operation, steps: OutcomeSteps) -> OutcomeSteps:
    """The outcome of an operation that runs by these steps. Raises Reconfigured."""
    try:
        return (yield from steps)
    except Expired as expired:
        return expired.outcome(is_unknown=False)
    except BadChoice as error:  # Of no type that the cluster has.
        return Failed("refused", str(error), definite=True)
    except OperationFailed as failure:
        if isinstance(operation, _OBSERVING) and failure.outcome.reason == "unknown":
            # Writing back what it saw changes nothing that anybody could tell from its not having run.
            return replace(failure.outcome, reason="unavailable", definite=True)
        return failure.outcome


def _write(operation: Write, task: Task, machine: Machine) -> OutcomeSteps:
    return Blind(operation.object, task, machine).run((operation.value,), done_as(operation))


def _peek(operation: Peek, task: Task, machine: Machine) -> OutcomeSteps:
    if machine.choice_of(operation.object).is_weak:
        return (yield from queue_looks.peek(operation.object, task, machine))
    if (shown := (yield from queue_looks.untouched(operation.object, task, machine))) is not None:
        return Done((), "Peek/Empty", shown)
    verdict = yield from decide(operation.object, PeekCommand(), task, machine)
    values = tuple(entry.value for entry in verdict.result)
    return Done(values, "Peek/Ok" if values else "Peek/Empty", verdict.answered)


def _compare_and_set(operation: CompareAndSet, task: Task, machine: Machine) -> OutcomeSteps:
    command = CompareAndSetCommand(operation.old, operation.new, key=decision_id("Cas", operation.key))
    verdict = yield from decide(operation.object, command, task, machine)
    return Done(verdict.result, "Cas/Ok" if verdict.result else "Cas/Fail", verdict.answered)


def _put_if_absent(operation: PutIfAbsent, task: Task, machine: Machine) -> OutcomeSteps:
    command = CompareAndSetCommand(
        None, operation.value, only_absent=True, key=decision_id("PutIfAbsent", operation.key)
    )
    verdict = yield from decide(operation.object, command, task, machine)
    return Done(
        verdict.result, "PutIfAbsent/Ok" if verdict.result else "PutIfAbsent/Present", verdict.answered
    )


def _dequeue(operation: Dequeue, task: Task, machine: Machine) -> OutcomeSteps:
    if machine.is_outbox(operation.object):
        return outboxes.refuse_outbox(operation.object)
    command = DequeueCommand(operation.items_max, decision_id("Deq", operation.key))
    verdict = yield from _decide_some(operation, command, task, machine)
    values = tuple(entry.value for entry in verdict.result)
    return Done(values, "Deq/Ok" if values else "Deq/Empty", verdict.answered)


def _acquire(operation: Acquire, task: Task, machine: Machine) -> OutcomeSteps:
    if machine.is_outbox(operation.object) and not operation.by_relay:
        return outboxes.refuse_outbox(operation.object)
    holder = operation.holder or machine.holder
    command = AcquireCommand(operation.items_max, _us(operation.lease_s), operation.deliveries_max, holder)
    verdict = yield from _decide_some(operation, command, task, machine)
    return Done(verdict.result, "Acquire/Ok" if verdict.result else "Acquire/Empty", verdict.answered)


def _decide_some(
    operation: Dequeue | Acquire, command: DequeueCommand | AcquireCommand, task: Task, machine: Machine
) -> Generator[float, Event, CommandResult]:
    """The verdict that gives some items, or the last one when the time to wait is over."""
    again = partial(decide, operation.object, command, task, machine)
    verdict = yield from _repeated(again, operation.wait_s, task, machine)
    if verdict.result or not machine.has_exact_empty(operation.object):
        return verdict
    with machine.pacing.waits(task.turn):
        return (yield from outboxes.certainly_empty(operation.object, again, task, machine))


def _repeated(
    again: Callable[[], Generator[float, Event, CommandResult]], wait_s: float, task: Task, machine: Machine
) -> Generator[float, Event, CommandResult]:
    pacing, until_s, looked = machine.pacing, min(task.now.mono_s + wait_s, task.deadline_s), 1
    verdict = yield from again()
    if verdict.result or not wait_s:
        return verdict
    with pacing.waits(task.turn):
        while not (verdict.result or task.now.mono_s >= until_s or pacing.is_hurried or task.is_left):
            yield from pause(task, min(task.now.mono_s + pacing.pause_s(looked, task.turn), until_s))
            verdict = yield from again()
            looked += 1
    return verdict


def _settle(operation: Settle, task: Task, machine: Machine) -> OutcomeSteps:
    # As it is called on disk and between replicas.
    how = "accept" if operation.how == "ack" else operation.how
    command = SettleCommand(how, operation.tokens, _us(operation.span_s))
    verdict = yield from decide(operation.object, command, task, machine)
    name = operation.how.capitalize()
    return Done(verdict.result, f"{name}/Lost" if verdict.result.lost else f"{name}/Ok", verdict.answered)


def _clear_dead(operation: ClearDeadLetters, task: Task, machine: Machine) -> OutcomeSteps:
    command = ClearCommand(operation.ids, operation.is_requeued)
    verdict = yield from decide(operation.object, command, task, machine)
    return Done(verdict.result, "ClearDead/Ok", verdict.answered)


def _purge_delayed(operation: PurgeDelayed, task: Task, machine: Machine) -> OutcomeSteps:
    command = PurgeDelayedCommand(_us(operation.due_after_s))
    verdict = yield from decide(operation.object, command, task, machine)
    return Done(verdict.result, "PurgeDelayed/Ok", verdict.answered)


def _us(seconds: float) -> int:
    return int(seconds * 1e6)


def _repair(operation: Repair, task: Task, machine: Machine) -> OutcomeSteps:
    """Of one's own type one decision looks at a part of a long log: it is repeated until there is nothing to tell. Only the first one begins
    anew: calls that have run since stay."""
    told: tuple[str, ...] = ()
    while True:
        command = RepairCommand(machine.limits, operation.type, operation.is_anew and not told)
        try:
            verdict = yield from decide(operation.object, command, task, machine)
        except (OperationFailed, Expired) as failure:
            if not told:
                raise
            # A look at the clocks expires, where those of a new configuration are not known yet.
            ended = failure.outcome(is_unknown=False) if isinstance(failure, Expired) else failure.outcome
            detail = "\n".join((f"{ended.detail}. Done before:", *told))
            raise OperationFailed(replace(ended, detail=detail, definite=False)) from None
        told += verdict.result
        if not verdict.result or operation.type is None:
            return Done(told, "Repair/Ok", verdict.answered)


def _serve(operation: Serve, task: Task, machine: Machine) -> OutcomeSteps:
    verdict = yield from decide(operation.object, operation.command, task, machine, is_here=True)
    machine.count("commands served for others")
    return Done(verdict.result, "Serve/Ok", verdict.answered)


_OBSERVING: Final = Peek | QueueSize | Read | ReadLeases | Items

_RUNS: Final[Mapping[type[Operation], Callable[[Any, Task, Machine], OutcomeSteps]]] = {
    Enqueue: enqueue,
    Dequeue: _dequeue,
    Acquire: _acquire,
    Settle: _settle,
    ClearDeadLetters: _clear_dead,
    PurgeDelayed: _purge_delayed,
    ReadLeases: queue_looks.leases,
    Peek: _peek,
    QueueSize: queue_looks.queue_size,
    Read: observe.read,
    Write: _write,
    CompareAndSet: _compare_and_set,
    PutIfAbsent: _put_if_absent,
    Invoke: own_calls.invoke,
    Items: observe.items,
    CollectTombstone: everywhere.collect_tombstone,
    ReadRepair: everywhere.read_repair,
    Carry: everywhere.carry,
    Repair: _repair,
    Serve: _serve,
}
