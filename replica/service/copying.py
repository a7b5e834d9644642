"""Copies of a running replica's database, for backups: one is made at a time, in a thread of its own, and few are sent.

Owns the moment, the room on the disk and the file. Must not know HTTP. No event loop and no writer waits for a copy; it has no
name once it is whole, so that it goes with the process.
"""

import asyncio
import shutil
import threading
import time
import weakref
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from ...api_specs.limits import BACKUP_S_MAX, BACKUPS_SENT_MAX
from ..data_folder.backup import Taken, sum_of
from ..data_folder.identity import COPY_FILE, DATABASE_FILE
from ..store.configuration import in_force_at
from ..store.database import CopyStopped, copy_database
from ..store.group_commit import Overloaded
from .member import Member

ROOM_BYTES: Final = 64 * 1024 * 1024
"""What a copy must leave free on the disk: the replica needs it more."""


class NoRoom(Exception):
    """The disk has no room for a copy; nothing was done."""


class Copy(Struct, frozen=True):
    """A copy, open at its beginning; whoever gets it closes it. `sha256` in hexadecimal digits."""

    file: BinaryIO
    bytes: int
    sha256: str
    taken: Taken


class Copies:
    """Makes the copies of one member's database."""

    def __init__(self, member: Member) -> None:
        self._member: Final = member
        self._is_busy = False
        self._sent: Final[weakref.WeakSet[BinaryIO]] = weakref.WeakSet()
        """Files of copies that were given: those still open are being sent, and hold room on the disk."""
        self._is_over: Final = threading.Event()
        (member.folder.path / COPY_FILE).unlink(missing_ok=True)  # of a process that was killed

    def stop(self) -> None:
        """End a copy that is being made; nothing further is begun."""
        self._is_over.set()

    async def take(self) -> Copy:
        """A copy of all that was acknowledged when this was called. Raises StoreLost, Overloaded, NoRoom or StorageFailed."""
        if self._member.folder.database is None or self._member.lost is not None:
            raise self._member.lost_error()
        if self._is_over.is_set():
            raise Overloaded("the replica is stopping")
        if self._is_busy:
            raise Overloaded("another backup of this replica is being made")
        if sum(not file.closed for file in self._sent) >= BACKUPS_SENT_MAX:
            raise Overloaded(f"{BACKUPS_SENT_MAX} backups of this replica are being sent already")
        self._is_busy = True
        taken = Taken("", self._member.wall_us(), self._member.folder.incarnation)
        loop = asyncio.get_running_loop()
        making = loop.run_in_executor(None, self._run, self._member.folder.path, taken)
        try:
            copy = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_close)
            raise
        self._sent.add(copy.file)
        return copy

    def _run(self, folder: Path, taken: Taken) -> Copy:
        """In a thread, which outlives a caller that goes away: it ends by the deadline, or by `stop`."""
        try:
            return self._made(folder, taken)
        finally:
            self._is_busy = False

    def _made(self, folder: Path, taken: Taken) -> Copy:
        source, target = folder / DATABASE_FILE, folder / COPY_FILE
        size = sum(file.stat().st_size for file in folder.iterdir() if file.name.startswith(DATABASE_FILE))
        free = shutil.disk_usage(folder).free
        if free < size + ROOM_BYTES:
            raise NoRoom(
                f"a backup needs {size + ROOM_BYTES} bytes on the replica's disk for a moment, and {free} are free"
            )
        late_s = time.monotonic() + BACKUP_S_MAX
        try:
            copy_database(source, target, lambda: not self._is_over.is_set() and time.monotonic() < late_s)
            taken = replace(taken, hash=in_force_at(self._member.folder.file, target).hash)
            file = target.open("rb")
        except CopyStopped:
            why = "the replica is stopping" if self._is_over.is_set() else f"it takes over {BACKUP_S_MAX:g} s"
            raise Overloaded(f"the backup was given up: {why}") from None
        finally:
            target.unlink(missing_ok=True)
        try:
            found, digest = sum_of(file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return Copy(file, found, digest, taken)


def _close(making: "asyncio.Future[Copy]") -> None:
    """Close a copy that nobody waits for any more."""
    if not making.cancelled() and making.exception() is None:
        making.result().file.close()
