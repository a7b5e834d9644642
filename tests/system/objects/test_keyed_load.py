"""Shows that enqueues under keys bear load: many at once, and beside consumers that acquire, at real replicas.

Every one is acknowledged, and each item is there once, though each is also repeated under its key by another front end.
What they cost is counted in `test_costs`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from tests.system.harness import WAIT_S, drained

DEADLINE_S: Final = 24.0
"""Of an operation; by far enough, and below the retry window."""
AT_ONCE: Final = 1200
CONSUMERS: Final = 4
PRODUCERS: Final = 4
EACH: Final = 40
"""Items of a producer."""


@asynccontextmanager
async def clients(cluster: LocalCluster, number: int) -> AsyncIterator[list[AsyncClient]]:
    """So many front ends."""
    async with AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(await connect_async(cluster.document, deadline_s=DEADLINE_S))
            for _ in range(number)
        ]


async def test_many_keyed_enqueues_at_once_are_all_acknowledged_once(shared_cluster: LocalCluster) -> None:
    """None is refused, and none has an unknown outcome: either would raise."""
    async with clients(shared_cluster, 2) as (first, second), asyncio.timeout(WAIT_S):

        async def enqueue(client: AsyncClient, number: int) -> None:
            await client.queue("at-once").enqueue(number, idempotency_key=f"key-{number}")

        await asyncio.gather(*(enqueue(first, number) for number in range(AT_ONCE)))
        await asyncio.gather(*(enqueue(second, number) for number in range(AT_ONCE)))
        items = await drained(second.queue("at-once"), max_items=100)
    assert sorted(items) == list(range(AT_ONCE))


async def test_acquiring_consumers_beside_keyed_producers_lose_nothing(shared_cluster: LocalCluster) -> None:
    """With all replicas up no operation has an unknown outcome, on either side: it would raise."""
    accepted: Counter[int] = Counter()
    produced = asyncio.Event()

    async def produce(client: AsyncClient, first: int) -> None:
        for number in range(first, first + EACH):
            await client.queue("jobs").enqueue(number, idempotency_key=f"job-{number}")

    async def consume(client: AsyncClient) -> None:
        queue = client.queue("jobs")
        while True:
            is_last = produced.is_set()
            leases = await queue.acquire(lease_s=WAIT_S, wait_s=0.1)
            for lease in leases:
                await queue.ack(lease)
                accepted[lease.value] += 1
            if is_last and not leases:
                return

    async with (
        clients(shared_cluster, CONSUMERS + PRODUCERS) as made,
        asyncio.timeout(WAIT_S),
        asyncio.TaskGroup() as group,
    ):
        for client in made[:CONSUMERS]:
            group.create_task(consume(client))
        producing = [produce(client, place * EACH) for place, client in enumerate(made[CONSUMERS:])]
        await asyncio.gather(*producing)
        produced.set()
    assert accepted == Counter(range(PRODUCERS * EACH))
