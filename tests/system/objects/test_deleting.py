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

RATE_MAX = 150
"""Deletions a second, and no more than a part of what this machine can do, for others may have it now."""
PART = 1 / 6
SECONDS = 32


async def delete_steadily(cluster: LocalCluster) -> tuple[list[int], int]:
    """Delete so many keys a second; how many wait at r1, a second at a time, and the rate."""
    seen: list[int] = []
    client = await connect_async(cluster.document, deadline_s=1.9)
    try:
        users, began_s = client.dictionary("users"), time.monotonic()
        await delete_all(users, [f"first-{number}" for number in range(2 * RATE_MAX)])
        rate = min(RATE_MAX, int(PART * 2 * RATE_MAX / (time.monotonic() - began_s)))
        began_s = time.monotonic()
        for second in range(SECONDS):
            await delete_all(users, [f"key-{second}-{number}" for number in range(rate)])
            seen += await asyncio.to_thread(waiting, cluster, "r1")
            await asyncio.sleep(max(0.0, began_s + second + 1 - time.monotonic()))
    finally:
        await client.aclose()
    return seen, rate


@pytest.mark.slow
def test_deletions_do_not_outgrow_their_collection(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    seen, rate = asyncio.run(delete_steadily(cluster))
    assert max(seen) > 0, "some were seen to wait"
    # Each waits for a window, which is 5.9 seconds, once it was decided; in the second half, those of the first seconds have gone.
    assert max(seen[SECONDS // 2 :]) < 16 * rate, seen
    until_now(lambda: waiting(cluster, *cluster.urls) == [0, 0, 0], "all are forgotten", deadline_s=60)
