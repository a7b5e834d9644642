"""What a client left that vanished right after it was done reaches the replica that missed it, though nobody reads or changes the object again."""

import asyncio
from typing import Any

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Accept, Append, Batch, BatchReply, Collect, Collected, Request, Window
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.timestamps.ballot import NO_BALLOT, make_ballot
from quorate.timestamps.timestamp import make
from tests.system.harness import PATIENT, WAIT_S, Clusters

MISSED = "r3"
ALL = Window(limit=100)


class Vanishing:
    """A client that says to single replicas what it likes."""

    def __init__(self, document: ClusterDocument) -> None:
        self._document = document
        self._transport = HttpTransport(document.urls, body_bytes_max=document.limits.body_bytes_max)
        self.now_us = 0
        """The clock of the replica that answered last."""

    async def ask(self, replica: str, request: Request) -> Any:
        """Its reply."""
        answer = await self._transport.exchange(replica, Batch(self._document.hash, (request,)), WAIT_S)
        assert isinstance(answer, BatchReply), answer
        self.now_us = answer.now_us
        return answer.replies[0]

    async def aclose(self) -> None:
        """Give up all connections."""
        await self._transport.aclose()


@pytest.mark.slow
def test_what_a_client_left_that_vanished_reaches_who_missed_it(clusters: Clusters) -> None:
    asyncio.run(_vanish(clusters.start(settings=PATIENT).document))


async def _vanish(document: ClusterDocument) -> None:
    client = Vanishing(document)
    try:
        await client.ask(MISSED, Collect("queue/left", window=ALL))
        entry_t, value_t = make(client.now_us, 0, "gone"), make(client.now_us, 1, "gone")
        entry = Entry(entry_t, entry_t, Value('"left"'))
        for replica in set(document.urls) - {MISSED}:
            await client.ask(replica, Append("queue/left", (entry,), "first"))
            await client.ask(
                replica, Accept("register/left", make_ballot(value_t, 1), Summary(value_t, Value("7")))
            )
        await client.ask(MISSED, Collect("queue/left", fence=entry_t))
        assert await _shown(client) == ([], None), "neither got there"

        async with asyncio.timeout(WAIT_S):
            while await _shown(client) != ([(entry, True)], "7"):
                await asyncio.sleep(0.1)
    finally:
        await client.aclose()


async def _shown(client: Vanishing) -> tuple[list[tuple[Entry, bool]], str | None]:
    """What the replica holds of the queue, and which value it knows to be decided."""
    queue = await client.ask(MISSED, Collect("queue/left", window=ALL))
    register = await client.ask(MISSED, Collect("register/left", window=ALL))
    assert isinstance(queue, Collected)
    assert isinstance(register, Collected)
    status = register.status
    is_decided = status.committed == status.accepted != NO_BALLOT
    value = register.summary.value if is_decided and register.summary is not None else None
    return [(row.entry, row.complete) for row in queue.rows], value
