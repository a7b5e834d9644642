"""What the driver asks of the world: a transport and a clock. One real one of each, and twins in the tests.

Owns these two seams only. Must not know HTTP, nor what a message means.
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from ...api_specs.messages import Batch, BatchReply, ForwardedReply, ForwardedRequest
from ...timestamps.clock import Now
from ..protocol.core.values import Answer, Operation, Outcome, Send, SendForwarded, Unanswered


class Transport(Protocol):
    """Carries batches to replicas. Never raises for what a network or a replica does: it answers Unanswered."""

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """The replica's reply to `batch`, or why there is none, within `timeout_s`. May be cancelled."""

    async def aclose(self) -> None:
        """Give up all connections; no exchange is under way."""


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
