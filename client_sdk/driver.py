"""Drives one front-end machine on an event loop: sends what it wants sent, wakes it when it asks, hands out outcomes.

Owns the tasks and timers of a front end. Must not know the protocol (the machine's) nor HTTP (the transport's). A driver
belongs to one event loop and one process; any number of tasks may run operations on it at once.
"""

import asyncio
import logging
import secrets
import string
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Served
from quorate.api_specs.tokens import tag_of
from quorate.client_sdk.effects import (
    Answer,
    Effects,
    Enqueue,
    Failed,
    Now,
    Operation,
    Outcome,
    SendAsk,
    Unanswered,
)
from quorate.client_sdk.errors import Closed
from quorate.client_sdk.link import Link
from quorate.client_sdk.machine import FrontEnd
from quorate.client_sdk.ports import Asker, Clock, SystemClock, Transport
from quorate.client_sdk.tasks import SOON_S
from quorate.client_sdk.together import Together

CLOSE_TIMEOUT_S: Final = 0.5
"""What `aclose` gives lazy messages to leave: each of them may be lost."""

ASKS_MAX: Final = 64
"""Asks under way; there is one for an object at most. What is not asked is decided here."""

SITE_CHARS: Final = 13
TAGGED_SITE_CHARS: Final = 10
"""Beside the tag; only front ends with the same token could ever meet."""

_log = logging.getLogger(__name__)


class Machine(Protocol):
    """The part of `quorate.client_sdk.machine.FrontEnd` that is driven."""

    def start(self, operation: Operation, now: Now, deadline_s: float) -> tuple[int, Effects]:
        """Begin an operation: its number, and what to do."""

    def deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> Effects:
        """Take the answer to one batch (the tokens of its requests in order, 0 for lazy ones)."""

    def take_served(self, token: int, answer: Served | Unanswered, now: Now) -> Effects:
        """Take what came of one ask."""

    def tick(self, now: Now) -> Effects:
        """Look at the time."""

    def cancel(self, number: int, now: Now) -> Effects:
        """Stop driving an operation whose caller went away."""

    def start_over(self) -> None:
        """Forget all operations and all that was learnt, after a call has raised."""


def new_site(token: str | None = None) -> str:
    """A site id nobody had before: one for each incarnation of a front end. It begins with the tag of its token, if that
    has one: replicas let nobody else use such sites."""
    alphabet = string.ascii_lowercase + string.digits
    tag = tag_of(token or "")
    chars = TAGGED_SITE_CHARS if tag else SITE_CHARS
    return tag + "".join(secrets.choice(alphabet) for _ in range(chars))


