"""The semiqueue (Weihl 1985): a queue that may give any waiting item.

What it promises less than a queue, its quorums need less: no Enq makes the answer of a Deq wrong, unless that was Empty.
The service offers it as a queue with outboxes and `exact_empty` (`docs/how-to/outboxes.md`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ..specification import EventClass, Invocation, Kind, Response

State = tuple[Any, ...]


class Semiqueue:
    """State: the tuple of waiting items, ascending; items may be there several times."""

    name = "semiqueue"
    kinds: Final[Mapping[str, Kind]] = {"Enq": Kind.BLIND, "Deq": Kind.DECIDE}
    changes: Final[frozenset[EventClass]] = frozenset({"Enq/Ok", "Deq/Ok"})
    depends: ClassVar[Mapping[EventClass, frozenset[EventClass]]] = {
        "Enq/Ok": frozenset(),
        "Deq/Ok": frozenset({"Deq/Ok"}),
        "Deq/Empty": frozenset({"Enq/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {"Enq": {"item": ("a", "b")}, "Deq": {}}
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Deq/Ok": ("item",)}

    def initial(self) -> State:
        """The empty semiqueue."""
        return ()

    def step(self, state: State, invocation: Invocation) -> tuple[State, Response]:
        """Enq(x) or Deq(), which here gives the least item."""
        return self.outcomes(state, invocation)[0]

    def outcomes(self, state: State, invocation: Invocation) -> list[tuple[State, Response]]:
        """Enq(x), or Deq() of each item that waits."""
        match invocation.operation:
            case "Enq":
                return [(tuple(sorted((*state, *invocation.args))), Response("Ok"))]
            case "Deq":
                places = {item: place for place, item in enumerate(state)}
                taken = [
                    ((*state[:place], *state[place + 1 :]), Response("Ok", (item,)))
                    for item, place in places.items()
                ]
                return taken or [(state, Response("Empty"))]
        raise ValueError(f"a {self.name} has no operation {invocation.operation!r}: use Enq or Deq")
