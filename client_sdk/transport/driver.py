"""Drives one front-end machine on an event loop: sends what it wants sent, wakes it when it asks, delivers outcomes.

Owns the tasks and timers of a front end. Must not know the protocol (the machine's) nor HTTP (the transport's). A driver
belongs to one event loop and one process; any number of tasks may run operations on it at once.
"""

import asyncio
import logging
import secrets
import string
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import ForwardedReply
from ...api_specs.tokens import tag_of
from ...timestamps.clock import Now
from ..errors import Closed
from ..protocol.core.counters import Counts
from ..protocol.core.pacing import Pacing
from ..protocol.core.rounds import SOON_S
from ..protocol.core.values import (
    Answer,
    Effects,
    Failed,
    Operation,
    Outcome,
    Send,
    SendForwarded,
    Unanswered,
)
from ..protocol.front_end import FrontEnd
from .following import Following
from .link import Link
from .ports import Clock, Forwarder, SystemClock, Traces, Transport
from .starts import Start, Starts

CLOSE_TIMEOUT_S: Final = 0.5
"""What `aclose` gives lazy messages to leave: each of them may be lost."""

FORWARDED_MAX: Final = 64
"""Forwarded requests under way; there is one for an object at most. What is not forwarded is decided here."""

SITE_CHARS: Final = 13
TAGGED_SITE_CHARS: Final = 10
"""Beside the tag; only front ends with the same token could ever meet."""

_log = logging.getLogger(__name__)


Left = Callable[[asyncio.Future[Outcome]], None]


