"""Ports for those who follow pages, so that several may do so at the same time on one machine.

A page names ports from 8000 to 8009 and from 9000 to 9009. Each of these tens is replaced by a free one with as many
digits, so that what is printed is as wide as what the page shows. A ten is taken by a lock, which ends with its process.
"""

import fcntl
import os
import random
import re
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from quorate.cli.local_cluster import is_free

NAMED: Final = re.compile(r"\b([89]00)(\d)\b")
_TENS: Final = range(300, 800)


class Ports:
    """Two tens of ports for as long as it is open."""

    def __init__(self) -> None:
        self._locks: Final[list[int]] = []
        self._tens: Final[dict[str, str]] = {}

    def replaced(self, text: str) -> str:
        """`text` with its ports exchanged."""
        return NAMED.sub(lambda found: self._tens[found[1]] + found[2], text)

    def __enter__(self) -> Self:
        folder = Path(tempfile.gettempdir(), f"quorate-pages-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        for named in ("800", "900"):
            self._tens[named] = self._take(folder)
        return self

    def _take(self, folder: Path) -> str:
        for ten in random.sample(_TENS, len(_TENS)):
            lock = os.open(folder / str(ten), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            if all(is_free(10 * ten + last, host) for last in range(10) for host in ("127.0.0.1", "0.0.0.0")):
                self._locks.append(lock)
                return str(ten)
            os.close(lock)
        raise RuntimeError("no ten ports in a row from 3000 to 7999 are free")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lock in self._locks:
            os.close(lock)
