"""The blocking client: the asyncio client on an event loop in a background thread, with the same names.

Owns that thread, and what becomes of it in a forked child: the child makes a front end of its own, with a new site id
and new connections, on first use. Must not know how operations run. One client serves any number of threads.
"""

import asyncio
import builtins
import contextlib
import functools
import os
import sys
import threading
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, cast

from msgspec.structs import replace

from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Limits
from ..errors import BadInput, Closed, OutcomeUnknown
from ..protocol.core.counters import FrontEndCounts
from .background_loop import enter, new_loop
from .call_reports import Observer
from .calls import Call
from .client import AsyncClient
from .consuming import CLOSE_S, LOOK_S, Consumer, Options
from .forking import in_child
from .handles import AsyncDictionary, AsyncQueue, AsyncRegister
from .history import History
from .leases import Delivery
from .objects import Object, OwnType

P = ParamSpec("P")
Result = TypeVar("Result")
Own = TypeVar("Own")
"""A class of the caller's own."""

Make = Callable[[History | None, ClusterDocument | None], Coroutine[Any, Any, AsyncClient]]
"""Makes an asyncio client on the running loop; the document is None until it is known."""

START_TIMEOUT_S: Final = 60.0

GRACE_S: Final = 5.0
"""What the background thread may be late before a caller stops waiting for it: it never is, unless it is starved."""

_left_behind: Final[list[object]] = []
"""In a forked child: the parent's threads and loops, kept so that nothing here finalises what the parent still uses."""


class _Awaited(Generic[Result]):
    """Work on its way to a loop, which its caller, in another thread, may leave at any moment. `left` gets, on the loop, what came of it nevertheless."""

    def __init__(
        self,
        work: Coroutine[Any, Any, Result],
        loop: asyncio.AbstractEventLoop,
        left: Callable[[Result], object],
    ) -> None:
        self._work: Final = work
        self._loop: Final = loop
        self._left: Final = left
        self._task: asyncio.Task[Result] | None = None
        self.result: Final[Future[Result]] = Future()
        self.is_had = False
        """Whether the caller has the result."""

    def begin(self) -> None:
        """On the loop."""
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Result]) -> None:
        if task.cancelled():
            self.result.cancel()
            return
        error, is_awaited = task.exception(), self.result.set_running_or_notify_cancel()
        if is_awaited and error is not None:
            self.result.set_exception(error)
        elif is_awaited:
            self.result.set_result(task.result())
        elif error is None:
            self._left(task.result())

    def leave(self) -> None:
        """Cancel it, unless its caller has the result."""
        if not self.is_had:
            self.result.cancel()
            with contextlib.suppress(RuntimeError):  # The loop is closed, and all that ran on it has ended.
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self.result.cancelled():
            if self.result.exception() is None:
                self._left(self.result.result())
        elif self._task is not None:
            self._task.cancel()


class _Engine:
    """One incarnation: a thread with an event loop, and the asyncio client on it."""

    def __init__(self, make: Make, history: History | None, document: ClusterDocument | None) -> None:
        self._loop: Final = new_loop()
        self._gate: Final = threading.Lock()
        self._is_stopped = False
        self._thread: Final = threading.Thread(target=self._run, name="quorate-client", daemon=True)
        self._thread.start()
        try:
            self.client: Final = self.wait(make(history, document), START_TIMEOUT_S)
        except BaseException:
            self.stop()
            raise

    def wait(
        self,
        work: Coroutine[Any, Any, Result],
        timeout_s: float,
        left: Callable[[Result], object] = lambda _: None,
    ) -> Result:
        """The result of a coroutine on the loop. Whatever ends the wait early cancels the coroutine; where that has a result all the same, `left` gets it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise BadInput("an observer runs in the client's own thread: call this client from another one")
        awaited = _Awaited(work, self._loop, left)
        try:  # A signal's handler may raise from here on, also when the loop has the work already.
            with self._gate:  # what is submitted before the loop stops is at least cancelled, never forgotten
                if self._is_stopped:
                    work.close()
                    raise Closed("the client is closed: connect again", definite=True)
                self._loop.call_soon_threadsafe(awaited.begin)
            result = awaited.result.result(timeout_s)
            awaited.is_had = True
            return result
        except CancelledError:
            raise Closed("the client was closed during the operation", definite=False) from None
        finally:
            awaited.leave()

    def stop(self) -> None:
        """End the thread, within GRACE_S."""
        with self._gate:
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GRACE_S)

    def leave(self) -> None:
        """End the thread once its client is closed, and wait for neither."""
        self._is_stopped = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)

    async def _end(self) -> None:
        try:
            await self.client.aclose()
        finally:
            self._loop.stop()

    def _run(self) -> None:
        enter(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_rest())
        self._loop.close()


async def _cancel_rest() -> None:
    """End what still runs on this loop."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


