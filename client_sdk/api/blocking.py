"""The blocking client: the asyncio client on an event loop in a background thread, with the same names.

Owns that thread, and what becomes of it in a forked child: the child makes a front end of its own, with a new site id
and new connections, on first use. Must not know how operations run. One client serves any number of threads.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from ...api_specs.cluster import ClusterDocument
from ..errors import Closed, OutcomeUnknown
from ..protocol.core.counters import FrontEndCounts
from . import calls, lease_calls
from .background_loop import enter, new_loop
from .call_reports import Observer
from .calls import Call
from .client import AsyncClient, checked_name
from .forking import in_child
from .history import History
from .leases import DeadLetter, Lease, LeaseCounts

Result = TypeVar("Result")

Make = Callable[[History | None, ClusterDocument | None], Coroutine[Any, Any, AsyncClient]]
"""Makes an asyncio client on the running loop; the document is None until it is known."""

START_TIMEOUT_S: Final = 60.0

GRACE_S: Final = 5.0
"""What the background thread may be late before a caller stops waiting for it: it never is, unless it is starved."""

_left_behind: Final[list[object]] = []
"""In a forked child: the parent's threads and loops, kept so that nothing here finalises what the parent still uses."""


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

    def wait(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """The result of a coroutine on the loop. Whatever ends the wait early cancels the coroutine."""
        with self._gate:  # what is submitted before the loop stops is at least cancelled, never forgotten
            if self._is_stopped:
                work.close()
                raise Closed("the client is closed: connect again", definite=True)
            future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise Closed("the client was closed during the operation", definite=False) from None
        finally:
            future.cancel()

    def stop(self) -> None:
        """End the thread, within GRACE_S."""
        with self._gate:
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GRACE_S)

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
        self.document: Final[ClusterDocument] = self._engine.client.document
        in_child(self, Client._after_fork)

    def __repr__(self) -> str:
        return f"<Client of {self.document.name!r}: {', '.join(self.document.votes)}>"

    def queue(self, name: str) -> "Queue":
        """The queue of that name; BadInput when the name is not allowed."""
        return Queue(self, checked_name(name))

    def register(self, name: str) -> "Register":
        """The register of that name; BadInput when the name is not allowed."""
        return Register(self, checked_name(name))

    def dictionary(self, name: str) -> "Dictionary":
        """The dictionary of that name; BadInput when the name is not allowed."""
        return Dictionary(self, checked_name(name))

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
            return engine.wait(engine.client.perform(call, deadline_s), limit_s)
        except TimeoutError:
            raise OutcomeUnknown(f"the client's thread did not answer within {limit_s} s") from None

    def close(self) -> None:
        """Close connections and history; operations that still run raise Closed. Again is harmless."""
        with self._lock:
            engine, self._engine, self._is_closed = self._engine, None, True
        if engine is not None:
            try:
                engine.wait(engine.client.aclose(), GRACE_S)
            finally:
                engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        _left_behind.append(self._engine)
        self._engine = None
        self._lock = threading.Lock()


