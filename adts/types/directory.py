"""The directory: insert a key, update, delete and look it up, each with a word for "there" or "not there".

Like `quorate.adts.types.dictionary`, but its operations tell more: an Insert fails where the key is there, an Update and a
Delete where it is not. So they decide, where a dictionary's Put and Delete are blind.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_KEYS = ("j", "k")
_CHANGES = frozenset({"Put/Ok", "Insert/Ok", "Update/Ok", "Delete/Ok"})

State = frozenset[tuple[Any, Any]]


class Directory:
    """State: the set of (key, value) pairs."""

    name: Final = "directory"
    kinds: Final[Mapping[str, Kind]] = {
        "Put": Kind.BLIND,
        "Insert": Kind.DECIDE,
        "Update": Kind.DECIDE,
        "Delete": Kind.DECIDE,
        "Lookup": Kind.OBSERVE,
        "Size": Kind.OBSERVE,
    }
    changes: Final[frozenset[EventClass]] = _CHANGES
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Put/Ok": frozenset(),
        "Insert/Ok": frozenset({"Put/Ok", "Insert/Ok"}),
        "Insert/Present": frozenset({"Delete/Ok"}),
        "Update/Ok": frozenset({"Delete/Ok"}),
        "Update/Absent": frozenset({"Put/Ok", "Insert/Ok"}),
        "Delete/Ok": frozenset({"Delete/Ok"}),
        "Delete/Absent": frozenset({"Put/Ok", "Insert/Ok"}),
        "Lookup/Ok": frozenset({"Put/Ok", "Update/Ok", "Delete/Ok"}),
        "Lookup/Absent": frozenset({"Put/Ok", "Insert/Ok"}),
        "Size/Ok": frozenset({"Put/Ok", "Insert/Ok", "Delete/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Put": {"key": _KEYS, "value": ("a", "b")},
        "Insert": {"key": _KEYS, "value": ("a", "b")},
        "Update": {"key": _KEYS, "value": ("a", "b")},
        "Delete": {"key": _KEYS},
        "Lookup": {"key": _KEYS},
        "Size": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Lookup/Ok": ("value",), "Size/Ok": ("size",)}

    def initial(self) -> State:
        """The empty directory."""
        return frozenset()

    def step(self, state: State, invocation: Invocation) -> tuple[State, Response]:
        """Put(k, x), Insert(k, x), Update(k, x), Delete(k), Lookup(k) or Size()."""
        if invocation.operation == "Size":
            return state, Response("Ok", (len(state),))
        if invocation.operation not in self.kinds:
            raise ValueError(
                f"a directory has no operation {invocation.operation!r}: use {', '.join(self.kinds)}"
            )
        key, *value = invocation.args
        old = [pair for pair in state if pair[0] == key]
        rest = state.difference(old)
        new = rest | {(key, *value)}
        match invocation.operation, bool(old):
            case ("Put", _) | ("Insert", False) | ("Update", True):
                return new, Response("Ok")
            case "Insert", True:
                return state, Response("Present")
            case "Delete", True:
                return rest, Response("Ok")
            case "Lookup", True:
                return state, Response("Ok", (old[0][1],))
        return state, Response("Absent")
