"""The asyncio client: a connected front end. `quorate.client_sdk.api.blocking` has the same names.

Owns what callers await, deadlines, and who hears of each outcome. Must not know transports, nor how operations run. One
client serves any number of tasks of one event loop.
"""

import asyncio
import builtins
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Final, Self, TypeVar

from ...adts.log import Value
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Limits
from ..errors import BadInput, Closed, Unavailable, error_of
from ..protocol.core.counters import FrontEndCounts
from ..protocol.core.values import Done, Failed, Operation, Outcome
from ..transport.driver import Driver
from .call_reports import Observer, Telling
from .calls import Call, check_seconds
from .consuming import Left, Loops
from .handles import AsyncDictionary, AsyncQueue, AsyncRegister
from .history import History
from .objects import AsyncObject, OwnType
from .undelivered import Undelivered, conclude_with, is_kept

Result = TypeVar("Result")


def deadline_of(call: Call[Any], deadline_s: float | None, default_s: float, limits: Limits) -> float:
    """The seconds that a call gets. Left out: the client's default, and the call's own waiting on top."""
    if deadline_s is None:
        return min(default_s + call.wait_s, limits.deadline_s_max)
    check_deadline(deadline_s, limits)
    if deadline_s < call.wait_s:
        raise BadInput(f"deadline_s {deadline_s} is below wait_s {call.wait_s}: give more time than you wait")
    return deadline_s


def check_deadline(deadline_s: float, limits: Limits) -> None:
    """BadInput unless it is a deadline that the cluster file allows."""
    check_seconds("deadline_s", deadline_s)
    if not 0 < deadline_s <= limits.deadline_s_max:
        raise BadInput(f"deadline_s is {deadline_s}: use above 0 to {limits.deadline_s_max} (deadline_s_max)")


class AsyncClient:
    """A connected front end; `connect_async` makes one. `async with` closes it at the end."""

    def __init__(self, driver: Driver, *, deadline_s: float, history: History | None) -> None:
        check_deadline(deadline_s, driver.document.limits)
        self._driver: Final = driver
        self._deadline_s: Final = deadline_s
        self._history: Final = history
        self._observers: Final[list[Observer]] = []
        self.loops: Final = Loops(self._perform, deadline_s, lambda: driver.now().mono_s)
        """Those over its queues."""
        self._home: Final = (os.getpid(), asyncio.get_running_loop())
        self._is_closed = False
        self.undelivered: Final = Undelivered()
        """What cancelled dequeues took: the next one of the same queue gets it."""

    @property
    def document(self) -> ClusterDocument:
        """The cluster file, with the members and quorum choices that are in force as far as is known here."""
        return self._driver.document

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.document.name!r}: {', '.join(self.document.votes)}>"

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True) or self._home[0] != os.getpid() or sys.is_finalizing():
            return
        if not self._home[1].is_closed():
            asyncio.run_coroutine_threadsafe(self._end(), self._home[1])
        told = f"{self!r} was left open: await its aclose(), or make it by `async with connect_async(...)`"
        warnings.warn(told, ResourceWarning, stacklevel=2, source=self)

    def queue(self, name: str) -> AsyncQueue:
        """The queue of that name; BadInput when the name is not allowed."""
        return AsyncQueue(self, name)

    def register(self, name: str) -> AsyncRegister:
        """The register of that name; BadInput when the name is not allowed."""
        return AsyncRegister(self, name)

    def dictionary(self, name: str) -> AsyncDictionary:
        """The dictionary of that name; BadInput when the name is not allowed."""
        return AsyncDictionary(self, name)

    def object(
        self,
        found: type,
        name: str,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
        type_name: str | None = None,
    ) -> Any:
        """The object of that name of a type of your own: `await client.object(Cart, "ann").add("book")`.

        Its operations take the class's arguments, give its results and raise its exceptions; each gets `deadline_s`. Under an
        `idempotency_key` a repeat of a call that ended `Ok` gets that one's answer. `type_name`: what the cluster file
        calls the class, where that is not told by the class's name. BadInput where the cluster has no such type.
        """
        return AsyncObject(
            self.perform, OwnType(self.document, found, type_name), name, deadline_s, idempotency_key
        )

    def on_finished(self, observer: Observer) -> None:
        """Call `observer` after each operation that came to an outcome, on the event loop; it must be quick. What it raises is
        logged, and changes nothing."""
        self._observers.append(observer)

    def counters(self) -> FrontEndCounts:
        """What this client has counted since it was connected: operations and how long they took, rounds, events."""
        return self._driver.counts.taken()

    async def perform(self, call: Call[Result], deadline_s: float | None = None) -> Result:
        """Run one call (of `quorate.client_sdk.api.calls`). Raises the errors of `quorate.client_sdk.errors`."""
        return await self._perform(call, deadline_s, None)

    async def _perform(self, call: Call[Result], deadline_s: float | None, left: Left | None) -> Result:
        """Where its caller is cancelled, `left` gets what will become of the call, which ends as soon as that is certain."""
        limit_s = deadline_of(call, deadline_s, self._deadline_s, self.document.limits)
        if self._home != (os.getpid(), asyncio.get_running_loop()):
            raise BadInput("this client belongs to another event loop or process: connect again in this one")
        if self._is_closed:  # Before its history is told, which is closed, too.
            raise Closed("the client is closed: connect again", definite=True)
        if kept := await self._kept(call.operation, limit_s):
            return call.result(kept)
        recording = None if self._history is None else self._history.begin(call.told)
        telling = Telling(call, recording, self._observers)
        outcome = await self._outcome(call.operation, limit_s, telling, left)
        try:
            telling.ended(outcome)
        except BaseException:  # The history's disk is full, say: what was taken must not go with it.
            if isinstance(outcome, Done):
                self.undelivered.keep(call.operation, outcome.result)
            raise
        if isinstance(outcome, Failed):
            raise error_of(outcome)
        return call.result(outcome.result)

    async def aclose(self) -> None:
        """End loops over queues, close connections and history; operations that still run raise Closed. Again is harmless."""
        await self.loops.aclose()
        await self._end()

    async def _end(self) -> None:
        self._is_closed = True
        await self._driver.aclose()
        self.undelivered.close()
        if self._history is not None:
            self._history.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: builtins.object) -> None:
        await self.aclose()

    async def _kept(self, operation: Operation, limit_s: float) -> Sequence[Value]:
        """What cancelled dequeues of the same queue took, if this is another one."""
        if not is_kept(operation) or self.undelivered.is_empty(operation.object):
            return ()
        try:
            return await self.undelivered.take(operation, limit_s)
        except TimeoutError:
            detail = "a cancelled dequeue of this queue has no outcome yet, and nothing else was asked for: try again"
            raise Unavailable(detail, definite=True) from None

    async def _outcome(
        self, operation: Operation, limit_s: float, telling: Telling, left: Left | None
    ) -> Outcome:
        coming: list[asyncio.Future[Outcome]] = []
        is_awaited = left is not None or is_kept(operation)
        try:
            return await self._driver.run(operation, limit_s, coming.append if is_awaited else None)
        except BaseException as error:
            if not coming:
                telling.ended(error)
            elif left is None:
                self.undelivered.expect(operation, coming[0], telling.ended)
            else:
                coming[0].add_done_callback(lambda ended: conclude_with(ended, telling.ended))
                left(coming[0])
            raise
