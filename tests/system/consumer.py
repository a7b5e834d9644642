"""A consumer in a process of its own: `python -m tests.system.consumer DOCUMENT HISTORY QUEUE`, until its input ends.

Prints the name of a replica when its front end has first decided something for this consumer, and again when that changes.
Operations that fail are in the history, too.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final

from quorate.api_specs.cluster import parse
from quorate.api_specs.messages import ForwardedReply, ForwardedRequest, Granted
from quorate.client_sdk import QuorateError
from quorate.client_sdk.api.history import History
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.http_transport import HttpTransport
from tests.system.harness import front_end, http

DEADLINE_S: Final = 6.0
WAIT_S: Final = 0.2


class Telling:
    """Carries forwarded requests, and tells who granted something."""

    def __init__(self, inner: HttpTransport) -> None:
        self._inner: Final = inner
        self._last = ""

    async def forward(
        self, replica: str, request: ForwardedRequest, timeout_s: float
    ) -> ForwardedReply | Unanswered:
        """See Forwarder."""
        answer = await self._inner.forward(replica, request, timeout_s)
        is_granted = isinstance(answer, ForwardedReply) and any(
            isinstance(each, Granted) for each in answer.results
        )
        if is_granted and self._last != replica:
            self._last = replica
            print(replica, flush=True)
        return answer


async def _consume(document_path: str, history: str, name: str) -> None:
    document = parse(await asyncio.to_thread(Path(document_path).read_text, encoding="utf-8"), document_path)
    transport = http(document)
    ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    async with front_end(
        document, transport, forwarder=Telling(transport), history=History(history), deadline_s=DEADLINE_S
    ) as client:
        queue = client.queue(name)
        while not ended.done():
            try:
                await queue.dequeue(wait_s=WAIT_S)
            except QuorateError:
                await asyncio.sleep(0.01)  # The history says which, and whether it certainly did nothing.


if __name__ == "__main__":
    asyncio.run(_consume(*sys.argv[1:]))
