"""Serial specifications: what an object means when operations run one after another (Herlihy 1986, section 2). Pure.

A specification is one function, `step(state, invocation) -> (state, response)`; states are immutable values. It also
names the event classes (operation and termination condition), the *kind* of each operation (which decides the
protocol it runs) and the declared dependency relation (which decides which quorums must meet). Types whose objects may
choose among several responses say which ones they may give: `outcomes`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

EventClass = str
"""An operation and how it ended, as `Deq/Empty`."""


class Kind(Enum):
    """How an operation runs: whether its response depends on the state, and whether it changes it."""

    BLIND = "blind"
    OBSERVE = "observe"
    DECIDE = "decide"


class Invocation(NamedTuple):
    """An operation and its arguments: `Enq(x)`."""

    operation: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.operation}({_listed(self.args)})"


class Response(NamedTuple):
    """A termination condition and its results: `Ok(x)`."""

    condition: str
    results: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.condition}({_listed(self.results)})"


class Event(NamedTuple):
    """What happened: `[Enq(a); Ok()]`."""

    invocation: Invocation
    response: Response

    @property
    def event_class(self) -> EventClass:
        """The operation and how it ended: `Enq/Ok`."""
        return f"{self.invocation.operation}/{self.response.condition}"

    def __str__(self) -> str:
        return f"[{self.invocation}; {self.response}]"


class SerialSpecification(Protocol):
    """What a data type means; all that a search for its dependencies asks for."""

    @property
    def name(self) -> str:
        """The type's name, as objects are named: `queue`."""

    @property
    def arguments(self) -> Mapping[str, Mapping[str, tuple[Any, ...]]]:
        """The operations: each one's arguments by name, with the few values that a search tries for each."""

    @property
    def results(self) -> Mapping[EventClass, tuple[str, ...]]:
        """The names of the results of each event class that has some."""

    def initial(self) -> Hashable:
        """The state of an object that nobody has touched."""

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """The state after `invocation` and its response; every invocation is legal in every state."""


class Specification(SerialSpecification, Protocol):
    """A data type, with what quorums need to know of it.

    `changes` are the event classes that change the state: they need a final quorum. `depends[p]` are the event classes
    that a response of class p depends on: every initial quorum of p's operation meets every final quorum of each of
    them. The table is exact; that outcomes of one operation share the initial quorum is not its affair.
    """

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each operation."""

    @property
    def changes(self) -> frozenset[EventClass]:
        """See the class."""

    @property
    def depends(self) -> Mapping[EventClass, frozenset[EventClass]]:
        """See the class."""


class Nondeterministic(Protocol):
    """A serial specification whose objects may answer in several ways. `step` gives one of them."""

    def outcomes(self, state: Any, invocation: Invocation) -> Iterable[tuple[Any, Response]]:
        """Every (state after it, response) that is right for `invocation` in `state`, in a fixed order; none where it has
        to wait."""


def outcomes_of(
    specification: SerialSpecification, state: Any, invocation: Invocation
) -> Iterable[tuple[Any, Response]]:
    """Every (state after it, response) that is right for `invocation` in `state`."""
    # A search asks for every step; to test for the protocol would take most of its time.
    outcomes: Callable[[Any, Invocation], Iterable[tuple[Any, Response]]] | None
    outcomes = getattr(specification, "outcomes", None)
    return (specification.step(state, invocation),) if outcomes is None else outcomes(state, invocation)


def operation_of(event_class: EventClass) -> str:
    """The operation of an event class: `Deq` of `Deq/Empty`."""
    return event_class.partition("/")[0]


def condition_of(event_class: EventClass) -> str:
    """How the operation of an event class ended: `Empty` of `Deq/Empty`."""
    return event_class.partition("/")[2]


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(map(shown, values))


def shown(value: Any) -> str:
    """A value or a state as histories are written: texts bare, nothing as null, sets in a fixed order."""
    match value:
        case None:
            return "null"
        case tuple():
            return f"({_listed(value)})"
        case frozenset():
            return "{" + ", ".join(sorted(map(shown, value))) + "}"
    return str(value)
