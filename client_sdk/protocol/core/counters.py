"""What a front end counts: operations and how they ended, how long they and their rounds took, and events on the way. Pure.

Owns plain numbers, so that counting costs next to nothing: no library, no lock, no labels. The driver counts operations when they end,
the machine counts what happens on the way. Whoever wants metrics reads them here when asked (`quorate.replica.telemetry.metrics` does).
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ....adts.types.catalogue import adt_of, read_word, write_word
from .values import (
    Acquire,
    Carry,
    ClearDeadLetters,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Invoke,
    Items,
    Operation,
    Outcome,
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

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the classes into which durations are counted."""

_NAMES: Final[Mapping[type[Operation], str]] = {
    Enqueue: "Enq",
    Dequeue: "Deq",
    Acquire: "Acquire",
    ClearDeadLetters: "ClearDead",
    PurgeDelayed: "PurgeDelayed",
    ReadLeases: "Leases",
    Peek: "Peek",
    QueueSize: "Size",
    CompareAndSet: "Cas",
    PutIfAbsent: "PutIfAbsent",
    Items: "Items",
    CollectTombstone: "Collect",
    ReadRepair: "ReadRepair",
    Carry: "Carry",
    Repair: "Repair",
    Serve: "Serve",
}


class Distribution(Struct, frozen=True):
    """How often a figure was how large: `counts[n]` times at or below `bounds[n]` and above the one before, and the last
    number of times above all of them; `sum` is that of all figures."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        """How many figures there were."""
        return sum(self.counts)


class Histogram:
    """A distribution that grows."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = tuple(bounds)
        self.counts: Final = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def add(self, figure: float) -> None:
        """Count one more."""
        self.counts[bisect_left(self.bounds, figure)] += 1
        self.sum += figure

    def taken(self) -> Distribution:
        """What was counted so far."""
        return Distribution(self.bounds, tuple(self.counts), self.sum)


class OperationKind(Struct, frozen=True, order=True):
    """`type` is that of the object (queue, register, dictionary), `operation` the one that a caller asked for (Enq, Deq, Cas,
    …). `outcome` is how it ended: that of its event class (Ok, Empty, Fail, Present, …), the reason of a failure
    (unavailable, unknown, refused, key-reused, or the name of a bound), or cancelled, when its caller did not wait for the end."""

    type: str
    operation: str
    outcome: str


class FrontEndCounts(Struct, frozen=True):
    """What a front end has counted since it was connected. Durations are in seconds.

    `operations` as their callers saw them; `rounds` by the kind of request (Append, Collect, Accept, Commit, Scan): how long
    each took until its quorum had answered; `events` are named in docs/reference/metrics.md.
    """

    operations: Mapping[OperationKind, Distribution]
    rounds: Mapping[str, Distribution]
    events: Mapping[str, int]


class Counts:
    """What one front end counts, from its first operation on. It belongs to one thread."""

    def __init__(self) -> None:
        self.events: Final[dict[str, int]] = {}
        self._operations: Final[dict[tuple[str, str], Histogram]] = {}
        self._rounds: Final[dict[str, Histogram]] = {}

    def count(self, what: str) -> None:
        """One more event."""
        self.events[what] = self.events.get(what, 0) + 1

    def operation(self, operation: Operation, outcome: Outcome | None, seconds: float) -> None:
        """One more operation has ended; None when its caller did not wait for the end."""
        if isinstance(outcome, Done):
            event_class = outcome.event_class
        else:
            event_class = f"{operation_name(operation)}/{'cancelled' if outcome is None else outcome.reason}"
        where = (operation.object.partition("/")[0], event_class)
        if (histogram := self._operations.get(where)) is None:
            histogram = self._operations[where] = Histogram(SECONDS)
        histogram.add(seconds)

    def round(self, kind: str, seconds: float) -> None:
        """One more round has met its quorum."""
        if (histogram := self._rounds.get(kind)) is None:
            histogram = self._rounds[kind] = Histogram(SECONDS)
        histogram.add(seconds)

    def taken(self) -> FrontEndCounts:
        """All that was counted so far."""
        operations = {
            OperationKind(type_, *event_class.split("/", 1)): histogram.taken()
            for (type_, event_class), histogram in sorted(self._operations.items())
        }
        rounds = {kind: histogram.taken() for kind, histogram in sorted(self._rounds.items())}
        return FrontEndCounts(operations, rounds, dict(sorted(self.events.items())))


def operation_name(operation: Operation) -> str:
    """The name that the operation has in its event classes."""
    if isinstance(operation, Read):
        return read_word(adt_of(operation.object))
    if isinstance(operation, Write):
        return write_word(adt_of(operation.object), deletes=operation.value is None)
    if isinstance(operation, Settle):
        return operation.how.capitalize()
    if isinstance(operation, Invoke):
        return operation.invocation.operation
    return _NAMES[type(operation)]
