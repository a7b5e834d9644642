"""What the driver asks of the world: a transport and a clock. One real one of each, and twins in the tests.

Owns these two seams only. Must not know HTTP, nor what a message means.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Batch, BatchReply, ForwardedReply, ForwardedRequest
from ...timestamps.clock import Now
from ..protocol.core.values import Answer, Operation, Outcome, Send, SendForwarded, Unanswered

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

Done = Callable[[_Answer], None]
"""Hears what came of a request, once, and never before the call that sends it returns. Raises nothing."""

GiveUp = Callable[[], object]
"""Ends a request before it is answered: nobody hears of it any more. After its answer it does nothing."""


class Transport(Protocol):
    """Carries batches to replicas. Never raises for what a network or a replica does: it answers Unanswered."""

    def post(
        self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
    ) -> GiveUp:
        """Send `batch`; `done` hears the replica's reply, or why there is none, within `timeout_s`. To be told takes no task, as to wait
        would: this is the hottest path of all."""

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """As `post`, for who waits. May be cancelled."""
        return await answer_to(partial(self.post, replica, batch, timeout_s))

    def follow(self, document: ClusterDocument) -> None:
        """The cluster has this configuration from now on: batches go to its members, where it says that they are. Nothing to do for a transport that reaches
        all anyway."""
        return

    async def aclose(self) -> None:
        """Give up all connections; what was under way is answered, or was given up."""


async def answer_to(post: Callable[[Done[_Answer]], GiveUp]) -> _Answer:
    """What `post` is told. May be cancelled, which gives the request up."""
    come: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()

    def tell(answer: _Answer) -> None:
        if not come.done():
            come.set_result(answer)

    give_up = post(tell)
    try:
        return await come
    except asyncio.CancelledError:
        give_up()
        raise


def post_task(request: Coroutine[Any, Any, _Answer], done: Done[_Answer | Unanswered]) -> GiveUp:
    """Have `done` told what a coroutine returns; what it raises is a mistake of ours, of which the log tells."""

    is_given_up = False

    def tell(task: asyncio.Task[_Answer]) -> None:
        answer: _Answer | Unanswered = Unanswered("the transport failed")
        if is_given_up:
            return
        if not task.cancelled():  # As a program may have done that ends all its tasks.
            if (error := task.exception()) is None:
                answer = task.result()
            else:
                _log.error("a request could not be carried", exc_info=error)
        done(answer)

    def give_up() -> None:
        nonlocal is_given_up
        is_given_up = True
        task.cancel()

    task = asyncio.get_running_loop().create_task(request)
    task.add_done_callback(tell)
    return give_up


class Forwarder(Protocol):
    """Carries forwarded requests to the front ends embedded in replicas. Never raises for what a network or a replica does."""

    async def forward(
        self, replica: str, request: ForwardedRequest, timeout_s: float
    ) -> ForwardedReply | Unanswered:
        """The answer to `request`, which is sent once, or why there is none, within `timeout_s`. May be cancelled."""


class Traces(Protocol):
    """Follows operations to replicas and back; `quorate.client_sdk.tracing.spans` does. What it calls a span is its own business."""

    def begin(self, operation: Operation) -> Any:
        """The span of an operation that begins, below what its caller is doing."""

    def end(self, span: Any, outcome: Outcome | None) -> None:
        """The operation has ended; None when its caller did not wait for that."""

    def carry(self, number: int, spans: Sequence[Any]) -> None:
        """The machine runs these operations under that number, until `drop`."""

    def drop(self, number: int) -> None:
        """It has ended."""

    def sent(self, send: Send, numbers: Sequence[int]) -> str:
        """A request is sent for the operations under these numbers; the place of its span, empty for none."""

    def forward_sent(self, send: SendForwarded, numbers: Sequence[int]) -> str:
        """As `sent`, for a forwarded request."""

    def answered(self, tokens: Sequence[int], answer: Answer) -> None:
        """What came of one batch; `tokens` are those of its requests in order (0 for lazy ones)."""

    def forward_answered(self, token: int, answer: ForwardedReply | Unanswered) -> None:
        """What came of one forwarded request."""

    def close(self) -> None:
        """End what is under way, and send what was not sent yet. Blocks for a moment."""


class Clock(Protocol):
    """Reads both clocks at once."""

    def now(self) -> Now:
        """The present moment."""


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Now:
        """The present moment."""
        return Now(time.monotonic(), time.time_ns() // 1000)
