"""Shows that SIGKILL of all replicas at once, in the middle of enqueues and dequeues, takes nothing back.

Four front ends enqueue, alone and in batches, while another dequeues, each dequeue under an idempotency key. In the
middle of it every replica is killed. After the restart, before any client speaks, each replica is asked for its fence,
promise, accepted and committed ballot, horizon and rows: none is behind what any reply of it ever said. Then dequeues
without an answer are repeated with their keys, and the queue is drained: every acknowledged item has come out exactly
once, every other at most once.
"""

import asyncio
import itertools
import os
import signal
from collections import Counter
from typing import Final

from quorate.adts.log import NOTHING
from quorate.api_specs.messages import Collected, Status
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import scan_all
from quorate.client_sdk import AsyncClient, QuorateError, connect_async
from quorate.client_sdk.api.history import History
from tests.system.harness import Clusters, Watched, drained, front_end, http, until
from tests.system.histories import Told

NAME: Final = "queue/jobs"
ENQUEUERS: Final = 4
ACKNOWLEDGED_MIN: Final = 300
TAKEN_MIN: Final = 60
DEADLINE_S: Final = 2.0


class Seen:
    """What the clients know when the replicas die."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.tried: set[int] = set()
        self.taken: Counter[int] = Counter()
        self.unanswered: list[str] = []
        self.is_over = False


async def _enqueue(client: AsyncClient, seen: Seen, numbers: "itertools.count[int]") -> None:
    queue = client.queue("jobs")
    for size in itertools.cycle((1, 7)):
        items = [next(numbers) for _ in range(size)]
        seen.tried.update(items)
        try:
            await queue.enqueue_many(items)
            seen.acknowledged.update(items)
        except QuorateError:
            if seen.is_over:
                return


async def _dequeue(client: AsyncClient, seen: Seen) -> None:
    queue = client.queue("jobs")
    for number in itertools.count():
        key = f"take-{number}"
        try:
            seen.taken.update(await queue.dequeue(max_items=3, idempotency_key=key))
        except QuorateError:
            seen.unanswered.append(key)
            if seen.is_over:
                return


async def _until_all_are_killed(clusters: Clusters, cluster: LocalCluster, seen: Seen) -> list[Watched]:
    watched = [Watched(http(cluster.document)) for _ in range(ENQUEUERS + 1)]
    numbers = itertools.count()
    async with asyncio.TaskGroup() as group:
        for place, transport in enumerate(watched):
            group.create_task(_work(clusters, cluster, transport, seen, None if place == 0 else numbers))
        await until(
            lambda: len(seen.acknowledged) >= ACKNOWLEDGED_MIN and seen.taken.total() >= TAKEN_MIN,
            "enough was enqueued and dequeued",
        )
        for pid in list(cluster.pids.values()):
            os.kill(pid, signal.SIGKILL)
        for replica in cluster.urls:
            await asyncio.to_thread(cluster.kill, replica)
        seen.is_over = True
    return watched


async def _work(
    clusters: Clusters,
    cluster: LocalCluster,
    transport: Watched,
    seen: Seen,
    numbers: "itertools.count[int] | None",
) -> None:
    history = History(clusters.history)
    async with front_end(cluster.document, transport, history=history, deadline_s=DEADLINE_S) as client:
        await (_dequeue(client, seen) if numbers is None else _enqueue(client, seen, numbers))


def _assert_nothing_went_back(cluster: LocalCluster, watched: list[Watched]) -> None:
    """Hold what each replica says now against all that it said before."""
    for replica, objects in scan_all(cluster.document, NAME, None).items():
        assert not isinstance(objects, str), objects
        now = objects[NAME]
        for transport in watched:
            for before in transport.promised[replica, NAME]:
                _assert_not_behind(replica, now.status, before)
            _assert_still_stored(replica, now, transport)


def _assert_not_behind(replica: str, now: Status, before: Status) -> None:
    for word in Status.__struct_fields__:
        assert getattr(now, word) >= getattr(before, word), f"{replica} has forgotten its {word}"


def _assert_still_stored(replica: str, now: Collected, transport: Watched) -> None:
    assert now.summary is not None
    assert now.summary != NOTHING
    here = {row.entry.t for row in now.rows}
    for timestamp in transport.stored.get((replica, NAME), set()):
        assert timestamp in here or timestamp <= now.status.horizon, f"{replica} has lost {timestamp}"


async def _repeat_and_drain(clusters: Clusters, cluster: LocalCluster, seen: Seen) -> None:
    async with connect_async(cluster.document, history=clusters.history) as client:
        queue = client.queue("jobs")
        for key in seen.unanswered:
            seen.taken.update(await queue.dequeue(max_items=3, idempotency_key=key))
        seen.taken.update(await drained(queue, max_items=100))


def test_killing_all_replicas_at_once_takes_nothing_back(clusters: Clusters) -> None:
    cluster = clusters.start()
    seen = Seen()
    watched = asyncio.run(_until_all_are_killed(clusters, cluster, seen))
    cluster.start()
    cluster.ready()
    _assert_nothing_went_back(cluster, watched)
    asyncio.run(_repeat_and_drain(clusters, cluster, seen))
    told = Told(clusters.history)
    print(f"{len(seen.acknowledged)} acknowledged of {len(seen.tried)}, {dict(told.ends[NAME])}")
    assert not seen.acknowledged - seen.taken.keys(), "acknowledged, and lost"
    assert not [item for item, times in seen.taken.items() if times > 1], "delivered twice"
    assert not seen.taken.keys() - seen.tried, "invented"
    assert told.unknown(NAME) > 0, "the kill came between operations: nothing was shown"
