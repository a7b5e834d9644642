"""Marks of completeness on their way to the replicas: which are said at once, which may wait, which need not be said. Pure.

A mark says that a final quorum stores an entry. It lets replicas drop what is history by then, and readers believe one
replica alone; nothing waits for it, and it may be lost. Of a cell only the newest mark matters, for what is older is history
with it: so marks of cells wait a moment for a newer one, which spares a cell that is written often most of them. Others need
each mark, and soon, for their entries are taken.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from ...adts.types.catalogue import adt_of, is_overwritten
from ...api_specs.limits import BATCH_ENTRIES_MAX, Limits
from ...api_specs.messages import Commit
from ...timestamps.timestamp import Timestamp
from .core.values import Send

CELL_WAIT_S: Final = 0.05
"""How long a cell's mark waits for a newer one. Meanwhile a reader who meets one of its holders alone writes it back."""
CELLS_MAX: Final = 10_000
"""Marks of cells that wait; the oldest of more go at once."""
TOGETHER_MAX: Final = 200
"""Marks of cells in one send."""
MARK_BYTES: Final = 700
"""What one of a cell weighs at most: the longest name, and a timestamp."""


class CompletionNotices:
    """What one front end has to say to all its replicas."""

    def __init__(self, replicas: Iterable[str], limits: Limits) -> None:
        self._replicas = tuple(replicas)
        room = limits.body_bytes_max // 2 // MARK_BYTES
        self._together_max: Final = max(1, min(TOGETHER_MAX, limits.requests_max, room))
        self._now: Final[dict[str, list[Timestamp]]] = {}
        self._later: Final[dict[str, tuple[float, Timestamp]]] = {}
        """When a cell's mark is due, and the newest; in the order in which they are due."""

    def follow(self, replicas: Iterable[str]) -> None:
        """These are the replicas from now on."""
        self._replicas = tuple(replicas)

    def add(self, name: str, complete: Iterable[Timestamp], now_s: float) -> None:
        """These entries of the object are complete; the replicas are to know."""
        if not is_overwritten(adt_of(name)):
            self._now.setdefault(name, []).extend(complete)
            return
        waiting = self._later.get(name)
        if waiting is None:
            self._later[name] = now_s + CELL_WAIT_S, max(complete)
        else:
            self._later[name] = waiting[0], max(waiting[1], *complete)

    def take(self, now_s: float) -> list[Send]:
        """What is to be said now; it is not said again."""
        if not self._now and self.due_s > now_s and len(self._later) <= CELLS_MAX:
            return []
        groups: list[tuple[Commit, ...]] = [
            (_mark(name, complete[at : at + BATCH_ENTRIES_MAX]),)
            for name, complete in self._now.items()
            for at in range(0, len(complete), BATCH_ENTRIES_MAX)
        ]
        self._now.clear()
        cells = list(self._due_cells(now_s))
        size = self._together_max
        groups += [tuple(cells[at : at + size]) for at in range(0, len(cells), size)]
        return [Send(replica, group, 0, lazy=True) for group in groups for replica in self._replicas]

    def _due_cells(self, now_s: float) -> Iterator[Commit]:
        while self._later:
            name, (due_s, newest) = next(iter(self._later.items()))
            if due_s > now_s and len(self._later) <= CELLS_MAX:
                return
            del self._later[name]
            yield _mark(name, (newest,))

    @property
    def due_s(self) -> float:
        """When the next one is to be said; infinity when none waits."""
        return next(iter(self._later.values()))[0] if self._later else float("inf")

    def clear(self) -> None:
        """Forget all."""
        self._now.clear()
        self._later.clear()


def _mark(name: str, complete: Iterable[Timestamp]) -> Commit:
    return Commit(name, complete=tuple(complete))