class Queue:
    """A first-in-first-out queue."""

    def __init__(self, client: Client, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    def enqueue(
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
        self._client.perform(call, deadline_s)

    def enqueue_many(
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
            self._client.perform(call, deadline_s)

    def dequeue(
        self,
        max_items: int | None = None,
        wait_s: float = 0,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Take the value at the front, None when there is none; with `max_items`, a list of up to so many.

        Waits up to `wait_s` seconds for a first value. A repeat with the same key gets what the first took. Where a signal's
        handler raises meanwhile, what is taken nevertheless is given to this client's next dequeue of the queue, unless the answer
        was there already: use `acquire` where that must not be.
        """
        call = calls.dequeue(self.name, max_items, wait_s, idempotency_key, self._limits)
        return self._client.perform(call, deadline_s)

    def peek(self, *, deadline_s: float | None = None) -> Any:
        """The value at the front, which stays; None when there is none."""
        return self._client.perform(calls.peek(self.name), deadline_s)

    def items(self, max_items: int | None = None, *, deadline_s: float | None = None) -> list[Any]:
        """The values that wait, or the first `max_items` of them, oldest first; all stay. What is added meanwhile may
        still come between them: only what is taken, or peeked at, has its final place.
        """
        return self._client.perform(calls.queue_items(self.name, max_items), deadline_s)

    def size(self, *, deadline_s: float | None = None) -> int:
        """How many items wait."""
        return self._client.perform(calls.queue_size(self.name), deadline_s)

    def acquire(
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
        `max_deliveries` times becomes a dead letter. Where the outcome is unknown, what was taken comes back by itself.
        """
        call = lease_calls.acquire(self.name, max_items, lease_s, wait_s, max_deliveries, self._limits)
        return self._client.perform(call, deadline_s)

    def accept(self, *leases: Lease | str, deadline_s: float | None = None) -> None:
        """The items are done with. LeaseLost for those that are not the caller's any more. A repeat is answered as the first."""
        self._client.perform(lease_calls.settle(self.name, "accept", leases), deadline_s)

    def release(self, *leases: Lease | str, delay_s: float = 0, deadline_s: float | None = None) -> None:
        """Give the items back: they are delivered again, after `delay_s` seconds."""
        self._client.perform(lease_calls.release(self.name, leases, delay_s), deadline_s)

    def reject(self, *leases: Lease | str, dead_letter: bool = True, deadline_s: float | None = None) -> None:
        """The items are not to be delivered again: they become dead letters, or (`dead_letter` False) are dropped."""
        how: Literal["reject", "drop"] = "reject" if dead_letter else "drop"
        self._client.perform(lease_calls.settle(self.name, how, leases), deadline_s)

    def renew(
        self, *leases: Lease | str, lease_s: float = lease_calls.LEASE_S, deadline_s: float | None = None
    ) -> float:
        """Let the leases last `lease_s` seconds from now; the new deadline (seconds since 1970)."""
        return self._client.perform(lease_calls.renew(self.name, leases, lease_s), deadline_s)

    def leases(self, *, deadline_s: float | None = None) -> LeaseCounts:
        """How many items are delivered, wait to be delivered again or for the first time, and are dead letters."""
        return self._client.perform(lease_calls.lease_counts(self.name), deadline_s)

    def dead_letters(self, *, deadline_s: float | None = None) -> list[DeadLetter]:
        """The dead letters, oldest first."""
        return self._client.perform(lease_calls.dead_letters(self.name), deadline_s)

    def requeue_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Have dead letters (or their ids; left out: all) delivered again, without an expiry and with a fresh count towards
        a maximum; how many that were."""
        return self._client.perform(lease_calls.clear_dead(self.name, letters, is_requeued=True), deadline_s)

    def discard_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Forget dead letters (or their ids; left out: all); how many that were."""
        return self._client.perform(lease_calls.clear_dead(self.name, letters, is_requeued=False), deadline_s)


class Register:
    """One value; None until somebody writes it."""

    def __init__(self, client: Client, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    def read(self, *, deadline_s: float | None = None) -> Any:
        """The value."""
        return self._client.perform(calls.read(self.name), deadline_s)

    def write(self, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value (anything JSON)."""
        self._client.perform(calls.write(self.name, value, self._limits), deadline_s)

    def compare_and_set(
        self, old: Any, new: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set `new` if the value is `old` (None before the first write; 1 is 1.0); whether it was."""
        call = calls.compare_and_set_register(self.name, old, new, idempotency_key, self._limits)
        return self._client.perform(call, deadline_s)


class Dictionary:
    """Keys (text, as names are) and values (anything JSON). A key whose value is null is there; `get` gives None for both."""

    def __init__(self, client: Client, name: str) -> None:
        self.name: Final = name
        self._client: Final = client
        self._limits: Final = client.document.limits

    def get(self, key: str, *, deadline_s: float | None = None) -> Any:
        """The value of a key; None when it is absent."""
        return self._client.perform(calls.get(self.name, key), deadline_s)

    def put(self, key: str, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value of a key."""
        self._client.perform(calls.put(self.name, key, value, self._limits), deadline_s)

    def delete(self, key: str, *, deadline_s: float | None = None) -> None:
        """Remove a key; it need not be there."""
        self._client.perform(calls.delete(self.name, key), deadline_s)

    def put_if_absent(
        self, key: str, value: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set the value of a key if it is absent; whether it was."""
        call = calls.put_if_absent(self.name, key, value, idempotency_key, self._limits)
        return self._client.perform(call, deadline_s)

    def compare_and_set(
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
        return self._client.perform(call, deadline_s)

    def compare_and_delete(
        self, key: str, old: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Remove a key if its value is `old` (anything but None); whether it was: of several callers, one hears True."""
        call = calls.compare_and_delete(self.name, key, old, idempotency_key, self._limits)
        return self._client.perform(call, deadline_s)

    def items(self, *, deadline_s: float | None = None) -> dict[str, Any]:
        """All keys and values, in the order of the keys, as they were at one moment."""
        return self._client.perform(calls.items(self.name), deadline_s)

    def size(self, *, deadline_s: float | None = None) -> int:
        """How many keys there were at one moment."""
        return self._client.perform(calls.dictionary_size(self.name), deadline_s)
