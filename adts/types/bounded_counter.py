"""The bounded counter: places that are taken and given back, from 0 up to a limit (a semaphore that never waits)."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response


class BoundedCounter:
    """State: the number of places taken.

    The dependency relation is the same for every limit from 1 on: Inc/Ok depends on Inc/Ok because one of them may take
    the last place, and on nothing else, for a Dec only ever makes room.
    """

    name: Final = "bounded-counter"
    kinds: Final[Mapping[str, Kind]] = {"Inc": Kind.DECIDE, "Dec": Kind.DECIDE, "Read": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = frozenset({"Inc/Ok", "Dec/Ok"})
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Inc/Ok": frozenset({"Inc/Ok"}),
        "Inc/Full": frozenset({"Dec/Ok"}),
        "Dec/Ok": frozenset({"Dec/Ok"}),
        "Dec/Empty": frozenset({"Inc/Ok"}),
        "Read/Ok": frozenset({"Inc/Ok", "Dec/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {"Inc": {}, "Dec": {}, "Read": {}}
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Read/Ok": ("taken",)}

    def __init__(self, limit: int = 2) -> None:
        if limit < 1:
            raise ValueError(f"the limit of a bounded counter is {limit}: it must be at least 1")
        self.limit: Final = limit

    def initial(self) -> int:
        """No place is taken."""
        return 0

    def step(self, state: int, invocation: Invocation) -> tuple[int, Response]:
        """Inc(), Dec() or Read()."""
        match invocation.operation:
            case "Inc":
                return (state + 1, Response("Ok")) if state < self.limit else (state, Response("Full"))
            case "Dec":
                return (state - 1, Response("Ok")) if state > 0 else (state, Response("Empty"))
            case "Read":
                return state, Response("Ok", (state,))
        raise ValueError(f"a bounded counter has no operation {invocation.operation!r}: use Inc, Dec or Read")
