"""What a replica's file holds: entries, the longest log, what waits in queues, what is leased of them, and how old their horizons are.

Owns the counting, by a reader of its own beside the writer: no request waits for it. It ends within a time limit, and serves
whoever asks within KEPT_S. There may be any number of queues: told are totals and maxima, and the figures of the few with the longest logs.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from ...adts.log import LeaseCounts, count_leases
from ...timestamps.timestamp import ZERO, wall_us
from . import statements
from .database import Reader, StorageFailed
from .records import state_of

KEPT_S: Final = 5.0
LIMIT_S: Final = 2.0
QUEUES_MAX: Final = 1000
TOLD_MAX: Final = 100
"""Queues whose own figures are told."""


class OfQueue(NamedTuple):
    """The figures of one queue: entries that wait, those whose history is not deleted yet, the age of the oldest that waits in microseconds
    (0 where none does), and what is leased."""

    name: str
    waiting: int
    history: int
    oldest_us: int
    leases: LeaseCounts

    @property
    def length(self) -> int:
        """Of its log: what waits, and what was taken about in the last minute. The longest are those that most happens to."""
        return self.waiting + self.history


class Figures(Struct):
    """What a survey found. Ages are in microseconds, and None where nothing waits."""

    entries: int | None = None
    """Rows of all logs, with history that is not deleted yet; None if time ran out."""
    entries_max: int | None = None
    """Of the longest log."""
    waiting: int = 0
    """Entries above the horizons of queues."""
    waiting_max: int = 0
    oldest_waiting_us: int | None = None
    horizon_age_us: int | None = None
    """Of the queue on which something waits and whose horizon is the oldest; where nothing was ever taken, its first entry
    counts."""
    held: int = 0
    """Items of queues that are delivered under leases."""
    kept_waiting: int = 0
    """Items that an acquire has met and that wait to be delivered, for the first time or again."""
    dead: int = 0
    """Dead letters."""
    dead_max: int = 0
    """Of the queue that has most."""
    queues: tuple[OfQueue, ...] = ()
    """Those with the longest logs, from the longest on."""
    is_partial: bool = False
    """Whether time ran out, or there are more than QUEUES_MAX queues."""


class Survey:
    """Surveys the file at `path`, at most once at a time. `wall_us` is the replica's clock."""

    def __init__(self, path: Path, wall_us: Callable[[], int]) -> None:
        self._path: Final = path
        self._wall_us: Final = wall_us
        self._running: asyncio.Task[Figures] | None = None
        self._ended_s = float("-inf")

    async def figures(self) -> Figures:
        """The figures, at most KEPT_S old. Raises StorageFailed."""
        is_old = self._running is None or (
            self._running.done() and time.monotonic() >= self._ended_s + KEPT_S
        )
        if self._running is None or is_old:
            self._running = asyncio.create_task(self._look(), name="quorate-survey")
        return await asyncio.shield(self._running)

    async def aclose(self) -> None:
        """Wait for the one under way: the file must have no reader when it is closed."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _look(self) -> Figures:
        try:
            return await asyncio.to_thread(survey, self._path, self._wall_us())
        finally:
            self._ended_s = time.monotonic()


def survey(path: Path, now_us: int, *, limit_s: float = LIMIT_S) -> Figures:
    """Count what the file at `path` holds now. Blocks for at most `limit_s`, or little more. Raises StorageFailed."""
    found, each_queue = Figures(), list[OfQueue]()
    reader = Reader(path, limit_s)
    try:
        found.entries, found.entries_max = reader.all(statements.COUNT_ROWS)[0]
        queues = reader.all(statements.QUEUES, (QUEUES_MAX + 1,))
        found.is_partial = len(queues) > QUEUES_MAX
        for number, name, blob in queues[:QUEUES_MAX]:
            state = state_of(number, name, blob)
            horizon = state.horizon
            leases = count_leases(state.summary.leases, state.summary.dead)
            _add_leases(found, leases)
            waiting, oldest = reader.all(statements.COUNT_ABOVE, (number, horizon))[0]
            history = reader.all(statements.COUNT_UPTO, (number, horizon))[0][0]
            oldest_us = now_us - wall_us(oldest) if waiting else 0
            each_queue.append(OfQueue(name, waiting, history, oldest_us, leases))
            if waiting:
                behind = oldest if horizon == ZERO else horizon
                _add(found, waiting, oldest_us, now_us - wall_us(behind))
    except StorageFailed:
        if not reader.is_late:
            raise
        found.is_partial = True
    finally:
        reader.close()
    each_queue.sort(key=lambda queue: (-queue.length, queue.name))
    found.queues = tuple(each_queue[:TOLD_MAX])
    return found


def _add_leases(found: Figures, counts: LeaseCounts) -> None:
    found.held += counts.held
    found.kept_waiting += counts.waiting
    found.dead += counts.dead
    found.dead_max = max(found.dead_max, counts.dead)


def _add(found: Figures, waiting: int, oldest_us: int, horizon_us: int) -> None:
    """One more queue on which something waits."""
    found.waiting += waiting
    found.waiting_max = max(found.waiting_max, waiting)
    found.oldest_waiting_us = max(found.oldest_waiting_us or 0, oldest_us)
    found.horizon_age_us = max(found.horizon_age_us or 0, horizon_us)