def _as_they_are(values: Any) -> Any:
    return values


async def _counters_of(client: AsyncClient) -> FrontEndCounts:
    """On its loop, where nothing is counted meanwhile."""
    return client.counters()


class Client:
    """A connected front end; `connect` makes one. `with` closes it at the end."""

    def __init__(self, make: Make, history: History | None) -> None:
        self._make: Final = make
        self._history: Final = history
        self._observers: list[Observer] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self._engine: _Engine | None = _Engine(make, history, None)
        self._document: ClusterDocument = self._engine.client.document
        in_child(self, Client._after_fork)

    @property
    def document(self) -> ClusterDocument:
        """The cluster file, with the members and quorum choices that are in force as far as is known here."""
        if (engine := self._engine) is not None:
            self._document = engine.client.document
        return self._document

    def __repr__(self) -> str:
        return f"<Client of {self.document.name!r}: {', '.join(self.document.votes)}>"

    def __del__(self) -> None:
        if (engine := getattr(self, "_engine", None)) is not None and not sys.is_finalizing():
            told = f"{self!r} was left open: close it, or make it by `with connect(...)`"
            engine.leave()
            warnings.warn(told, ResourceWarning, stacklevel=2, source=self)

    def queue(self, name: str) -> "Queue":
        """The queue of that name; BadInput when the name is not allowed."""
        return Queue(self, name)

    def register(self, name: str) -> "Register":
        """The register of that name; BadInput when the name is not allowed."""
        return Register(self, name)

    def dictionary(self, name: str) -> "Dictionary":
        """The dictionary of that name; BadInput when the name is not allowed."""
        return Dictionary(self, name)

    def object(
        self,
        found: type[Own],
        name: str,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
        type_name: str | None = None,
    ) -> Own:
        """The object of that name of a type of your own: `client.object(Cart, "ann").add("book")`.

        It has the operations of the class and nothing else of it; for the rest see `AsyncClient.object`.
        """
        of = OwnType(self.document, found, type_name)
        return cast("Own", Object(self.perform, of, name, deadline_s, idempotency_key))

    def on_finished(self, observer: Observer) -> None:
        """Call `observer` after each operation that came to an outcome, in the background thread; it must be quick. What it
        raises is logged, and changes nothing."""
        with self._lock:
            self._observers.append(observer)
            if self._engine is not None:
                self._engine.client.on_finished(observer)

    def counters(self) -> FrontEndCounts:
        """What this client has counted since it was connected: operations and how long they took, rounds, events. A forked
        child counts anew."""
        engine = self._engine_here()
        return engine.wait(_counters_of(engine.client), GRACE_S)

    def perform(self, call: Call[Result], deadline_s: float | None = None) -> Result:
        """Run one call (of `quorate.client_sdk.api.calls`). Raises the errors of `quorate.client_sdk.errors`."""
        engine = self._engine_here()
        limit_s = self.document.limits.deadline_s_max + GRACE_S
        try:
            keep = functools.partial(engine.client.undelivered.keep, call.operation)
            work = engine.client.perform(replace(call, result=_as_they_are), deadline_s)
            return call.result(engine.wait(work, limit_s, keep))
        except TimeoutError:
            raise OutcomeUnknown(f"the client's thread did not answer within {limit_s} s") from None

    def close(self) -> None:
        """End loops over queues, close connections and history; operations that still run raise Closed. Again is harmless."""
        with self._lock:
            self._document = self.document
            engine, self._engine, self._is_closed = self._engine, None, True
        if engine is not None:
            try:
                engine.wait(engine.client.aclose(), CLOSE_S + GRACE_S)
            finally:
                engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: builtins.object) -> None:
        self.close()

    def _engine_here(self) -> _Engine:
        with self._lock:
            if self._is_closed:
                raise Closed("the client is closed: connect again", definite=True)
            if self._engine is None:
                self._engine = _Engine(self._make, self._history, self.document)
                for observer in self._observers:
                    self._engine.client.on_finished(observer)
            return self._engine

    def _after_fork(self) -> None:
        """In the child: no thread runs, and the lock may be held by one that does not exist here."""
        self._document = self.document
        _left_behind.append(self._engine)
        self._engine = None
        self._lock = threading.Lock()


class _Waiting:
    """A blocking client as asyncio handles use one: what they await is there at once, since `perform` has waited for it."""

    def __init__(self, client: Client) -> None:
        self.document: Final = client.document
        self.loops: Final = _WaitingLoops(client)
        self._client: Final = client

    async def perform(self, call: Call[Result], deadline_s: float | None = None) -> Result:
        """See Client."""
        return self._client.perform(call, deadline_s)


