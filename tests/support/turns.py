"""A queue of turns that counts what begins in each turn of the event loop."""

import asyncio
from collections import Counter

from quorate.replica.http.fair_queue import FairQueue


class CountedTurns(FairQueue):
    """To be made while its loop runs."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[int] = Counter()
        self._sizes: Counter[int] = Counter()
        self._turn_number = 0
        self._next()

    def begun(self) -> int:
        """How many pieces of work."""
        return self._counts.total()

    def most(self) -> int:
        """How many in one turn, at most."""
        return max(self._counts.values())

    def most_bytes(self) -> int:
        """How many bytes in one turn, at most."""
        return max(self._sizes.values())

    def _next(self) -> None:
        self._turn_number += 1
        asyncio.get_running_loop().call_soon(self._next)

    def _count(self, size: int) -> None:
        self._counts[self._turn_number] += 1
        self._sizes[self._turn_number] += size
        super()._count(size)
