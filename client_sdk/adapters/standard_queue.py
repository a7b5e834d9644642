"""A replicated queue with the methods of `queue.Queue`, and of `asyncio.Queue`.

Owns the step from these two interfaces to the queue's operations, and what of them is local to one object: who waits in
`join`, and how many items this object took and has not called `task_done` for. The items themselves are on the replicas
only: any number of processes may make a `Queue` of the same name and put and get at once.

What differs from the standard library's, since several processes share the items:

* `maxsize` is held by this object, against the size that it reads before each put: exact among its own callers, but other
  processes that put at the same moment may lift the queue above it;
* `join` waits until the queue is empty and every item that *this object* took is done; what other processes took and still
  work on, nobody here can know;
* `shutdown` (of Python 3.13 and later) is refused: the queue belongs to all who use it, and nobody can end it for them;
* `task_done` counts what this object gave out, not what was put;
* in a forked child a `Queue` begins anew: what it gave out before is its parent's to call done;
* values are anything JSON, so that a tuple comes back as a list;
* a `get` of `AsyncQueue` that is cancelled may have asked the replicas for an item already: what it takes is given to the
  next `get` or `dequeue` of the same queue by the same client. Until then `size` does not count it, `join` waits for it, and
  nobody else gets it; when the client is closed it is gone, as all that was dequeued;
* the errors of `quorate.client_sdk.errors` come through when no quorum answers: an `OutcomeUnknown` from `get` says that an
  item may have been taken, and so may whatever a signal's handler raises in a `get` of `Queue` (KeyboardInterrupt). Use the
  queue's own `dequeue` with an idempotency key, or `acquire`, where that must not be.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from queue import Empty, Full
from typing import Any, Final

from ..api.blocking import Client
from ..api.calls import full_name
from ..api.client import AsyncClient
from ..api.forking import in_child
from .standard_parts import check_atomic, checked_client, checked_maxsize, refuse_copy

POLL_FIRST_S: Final = 0.01
POLL_MAX_S: Final = 0.5
"""How often one who waits for room, or for the end, looks again: nothing tells it, and each look is a read of a quorum."""
LOOK_S: Final = 0.5
"""How long one look for an item lasts: `join` waits for those under way, and one that finds nothing is begun again."""


class _Patience:
    """How long to wait still: for ever with None, else until so many seconds are over. Waits grow from look to look."""

    def __init__(self, block: bool, timeout: float | None) -> None:
        if block and timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        self._end_s: Final = (
            time.monotonic() if not block else None if timeout is None else time.monotonic() + timeout
        )
        self._next_s = POLL_FIRST_S

    def left_s(self, most_s: float) -> float:
        """What is left, but at most so much; 0 when it is over."""
        return most_s if self._end_s is None else min(most_s, max(0.0, self._end_s - time.monotonic()))

    def next_wait_s(self) -> float:
        """How long to wait before the next look; 0 when the time is over."""
        wait_s = self.left_s(self._next_s)
        self._next_s = min(POLL_MAX_S, 2 * self._next_s)
        return wait_s


class _Open:
    """How many items were taken and not yet called done, and which looks for items are under way.

    A look may have taken an item that nobody here knows of yet: a queue that is empty, with no task open, is not over.
    """

    def __init__(self) -> None:
        self.tasks = 0
        self._looks: set[int] = set()
        self._last = 0

    @property
    def looks(self) -> frozenset[int]:
        """Those under way."""
        return frozenset(self._looks)

    def look(self) -> int:
        """One more begins."""
        self._last += 1
        self._looks.add(self._last)
        return self._last

    def looked(self, look: int, *, taken: bool) -> None:
        """It has ended, with an item or without."""
        self._looks.remove(look)
        self.tasks += taken

    def done(self) -> None:
        if self.tasks == 0:
            raise ValueError("task_done() called too many times")
        self.tasks -= 1


class Queue:
    """The queue `name` of a cluster, with the methods of `queue.Queue`. One object serves any number of threads."""

    def __init__(self, client: Client, name: str, maxsize: int = 0) -> None:
        self.maxsize = checked_maxsize(maxsize)
        self._queue: Final = checked_client(client, Client, "connect").queue(name)
        check_atomic(client.document, f"queue/{name}")
        self._look_s: Final = min(LOOK_S, client.document.limits.wait_s_max)
        self._begin()
        in_child(self, Queue._begin)

    def _begin(self) -> None:
        """With nothing given out and nobody waiting; in a forked child, too, where threads that hold a lock or look for an item
        do not exist."""
        self._putting = threading.Lock()
        self._open = _Open()
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return f"<Queue {self._queue.name!r} maxsize={self.maxsize}>"

    __reduce__ = refuse_copy

    def qsize(self) -> int:
        """How many items wait, on the replicas."""
        return self._queue.size()

    def empty(self) -> bool:
        """Whether none waits. Others may put at any moment."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether as many wait as `maxsize` allows; False without one."""
        return 0 < self.maxsize <= self.qsize()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item at the end; `queue.Full` when there is no room in time."""
        patience = _Patience(block, timeout)
        while not self._put(item):
            wait_s = patience.next_wait_s()
            if wait_s == 0:
                raise Full
            with self._changed:
                self._changed.wait(wait_s)

    def put_nowait(self, item: Any) -> None:
        """`put` without waiting for room."""
        self.put(item, block=False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the item at the front; `queue.Empty` when none comes in time."""
        patience = _Patience(block, timeout)
        while True:
            wait_s = patience.left_s(self._look_s)
            if taken := self._look(wait_s):
                return taken[0]
            if wait_s == 0 or patience.left_s(1) == 0:
                raise Empty

    def _look(self, wait_s: float) -> Sequence[Any]:
        with self._changed:
            look = self._open.look()
        taken: Sequence[Any] = ()
        try:
            taken = self._queue.dequeue(1, wait_s)
        finally:
            with self._changed:
                self._open.looked(look, taken=bool(taken))
                self._changed.notify_all()
        return taken

    def get_nowait(self) -> Any:
        """`get` without waiting for an item."""
        return self.get(block=False)

    def task_done(self) -> None:
        """Say that an item which this object gave out is dealt with; ValueError when all of them were."""
        with self._changed:
            self._open.done()
            self._changed.notify_all()

    def join(self) -> None:
        """Wait until the queue is empty and all that this object gave out is done."""
        patience = _Patience(True, None)
        while not self._is_over():
            with self._changed:
                self._changed.wait(patience.next_wait_s())

    def _is_over(self) -> bool:
        if self._open.tasks or not self.empty():
            return False
        with self._changed:
            looks = self._open.looks
            while looks & self._open.looks:
                self._changed.wait(LOOK_S)
            return self._open.tasks == 0

    def shutdown(self, immediate: bool = False) -> None:
        """Refused."""
        raise _cannot_end(immediate)

    def _put(self, item: Any) -> bool:
        if self.maxsize <= 0:
            self._queue.enqueue(item)
            return True
        with self._putting:
            if self.full():
                return False
            self._queue.enqueue(item)
            return True


