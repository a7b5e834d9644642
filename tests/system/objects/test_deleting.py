"""Deleted keys are forgotten as quickly as they are deleted: what waits to be forgotten is bounded by the time that it must wait.

Before, 50 were forgotten a second, however many came.
"""

import asyncio
import time

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect_async
from tests.system.harness import QUICK, Clusters, delete_all, until_now
from tests.system.objects.test_tombstones import waiting

RATE = 150
"""Deletions a second."""
SECONDS = 32


async def delete_steadily(cluster: LocalCluster) -> list[int]:
    """Delete so many keys a second; how many wait at r1, a second at a time."""
    seen: list[int] = []
    client = await connect_async(cluster.document, deadline_s=1.9)
    try:
        users, began_s = client.dictionary("users"), time.monotonic()
        for second in range(SECONDS):
            await delete_all(users, [f"key-{second}-{number}" for number in range(RATE)])
            seen += await asyncio.to_thread(waiting, cluster, "r1")
            await asyncio.sleep(max(0.0, began_s + second + 1 - time.monotonic()))
    finally:
        await client.aclose()
    return seen


@pytest.mark.slow
def test_deletions_do_not_outgrow_their_collection(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    seen = asyncio.run(delete_steadily(cluster))
    assert max(seen) > 0, "some were seen to wait"
    last = seen[-SECONDS // 4 :]
    # Each is decided, and forgotten a window later, which is 4 seconds here; those of another replica's turn wait for one more.
    assert max(last) < 4 * 4 * RATE, seen
    until_now(lambda: waiting(cluster, *cluster.urls) == [0, 0, 0], "all are forgotten", deadline_s=60)
