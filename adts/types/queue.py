"""The first-in-first-out queue (Herlihy 1986, section 2.1), with Peek and Size."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

from ..log import Seen, Summary
from ..specification import EventClass, Invocation, Kind, Response

_CONTENT = frozenset({"Enq/Ok", "Deq/Ok"})


class Queue:
    """State: the tuple of waiting items, oldest first."""

    name: Final = "queue"
    kinds: Final[Mapping[str, Kind]] = {
        "Enq": Kind.BLIND,
        "Deq": Kind.DECIDE,
        "Peek": Kind.OBSERVE,
        "Size": Kind.OBSERVE,
    }
    changes: Final[frozenset[EventClass]] = _CONTENT
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Enq/Ok": frozenset(),
        "Deq/Ok": _CONTENT,
        "Deq/Empty": frozenset({"Enq/Ok"}),
        "Peek/Ok": _CONTENT,
        "Peek/Empty": frozenset({"Enq/Ok"}),
        "Size/Ok": _CONTENT,
    }

    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Enq": {"item": ("a", "b")},
        "Deq": {},
        "Peek": {},
        "Size": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {
        "Deq/Ok": ("item",),
        "Peek/Ok": ("item",),
        "Size/Ok": ("size",),
    }

    def initial(self) -> tuple[Any, ...]:
        """The empty queue."""
        return ()

    def step(self, state: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[Any, ...], Response]:
        """Enq(x), Deq(), Peek() or Size()."""
        match invocation.operation:
            case "Enq":
                return (*state, invocation.args[0]), Response("Ok")
            case "Deq":
                return (state[1:], Response("Ok", state[:1])) if state else (state, Response("Empty"))
            case "Peek":
                return state, (Response("Ok", state[:1]) if state else Response("Empty"))
            case "Size":
                return state, Response("Ok", (len(state),))
        raise ValueError(f"a queue has no operation {invocation.operation!r}: use Enq, Deq, Peek or Size")


class Over:
    """What waits over a summary. An adopted entry stands for every copy of it in a log, whatever timestamp that copy has."""

    def __init__(self, summary: Summary) -> None:
        self._horizon: Final = summary.horizon
        self._adopted: Final = {entry.id: entry for entry in summary.adopted}
        self._ambiguous: Final = summary.ambiguous

    def adopted(self, seen: Mapping[str, Seen]) -> list[Seen]:
        """The adopted entries, which wait wherever the horizon stands."""
        return [
            Seen(entry, seen[name].holders if name in seen else frozenset())
            for name, entry in self._adopted.items()
        ]

    def waiting(self, entries: Iterable[Seen]) -> list[Seen]:
        """Those of a log's entries that wait: above the horizon, and not taken already."""
        horizon, adopted = self._horizon, self._adopted
        above = [found for found in entries if found.entry.t > horizon and found.entry.id not in adopted]
        if not above or not self._ambiguous:
            return above
        # There may be thousands of names, of which these are few.
        taken = {found.entry.id for found in above}.intersection(map(itemgetter(0), self._ambiguous))
        return [found for found in above if found.entry.id not in taken] if taken else above


def view(summary: Summary, seen: Mapping[str, Seen]) -> list[Seen]:
    """The waiting entries, oldest first."""
    over = Over(summary)
    return sorted([*over.adopted(seen), *over.waiting(seen.values())], key=lambda found: found.entry.t)
