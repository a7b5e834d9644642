"""The priority queue: the least item comes out first, whenever it came in."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_CONTENT = frozenset({"Enq/Ok", "Deq/Ok"})


class PriorityQueue:
    """State: the tuple of waiting items, ascending.

    The order in which items came in does not matter, so that Enqs need no order among themselves: no clock either.
    """

    name: Final = "priority-queue"
    kinds: Final[Mapping[str, Kind]] = {"Enq": Kind.BLIND, "Deq": Kind.DECIDE, "Peek": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = _CONTENT
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Enq/Ok": frozenset(),
        "Deq/Ok": _CONTENT,
        "Deq/Empty": frozenset({"Enq/Ok"}),
        "Peek/Ok": _CONTENT,
        "Peek/Empty": frozenset({"Enq/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Enq": {"item": (1, 2, 3)},
        "Deq": {},
        "Peek": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Deq/Ok": ("item",), "Peek/Ok": ("item",)}

    def initial(self) -> tuple[Any, ...]:
        """The empty priority queue."""
        return ()

    def step(self, state: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[Any, ...], Response]:
        """Enq(x), Deq() or Peek()."""
        match invocation.operation:
            case "Enq":
                return tuple(sorted((*state, *invocation.args))), Response("Ok")
            case "Deq":
                return (state[1:], Response("Ok", state[:1])) if state else (state, Response("Empty"))
            case "Peek":
                return state, (Response("Ok", state[:1]) if state else Response("Empty"))
        raise ValueError(f"a priority queue has no operation {invocation.operation!r}: use Enq, Deq or Peek")
