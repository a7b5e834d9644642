"""Rows to a file of compressed JSON lines, while a run goes on.

Owns one file, or one after the other, and the buffer before it. Each flush writes a whole gzip member and leaves it with the system, so
that the file of a run that is killed can be read up to its last flush; at most FLUSH_S seconds of rows are lost.
"""

import asyncio
import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

FLUSH_S: Final = 1.0
ROWS_MAX: Final = 5000
"""Rows that wait for a flush; the next one after these flushes at once."""
_LEVEL: Final = 3
_CHUNK_BYTES: Final = 1 << 20


class NotWritten(OSError):
    """A file of a run cannot be written; the sentence says which, and what is left."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be written: {error.strerror}. The run was ended; what was written before can be read."
        )


class Recorder:
    """Appends rows to `path`. `add` never waits, unless ROWS_MAX rows wait; `run` flushes every FLUSH_S seconds. All raise
    NotWritten when the disk is full, say.

    With `rotate_s` rows go to files of about so many seconds: for the path `probes-1.jsonl.gz` to `probes-1-000001.jsonl.gz` and so on. A
    file that is still written to ends in `~` before `.jsonl`; once it has its name it does not change any more.
    """

    def __init__(self, path: Path, rotate_s: float | None = None) -> None:
        self.path: Final = path
        self.count = 0
        """Rows added."""
        self._rotate_s: Final = rotate_s
        self._parts = 0
        self._open: Path
        self._file: BinaryIO
        self._begin()
        self._rows: list[Struct] = []

    def _begin(self) -> None:
        """Open the file, or the next one."""
        self._parts += 1
        self._began_s = time.monotonic()
        self._open = self.path if self._rotate_s is None else self._part("~")
        self._file = self._open.open("ab")

    def _part(self, mark: str) -> Path:
        stem, _, endings = self.path.name.partition(".")
        return self.path.with_name(f"{stem}-{self._parts:06d}{mark}.{endings}")

    def add(self, row: Struct) -> None:
        """Take over a row."""
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= ROWS_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        rows, self._rows = self._rows, []
        if rows:
            self._write(_member(rows))

    async def run(self) -> None:
        """Flush now and then, until cancelled. The work of compressing does not hold up the event loop."""
        while True:
            await asyncio.sleep(FLUSH_S)
            rows, self._rows = self._rows, []
            if rows:
                # Shielded, and waited for: rows that a cancelled flush had taken must not get lost.
                packing = asyncio.ensure_future(asyncio.to_thread(_member, rows))
                try:
                    self._write(await asyncio.shield(packing))
                except asyncio.CancelledError:
                    self._write(await packing)
                    raise
            if self._rotate_s is not None and time.monotonic() - self._began_s >= self._rotate_s:
                self._put(self._turn)

    def close(self) -> None:
        """Write what waits, and close the file; again is harmless."""
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._put(self._end)

    def _turn(self) -> None:
        """Go on with the next file, unless this one is empty."""
        if self._file.tell():
            self._end()
            self._begin()

    def _end(self) -> None:
        """Close the file; where there are several, give it its name, or take it away if it is empty."""
        size = self._file.tell()
        self._file.close()
        if self._rotate_s is not None and size:
            self._open.replace(self._part(""))
        elif self._rotate_s is not None:
            self._open.unlink()

    def _write(self, member: bytes) -> None:
        self._put(lambda: self._file.write(member))
        self._put(self._file.flush)

    def _put(self, work: Callable[[], object]) -> None:
        """Do something that writes."""
        try:
            work()
        except OSError as error:
            raise NotWritten(self.path, error) from None


def _member(rows: list[Struct]) -> bytes:
    lines = b"\n".join([*map(msgspec.json.encode, rows), b""])
    return gzip.compress(lines, _LEVEL, mtime=0)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file of JSON lines, compressed if its name ends in .gz, as far as it can be read: what follows the
    last whole line of a file that was cut off or damaged comes as one last line, which is no JSON."""
    left = b""
    for part in _parts(path):
        *lines, left = (left + part).split(b"\n")
        yield from lines
    if left:
        yield left


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix != ".gz":
            while part := file.read(_CHUNK_BYTES):
                yield part
            return
        with gzip.open(file) as unpacked:
            try:
                while part := unpacked.read1(_CHUNK_BYTES):
                    yield part
            except (EOFError, OSError, zlib.error):
                yield b" (the rest of this file is cut off or damaged)"
