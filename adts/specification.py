"""Serial specifications: what an object means when operations run one after another (Herlihy 1986, section 2). Pure.

A specification is one function, `step(state, invocation) -> (state, response)`; states are immutable values. It also
names the event classes (operation and termination condition), the *kind* of each operation (which decides the
protocol it runs) and the declared dependency relation (which decides which quorums must meet).
"""

from collections.abc import Hashable, Mapping
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


class Response(NamedTuple):
    """A termination condition and its results: `Ok(x)`."""

    term: str
    results: tuple[Any, ...] = ()


class Specification(Protocol):
    """A data type.

    `changes` are the event classes that change the state: they need a final quorum. `depends[p]` are the event classes
    that a response of class p depends on: every initial quorum of p meets every final quorum of each of them.
    """

    @property
    def name(self) -> str:
        """The type's name, as objects are named: `queue`."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each operation."""

    @property
    def changes(self) -> frozenset[EventClass]:
        """See the class."""

    @property
    def depends(self) -> Mapping[EventClass, frozenset[EventClass]]:
        """See the class."""

    def initial(self) -> Hashable:
        """The state of an object that nobody has touched."""

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """The state after `invocation` and its response; every invocation is legal in every state."""


def operation_of(event_class: EventClass) -> str:
    """The operation of an event class: `Deq` of `Deq/Empty`."""
    return event_class.partition("/")[0]