class _WaitingLoops:
    """In the same manner what begins loops over queues."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def open(self, full: str, options: Options, limits: Limits) -> "_WaitingLoop":
        """See Opening."""
        engine = self._client._engine_here()
        return _WaitingLoop(engine, engine.wait(engine.client.loops.open(full, options, limits), GRACE_S))


class _WaitingLoop:
    """A loop over a queue. What is there already is taken without a turn of the client's thread."""

    def __init__(self, engine: _Engine, loop: Consumer) -> None:
        self._engine: Final = engine
        self._loop: Final = loop
        self._pid: Final = os.getpid()

    def take(self) -> Delivery | None:
        """See Consumer."""
        return self._loop.take()

    async def goes_on(self) -> bool:
        """See Consumer."""
        try:
            return self._engine.wait(self._loop.goes_on(), LOOK_S + GRACE_S)
        except TimeoutError:
            raise OutcomeUnknown(f"the client's thread did not answer within {LOOK_S + GRACE_S} s") from None

    async def aclose(self) -> None:
        """See Consumer. In a forked child it is the parent's; a client that is closed has done it."""
        if self._pid == os.getpid():
            with contextlib.suppress(Closed):
                self._engine.wait(self._loop.aclose(), CLOSE_S + GRACE_S)


class _Handle:
    """A named object of a cluster. Its methods are those of the asyncio handle, for callers that block."""

    _of: ClassVar[type[AsyncQueue] | type[AsyncRegister] | type[AsyncDictionary]]

    def __init__(self, client: Client, name: str) -> None:
        self.name: Final = name
        self._asyncio: Final = self._of(_Waiting(client), name)

    def __repr__(self) -> str:
        return repr(self._asyncio).replace("Async", "", 1)


def _blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[_Handle, P], Result]:
    """The method with the same arguments and help. It runs in the caller's thread, to its end: nothing in it suspends."""

    @functools.wraps(method)
    def run(handle: _Handle, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return _at_once(method(handle._asyncio, *args, **kwargs))

    return run


def _looping(
    method: Callable[Concatenate[Any, P], AsyncGenerator[Result, None]],
) -> Callable[Concatenate[_Handle, P], Generator[Result, None, None]]:
    """As `_blocking`, for a method that is looped over."""

    @functools.wraps(method)
    def run(handle: _Handle, /, *args: P.args, **kwargs: P.kwargs) -> Generator[Result, None, None]:
        return _stepped(method(handle._asyncio, *args, **kwargs))

    return run


def _stepped(steps: AsyncGenerator[Result, None]) -> Generator[Result, None, None]:
    try:
        while True:
            try:
                result = _at_once(anext(steps))
            except StopAsyncIteration:
                return
            yield result
    finally:
        _at_once(steps.aclose())


def _at_once(work: Awaitable[Result]) -> Result:
    """The result of what does not suspend."""
    try:
        work.__await__().send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError(f"{work} waits for something else than its client")


class Queue(_Handle):
    """A first-in-first-out queue."""

    _of = AsyncQueue

    enqueue = _blocking(AsyncQueue.enqueue)
    enqueue_many = _blocking(AsyncQueue.enqueue_many)
    dequeue = _blocking(AsyncQueue.dequeue)
    peek = _blocking(AsyncQueue.peek)
    items = _blocking(AsyncQueue.items)
    size = _blocking(AsyncQueue.size)
    acquire = _blocking(AsyncQueue.acquire)
    consume = _looping(AsyncQueue.consume)
    ack = _blocking(AsyncQueue.ack)
    release = _blocking(AsyncQueue.release)
    reject = _blocking(AsyncQueue.reject)
    renew = _blocking(AsyncQueue.renew)
    leases = _blocking(AsyncQueue.leases)
    dead_letters = _blocking(AsyncQueue.dead_letters)
    requeue_dead_letters = _blocking(AsyncQueue.requeue_dead_letters)
    purge_dead_letters = _blocking(AsyncQueue.purge_dead_letters)
    purge_delayed = _blocking(AsyncQueue.purge_delayed)


class Register(_Handle):
    """One value; None until somebody writes it."""

    _of = AsyncRegister

    read = _blocking(AsyncRegister.read)
    write = _blocking(AsyncRegister.write)
    compare_and_set = _blocking(AsyncRegister.compare_and_set)


class Dictionary(_Handle):
    """Keys (text, as names are) and values (anything JSON). A key whose value is null is there; `get` gives None for both."""

    _of = AsyncDictionary

    get = _blocking(AsyncDictionary.get)
    put = _blocking(AsyncDictionary.put)
    delete = _blocking(AsyncDictionary.delete)
    put_if_absent = _blocking(AsyncDictionary.put_if_absent)
    compare_and_set = _blocking(AsyncDictionary.compare_and_set)
    compare_and_delete = _blocking(AsyncDictionary.compare_and_delete)
    items = _blocking(AsyncDictionary.items)
    page = _blocking(AsyncDictionary.page)
    size = _blocking(AsyncDictionary.size)