class AsyncQueue:
    """The queue `name` of a cluster, with the methods of `asyncio.Queue`, for the tasks of the client's event loop.

    What asyncio answers at once would have to wait for the replicas here: `qsize`, `empty`, `full`, `put_nowait` and
    `get_nowait` are refused with the sentence that names what to await instead.
    """

    def __init__(self, client: AsyncClient, name: str, maxsize: int = 0) -> None:
        self.maxsize = checked_maxsize(maxsize)
        self._queue: Final = checked_client(client, AsyncClient, "await connect_async").queue(name)
        check_atomic(client.document, f"queue/{name}")
        self._full_name: Final = full_name("queue", name)
        self._undelivered: Final = client.undelivered
        self._look_s: Final = min(LOOK_S, client.document.limits.wait_s_max)
        self._putting: Final = asyncio.Lock()
        self._open: Final = _Open()
        self._changed = asyncio.Event()

    def __repr__(self) -> str:
        return f"<AsyncQueue {self._queue.name!r} maxsize={self.maxsize}>"

    __reduce__ = refuse_copy

    async def size(self) -> int:
        """How many items wait, on the replicas."""
        return await self._queue.size()

    async def put(self, item: Any, *, timeout: float | None = None) -> None:
        """Add an item at the end; `asyncio.QueueFull` when there is no room in time. None waits for ever."""
        patience = _Patience(True, timeout)
        while not await self._put(item):
            wait_s = patience.next_wait_s()
            if wait_s == 0:
                raise asyncio.QueueFull
            await self._change(wait_s)

    async def get(self, *, timeout: float | None = None) -> Any:
        """Take the item at the front; `asyncio.QueueEmpty` when none comes in time. None waits for ever.

        It may be cancelled, as `dequeue` may: an item that is on its way then is given to the next `get` by this client, not to
        others; so prefer `timeout` to `asyncio.wait_for` where nothing here gets again.
        """
        patience = _Patience(True, timeout)
        while True:
            wait_s = patience.left_s(self._look_s)
            if taken := await self._look(wait_s):
                return taken[0]
            if wait_s == 0 or patience.left_s(1) == 0:
                raise asyncio.QueueEmpty

    def task_done(self) -> None:
        """Say that an item which this object gave out is dealt with; ValueError when all of them were."""
        self._open.done()
        self._tell()

    async def join(self) -> None:
        """Wait until the queue is empty and all that this object gave out is done."""
        patience = _Patience(True, None)
        while not await self._is_over():
            await self._change(patience.next_wait_s())

    async def _is_over(self) -> bool:
        if self._open.tasks or await self.size():
            return False
        looks = self._open.looks
        while looks & self._open.looks:
            await self._change(LOOK_S)
        return self._undelivered.is_empty(self._full_name) and self._open.tasks == 0

    async def _look(self, wait_s: float) -> list[Any]:
        look = self._open.look()
        taken: list[Any] = []
        try:
            taken += await self._queue.dequeue(1, wait_s)
        finally:
            self._open.looked(look, taken=bool(taken))
            self._tell()
        return taken

    def qsize(self) -> int:
        """Refused."""
        raise _must_wait("qsize", "await queue.size()")

    def empty(self) -> bool:
        """Refused."""
        raise _must_wait("empty", "await queue.size() == 0")

    def full(self) -> bool:
        """Refused."""
        raise _must_wait("full", "await queue.size() >= queue.maxsize")

    def put_nowait(self, item: Any) -> None:
        """Refused."""
        raise _must_wait("put_nowait", "await queue.put(item, timeout=0)")

    def get_nowait(self) -> Any:
        """Refused."""
        raise _must_wait("get_nowait", "await queue.get(timeout=0)")

    def shutdown(self, immediate: bool = False) -> None:
        """Refused."""
        raise _cannot_end(immediate)

    async def _put(self, item: Any) -> bool:
        if self.maxsize <= 0:
            await self._queue.enqueue(item)
            return True
        async with self._putting:
            if await self.size() >= self.maxsize:
                return False
            await self._queue.enqueue(item)
            return True

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _change(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            pass


def _must_wait(name: str, instead: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}() cannot answer at once, since the items are on the replicas: use {instead}"
    )


def _cannot_end(immediate: bool) -> NotImplementedError:
    return NotImplementedError(
        f"shutdown({immediate=}) cannot end a queue that other processes use: put an item that says so, and stop putting"
    )
