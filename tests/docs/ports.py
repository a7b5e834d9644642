"""Ports for those who follow pages, so that several may do so at the same time on one machine.

A page names ports from 8000 to 8009 and from 9000 to 9009. Each of these tens is replaced by one with as many digits that
nobody has, so that what is printed is as wide as what the page shows, and is held to the end.
"""

import random
import re
from types import TracebackType
from typing import Final, Self

from quorate.measurement.faults.held_ports import HeldPort

NAMED: Final = re.compile(r"\b([89]00)(\d)\b")
_TENS: Final = range(300, 800)
_EVERYWHERE: Final = "0.0.0.0"


class Ports:
    """Two tens of ports for as long as it is open."""

    def __init__(self) -> None:
        self._held: Final[list[HeldPort]] = []
        self._tens: Final[dict[str, str]] = {}

    def replaced(self, text: str) -> str:
        """`text` with its ports exchanged."""
        return NAMED.sub(lambda found: self._tens[found[1]] + found[2], text)

    def __enter__(self) -> Self:
        for named in ("800", "900"):
            self._tens[named] = self._take()
        return self

    def _take(self) -> str:
        for ten in random.sample(_TENS, len(_TENS)):
            try:
                held = [HeldPort.chosen([10 * ten + last], _EVERYWHERE) for last in range(10)]
            except OSError:
                continue
            self._held.extend(held)
            return str(ten)
        raise RuntimeError("no ten ports in a row from 3000 to 7999 are free")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for port in self._held:
            port.release()
