"""What a simulated front end has under way: operations that begin, and batches on their way and back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...api_specs.messages import Batch, BatchReply, Refused
from ...client_sdk.protocol.core.values import Operation, Outcome, Send
from ...timestamps.clock import Now

if TYPE_CHECKING:
    from .nodes import FrontNode


class Exchange:
    """One batch on its way and back: answered once, with the reply or with its absence.

    The network may double it. Of two copies one alone is refused, or none: DESIGN 2, "Messages".
    """

    __slots__ = (
        "_is_handled",
        "batch",
        "front",
        "is_done",
        "is_doubled",
        "is_refused",
        "replica",
        "sent",
        "sent_us",
        "tokens",
    )

    def __init__(self, front: "FrontNode", replica: str, sends: list[Send], sent: Now, sent_us: int) -> None:
        self.front = front
        self.replica = replica
        self.tokens = [send.token for send in sends for _ in send.requests]
        self.batch = Batch(front.cluster, tuple([each for send in sends for each in send.requests]))
        self.sent = sent
        self.sent_us = sent_us
        self.is_done = False
        self.is_doubled = False
        self.is_refused = False
        self._is_handled = False

    def is_contradicted(self, reply: BatchReply) -> bool:
        """Whether this copy is refused and another was not: then nobody hears of it."""
        self.is_refused = any(isinstance(each, Refused) for each in reply.replies)
        was_handled, self._is_handled = self._is_handled, True
        return self.is_refused and was_handled


class Begun:
    """An operation of one front end, when it was asked for, and who is told its outcome. `number` is the machine's, once it has begun."""

    __slots__ = ("asked", "deadline_s", "number", "on_finish", "operation")

    def __init__(
        self, operation: Operation, deadline_s: float, on_finish: Callable[[Outcome], None], asked: Now
    ) -> None:
        self.operation = operation
        self.asked = asked
        self.deadline_s = deadline_s
        self.on_finish = on_finish
        self.number = 0
