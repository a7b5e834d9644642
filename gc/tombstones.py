"""What came to nothing and only waits for other replicas, as deleted keys do: how many, since when, and who holds them up.

Owns these figures. A tombstone goes once *every* replica has confirmed it (DESIGN, "Forgetting"), so that a
dead replica makes them pile up; the operator must be able to see that. Must not know the store, nor how keys are collected.
"""

from typing import Final, NamedTuple

from ..timestamps.timestamp import Timestamp


class Waiting(NamedTuple):
    """The figures. `held_up_by` are the replicas that did not confirm one of them when this one last offered it."""

    keys: int
    oldest: Timestamp | None
    held_up_by: tuple[str, ...]


class Tombstones:
    """The tombstones of one store that are older than the retry window. Used in the writer thread only.

    It holds what the janitor came across, and is as right as the janitor's last look at each key.
    """

    def __init__(self) -> None:
        self._ended: Final[dict[str, Timestamp]] = {}
        self._held_up: Final[dict[str, frozenset[str]]] = {}
        """Of those that were offered: who did not confirm it."""

    def note(self, name: str, ended: Timestamp | None) -> None:
        """The object came to nothing at that timestamp, and is nothing still; None: it is something, or forgotten."""
        self._ended.pop(name, None)  # So that the key looked at last is the last one.
        if ended is not None:
            self._ended[name] = ended
        else:
            self._held_up.pop(name, None)

    def tried(self, name: str, held_up_by: frozenset[str]) -> None:
        """It was offered to all replicas; these did not confirm it."""
        self._held_up.pop(name, None)
        if held_up_by and name in self._ended:
            self._held_up[name] = held_up_by

    def longest_unseen(self, limit: int) -> list[str]:
        """At most `limit` keys, those first that were looked at longest ago."""
        return [name for name, _ in zip(self._ended, range(limit), strict=False)]

    def waiting(self) -> Waiting:
        """The figures now; a walk over what the janitor holds in memory, no question to the store."""
        oldest = min(self._ended.values(), default=None)
        held_up_by = frozenset[str]().union(*set(self._held_up.values()))
        return Waiting(len(self._ended), oldest, tuple(sorted(held_up_by)))
