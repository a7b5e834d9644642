"""A front end that ends itself with SIGKILL between its two phases: `python -m tests.system.dying_client DOCUMENT WHEN WHAT NAME`.

WHEN, by what it has done by then:
* `collected`: an initial quorum has answered its collect; no accept has left;
* `accepted`: its accept is stored by r1, and was never sent to any other replica;
* `appended`: its append is stored by r1, and was never sent to any other replica.
WHAT is the operation: `enqueue`, `dequeue`, `cas` or `put-if-absent`, on the object NAME.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

from quorate.api_specs.cluster import parse
from quorate.api_specs.messages import Accept, Append, Batch, BatchReply
from quorate.client_sdk import AsyncClient
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.http_transport import HttpTransport
from tests.support.exchanging import Exchanging
from tests.system.harness import front_end, http

DEADLINE_S: Final = 20.0
HOLDER: Final = "r1"
KEY: Final = "of-the-dead"


class Deadly(Exchanging):
    """A transport that kills its own process in the chosen moment."""

    def __init__(self, inner: HttpTransport, when: str) -> None:
        self._inner: Final = inner
        self._when: Final = when

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        last = Append if self._when == "appended" else Accept
        if not any(isinstance(request, last) for request in batch.requests):
            return await self._inner.exchange(replica, batch, timeout_s)
        if self._when != "collected":
            if replica != HOLDER:
                await asyncio.sleep(timeout_s)
                return Unanswered("held back")
            answer = await self._inner.exchange(replica, batch, timeout_s)
            assert isinstance(answer, BatchReply), answer
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead")

    async def aclose(self) -> None:
        """See Transport."""
        await self._inner.aclose()


async def _operate(client: AsyncClient, what: str, name: str) -> None:
    match what:
        case "enqueue":
            await client.queue(name).enqueue("of the dead")
        case "dequeue":
            await client.queue(name).dequeue(idempotency_key=KEY)
        case "cas":
            await client.register(name).compare_and_set("before", "of the dead", idempotency_key=KEY)
        case "put-if-absent":
            await client.dictionary(name).put_if_absent("key", "of the dead", idempotency_key=KEY)


async def _main(path: str, when: str, what: str, name: str) -> None:
    document = parse(await asyncio.to_thread(Path(path).read_text, encoding="utf-8"), path)
    async with front_end(document, Deadly(http(document), when), deadline_s=DEADLINE_S) as client:
        await _operate(client, what, name)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
