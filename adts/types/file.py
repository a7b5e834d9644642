"""The file: the classic read/write register (Gifford 1979). A file nobody has written holds null."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response


class File:
    """State: the value, or None."""

    name: Final = "file"
    kinds: Final[Mapping[str, Kind]] = {"Write": Kind.BLIND, "Read": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = frozenset({"Write/Ok"})
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Write/Ok": frozenset(),
        "Read/Ok": frozenset({"Write/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Write": {"value": ("a", "b")},
        "Read": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Read/Ok": ("value",)}

    def initial(self) -> Any:
        """The file nobody has written."""
        return None

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """Write(x) or Read()."""
        match invocation.operation:
            case "Write":
                return invocation.args[0], Response("Ok")
            case "Read":
                return state, Response("Ok", (state,))
        raise ValueError(f"a file has no operation {invocation.operation!r}: use Write or Read")
