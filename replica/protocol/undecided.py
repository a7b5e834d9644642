"""Decisions that were accepted here and are not known to be made: the client has not told yet, or has vanished. Pure.

Owns how long one waits until another front end finishes it, so that catch-up brings it to who missed it. The list is in memory; at the start the
walk over all objects (`quorate.gc.pruning`) shows the store those that waited.
"""

from typing import Final, NamedTuple, Protocol

from ...gc.due_list import DueList
from ...timestamps.ballot import Ballot
from .log import ObjectState

AFTER_S: Final = 5.0
"""Who decided has told by then, if it is alive and has network."""
AGAIN_S_MAX: Final = 320.0
"""Who cannot be decided is tried at least so often."""
LOOKS_MAX: Final = 1000
"""Objects looked at in one round: other work of the store waits meanwhile."""
WAITING_MAX: Final = 100_000
"""Objects that wait; further ones are finished by who reads or changes them, or after a restart."""


class Store(Protocol):
    """What is asked of a store. It works in the transaction of its caller."""

    undecided: dict[str, None]
    """Objects of which something was accepted since the latest look, and not committed."""

    def state(self, name: str) -> ObjectState | None:
        """The object's state, or None when the store does not know it."""


class _Waiting(NamedTuple):
    """What was accepted last when an object began to wait, and for how many seconds it waits."""

    ballot: Ballot
    wait_s: float


class Undecided:
    """Those of one store. Used in the writer thread only."""

    def __init__(self) -> None:
        self._due: Final = DueList()
        self._waiting: Final[dict[str, _Waiting]] = {}

    def due(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects whose decision has waited for long. Each is given out again, less and less often, unless it is made by then:
        those that nobody can decide must not hold up others."""
        noted, store.undecided = store.undecided, {}
        for name in noted:
            self._wait(store, name, mono_s, AFTER_S)
        found: list[str] = []
        for _ in range(LOOKS_MAX):
            if len(found) == limit or not self._due.is_due(mono_s):
                break
            if (due := self._due.pop(mono_s)) is None:
                continue
            before = self._waiting.pop(due)
            # Of an object that is always being decided there is an accept without its commit whenever one looks: it is another one then.
            is_left = before.ballot == _undecided(store, due)
            if is_left:
                found.append(due)
            # Whoever tries to decide it in vain may leave another accept each time.
            self._wait(store, due, mono_s, min(2 * before.wait_s, AGAIN_S_MAX) if is_left else before.wait_s)
        return found

    def _wait(self, store: Store, name: str, mono_s: float, wait_s: float) -> None:
        if name in self._waiting or len(self._waiting) >= WAITING_MAX:
            return
        if (ballot := _undecided(store, name)) is not None:
            self._waiting[name] = _Waiting(ballot, wait_s)
            self._due.push(name, mono_s + wait_s)


def _undecided(store: Store, name: str) -> Ballot | None:
    """What was accepted last, if it is not known to be decided."""
    state = store.state(name)
    return state.accepted if state is not None and state.accepted > state.committed else None
