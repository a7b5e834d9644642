"""The stack: last in, first out. Its dependencies are a queue's, word for word."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_CONTENT = frozenset({"Push/Ok", "Pop/Ok"})


class Stack:
    """State: the tuple of items, the top one last."""

    name: Final = "stack"
    kinds: Final[Mapping[str, Kind]] = {"Push": Kind.BLIND, "Pop": Kind.DECIDE, "Top": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = _CONTENT
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Push/Ok": frozenset(),
        "Pop/Ok": _CONTENT,
        "Pop/Empty": frozenset({"Push/Ok"}),
        "Top/Ok": _CONTENT,
        "Top/Empty": frozenset({"Push/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Push": {"item": ("a", "b")},
        "Pop": {},
        "Top": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Pop/Ok": ("item",), "Top/Ok": ("item",)}

    def initial(self) -> tuple[Any, ...]:
        """The empty stack."""
        return ()

    def step(self, state: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[Any, ...], Response]:
        """Push(x), Pop() or Top()."""
        match invocation.operation:
            case "Push":
                return (*state, invocation.args[0]), Response("Ok")
            case "Pop":
                return (state[:-1], Response("Ok", state[-1:])) if state else (state, Response("Empty"))
            case "Top":
                return state, (Response("Ok", state[-1:]) if state else Response("Empty"))
        raise ValueError(f"a stack has no operation {invocation.operation!r}: use Push, Pop or Top")
