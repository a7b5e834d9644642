"""What begins in one turn of the event loop is bounded: one long request, or some short ones. The others wait, and take turns
among callers; what leaves over HTTP does so in the order in which it is ready. What may bring much back has slots.

What one of them costs is bounded, and small. Two hundred long ones that came at once would hold the loop for seconds, as would a
thousand short ones, and with it health checks and all other callers: now each of these waits for one turn of them.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from ...client_sdk.protocol.core.turns import Shares, Turns

LONG_BYTES: Final = 8192
"""What is longer is long. A hundred and twenty requests of a batch fit into it, which are read in two milliseconds at most."""
SHORT_AT_ONCE: Final = 64
"""Of those without a byte, so many begin in one turn: work of some hundredths of a second."""


class FairQueue:
    """Those that wait, by caller. How many there may be is bounded by the requests that may be under way."""

    def __init__(self) -> None:
        self._waiting: Final[Turns[tuple[int, Callable[[], None]]]] = Turns()
        self._begun = 0
        """Bytes of what has begun in this turn of the loop, and a bit for each; and of what began before, as long as that is little."""
        self._is_turning = False

    def may_begin(self, size: int) -> bool:
        """Whether work on `size` bytes may begin now: then it counts. Else it is to `put` or to `wait`."""
        if self._waiting or self._begun >= LONG_BYTES:
            return False
        self._count(size)
        return True

    def put(self, caller: Hashable, size: int, work: Callable[[], None]) -> None:
        """Do the work on `size` bytes, now or when its turn has come."""
        if self.may_begin(size):
            work()
        else:
            self._add(caller, size, work)

    async def wait(self, caller: Hashable, size: int) -> None:
        """Return at once where work on `size` bytes may begin, else when its turn has come."""
        if not self.may_begin(size):
            come = asyncio.get_running_loop().create_future()
            self._add(caller, size, partial(_come, come))
            await come

    def _add(self, caller: Hashable, size: int, work: Callable[[], None]) -> None:
        """A caller's short ones do not wait for its long ones."""
        self._waiting.add((caller, size > LONG_BYTES), (size, work))

    def _count(self, size: int) -> None:
        self._begun += size + LONG_BYTES // SHORT_AT_ONCE
        # To wait for a turn behind each would cost as much as a short one.
        if self._begun >= LONG_BYTES // 4 and not self._is_turning:
            self._is_turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """The next turn of the loop."""
        self._is_turning, self._begun = False, 0
        while self._begun < LONG_BYTES and (waiting := self._waiting.pop()) is not None:
            size, work = waiting
            self._count(size)
            try:
                work()
            except Exception as error:  # noqa: BLE001 - of one that waits; the others go on
                context = {"message": "what waited for its turn failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)


class Slots:
    """Room for so many at a time, in shares; what is larger takes several. Those that wait take turns among callers."""

    def __init__(self, most: int) -> None:
        self._shares: Final = Shares(most)
        self._waiting: Final[Turns[tuple[Hashable, int, asyncio.Future[None]]]] = Turns()

    async def take(self, caller: Hashable, most_s: float, size: int = 1) -> None:
        """Return when one is there for this caller, who then has as many as it needs, a quarter at most, and has to `give` them back. Raises
        TimeoutError after so many seconds."""
        if self._shares.may_take(caller):
            self._shares.take(caller, self._shares.fitted(size))
            return
        come = asyncio.get_running_loop().create_future()
        self._waiting.add(caller, (caller, size, come))
        try:
            async with asyncio.timeout(most_s):
                await come
        except (asyncio.CancelledError, TimeoutError):
            if come.done() and not come.cancelled():
                self.give(caller, size)
            raise

    def give(self, caller: Hashable, size: int = 1) -> None:
        """What this caller took is free again."""
        self._shares.give(caller, self._shares.fitted(size))
        while (waiting := self._waiting.pop(self._shares.may_take)) is not None:
            whose, needed, come = waiting
            if not come.done():
                self._shares.take(whose, self._shares.fitted(needed))
                come.set_result(None)


def _come(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
