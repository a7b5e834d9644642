"""The register with compare-and-set. A register nobody has written holds null."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_CHANGES = frozenset({"Write/Ok", "Cas/Ok"})


class Register:
    """State: the value, or None."""

    name: Final = "register"
    kinds: Final[Mapping[str, Kind]] = {"Write": Kind.BLIND, "Read": Kind.OBSERVE, "Cas": Kind.DECIDE}
    changes: Final[frozenset[EventClass]] = _CHANGES
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Write/Ok": frozenset(),
        "Read/Ok": _CHANGES,
        "Cas/Ok": _CHANGES,
        "Cas/Fail": _CHANGES,
    }

    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Write": {"value": ("a", "b")},
        "Read": {},
        "Cas": {"old": (None, "a", "b"), "new": (None, "a", "b")},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Read/Ok": ("value",)}

    def initial(self) -> Any:
        """The register nobody has written."""
        return None

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """Write(x), Read() or Cas(old, new)."""
        match invocation.operation:
            case "Write":
                return invocation.args[0], Response("Ok")
            case "Read":
                return state, Response("Ok", (state,))
            case "Cas":
                old, new = invocation.args
                return (new, Response("Ok")) if state == old else (state, Response("Fail"))
        raise ValueError(f"a register has no operation {invocation.operation!r}: use Write, Read or Cas")
