"""What came to nothing and only waits for other replicas, as deleted keys do: how many, since when, and who holds them up.

Owns these figures. A tombstone goes once *every* replica has confirmed it (DESIGN, "Forgetting"), so that a
dead replica makes them pile up; the operator must be able to see that. Must not know the store, nor how keys are collected.
"""

from typing import Final, NamedTuple

from ..timestamps.timestamp import Timestamp


class Waiting(NamedTuple):
    """The figures. `held_up_by` are the replicas that did not confirm when this one last asked, or had no room for one of them when this one last
    offered it; empty when none waits."""

    keys: int
    oldest: Timestamp | None
    newest: Timestamp | None
    """One that is ahead of time, as after clocks were ahead, is kept until time has come there."""
    held_up_by: tuple[str, ...]


class Tombstones:
    """The tombstones of one store that are older than the retry window. Used in the writer thread only.

    It holds what the janitor came across, and is as right as the janitor's last look at each key.
    """

    def __init__(self) -> None:
        self._ended: Final[dict[str, Timestamp]] = {}
        self._silent = frozenset[str]()
        self._full: Final[dict[str, frozenset[str]]] = {}
        """By key: who had no room for that."""

    def note(self, name: str, ended: Timestamp | None) -> None:
        """The object came to nothing at that timestamp, and is nothing still; None: it is something, or forgotten."""
        self._ended.pop(name, None)  # So that the key looked at last is the last one.
        if ended is not None:
            self._ended[name] = ended
        else:
            self._full.pop(name, None)

    def asked(self, silent: frozenset[str]) -> None:
        """All replicas were asked; these did not confirm."""
        self._silent = silent

    def offered(self, name: str, full: frozenset[str]) -> None:
        """All replicas were asked for this one; these had no room for it."""
        self._full.pop(name, None)
        if full and name in self._ended:
            self._full[name] = full

    @property
    def lack_room(self) -> bool:
        """Whether some replica had no room for one of them, when it was last offered."""
        return bool(self._full)

    def longest_unseen(self, limit: int) -> list[str]:
        """At most `limit` keys, those first that were looked at longest ago."""
        return [name for name, _ in zip(self._ended, range(limit), strict=False)]

    def waiting(self) -> Waiting:
        """The figures now; a walk over what the janitor holds in memory, no question to the store."""
        ended = self._ended.values()
        oldest, newest = min(ended, default=None), max(ended, default=None)
        held_up_by = self._silent.union(*set(self._full.values()))
        return Waiting(len(ended), oldest, newest, tuple(sorted(held_up_by)) if ended else ())
