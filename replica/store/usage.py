"""How much a store holds: its objects, the length of each log, and what its file and its disk have room for.

Owns these counts and their way through a transaction. Must not know what they are held against. One thread uses it.
"""

import os
import time
from typing import Final

from msgspec.structs import replace

from ..protocol.capacity import Use
from . import statements
from .database import Database

LOOK_BYTES: Final = 1024 * 1024
"""The disk is looked at again when so much was put since …"""
LOOK_S: Final = 0.1
"""… or so much time has passed: what was taken out makes room, and others write to the same disk."""
LENGTHS_MAX: Final = 200_000
"""Logs whose lengths are remembered."""
LONG: Final = 1000
"""A log of so many rows takes time to count: its length is counted at the start, and not forgotten for others'."""


class StoreUse:
    """What one store holds; the store says what it makes and deletes, and when a transaction ends."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._lengths: dict[int, int] = dict(database.all(statements.LONG_LOGS, (LONG,)))
        self._changed: set[int] = set()
        """Logs that were changed or counted since the last commit that wrote."""
        self._put_bytes, self._looked_s = 0, 0.0
        self._use = Use(0, 0, 0, 0)
        self.load()

    def load(self) -> None:
        """Forget what was changed since the last commit."""
        for number in self._changed:
            self._lengths.pop(number, None)
        self._changed.clear()
        self._look(int(self._database.one(statements.COUNT_OBJECTS)[0]))

    def commit(self) -> None:
        """Keep what was changed since the last commit."""
        self._changed.clear()
        if len(self._lengths) > LENGTHS_MAX:
            self._lengths = {number: length for number, length in self._lengths.items() if length >= LONG}

    def made(self, number: int) -> None:
        """There is one object more."""
        self._use = replace(self._use, objects=self._use.objects + 1)
        self.counted(number, 0)

    def forgot(self, number: int) -> None:
        """There is one less."""
        self._use = replace(self._use, objects=self._use.objects - 1)
        self._lengths.pop(number, None)

    def put(self, number: int, rows: int, size: int) -> None:
        """So many rows were put, with values of so many bytes."""
        self._put_bytes += size
        self._grew(number, rows)

    def deleted(self, number: int, rows: int) -> None:
        """So many rows were deleted."""
        self._grew(number, -rows)

    def _grew(self, number: int, rows: int) -> None:
        if number in self._lengths:
            self._lengths[number] += rows
            self._changed.add(number)

    def length(self, number: int) -> int | None:
        """Rows of the object's log; None when they must be counted."""
        return self._lengths.get(number)

    def counted(self, number: int, rows: int) -> int:
        """So many rows were counted."""
        self._lengths[number] = rows
        self._changed.add(number)
        return rows

    def now(self) -> Use:
        """All of it, the disk as it was a moment ago."""
        if self._put_bytes >= LOOK_BYTES or time.monotonic() >= self._looked_s + LOOK_S:
            self._look(self._use.objects)
        return self._use

    def _look(self, objects: int) -> None:
        self._put_bytes, self._looked_s = 0, time.monotonic()
        disk = os.statvfs(self._database.path.parent)
        longest, free = max(self._lengths.values(), default=0), disk.f_bavail * disk.f_frsize
        self._use = Use(objects, self._database.held_bytes(), free, longest)
