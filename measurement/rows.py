"""The rows of a measured run, as docs/reference/measurements.md describes them. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from ..adts.plain_class import OK
from ..adts.specification import operation_of
from ..adts.types.called import BLIND, CALL
from ..adts.types.catalogue import adt_of
from ..client_sdk.protocol.core.values import (
    ClearDeadLetters,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Invoke,
    Operation,
    Outcome,
    QueueSize,
    Read,
    ReadLeases,
    Settle,
    Write,
)

Ending = Literal["ok", "unavailable", "unknown"]

_OPERATIONS: Final[Mapping[type[Operation], str]] = {
    Enqueue: "Enq",
    Dequeue: "Deq",
    ClearDeadLetters: "ClearDead",
    ReadLeases: "Leases",
    QueueSize: "Size",
    CompareAndSet: "Cas",
    CollectTombstone: "Delete",
}
"""Those that have another name in their serial specification than in the SDK."""


class OperationRow(Struct, frozen=True, gc=False):
    """A finished operation; `start_s` in seconds since 1970. `object` names a whole dictionary, not its key."""

    object: str
    adt: str
    operation: str
    event_class: str | None
    choice: str
    front_end: str
    start_s: float
    latency_s: float
    outcome: Ending
    answered: tuple[str, ...]


def operation_row(
    operation: Operation,
    outcome: Outcome,
    *,
    adt: str,
    choice: str,
    front_end: str,
    start_s: float,
    latency_s: float,
) -> OperationRow:
    """The row of an operation on an object of that type that came to `outcome`. A call of one's own type is of the class that quorums know it by."""
    event_class = outcome.event_class if isinstance(outcome, Done) else None
    if isinstance(operation, Invoke) and event_class is not None:
        event_class = f"{operation_name(operation)}/{OK}"
    return OperationRow(
        object=object_of(operation),
        adt=adt,
        operation=operation_name(operation) if event_class is None else operation_of(event_class),
        event_class=event_class,
        choice=choice,
        front_end=front_end,
        start_s=start_s,
        latency_s=latency_s,
        outcome=_ending(outcome),
        answered=tuple(sorted(outcome.answered)),
    )


def object_of(operation: Operation) -> str:
    """The object of an operation; of a dictionary's key, its dictionary."""
    name = operation.object
    return name if name.count("/") == 1 else "/".join(name.split("/")[:2])


def _ending(outcome: Outcome) -> Ending:
    if isinstance(outcome, Failed):
        return "unavailable" if outcome.definite else "unknown"
    return "ok"


def operation_name(operation: Operation) -> str:
    """The operation's name in its serial specification."""
    is_cell_of_dictionary = adt_of(operation.object) == "dictionary"
    match operation:
        case Read():
            return "Get" if is_cell_of_dictionary else "Read"
        case Write(value=value):
            return "Write" if not is_cell_of_dictionary else "Delete" if value is None else "Put"
        case Settle(how=how):
            return how.capitalize()
        case Invoke(type=plain, invocation=invocation):
            return BLIND if invocation.operation in plain.blind else CALL
    return _OPERATIONS.get(type(operation), type(operation).__name__)
