"""What the driver asks of the world: a transport and a clock. One real one of each, and twins in the tests.

Owns these two seams only. Must not know HTTP, nor what a message means.
"""

import time
from typing import Protocol

from quorate.api_specs.messages import Ask, Batch, BatchReply, Served
from quorate.client_sdk.effects import Now, Unanswered


class Transport(Protocol):
    """Carries batches to replicas. Never raises for what a network or a replica does: it answers Unanswered."""

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """The replica's reply to `batch`, or why there is none, within `timeout_s`. May be cancelled."""

    async def aclose(self) -> None:
        """Give up all connections; no exchange is under way."""


class Asker(Protocol):
    """Carries asks to the front ends embedded in replicas. Never raises for what a network or a replica does."""

    async def ask(self, replica: str, ask: Ask, timeout_s: float) -> Served | Unanswered:
        """The answer to `ask`, which is sent once, or why there is none, within `timeout_s`. May be cancelled."""


class Clock(Protocol):
    """Reads both clocks at once."""

    def now(self) -> Now:
        """The present moment."""


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Now:
        """The present moment."""
        return Now(time.monotonic(), time.time_ns() // 1000)
