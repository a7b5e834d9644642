"""Large bodies are read in a thread, one at a time: Python lets the event loop go on between the steps of that, each of which is
short. Callers take turns.

Owns the thread, and which request's body is being read: what reads it need not know who asks. Must not know what it means.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent import futures
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from starlette.types import Receive

from ...client_sdk.protocol.core.turns import Turns
from ...client_sdk.transport.ports import SystemClock
from ...timestamps.clock import Now
from .cancellation import ends_before_caller_goes
from .problems import Refusal

LARGE_BYTES: Final = 65_536
"""What is larger is large: to hand it to a thread takes less than a hundredth of the time to read it."""

_THREAD: Final = futures.ThreadPoolExecutor(1, "quorate-bodies")
"""Of all that listen in this process: two would only wait for each other. It begins with the first large body."""

CLOCK: Final = SystemClock()

_Result = TypeVar("_Result")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class LargeBodies:
    """Those that wait to be read, by caller."""

    def __init__(self) -> None:
        self._waiting: Final[Turns[_Work]] = Turns()
        self._begun: Final[deque[_Work]] = deque()
        """What goes on with bodies that were read: all that was parsed of them waits, too."""
        self._is_busy = False

    def read(
        self, caller: Hashable, work: Callable[[], _Result], *, is_begun: bool = False
    ) -> "asyncio.Future[_Result]":
        """What comes of `work`, which is done in the thread in its turn, or, where it goes on with a body that was read, next; not at
        all where the future is cancelled before."""
        result: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        if is_begun:
            self._begun.append((work, result))
        else:
            self._waiting.add(caller, (work, result))
        self._go_on()
        return result

    def _next(self) -> _Work | None:
        return self._begun.popleft() if self._begun else self._waiting.pop()

    def _go_on(self) -> None:
        while not self._is_busy and (waiting := self._next()) is not None:
            work, result = waiting
            if not result.cancelled():
                self._is_busy = True
                _THREAD.submit(work).add_done_callback(partial(self._tell, result))

    def _tell(self, result: "asyncio.Future[Any]", done: "futures.Future[Any]") -> None:
        """From the thread."""
        loop = result.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._end, result, done)

    def _end(self, result: "asyncio.Future[Any]", done: "futures.Future[Any]") -> None:
        self._is_busy = False
        self._go_on()
        error = None
        try:
            if result.cancelled():
                return
            if (error := done.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(done.result())
        finally:
            del error, result, done  # See `read_apart`.


class Arrived(NamedTuple):
    """A request whose body has come: who takes turns with it, how long the body is, when the last of it came, what the
    client does next, where it is read if it is large, and whether its connection is read from (a `_Flow`; None: it always is)."""

    caller: Hashable
    size: int
    at: Now
    receive: Receive
    bodies: LargeBodies
    flow: Any = None


_ARRIVED: Final[ContextVar[Arrived | None]] = ContextVar("quorate-arrived", default=None)


def begin(request: Arrived) -> None:
    """What this task does from now on, and those that it starts, is done for that request."""
    _ARRIVED.set(request)


async def read_apart(work: Callable[[], _Result], *, is_begun: bool = False) -> _Result:
    """What comes of `work` on the body of the request under way: at once, or in the thread where it is large, without a turn where it
    goes on with what was read (`is_begun`). Raises Refusal where the caller has gone before that is done."""
    request = _ARRIVED.get()
    if request is None or request.size <= LARGE_BYTES:
        return work()
    reading = request.bodies.read(request.caller, work, is_begun=is_begun)
    try:
        if not await ends_before_caller_goes(reading, request.receive):
            raise Refusal("unavailable", "the client went away", definite=True)
        return reading.result()
    finally:
        # What it raised knows this frame, and is known to it: with both, all that was parsed would wait for the garbage collector.
        del reading


def turn() -> Hashable:
    """Who takes turns with the request under way."""
    request = _ARRIVED.get()
    return None if request is None else request.caller


def is_unheard() -> bool:
    """Whether so much has come behind the request under way that its connection is not read from: nobody would hear that the client has gone."""
    request = _ARRIVED.get()
    return request is not None and getattr(request.flow, "is_held", False)


def asked_at() -> Now:
    """When the request under way came."""
    request = _ARRIVED.get()
    return CLOCK.now() if request is None else request.at
