"""The set: elements are inserted and removed blindly, and asked for. Each element is an object of its own, but for Size."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_ELEMENTS = ("a", "b")
_CHANGES = frozenset({"Insert/Ok", "Remove/Ok"})


class Set:
    """State: the set of elements."""

    name: Final = "set"
    kinds: Final[Mapping[str, Kind]] = {
        "Insert": Kind.BLIND,
        "Remove": Kind.BLIND,
        "Member": Kind.OBSERVE,
        "Size": Kind.OBSERVE,
    }
    changes: Final[frozenset[EventClass]] = _CHANGES
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Insert/Ok": frozenset(),
        "Remove/Ok": frozenset(),
        "Member/True": frozenset({"Remove/Ok"}),
        "Member/False": frozenset({"Insert/Ok"}),
        "Size/Ok": _CHANGES,
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Insert": {"element": _ELEMENTS},
        "Remove": {"element": _ELEMENTS},
        "Member": {"element": _ELEMENTS},
        "Size": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Size/Ok": ("size",)}

    def initial(self) -> frozenset[Any]:
        """The empty set."""
        return frozenset()

    def step(self, state: frozenset[Any], invocation: Invocation) -> tuple[frozenset[Any], Response]:
        """Insert(x), Remove(x), Member(x) or Size()."""
        match invocation.operation:
            case "Insert":
                return state.union(invocation.args), Response("Ok")
            case "Remove":
                return state.difference(invocation.args), Response("Ok")
            case "Member":
                return state, Response(str(invocation.args[0] in state))
            case "Size":
                return state, Response("Ok", (len(state),))
        raise ValueError(
            f"a set has no operation {invocation.operation!r}: use Insert, Remove, Member or Size"
        )
