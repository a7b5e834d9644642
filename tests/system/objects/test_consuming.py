"""Shows that loops that take ahead lose no item, whatever leaves them, and that no item is acknowledged twice.

Five consumers, each with a front end of its own, loop over one queue. One breaks off in the middle, one is cancelled: what they
held goes back at once, under leases that would outlive this test by far. Then a replica is killed under load, and started
again. In the end each item was acknowledged under one lease, the last one that was given of it.
"""

import asyncio
import threading
from collections import defaultdict
from contextlib import AsyncExitStack, aclosing, closing
from typing import Final

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import (
    AsyncClient,
    AsyncQueue,
    Client,
    LeaseCounts,
    LeaseLost,
    connect,
    connect_async,
)
from quorate.client_sdk.api.leases import Delivery
from quorate.client_sdk.protocol.core.values import Done, Operation, Outcome, Settle
from tests.system.harness import WAIT_S, Clusters, until

pytestmark = pytest.mark.slow

NAME: Final = "jobs"
ITEMS: Final = 3000
AT_ONCE: Final = 1000
SOME: Final = 100
LEASE_S: Final = 10.0
"""Of those that go on: as long may wait what an acquire took whose answer died with a replica."""
LONG_S: Final = 3600.0
DEADLINE_S: Final = 20.0


class Work:
    """What all consumers were delivered, and what they heard of their acknowledgements."""

    def __init__(self) -> None:
        self.delivered: Final[dict[int, dict[str, int]]] = defaultdict(dict)
        """By item the tokens, and the number of each delivery."""
        self.certain: Final[set[str]] = set()
        """Tokens whose acknowledgement took effect."""
        self.perhaps: Final[set[str]] = set()
        """Tokens whose acknowledgement, once, had an unknown outcome."""
        self._lock: Final = threading.Lock()

    def watch(self, client: AsyncClient | Client) -> None:
        """Hear of this client's acknowledgements."""
        client.on_finished(self._finished)

    def do(self, lease: Delivery) -> None:
        """Work on an item."""
        with self._lock:
            self.delivered[lease.value][lease.token] = lease.deliveries
        lease.ack()

    def _finished(self, operation: Operation, _at: float, _took_s: float, outcome: Outcome) -> None:
        if isinstance(operation, Settle) and operation.how == "ack":
            with self._lock:
                if isinstance(outcome, Done):
                    self.certain.update(set(operation.tokens) - set(outcome.result.lost))
                else:
                    self.perhaps.update(operation.tokens)

    @property
    def done(self) -> int:
        """How many items are acknowledged, as far as is known."""
        with self._lock:
            ended = self.certain | self.perhaps
            return sum(not ended.isdisjoint(tokens) for tokens in self.delivered.values())

    def check(self) -> None:
        """Each item is acknowledged, and under its last lease."""
        assert sorted(self.delivered) == list(range(ITEMS))
        for value, tokens in self.delivered.items():
            certain = self.certain & tokens.keys()
            assert len(certain) <= 1, value
            assert certain or self.perhaps & tokens.keys(), value
            assert all(tokens[token] == max(tokens.values()) for token in certain), value


async def _goes_on(client: AsyncClient, work: Work) -> None:
    """Consume for good. Who is told that a lease was lost, for the machine was busy, consumes again."""
    work.watch(client)
    while True:
        try:
            async with aclosing(client.queue(NAME).consume(lease_s=LEASE_S)) as leases:
                async for lease in leases:
                    work.do(lease)
                    await asyncio.sleep(0)
        except LeaseLost:
            pass


def _goes_on_blocking(client: Client, work: Work, is_over: threading.Event) -> None:
    work.watch(client)
    while not is_over.is_set():
        try:
            with closing(client.queue(NAME).consume(lease_s=LEASE_S, wait_s=0.2)) as leases:
                for lease in leases:
                    work.do(lease)
        except LeaseLost:
            pass


async def _breaks_off(client: AsyncClient, work: Work) -> None:
    work.watch(client)
    count = 0
    async for lease in client.queue(NAME).consume(lease_s=LONG_S):
        count += 1
        if count > SOME:
            break
        work.do(lease)


async def _is_cancelled(client: AsyncClient, work: Work) -> None:
    """Works on an item for so long that it is cancelled."""
    work.watch(client)
    count, working = 0, asyncio.Event()

    async def loop() -> None:
        nonlocal count
        async for lease in client.queue(NAME).consume(lease_s=LONG_S):
            count += 1
            if count > SOME:
                working.set()
                await asyncio.Event().wait()
            work.do(lease)

    looping = asyncio.create_task(loop())
    await working.wait()
    looping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looping


async def _all_is_back(queue: AsyncQueue) -> None:
    """Wait until nothing is held: no lease ends by itself meanwhile."""
    async with asyncio.timeout(WAIT_S):
        while (await queue.leases()).held:
            await asyncio.sleep(0.01)


async def _run(cluster: LocalCluster, work: Work) -> None:
    is_over = threading.Event()
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect_async(cluster.document)) for _ in range(4)]
        blocking = stack.enter_context(connect(cluster.document))
        queue = clients[0].queue(NAME)
        await _enqueue(queue, 0, ITEMS // 2)
        await asyncio.gather(_breaks_off(clients[0], work), _is_cancelled(clients[1], work))
        await _all_is_back(queue)
        assert work.done == 2 * SOME
        async with asyncio.TaskGroup() as group:
            steady = [group.create_task(_goes_on(client, work)) for client in clients[2:]]
            threaded = asyncio.create_task(asyncio.to_thread(_goes_on_blocking, blocking, work, is_over))
            await until(lambda: work.done >= 4 * SOME, "the others go on")
            await asyncio.to_thread(cluster.kill, "r1")
            down = work.done
            await until(lambda: work.done >= min(down + SOME, ITEMS // 2), "they go on while r1 is down")
            await asyncio.to_thread(cluster.restart, "r1")
            await _enqueue(queue, ITEMS // 2, ITEMS)
            await until(lambda: work.done == ITEMS, "all items are acknowledged")
            is_over.set()
            await threaded
            for task in steady:
                task.cancel()


async def _enqueue(queue: AsyncQueue, first: int, end: int) -> None:
    for start in range(first, end, AT_ONCE):
        await queue.enqueue_many(range(start, min(start + AT_ONCE, end)), deadline_s=DEADLINE_S)


def test_loops_that_are_left_and_a_replica_that_is_killed_lose_and_double_nothing(clusters: Clusters) -> None:
    cluster, work = clusters.start(), Work()
    asyncio.run(_run(cluster, work))
    work.check()
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        assert client.queue(NAME).size() == 0
        assert client.queue(NAME).leases() == LeaseCounts(held=0, waiting=0, dead=0)
