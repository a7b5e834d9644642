"""The counter: amounts are added, and the sum is read. Additions commute; they need not even be ordered."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response


class Counter:
    """State: the sum of all amounts."""

    name: Final = "counter"
    kinds: Final[Mapping[str, Kind]] = {"Add": Kind.BLIND, "Read": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = frozenset({"Add/Ok"})
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Add/Ok": frozenset(),
        "Read/Ok": frozenset({"Add/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Add": {"amount": (1, -1, 2)},
        "Read": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Read/Ok": ("sum",)}

    def initial(self) -> int:
        """Zero."""
        return 0

    def step(self, state: int, invocation: Invocation) -> tuple[int, Response]:
        """Add(amount), which may be negative, or Read()."""
        match invocation.operation:
            case "Add":
                return state + invocation.args[0], Response("Ok")
            case "Read":
                return state, Response("Ok", (state,))
        raise ValueError(f"a counter has no operation {invocation.operation!r}: use Add or Read")
