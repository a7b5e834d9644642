"""A loop over a queue that takes items ahead under leases: `AsyncQueue.consume`, and `Queue.consume` for callers that block.

Owns the calls of one loop: a task acquires while there is room, another renews leases and tells endings, one call at a time. Both
run on the event loop of the client; who takes items and ends them may be another thread. Must not know handles nor clients:
it is given what runs calls. What is held and counted is `quorate.client_sdk.api.prefetch`'s.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from ...api_specs.limits import Limits
from ..errors import BadInput, Closed, LeaseLost, LimitReached, OutcomeUnknown, QuorateError, Unavailable
from ..protocol.core.values import Done, How, Outcome
from . import lease_calls
from .calls import Call, check_seconds, check_whole, nothing
from .leases import Delivery, Lease, lease_of
from .prefetch import PARTS, Held, Prefetch, Telling
from .undelivered import outcome_of

T = TypeVar("T")

PREFETCH: Final = 64
PATIENCE_S: Final = 60.0
"""How long calls that come to nothing are repeated, where the caller does not say."""

LOOK_S: Final = 1.0
"""How often who waits looks again, whatever happens: each wait has an end."""
CLOSE_S: Final = 10.0
"""What leaving a loop may take: to tell the replicas what is to be told. It takes a call or two where they answer."""

_WAIT_S_MIN: Final = 0.1
"""Who looks once is not to look again and again while other items are worked on."""
_PAUSE_S_FIRST: Final = 0.01
_PAUSE_S_MAX: Final = 1.0
_PASSING: Final = (Unavailable, OutcomeUnknown, LimitReached)
"""What may be over when a call is repeated. Each call may be: what an acquire took without our hearing of it comes back."""

_log: Final = logging.getLogger(__name__)

Left = Callable[[asyncio.Future[Outcome]], None]


class Options(Struct, frozen=True):
    """How a loop takes items."""

    prefetch: int
    lease_s: float
    wait_s: float | None
    max_deliveries: int | None
    patience_s: float


class Perform(Protocol):
    """Runs calls on the event loop of a client."""

    async def __call__(self, call: Call[T], deadline_s: float | None, left: Left | None) -> T:
        """See `quorate.client_sdk.api.client.AsyncClient.perform`; `left` gets what will become of a call whose caller is cancelled."""


class Opened(Protocol):
    """A loop that has begun, as who steps it sees it."""

    def take(self) -> Delivery | None:
        """The next item, if one is there. Raises what the loop has met."""

    async def goes_on(self) -> bool:
        """Wait for an item, for a while; False where the loop has come to its end."""

    async def aclose(self) -> None:
        """Tell what is to be told, and give back the rest."""


class Opening(Protocol):
    """What begins loops: those of a client."""

    async def open(self, full: str, options: Options, limits: Limits) -> Opened:
        """Begin one over the queue `full`."""


async def deliveries(
    opened: Callable[[], Coroutine[Any, Any, Opened]],
) -> AsyncGenerator[Delivery, None]:
    """The steps of a loop, from its first to the last one, whatever leaves it."""
    loop = await opened()
    try:
        while True:
            if (delivery := loop.take()) is not None:
                yield delivery
            elif not await loop.goes_on():
                return
    finally:
        await loop.aclose()


def check(options: Options, limits: Limits) -> None:
    """BadInput unless the options are allowed."""
    check_whole("prefetch", options.prefetch)
    if not 1 <= options.prefetch <= limits.batch_items_max:
        raise BadInput(f"prefetch is {options.prefetch}: use 1 to {limits.batch_items_max} (batch_items_max)")
    wait_s = 0.0 if options.wait_s is None else options.wait_s
    for what, seconds in (("wait_s", wait_s), ("patience_s", options.patience_s)):
        check_seconds(what, seconds)
        if not seconds >= 0:
            raise BadInput(f"{what} is {seconds}: use 0 seconds or more")
    lease_calls.acquire("", 1, options.lease_s, 0, options.max_deliveries, limits)


class _Trouble:
    """Of one task: since when its calls have come to nothing."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._pause_s = _PAUSE_S_FIRST

    def met(self, now_s: float) -> float:
        """Another call came to nothing: how long that has been so."""
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s

    def pause_s(self) -> float:
        """How long to rest before the next call: twice as long each time."""
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _PAUSE_S_MAX)
        return pause_s

    def is_over(self) -> None:
        """A call was answered."""
        self._since_s, self._pause_s = None, _PAUSE_S_FIRST


