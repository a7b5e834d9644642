"""Decisions that were accepted here and are not known to be made: the client has not told yet, or has vanished. Pure.

Owns how long one waits until another front end finishes it, so that catch-up brings it to who missed it. The list is in memory; at the start the
walk over all objects (`quorate.gc.pruning`) shows the store those that waited.
"""

from typing import Final, Protocol

from ...gc.due_list import DueList
from ...timestamps.ballot import Ballot
from .log import ObjectState

AFTER_S: Final = 5.0
"""Who decided has told by then, if it is alive and has network."""
WAITING_MAX: Final = 100_000
"""Objects that wait; further ones are finished by who reads or changes them, or after a restart."""


class Store(Protocol):
    """What is asked of a store. It works in the transaction of its caller."""

    undecided: dict[str, None]
    """Objects of which something was accepted since the latest look, and not committed."""

    def state(self, name: str) -> ObjectState | None:
        """The object's state, or None when the store does not know it."""


class Undecided:
    """Those of one store. Used in the writer thread only."""

    def __init__(self) -> None:
        self._waiting: Final = DueList()
        self._ballots: Final[dict[str, Ballot]] = {}
        """By object that waits: what was accepted last when it began to."""

    def due(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects whose decision has waited for long. Each is given out again later, unless it is made by then."""
        noted, store.undecided = store.undecided, {}
        for name in noted:
            self._wait(store, name, mono_s)
        found: list[str] = []
        while len(found) < limit and self._waiting.is_due(mono_s):
            if (due := self._waiting.pop(mono_s)) is None:
                continue
            # Of an object that is always being decided there is an accept without its commit whenever one looks: it is another one then.
            if self._ballots.pop(due) == _undecided(store, due):
                found.append(due)
            self._wait(store, due, mono_s)
        return found

    def _wait(self, store: Store, name: str, mono_s: float) -> None:
        if name in self._ballots or len(self._ballots) >= WAITING_MAX:
            return
        if (ballot := _undecided(store, name)) is not None:
            self._ballots[name] = ballot
            self._waiting.push(name, mono_s + AFTER_S)


def _undecided(store: Store, name: str) -> Ballot | None:
    """What was accepted last, if it is not known to be decided."""
    state = store.state(name)
    return state.accepted if state is not None and state.accepted > state.committed else None
