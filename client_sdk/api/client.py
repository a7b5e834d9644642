"""The asyncio client: a connected front end and its handles. `quorate.client_sdk.api.blocking` has the same names.

Owns what callers await, deadlines, and who hears of each outcome. Must not know transports, nor how operations run. One
client serves any number of tasks of one event loop.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from ...adts.log import Value
from ...adts.types.catalogue import BadName, check_name
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Limits
from ..errors import BadInput, Unavailable, error_of
from ..protocol.core.counters import FrontEndCounts
from ..protocol.core.values import Failed, Operation, Outcome
from ..transport.driver import Driver
from . import calls, lease_calls
from .call_reports import Observer, Telling
from .calls import Call
from .history import History
from .leases import DeadLetter, Lease, LeaseCounts
from .undelivered import Undelivered, is_kept

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
    """BadInput unless it is a deadline that the cluster document allows."""
    if not 0 < deadline_s <= limits.deadline_s_max:
        raise BadInput(f"deadline_s is {deadline_s}: use above 0 to {limits.deadline_s_max} (deadline_s_max)")


class AsyncClient:
    """A connected front end; `connect_async` makes one. `async with` closes it at the end."""

    def __init__(
        self, document: ClusterDocument, driver: Driver, *, deadline_s: float, history: History | None
    ) -> None:
        check_deadline(deadline_s, document.limits)
        self.document: Final = document
        self._driver: Final = driver
        self._deadline_s: Final = deadline_s
        self._history: Final = history
        self._observers: Final[list[Observer]] = []
        self.undelivered: Final = Undelivered()
        """What cancelled dequeues took: the next one of the same queue gets it."""
        self._home: Final = (os.getpid(), asyncio.get_running_loop())

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.document.name!r}: {', '.join(self.document.votes)}>"

    def queue(self, name: str) -> "AsyncQueue":
        """The queue of that name; BadInput when the name is not allowed."""
        return AsyncQueue(self, checked_name(name))

    def register(self, name: str) -> "AsyncRegister":
        """The register of that name; BadInput when the name is not allowed."""
        return AsyncRegister(self, checked_name(name))

    def dictionary(self, name: str) -> "AsyncDictionary":
        """The dictionary of that name; BadInput when the name is not allowed."""
        return AsyncDictionary(self, checked_name(name))

    def on_finished(self, observer: Observer) -> None:
        """Call `observer` after each operation that came to an outcome, on the event loop; it must be quick. What it raises is
        logged, and changes nothing."""
        self._observers.append(observer)

    def counters(self) -> FrontEndCounts:
        """What this client has counted since it was connected: operations and how long they took, rounds, events."""
        return self._driver.counts.taken()

    async def perform(self, call: Call[Result], deadline_s: float | None = None) -> Result:
        """Run one call (of `quorate.client_sdk.api.calls`). Raises the errors of `quorate.client_sdk.errors`."""
        limit_s = deadline_of(call, deadline_s, self._deadline_s, self.document.limits)
        if self._home != (os.getpid(), asyncio.get_running_loop()):
            raise BadInput("this client belongs to another event loop or process: connect again in this one")
        if kept := await self._kept(call.operation, limit_s):
            return call.result(kept)
        recording = None if self._history is None else self._history.begin(call.told)
        telling = Telling(call, recording, self._observers)
        outcome = await self._outcome(call.operation, limit_s, telling)
        try:
            telling.ended(outcome)
        except BaseException:  # The history's disk is full, say: what was taken must not go with it.
            self.undelivered.keep(call.operation, outcome)
            raise
        if isinstance(outcome, Failed):
            raise error_of(outcome)
        return call.result(outcome.result)

    async def aclose(self) -> None:
        """Close connections and history; operations that still run raise Closed. Again is harmless."""
        await self._driver.aclose()
        self.undelivered.close()
        if self._history is not None:
            self._history.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    async def _outcome(self, operation: Operation, limit_s: float, telling: Telling) -> Outcome:
        left: list[asyncio.Future[Outcome]] = []
        try:
            return await self._driver.run(operation, limit_s, left.append if is_kept(operation) else None)
        except BaseException as error:
            if left:
                self.undelivered.expect(operation, left[0], telling.ended)
            else:
                telling.ended(error)
            raise


class AsyncQueue:
    """A first-in-first-out queue."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    async def enqueue(
        self,
        value: Any,
        *,
        delay_s: float = 0,
        expires_s: float | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Add a value (anything JSON) at the end. A repeat with the same key adds it once.

        `acquire` (and it alone) delivers it after `delay_s` seconds at the earliest, and not after `expires_s`.
        """
        spans = calls.spans(delay_s, expires_s)
        call = calls.enqueue(self.name, [value], idempotency_key, self._limits, spans)
        await self._client.perform(call, deadline_s)

    async def enqueue_many(
        self,
        values: Iterable[Any],
        *,
        delay_s: float = 0,
        expires_s: float | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Add values at the end, in order, at the cost of one; items of others may come between them. Else as `enqueue`."""
        spans = calls.spans(delay_s, expires_s)
        call = calls.enqueue(self.name, list(values), idempotency_key, self._limits, spans)
        if call.told:
            await self._client.perform(call, deadline_s)

    async def dequeue(
        self,
        max_items: int | None = None,
        wait_s: float = 0,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Take the value at the front, None when there is none; with `max_items`, a list of up to so many.

        Waits up to `wait_s` seconds for a first value. A repeat with the same key gets what the first took. Where the caller is
        cancelled (without a key), what is taken nevertheless is given to this client's next dequeue of the queue, and is gone
        when the client is closed before: use `acquire` where that must not be.
        """
        call = calls.dequeue(self.name, max_items, wait_s, idempotency_key, self._limits)
        return await self._client.perform(call, deadline_s)

    async def peek(self, *, deadline_s: float | None = None) -> Any:
        """The value at the front, which stays; None when there is none."""
        return await self._client.perform(calls.peek(self.name), deadline_s)

    async def items(self, max_items: int | None = None, *, deadline_s: float | None = None) -> list[Any]:
        """The values that wait, or the first `max_items` of them, oldest first; all stay. What is added meanwhile may
        still come between them: only what is taken, or peeked at, has its final place.
        """
        return await self._client.perform(calls.queue_items(self.name, max_items), deadline_s)

    async def size(self, *, deadline_s: float | None = None) -> int:
        """How many items wait."""
        return await self._client.perform(calls.queue_size(self.name), deadline_s)

    async def acquire(
        self,
        max_items: int = 1,
        lease_s: float = lease_calls.LEASE_S,
        wait_s: float = 0,
        *,
        max_deliveries: int | None = None,
        deadline_s: float | None = None,
    ) -> list[Lease]:
        """Be delivered up to `max_items` items, each under a lease of `lease_s` seconds; waits up to `wait_s` for a first one.

        Items whose lease is over, and those given back, come before those at the front. What was delivered
        `max_deliveries` times becomes a dead letter. Where the outcome is unknown, or the caller is cancelled, what was taken
        comes back by itself, once its lease is over.
        """
        call = lease_calls.acquire(self.name, max_items, lease_s, wait_s, max_deliveries, self._limits)
        return await self._client.perform(call, deadline_s)

    async def accept(self, *leases: Lease | str, deadline_s: float | None = None) -> None:
        """The items are done with. LeaseLost for those that are not the caller's any more. A repeat is answered as the first."""
        await self._client.perform(lease_calls.settle(self.name, "accept", leases), deadline_s)

    async def release(
        self, *leases: Lease | str, delay_s: float = 0, deadline_s: float | None = None
    ) -> None:
        """Give the items back: they are delivered again, after `delay_s` seconds."""
        await self._client.perform(lease_calls.release(self.name, leases, delay_s), deadline_s)

    async def reject(
        self, *leases: Lease | str, dead_letter: bool = True, deadline_s: float | None = None
    ) -> None:
        """The items are not to be delivered again: they become dead letters, or (`dead_letter` False) are dropped."""
        how: Literal["reject", "drop"] = "reject" if dead_letter else "drop"
        await self._client.perform(lease_calls.settle(self.name, how, leases), deadline_s)

    async def renew(
        self, *leases: Lease | str, lease_s: float = lease_calls.LEASE_S, deadline_s: float | None = None
    ) -> float:
        """Let the leases last `lease_s` seconds from now; the new deadline (seconds since 1970)."""
        return await self._client.perform(lease_calls.renew(self.name, leases, lease_s), deadline_s)

    async def leases(self, *, deadline_s: float | None = None) -> LeaseCounts:
        """How many items are delivered, wait to be delivered again or for the first time, and are dead letters."""
        return await self._client.perform(lease_calls.lease_counts(self.name), deadline_s)

    async def dead_letters(self, *, deadline_s: float | None = None) -> list[DeadLetter]:
        """The dead letters, oldest first."""
        return await self._client.perform(lease_calls.dead_letters(self.name), deadline_s)

    async def requeue_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Have dead letters (or their ids; left out: all) delivered again, without an expiry and with a fresh count towards
        a maximum; how many that were."""
        return await self._client.perform(
            lease_calls.clear_dead(self.name, letters, is_requeued=True), deadline_s
        )

    async def discard_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Forget dead letters (or their ids; left out: all); how many that were."""
        return await self._client.perform(
            lease_calls.clear_dead(self.name, letters, is_requeued=False), deadline_s
        )


class AsyncRegister:
    """One value; None until somebody writes it."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    async def read(self, *, deadline_s: float | None = None) -> Any:
        """The value."""
        return await self._client.perform(calls.read(self.name), deadline_s)

    async def write(self, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value (anything JSON)."""
        await self._client.perform(calls.write(self.name, value, self._limits), deadline_s)

    async def compare_and_set(
        self, old: Any, new: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set `new` if the value is `old` (None before the first write; 1 is 1.0); whether it was."""
        call = calls.compare_and_set_register(self.name, old, new, idempotency_key, self._limits)
        return await self._client.perform(call, deadline_s)


class AsyncDictionary:
    """Keys (text, as names are) and values (anything JSON). A key whose value is null is there; `get` gives None for both."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    async def get(self, key: str, *, deadline_s: float | None = None) -> Any:
        """The value of a key; None when it is absent."""
        return await self._client.perform(calls.get(self.name, key), deadline_s)

    async def put(self, key: str, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value of a key."""
        await self._client.perform(calls.put(self.name, key, value, self._limits), deadline_s)

    async def delete(self, key: str, *, deadline_s: float | None = None) -> None:
        """Remove a key; it need not be there."""
        await self._client.perform(calls.delete(self.name, key), deadline_s)

    async def put_if_absent(
        self, key: str, value: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set the value of a key if it is absent; whether it was."""
        call = calls.put_if_absent(self.name, key, value, idempotency_key, self._limits)
        return await self._client.perform(call, deadline_s)

    async def compare_and_set(
        self,
        key: str,
        old: Any,
        new: Any,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> bool:
        """Set `new` if the key's value is `old` (None: absent, or null; 1 is 1.0); whether it was. `new` None sets null."""
        call = calls.compare_and_set_key(self.name, key, old, new, idempotency_key, self._limits)
        return await self._client.perform(call, deadline_s)

    async def compare_and_delete(
        self, key: str, old: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Remove a key if its value is `old` (anything but None); whether it was: of several callers, one hears True."""
        call = calls.compare_and_delete(self.name, key, old, idempotency_key, self._limits)
        return await self._client.perform(call, deadline_s)

    async def items(self, *, deadline_s: float | None = None) -> dict[str, Any]:
        """All keys and values, in the order of the keys, as they were at one moment."""
        return await self._client.perform(calls.items(self.name), deadline_s)

    async def size(self, *, deadline_s: float | None = None) -> int:
        """How many keys there were at one moment."""
        return await self._client.perform(calls.dictionary_size(self.name), deadline_s)


def checked_name(name: str) -> str:
    """`name` itself; BadInput when it is not allowed."""
    try:
        return check_name(name)
    except BadName as error:
        raise BadInput(str(error)) from None