class Driver:
    """One front end. `own` is the id of the replica that it is embedded in, if any; `site` comes from `new_site`.

    With an `asker`, wishes on objects that other front ends decide on, too, are handed over to one of them.
    """

    def __init__(
        self,
        document: ClusterDocument,
        *,
        transport: Transport,
        asker: Asker | None = None,
        site: str,
        seed: int,
        own: str | None = None,
        clock: Clock | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._clock: Final = clock or SystemClock()
        self._machine: Final = machine or FrontEnd(
            document, site=site, seed=seed, own=own, may_ask=asker is not None
        )
        self._transport: Final = transport
        self._asker: Final = asker
        self._asking: Final[set[asyncio.Task[None]]] = set()
        self._links: Final = {
            replica.id: Link(replica.id, document, transport, self._clock, self._delivered)
            for replica in document.replicas
        }
        self._together: Final = Together(self._run, document.limits)
        self._waiting: Final[dict[int, asyncio.Future[Outcome]]] = {}
        self._timer: asyncio.Handle | None = None
        self._wakes_at_s = 0.0
        """When the timer, if it is set, will wake the machine."""
        self._is_closed = False

    async def run(self, operation: Operation, deadline_s: float) -> Outcome:
        """The outcome of `operation`, within `deadline_s` seconds. Raises Closed when the driver is closed.

        A cancelled `run` cancels the operation, which may nevertheless take effect.
        """
        if isinstance(operation, Enqueue) and not operation.key:
            return await self._together.enqueue(operation, deadline_s)
        return await self._run(operation, deadline_s)

    async def _run(self, operation: Operation, deadline_s: float) -> Outcome:
        if self._is_closed:
            raise Closed("the client is closed: connect again", definite=True)
        try:
            number, effects = self._machine.start(operation, self._clock.now(), deadline_s)
        except Exception:  # noqa: BLE001 - as in _step
            return self._broken()
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._apply(effects)
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None and not self._is_closed:
                self._step(lambda: self._machine.cancel(number, self._clock.now()))

    async def aclose(self) -> None:
        """Fail what still runs with Closed, flush lazy messages for at most CLOSE_TIMEOUT_S, give up connections."""
        if self._is_closed:
            return
        self._fail_all(Closed("the client was closed during the operation", definite=False))
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for asking in self._asking:
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        await asyncio.gather(*(link.aclose(CLOSE_TIMEOUT_S) for link in self._links.values()))
        await self._transport.aclose()

    def _delivered(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> None:
        if not self._is_closed:
            self._step(lambda: self._machine.deliver(replica, tokens, answer, sent, now))

    async def _ask(self, send: SendAsk, *, has_room: bool) -> None:
        """Carry one ask, and its answer back."""
        answer: Served | Unanswered = Unanswered("too many asks are under way", definite=True)
        if has_room and self._asker is not None:
            answer = Unanswered("the transport failed")
            try:
                async with asyncio.timeout(send.timeout_s):
                    answer = await self._asker.ask(send.replica, send.ask, send.timeout_s)
            except TimeoutError:
                answer = Unanswered(f"{send.replica}: no answer within {send.timeout_s:.1f} s")
            except Exception:  # noqa: BLE001 - a mistake of the asker's: whoever waits for the answer must hear of it
                _log.exception("an ask could not be carried")
        if not self._is_closed:
            self._step(lambda: self._machine.take_served(send.token, answer, self._clock.now()))

    def _tick(self) -> None:
        self._timer = None
        self._step(lambda: self._machine.tick(self._clock.now()))

    def _step(self, call: Callable[[], Effects]) -> None:
        """One call of the machine.

        What it raises is a mistake of ours, of any class, and may concern any operation under way; nobody must wait for
        ever for an outcome that will not come.
        """
        try:
            effects = call()
        except Exception:  # noqa: BLE001 - see above
            self._broken()
        else:
            self._apply(effects)

    def _broken(self) -> Failed:
        """Log the error at hand, go on with an empty machine, and tell all who wait what is true: their operation may or
        may not take effect."""
        _log.exception("the front end met an error of its own")
        self._machine.start_over()
        failed = Failed(
            "unknown", "the front end met an error of its own, which its log shows", definite=False
        )
        for future in self._waiting.values():
            if not future.done():
                future.set_result(failed)
        self._waiting.clear()
        return failed

    def _apply(self, effects: Effects) -> None:
        for send in effects.sends:
            self._links[send.replica].put(send)
        for ask in effects.asks:
            has_room = len(self._asking) < ASKS_MAX
            asking = asyncio.get_running_loop().create_task(self._ask(ask, has_room=has_room))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        for finish in effects.finished:
            future = self._waiting.pop(finish.number, None)
            if future is not None and not future.done():
                future.set_result(finish.outcome)
        self._wake_at(effects.wake_at_s)

    def _wake_at(self, wake_at_s: float | None) -> None:
        """Set the timer, unless it is set for then or earlier: a tick in vain costs less than a timer for each message."""
        if wake_at_s is None or (self._timer is not None and self._wakes_at_s <= wake_at_s):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at_s = wake_at_s
        loop, delay_s = asyncio.get_running_loop(), wake_at_s - self._clock.now().mono_s
        # A timer would wait for a millisecond at least, for that is how finely the loop waits.
        self._timer = (
            loop.call_soon(self._tick) if delay_s <= SOON_S else loop.call_later(delay_s, self._tick)
        )

    def _fail_all(self, error: Exception) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()


__all__ = ["Clock", "Driver", "Machine", "SystemClock", "Transport", "new_site"]
