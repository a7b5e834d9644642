"""How many transactions a store has answered for, kept beside the database, so that a database that lost some is known.

SQLite takes a write-ahead log that was cut short, or is damaged in the middle, for one that ends there: it opens without a
word, and what was acknowledged since is gone. The mark is written after each commit and before its answers, without a
sync: it never says more than was committed, and a process that is killed leaves it exact. After a power failure it may say
less; then it proves less. Must not know what the transactions held.
"""

import contextlib
import os
from pathlib import Path
from typing import Final
from zlib import crc32

_SUFFIX: Final = "-mark"
_DIGITS: Final = 20


class Mark:
    """The mark of the database at `database`."""

    def __init__(self, database: Path) -> None:
        self.path: Final = database.with_name(database.name + _SUFFIX)
        self._file = -1
        self._written = 0

    def read(self) -> int | None:
        """The number last written; 0 without a file, None when the file is not as it was written."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        number = text[:_DIGITS]
        return int(number) if number.isdigit() and text == _line(int(number)) else None

    def write(self, commits: int) -> None:
        """Note that so many transactions were committed.

        One short write in place, which does not tear. A disk without room for it costs the proof, not the commit.
        """
        if commits == self._written:
            return
        with contextlib.suppress(OSError):
            if self._file < 0:
                self._file = self._opened(commits)
            os.pwrite(self._file, _line(commits), 0)
            self._written = commits

    def _opened(self, commits: int) -> int:
        """The file, made whole before it has its name: one that a kill, a full disk or a power failure left empty would be
        taken for a damaged one at the next start."""
        if not self.path.exists():
            temporary = self.path.with_name(self.path.name + ".new")
            new = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(new, _line(commits))
                os.fsync(new)
            finally:
                os.close(new)
            temporary.rename(self.path)
        return os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _line(commits: int) -> bytes:
    number = f"{commits:0{_DIGITS}}"
    return f"{number} {crc32(number.encode()):08x}\n".encode()
