"""The dictionary (Herlihy's directory), with put-if-absent and compare-and-set.

Operations on different keys do not depend on each other, so the protocol keeps each key as an object of its own; Items
and Size read all of them. The specification is of the whole dictionary.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

_CHANGES = frozenset({"Put/Ok", "Delete/Ok", "PutIfAbsent/Ok", "Cas/Ok"})
_KEYS = ("j", "k")

State = frozenset[tuple[Any, Any]]


class Dictionary:
    """State: the set of (key, value) pairs. An absent key has the value None."""

    name: Final = "dictionary"
    kinds: Final[Mapping[str, Kind]] = {
        "Put": Kind.BLIND,
        "Delete": Kind.BLIND,
        "Get": Kind.OBSERVE,
        "Items": Kind.OBSERVE,
        "Size": Kind.OBSERVE,
        "PutIfAbsent": Kind.DECIDE,
        "Cas": Kind.DECIDE,
    }
    changes: Final[frozenset[EventClass]] = _CHANGES
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Put/Ok": frozenset(),
        "Delete/Ok": frozenset(),
        "Get/Ok": _CHANGES,
        "Items/Ok": _CHANGES,
        "Size/Ok": _CHANGES,
        "PutIfAbsent/Ok": _CHANGES - {"Delete/Ok"},
        "PutIfAbsent/Present": frozenset({"Delete/Ok", "Cas/Ok"}),
        "Cas/Ok": _CHANGES,
        "Cas/Fail": _CHANGES,
    }

    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Put": {"key": _KEYS, "value": ("a", "b")},
        "Delete": {"key": _KEYS},
        "Get": {"key": _KEYS},
        "Items": {},
        "Size": {},
        "PutIfAbsent": {"key": _KEYS, "value": ("a", "b")},
        "Cas": {"key": _KEYS, "old": (None, "a", "b"), "new": (None, "a", "b")},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {
        "Get/Ok": ("value",),
        "Items/Ok": ("items",),
        "Size/Ok": ("size",),
    }

    def initial(self) -> State:
        """The empty dictionary."""
        return frozenset()

    def step(self, state: State, invocation: Invocation) -> tuple[State, Response]:
        """Put(k, x), Delete(k), Get(k), PutIfAbsent(k, x), Cas(k, old, new), Items() or Size(); Items(prefix, after, last) and Size(…) of a page."""
        match invocation.operation:
            case "Items":
                return state, Response("Ok", (_page(state, *invocation.args),))
            case "Size":
                return state, Response("Ok", (len(_page(state, *invocation.args)),))
        if invocation.operation not in self.kinds:
            raise ValueError(
                f"a dictionary has no operation {invocation.operation!r}: use {', '.join(self.kinds)}"
            )
        key, *args = invocation.args
        old = dict(state).get(key)
        new, response = _step_of_key(old, invocation.operation, args)
        if new == old:
            return state, response
        rest = frozenset(pair for pair in state if pair[0] != key)
        return (rest if new is None else rest | {(key, new)}), response


def is_on_page(key: str, prefix: str, after: str, last: str) -> bool:
    """Whether a key begins with `prefix`, and comes after `after`, but not after `last`; empty: without that condition."""
    return key.startswith(prefix) and key > after and (not last or key <= last)


def _page(state: State, *page: str) -> State:
    return frozenset(pair for pair in state if is_on_page(pair[0], *page)) if page else state


def _step_of_key(old: Any, operation: str, args: list[Any]) -> tuple[Any, Response]:
    match operation:
        case "Put":
            return args[0], Response("Ok")
        case "Delete":
            return None, Response("Ok")
        case "Get":
            return old, Response("Ok", (old,))
        case "PutIfAbsent":
            return (args[0], Response("Ok")) if old is None else (old, Response("Present"))
    expected, new = args
    return (new, Response("Ok")) if old == expected else (old, Response("Fail"))
