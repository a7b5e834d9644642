"""Histories: what clients invoked and what they got, in the order in which it happened, in the words of the data types.

Owns the translation from operations and outcomes of the front end to invocations of the serial specifications. It must
not know what is right: `quorate.simulation.judging.linearizability` and `quorate.simulation.judging.checkers` judge.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from ..adts.types.catalogue import adt_of
from ..client_sdk.protocol.core.values import (
    Acquire,
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
    Outcome,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    ReadLeases,
    Settle,
    Write,
)

NEVER: Final = 1 << 60
"""The moment at which a call returns whose outcome nobody learned."""


class Call(Struct):
    """One call: when it was invoked and when it returned (sequence numbers of the history), and with what.

    A call that returned `NEVER` is unknown: it may take effect once, at any moment from its invocation on, or never.
    `results` of Deq are the items it took (none: Empty), of Acquire the `Leased`; `count` is how many it may take at most.
    What ends or renews leases is a call for each token, whose results are the tokens that were lost.
    `after` is the call of the same batch that must take effect first.
    """

    operation: str
    args: tuple[Any, ...]
    invoked: int
    returned: int = NEVER
    results: tuple[Any, ...] = ()
    count: int = 1
    after: "Call | None" = None
    who: str = ""
    invoked_us: int = 0
    returned_us: int = 0
    """In the world's time, for those who judge by the clock."""
    is_weak: bool = False
    """Whether it was answered as eventual consistency allows."""

    @property
    def is_known(self) -> bool:
        """Whether it returned."""
        return self.returned < NEVER

    def __str__(self) -> str:
        when = f"{self.invoked}..{self.returned if self.is_known else '?'}"
        got = f" -> {self.results}" if self.is_known else " -> unknown"
        return f"{when:>12} {self.who:8} {self.operation}{self.args}{got}"


class History:
    """Calls by object; a dictionary with all its keys is one object."""

    def __init__(self, now_us: Callable[[], int] = lambda: 0) -> None:
        self._now_us = now_us
        self.calls: dict[str, list[Call]] = {}
        self.outcomes: dict[str, int] = {}
        self.failed: set[tuple[type[Operation], str]] = set()
        """Which operations failed, and how."""
        self._moment = 0

    def invoke(self, operation: Operation, who: str) -> list[Call]:
        """Note that `operation` starts; its calls are unknown until `finish`."""
        self._moment += 1
        calls = _calls(operation, self._moment, who)
        for call in calls:
            call.invoked_us = self._now_us()
        name = "/".join(operation.object.split("/")[:2])
        self.calls.setdefault(name, []).extend(calls)
        return calls

    def finish(self, operation: Operation, calls: list[Call], outcome: Outcome) -> None:
        """Note how `operation` ended. Calls that certainly did nothing are struck out."""
        self._moment += 1
        self._count(operation, outcome)
        if isinstance(outcome, Done):
            results = _results(operation, outcome.result)
            for call in calls:
                call.returned, call.results, call.returned_us = self._moment, results, self._now_us()
                if isinstance(operation, Items):
                    call.args = (*call.args[:2], outcome.result.next)
                call.is_weak = outcome.is_weak
            return
        for call in calls:
            call.after = None
        if outcome.definite:
            name = "/".join(operation.object.split("/")[:2])
            gone = {id(call) for call in calls}
            self.calls[name] = [call for call in self.calls[name] if id(call) not in gone]

    def moment(self) -> tuple[int, int]:
        """Now, in the history's order and in microseconds."""
        self._moment += 1
        return self._moment, self._now_us()

    def add(self, operation: Operation, who: str, began: tuple[int, int], outcome: Done) -> None:
        """Note a call that began at a moment before, and ended now."""
        calls = self.invoke(operation, who)
        for call in calls:
            call.invoked, call.invoked_us = began
        self.finish(operation, calls, outcome)

    def _count(self, operation: Operation, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            kind = "definite" if outcome.definite else "indefinite"
            word = f"{outcome.reason} ({kind})"
            self.failed.add((type(operation), word))
        else:
            word = outcome.event_class
            if outcome.is_weak:
                self.outcomes["weak answers"] = self.outcomes.get("weak answers", 0) + 1
        self.outcomes[word] = self.outcomes.get(word, 0) + 1


def _calls(operation: Operation, moment: int, who: str) -> list[Call]:
    if isinstance(operation, Enqueue):
        calls = [Call("Enq", (value,), moment, who=who) for value in operation.values]
        for first, second in pairwise(calls):
            second.after = first
        return calls
    if isinstance(operation, Dequeue):
        return [Call("Deq", (), moment, count=operation.items_max, who=who)]
    if isinstance(operation, Acquire):
        return [Call("Acquire", (), moment, count=operation.items_max, who=who)]
    if isinstance(operation, Settle):
        return [Call(operation.how.capitalize(), (token,), moment, who=who) for token in operation.tokens]
    if isinstance(operation, CollectTombstone):
        return []
    if isinstance(operation, Items):
        return [Call("Items", (operation.prefix, operation.after, ""), moment, who=who)]
    word, args = _word(operation)
    return [Call(word, (*operation.object.split("/")[2:], *args), moment, who=who)]


_WORDS: Final[Mapping[type[Operation], str]] = {
    Peek: "Peek",
    QueueSize: "Size",
    ReadLeases: "Book",
}


def _word(operation: Operation) -> tuple[str, tuple[Any, ...]]:
    """The operation's name in its data type, and its arguments without the key."""
    is_key = adt_of(operation.object) == "dictionary"
    if (word := _WORDS.get(type(operation))) is not None:
        return word, ()
    match operation:
        case Invoke():
            return operation.invocation
        case ClearDeadLetters(_, ids, is_requeued):
            return "Requeue" if is_requeued else "Purge", ids
        case Read():
            return "Get" if is_key else "Read", ()
        case Write(_, None) if is_key:
            return "Delete", ()
        case Write(_, value):
            return "Put" if is_key else "Write", (value,)
        case CompareAndSet(_, old, new):
            return "Cas", (old, new)
        case PutIfAbsent(_, value):
            return "PutIfAbsent", (value,)
    raise AssertionError(f"nobody calls {operation}")


def _results(operation: Operation, result: Any) -> tuple[Any, ...]:
    """Results in the words of the data type: conditional changes give "Ok" or how they failed."""
    match operation:
        case Enqueue() | Write() | CollectTombstone():
            return ()
        case Dequeue() | Peek() | Acquire():
            return tuple(result)
        case Settle():
            return tuple(result.lost)
        case QueueSize():
            return (result.size,)
        case Invoke():
            return (result.condition, *result.results)
        case Items():
            return (frozenset(result.items.items()),)
        case CompareAndSet() | PutIfAbsent():
            failed = "Fail" if isinstance(operation, CompareAndSet) else "Present"
            return ("Ok" if result else failed,)
        case Read() | ReadLeases() | ClearDeadLetters():
            return (result,)
    raise AssertionError(f"nobody calls {operation}")
