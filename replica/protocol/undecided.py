"""Decisions that were accepted here and are not known to be made: the client has not told yet, or has vanished. Pure.

Owns how long one waits until another front end finishes it, so that catch-up brings it to who missed it, and whose turn it is. The list is in memory; at the start the
walk over all objects (`quorate.gc.pruning`) shows the store those that waited.
"""

from collections.abc import Callable, Hashable
from itertools import zip_longest
from typing import Final, NamedTuple, Protocol

from ...adts.types.catalogue import adt_of
from ...api_specs.cluster import ClusterDocument
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


SameQuorums = tuple[str, str]
"""A rule's objects, and a type: all objects of these have the same quorums."""


def quorums_of(document: ClusterDocument, name: str) -> SameQuorums:
    """Which objects have the quorums of this one."""
    return document.rule_of(name).objects, adt_of(name)


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
    """Those of one store. `quorums_of` says by which quorums an object is decided. Used in the writer thread only."""

    def __init__(self, quorums_of: Callable[[str], SameQuorums]) -> None:
        self._quorums_of: Final = quorums_of
        self._due: Final = DueList()
        self._waiting: Final[dict[str, _Waiting]] = {}

    def due(self, store: Store, mono_s: float, limit: int) -> list[str]:
        """At most `limit` objects whose decision has waited for long. Each is given out again, less and less often, unless it is made by then.

        Those that nobody can decide must not hold up others: objects of other quorums have turns of their own, for too few replicas may answer for
        these and enough for those, and so have objects that were given out before and those that never were.
        """
        noted, store.undecided = store.undecided, {}
        for name in noted:
            self._wait(store, name, mono_s, AFTER_S)
        left = self._left(store, mono_s)
        given, others = left[:limit], left[limit:]
        for name, before in given:  # Whoever tries to decide it in vain may leave another accept each time.
            self._wait(store, name, mono_s, min(2 * before.wait_s, AGAIN_S_MAX))
        for name, before in others:
            self._waiting[name] = before
            self._due.push(name, mono_s)
        return [name for name, _ in given]

    def _left(self, store: Store, mono_s: float) -> list[tuple[str, _Waiting]]:
        """Those that are due and not decided, in turns; they wait no more."""
        lines: dict[Hashable, list[tuple[str, _Waiting]]] = {}
        for _ in range(LOOKS_MAX):
            if not self._due.is_due(mono_s):
                break
            if (due := self._due.pop(mono_s)) is None:
                continue
            before = self._waiting.pop(due)
            if before.ballot == _undecided(store, due):
                line = self._quorums_of(due), before.wait_s > AFTER_S
                lines.setdefault(line, []).append((due, before))
            else:
                # Of an object that is always being decided there is an accept without its commit whenever one looks: it is another one then.
                self._wait(store, due, mono_s, before.wait_s)
        return [each for some in zip_longest(*lines.values()) for each in some if each is not None]

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
