"""The eventual queue: a semiqueue whose Deq may find nothing though an item waits, and finds each item in the end.

No Enq makes any answer of a Deq wrong, so their quorums need not meet: with Enq (0,1), Deq needs two of three replicas, where a queue's needs all three.
The service offers it as a queue with outboxes (`docs/how-to/outboxes.md`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from ..specification import EventClass, Invocation, Response
from .semiqueue import Semiqueue, State


class EventualQueue(Semiqueue):
    """State: the tuple of waiting items, ascending."""

    name = "eventual-queue"
    depends: ClassVar[Mapping[EventClass, frozenset[EventClass]]] = {
        "Enq/Ok": frozenset(),
        "Deq/Ok": frozenset({"Deq/Ok"}),
        "Deq/Empty": frozenset(),
    }

    def outcomes(self, state: State, invocation: Invocation) -> list[tuple[Any, Response]]:
        """Enq(x), or Deq() of each item that waits, or of none."""
        nothing = (state, Response("Empty"))
        found = super().outcomes(state, invocation)
        return [*found, nothing] if invocation.operation == "Deq" and nothing not in found else found
