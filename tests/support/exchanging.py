"""A transport of a test, which answers a batch in a coroutine."""

from quorate.api_specs.messages import Batch, BatchReply
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.ports import Done, GiveUp, Transport, post_task


class Exchanging(Transport):
    """Has `exchange`, which is to be overridden, run in a task of its own for each batch."""

    def post(
        self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
    ) -> GiveUp:
        return post_task(self.exchange(replica, batch, timeout_s), done)