class Consumer:
    """One loop over the queue `full`, on the running event loop. `call_s` is what a call gets, `now_s` gives the seconds of
    a monotonic clock; `on_closed` hears of its end."""

    def __init__(
        self,
        full: str,
        options: Options,
        limits: Limits,
        perform: Perform,
        call_s: float,
        now_s: Callable[[], float],
        on_closed: Callable[["Consumer"], None],
    ) -> None:
        self._full: Final = full
        self._options: Final = options
        self._limits: Final = limits
        self._perform: Final = perform
        self._call_s: Final = min(call_s, options.lease_s / PARTS)
        self._now_s: Final = now_s
        self._on_closed: Final = on_closed
        self._home: Final = (os.getpid(), threading.get_ident())
        self._loop: Final = asyncio.get_running_loop()
        self._lock: Final = threading.Lock()
        """Held for moments, for what follows up to `_bell`."""
        self._kept: Final = Prefetch(options.prefetch, options.lease_s)
        self._failure: QuorateError | None = None
        self._idle_s: float | None = None
        """Since when the caller waits."""
        self._empty_s = float("-inf")
        """When the last acquire began that found nothing."""
        self._is_rung = False
        self._bell = asyncio.Event()
        """Rung when anything has changed, and replaced: who waits takes it before looking."""
        self._left: Final[list[asyncio.Future[Outcome]]] = []
        self._fetcher: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        """They begin when the caller first waits: an opened loop that nobody steps does nothing."""
        self._closing: asyncio.Task[None] | None = None

    # For the caller, in any thread.

    def take(self) -> Delivery | None:
        """See Opened."""
        self._check_here()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._kept.is_closed:
                raise Closed("the client was closed: connect again", definite=True)
            held = self._kept.next(self._now_s())
            if held is None:
                return None
            self._idle_s = None
        self._ring()
        lease = held.lease
        return Delivery(
            lease.value, lease.id, lease.token, lease.deliveries, lease.deadline, partial(self._end, held)
        )

    def _end(self, held: Held, how: How, span_s: float) -> None:
        self._check_here()
        with self._lock:
            self._kept.end(held, how, span_s)
        self._ring()

    def _check_here(self) -> None:
        """In a forked child the lock may be held for ever, and the leases are the parent's."""
        if os.getpid() != self._home[0]:
            raise BadInput("this loop belongs to another process: consume in this one, with queue.consume()")

    # For the caller, on the event loop.

    async def goes_on(self) -> bool:
        """See Opened."""
        bell, now_s = self._bell, self._now_s()
        if self._teller is None and not self._kept.is_closed:
            self._teller = self._loop.create_task(self._guarded(self._keep()))
            self._fetcher = self._loop.create_task(self._guarded(self._fetch()))
        with self._lock:
            if self._idle_s is None:
                self._idle_s = now_s
            late_s = self._idle_s + (float("inf") if self._options.wait_s is None else self._options.wait_s)
            if self._failure is not None or self._kept.is_closed or self._kept.has_next(now_s):
                return True
            is_looked_for = self._empty_s >= self._idle_s
            if now_s >= late_s and is_looked_for and not self._kept.held and not self._kept.untold:
                return False
        await _heard(bell, min(LOOK_S, late_s - now_s) if now_s < late_s else LOOK_S)
        return True

    async def aclose(self) -> None:
        """See Opened. Takes CLOSE_S at most; goes on where its caller is cancelled. Again is harmless."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with self._lock:
            self._kept.close()
            is_cut_off = self._failure is not None and not isinstance(self._failure, LeaseLost)
        # Who has been told of trouble already is not kept waiting for it once more.
        late_s = self._now_s() + (LOOK_S if is_cut_off else CLOSE_S)
        self._ring()
        if self._fetcher is not None:
            self._fetcher.cancel()  # What it takes nevertheless is told to `_left`.
            await self._wait_for(self._fetcher, late_s)
        for coming in self._left:
            await self._wait_for(coming, late_s)
            self._take_late(coming)
        self._left.clear()
        self._ring()
        if self._teller is not None:
            await self._wait_for(self._teller, late_s)
            self._teller.cancel()
        with self._lock:
            untold = self._kept.untold
        if untold:
            message = "%s: a loop was left before the replicas heard what became of %d items: they are delivered again, at the latest %g s from now"
            _log.warning(message, self._full, untold, self._options.lease_s)
        self._on_closed(self)

    async def _wait_for(self, ended: asyncio.Future[Any], late_s: float) -> None:
        """Until it has ended, or it is too late. What it raises is not raised here."""
        await asyncio.wait([ended], timeout=max(0.0, late_s - self._now_s()))

    def _take_late(self, coming: asyncio.Future[Outcome]) -> None:
        end = outcome_of(coming) if coming.done() else None
        if isinstance(end, Done):
            with self._lock:
                self._kept.took(map(lease_of, end.result), self._now_s())

    # The task that acquires.

    async def _fetch(self) -> None:
        trouble = _Trouble()
        while True:
            bell = self._bell
            with self._lock:
                room = self._kept.room(self._now_s())
            if room:
                await self._tried(trouble, self._acquire(room))
            else:
                await _heard(bell, LOOK_S)

    async def _acquire(self, room: int) -> None:
        options, asked_s = self._options, self._now_s()
        wait_s = min(self._limits.wait_s_max, options.lease_s / PARTS)
        if options.wait_s is not None:
            wait_s = min(wait_s, max(options.wait_s, _WAIT_S_MIN))
        call = lease_calls.acquire(
            self._full, room, options.lease_s, wait_s, options.max_deliveries, self._limits
        )
        limit_s = min(wait_s + self._call_s, self._limits.deadline_s_max)
        leases = await self._perform(call, limit_s, self._left.append)
        with self._lock:
            self._kept.took(leases, asked_s)
            if not leases:
                self._empty_s = asked_s
        self._ring()

    # The task that renews and tells.

    async def _keep(self) -> None:
        trouble = _Trouble()
        while not self._is_done():
            bell, now_s = self._bell, self._now_s()
            with self._lock:
                due = self._kept.to_renew(now_s)
                telling = None if due else self._kept.to_tell()
                renew_at_s = self._kept.renew_at_s()
            if due:
                await self._tried(trouble, self._renew(due))
            elif telling is not None:
                self._ring()  # There may be room now.
                await self._tried(trouble, self._tell(telling))
            else:
                await _heard(bell, LOOK_S if renew_at_s is None else min(LOOK_S, renew_at_s - now_s))

    def _is_done(self) -> bool:
        """Whether the loop was left, and there is nothing more to tell."""
        with self._lock:
            is_all_taken = self._fetcher is not None and self._fetcher.done() and not self._left
            return self._kept.is_closed and is_all_taken and not self._kept.untold

    async def _renew(self, due: Sequence[Held]) -> None:
        asked_s = self._now_s()
        lost = await self._settle("renew", [held.lease for held in due], self._options.lease_s)
        with self._lock:
            self._kept.renewed(due, lost, asked_s)
        self._ring()

    async def _tell(self, telling: Telling) -> None:
        try:
            lost = await self._settle(telling.how, telling.leases, telling.span_s)
        except BaseException:
            with self._lock:
                self._kept.tell_again()
            raise
        with self._lock:
            self._kept.told()
            is_closed = self._kept.is_closed
        if lost and is_closed:
            message = "%s: %d leases were lost before a loop over it was left: what the items ask for may be done twice"
            _log.warning(message, self._full, len(lost))
        elif lost:
            self._fail(LeaseLost(lost))
        self._ring()

    async def _settle(self, how: How, leases: Sequence[Lease], span_s: float) -> tuple[str, ...]:
        """End or renew these leases; the tokens of those that were lost."""
        try:
            call = lease_calls.settle(self._full, how, leases, nothing, span_s)
            await self._perform(call, self._call_s, None)
        except LeaseLost as error:
            return error.lost
        return ()

    # For both.

    async def _tried(self, trouble: _Trouble, step: Coroutine[Any, Any, None]) -> None:
        """One step; what comes to nothing is repeated after a rest, and told to the caller in the end."""
        try:
            await step
        except QuorateError as error:
            lasting_s = trouble.met(self._now_s())
            if not isinstance(error, _PASSING) or lasting_s >= self._options.patience_s:
                self._fail(error)
            await asyncio.sleep(trouble.pause_s())
        else:
            trouble.is_over()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """A task to its end. What it raises is a mistake of ours: the caller must not wait for ever."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - see above
            _log.exception("%s: a loop over it met an error of its own", self._full)
            self._fail(OutcomeUnknown(f"the loop met an error of its own, which its log shows: {error!r}"))

    def _fail(self, error: QuorateError) -> None:
        """Raise this at the caller's next step, unless something else is to be raised there."""
        with self._lock:
            self._failure = self._failure or error
        self._ring()

    def _ring(self) -> None:
        """Have who waits look again, once in a turn of the event loop. In any thread."""
        if self._is_rung or self._loop.is_closed():  # A Delivery may outlive its client.
            return
        self._is_rung = True
        if threading.get_ident() == self._home[1]:
            self._loop.call_soon(self._rung)
        else:
            self._loop.call_soon_threadsafe(self._rung)

    def _rung(self) -> None:
        self._is_rung = False
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()


class Loops:
    """The loops of one asyncio client, until they have ended. `call_s` is what each of their calls gets, `now_s` a monotonic clock."""

    def __init__(self, perform: Perform, call_s: float, now_s: Callable[[], float]) -> None:
        self._perform = perform
        self._call_s: Final = call_s
        self._now_s = now_s
        self._open: Final[set[Consumer]] = set()

    async def open(self, full: str, options: Options, limits: Limits) -> Consumer:
        """See Opening."""
        loop = Consumer(full, options, limits, self._perform, self._call_s, self._now_s, self._open.discard)
        self._open.add(loop)
        return loop

    async def aclose(self) -> None:
        """End all of them."""
        await asyncio.gather(*(loop.aclose() for loop in self._open))


async def _heard(bell: asyncio.Event, limit_s: float) -> None:
    """Wait until the bell is rung, `limit_s` seconds at most."""
    try:
        async with asyncio.timeout(limit_s):
            await bell.wait()
    except TimeoutError:
        pass
