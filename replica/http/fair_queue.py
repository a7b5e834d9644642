"""Long requests and long answers go on one after another: one in each turn of the event loop. Requests take turns among callers;
answers go in the order in which they are ready. What may bring much back has slots.

What one of them costs is bounded, and small. Two hundred that came at once would hold the loop for seconds, and with it health
checks and all other callers: now each of these waits for one of them.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from ..access.turns import Shares, Turns

LONG_BYTES: Final = 4096
"""What is longer is long. Sixty requests of a batch fit into it, which are read in less than a millisecond."""


class FairQueue:
    """Those that wait, by caller. How many there may be is bounded by the requests that may be under way."""

    def __init__(self) -> None:
        self._waiting: Final[Turns[Callable[[], None]]] = Turns()

    def put(self, caller: Hashable, size: int, work: Callable[[], None]) -> None:
        """Do the work on `size` bytes: now where they are few, else when its turn has come."""
        if size <= LONG_BYTES:
            work()
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.add(caller, work)

    async def wait(self, caller: Hashable, size: int) -> None:
        """Return at once where `size` bytes are few, else when their turn has come."""
        if size > LONG_BYTES:
            come = asyncio.get_running_loop().create_future()
            self.put(caller, size, partial(_come, come))
            await come

    def _next(self) -> None:
        work = self._waiting.pop()
        assert work is not None, "it was called since something waits"
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        work()


class Slots:
    """Room for so many at a time, in shares. Those that wait take turns among callers."""

    def __init__(self, most: int) -> None:
        self._shares: Final = Shares(most)
        self._waiting: Final[Turns[tuple[Hashable, asyncio.Future[None]]]] = Turns()

    async def take(self, caller: Hashable, most_s: float) -> float:
        """Return when one is there for this caller, who then has to `give` it back: the seconds that it waited. Raises TimeoutError
        after so many."""
        if self._shares.may_take(caller):
            self._shares.take(caller)
            return 0.0
        loop = asyncio.get_running_loop()
        come, begun_s = loop.create_future(), loop.time()
        self._waiting.add(caller, (caller, come))
        try:
            async with asyncio.timeout(most_s):
                await come
        except (asyncio.CancelledError, TimeoutError):
            if come.done() and not come.cancelled():
                self.give(caller)
            raise
        return loop.time() - begun_s

    def give(self, caller: Hashable) -> None:
        """What this caller took is free again."""
        self._shares.give(caller)
        while (waiting := self._waiting.pop(self._shares.may_take)) is not None:
            whose, come = waiting
            if not come.done():
                self._shares.take(whose)
                come.set_result(None)


def _come(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