class Machine(Protocol):
    """The part of `quorate.client_sdk.protocol.front_end.FrontEnd` that is driven."""

    @property
    def pacing(self) -> Pacing:
        """How often who waits for items looks again."""

    def start_all(
        self,
        begun: Sequence[Operation],
        now: Now,
        deadline_s: float,
        turns: Sequence[Hashable] = (),
        asked: Now | None = None,
    ) -> tuple[list[int], Effects]:
        """Begin operations that were `asked` for before, or now: their numbers, and what to do."""

    def deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> Effects:
        """Take the answer to one batch (the tokens of its requests in order, 0 for lazy ones)."""

    def take_forwarded_reply(self, token: int, answer: ForwardedReply | Unanswered, now: Now) -> Effects:
        """Take what came of one forwarded request."""

    def tick(self, now: Now) -> Effects:
        """Look at the time."""

    def reconfigure(self, document: ClusterDocument, now: Now) -> Effects:
        """Go by this configuration of the cluster, if it is a later one."""

    def served_by(self, token: int) -> list[int]:
        """The numbers of the operations for which the request or forwarded request under `token` was sent."""

    def cancel(self, number: int, now: Now) -> Effects:
        """Stop driving an operation whose caller went away."""

    def leave(self, number: int, now: Now) -> Effects:
        """The caller of a dequeue went away: end it as soon as it is certain what it took."""

    def last_sends(self) -> tuple[Send, ...]:
        """What should still be said when the front end ends."""

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

    With a `forwarder`, commands on objects that other front ends decide on, too, are forwarded to one of them.
    """

    def __init__(
        self,
        document: ClusterDocument,
        *,
        transport: Transport,
        forwarder: Forwarder | None = None,
        site: str,
        seed: int,
        own: str | None = None,
        clock: Clock | None = None,
        machine: Machine | None = None,
    ) -> None:
        self.document = document
        """The configuration that it goes by."""
        self.following: Following | None = None
        """Hears of replicas that are in a later configuration of the cluster, and has it given to `reconfigure`."""
        self._clock: Final = clock or SystemClock()
        self.counts: Final = Counts()
        self._machine: Final = machine or FrontEnd(
            document, site=site, seed=seed, own=own, may_forward=forwarder is not None, counts=self.counts
        )
        self._transport: Final = transport
        self._forwarder: Final = forwarder
        self._forwarding: Final[set[asyncio.Task[None]]] = set()
        self._links: Final = {replica: self._link(replica) for replica in document.votes}
        self._starts: Final = Starts(
            self._begin, document.limits, self._clock.now, by_connections=own is not None
        )
        self._waiting: Final[dict[int, Start]] = {}
        self._timer: asyncio.Handle | None = None
        self._wakes_at_s = 0.0
        """When the timer, if it is set, will wake the machine."""
        self._is_closed = False
        self._traces: Traces | None = None

    def _link(self, replica: str) -> Link:
        return Link(
            replica, self.document, self._transport, self._clock, self._delivered, self._later_is_known_to
        )

    def now(self) -> Now:
        """The present moment, by the clock that it goes by."""
        return self._clock.now()

    def reconfigure(self, document: ClusterDocument) -> None:
        """The cluster has this configuration now, or a later one. What is under way goes on under it."""
        if self._is_closed or document.number <= self.document.number:
            return
        self.document = document
        self._transport.follow(document)
        for link in self._links.values():
            link.follow(document)
        for replica in document.votes.keys() - self._links.keys():
            link = self._links[replica] = self._link(replica)
            link.is_traced = self._traces is not None
        self._step(lambda: self._machine.reconfigure(document, self._clock.now()))

    def _later_is_known_to(self, replica: str) -> None:
        if self.following is not None and not self._is_closed:
            self.following.hear(replica)

    def follow(self, traces: Traces) -> None:
        """Have all operations traced from now on; `aclose` closes `traces`, too."""
        self._traces = traces
        for link in self._links.values():
            link.is_traced = True

    async def run(
        self,
        operation: Operation,
        deadline_s: float,
        left: Left | None = None,
        turn: Hashable = None,
        asked: Now | None = None,
    ) -> Outcome:
        """The outcome of `operation`, within `deadline_s` seconds since it was `asked` for, or from now on. Raises Closed when the driver is closed.

        A cancelled `run` cancels the operation, which may nevertheless take effect; of a dequeue, `left` then gets what will
        become of it. `turn`: who takes turns with others where commands wait for one decision.
        """
        begun_s, outcome = time.monotonic(), None
        traced = () if self._traces is None else (self._traces.begin(operation),)
        try:
            outcome = await self._run(operation, deadline_s, traced, left, turn, asked)
            return outcome
        finally:
            self.counts.operation(operation, outcome, time.monotonic() - begun_s)
            if self._traces is not None and traced:
                self._traces.end(traced[0], outcome)

    async def _run(
        self,
        operation: Operation,
        deadline_s: float,
        traced: Sequence[Any],
        left: Left | None,
        turn: Hashable,
        asked: Now | None,
    ) -> Outcome:
        if self._is_closed:
            raise _closed()
        start = self._starts.add(operation, deadline_s, traced, turn, asked)
        try:
            return await start.caller
        except asyncio.CancelledError:
            if left is not None:
                self._leave(start, left)
            raise
        finally:
            if self._traces is not None:
                self._traces.drop(start.number)
            if (
                left is None
                and start.caller.cancelled()
                and self._waiting.pop(start.number, None) is not None
            ):
                self._step(lambda: self._machine.cancel(start.number, self._clock.now()))

    def _leave(self, start: Start, left: Left) -> None:
        """The caller was cancelled. Whatever comes of what was begun is for another who waits; what was not begun is not. `asyncio.shield` would have
        each dequeue wait for one more turn of the loop."""
        if not start.caller.cancelled():
            left(start.caller)
            return
        if start.missed is None and start.number not in self._waiting:
            return
        start.caller = asyncio.get_running_loop().create_future()
        left(start.caller)
        if start.missed is not None:
            start.answer(start.missed)
        else:
            self._step(lambda: self._machine.leave(start.number, self._clock.now()))

    def _begin(self, starts: Sequence[Start], deadline_s: float, asked: Now) -> None:
        """Begin operations of the turn before. Their messages go in this one, or a single read would take a turn longer."""
        try:
            numbers, effects = self._machine.start_all(
                [start.operation for start in starts],
                self._clock.now(),
                deadline_s,
                [start.turn for start in starts],
                asked,
            )
            for number, start in zip(numbers, starts, strict=True):
                start.number = number
                self._waiting[number] = start
                if self._traces is not None:
                    self._traces.carry(number, start.traced)
            self._apply(effects, is_last=True)
            for link in self._links.values():
                link.flush()
        except BaseException as error:  # noqa: BLE001 - as in _step
            failed = self._broken(error)
            for start in starts:
                start.answer(failed)

    def hurry(self) -> None:
        """Have dequeues that wait for items end with what they find at their next look, which comes soon."""
        self._machine.pacing.is_hurried = True

    async def aclose(self) -> None:
        """Fail what still runs with Closed, flush lazy messages for at most CLOSE_TIMEOUT_S, give up connections."""
        if self._is_closed:
            return
        self._fail_all(Closed("the client was closed during the operation", definite=False))
        for send in self._machine.last_sends():
            self._links[send.replica].put(send)
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self.following is not None:
            await self.following.aclose()
        for forwarding in self._forwarding:
            forwarding.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)
        await asyncio.gather(*(link.aclose(CLOSE_TIMEOUT_S) for link in self._links.values()))
        await self._transport.aclose()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

    def _delivered(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> None:
        if self._traces is not None:
            self._traces.answered(tokens, answer)
        if not self._is_closed:
            self._step(lambda: self._machine.deliver(replica, tokens, answer, sent, now))

    async def _forward(self, send: SendForwarded, *, has_room: bool) -> None:
        """Carry one forwarded request, and its answer back, whatever ends it: somebody waits."""
        answer: ForwardedReply | Unanswered = Unanswered(
            "too many forwarded requests are under way", definite=True
        )
        try:
            if has_room and self._forwarder is not None:
                answer = Unanswered("the transport failed")
                answer = await self._carried(self._forwarder, send)
        finally:
            if self._traces is not None:
                self._traces.forward_answered(send.token, answer)
            if not self._is_closed:
                self._step(lambda: self._machine.take_forwarded_reply(send.token, answer, self._clock.now()))

    async def _carried(self, forwarder: Forwarder, send: SendForwarded) -> ForwardedReply | Unanswered:
        try:
            async with asyncio.timeout(send.timeout_s):
                answer = await forwarder.forward(send.replica, send.request, send.timeout_s)
            if isinstance(answer, Unanswered) and (answer.epoch or 0) > self.document.number:
                self._later_is_known_to(send.replica)
            return answer
        except TimeoutError:
            return Unanswered(f"{send.replica}: no answer within {send.timeout_s:.1f} s")
        except Exception:  # noqa: BLE001 - a mistake of the forwarder's
            _log.exception("a forwarded request could not be carried")
            return Unanswered("the transport failed")

    def _tick(self) -> None:
        self._timer = None
        self._step(lambda: self._machine.tick(self._clock.now()))

    def _step(self, call: Callable[[], Effects]) -> None:
        """One call of the machine, and what it wants done.

        What that raises is a mistake of ours, of any class, and may concern any operation under way; nobody must wait for
        ever for an outcome that will not come.
        """
        try:
            self._apply(call())
        except BaseException as error:  # noqa: BLE001 - see above
            self._broken(error)

    def _broken(self, error: BaseException) -> Failed:
        """Log the error at hand, go on with an empty machine, and tell all who wait what is true: their operation may or
        may not take effect."""
        _log.exception("the front end met an error of its own")
        self._machine.start_over()
        failed = Failed(
            "unknown", "the front end met an error of its own, which its log shows", definite=False
        )
        for start in self._waiting.values():
            start.answer(failed)
        self._waiting.clear()
        if isinstance(error, KeyboardInterrupt | SystemExit):
            # In the loop's next turn: raised here it would cut off others who begin in this one.
            asyncio.get_running_loop().call_soon(_raise, error)
        return failed

    def _apply(self, effects: Effects, *, is_last: bool = False) -> None:
        if self._traces is not None:
            effects = _traced(effects, self._traces, self._machine)
        for send in effects.sends:
            self._links[send.replica].put(send, is_last=is_last)
        for request in effects.forwards:
            has_room = len(self._forwarding) < FORWARDED_MAX
            forwarding = asyncio.get_running_loop().create_task(self._forward(request, has_room=has_room))
            self._forwarding.add(forwarding)
            forwarding.add_done_callback(self._forwarding.discard)
        for finish in effects.finished:
            start = self._waiting.pop(finish.number, None)
            if start is not None:
                start.answer(finish.outcome)
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
        for start in self._waiting.values():
            if not start.caller.done():
                start.caller.set_exception(error)
        self._waiting.clear()
        for start in self._starts.take():
            if not start.caller.done():
                start.caller.set_exception(_closed())


def _raise(error: BaseException) -> None:
    raise error


def _closed() -> Closed:
    """What callers hear whose operation was not begun."""
    return Closed("the client is closed: connect again", definite=True)


def _traced(effects: Effects, traces: Traces, machine: Machine) -> Effects:
    """The same, with places in traces for what is sent."""
    sends = tuple(
        send if send.lazy else replace(send, trace=traces.sent(send, machine.served_by(send.token)))
        for send in effects.sends
    )
    forwards = tuple(_traced_forward(each, traces, machine) for each in effects.forwards)
    return replace(effects, sends=sends, forwards=forwards)


def _traced_forward(send: SendForwarded, traces: Traces, machine: Machine) -> SendForwarded:
    """The same; a greeting, which nobody waits for, has no place."""
    if not send.request.commands:
        return send
    trace = traces.forward_sent(send, machine.served_by(send.token))
    return replace(send, request=replace(send.request, trace=trace))


__all__ = ["Clock", "Driver", "Machine", "SystemClock", "Transport", "new_site"]
