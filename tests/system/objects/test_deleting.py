"""Deleted keys are forgotten while others are deleted: who deletes on where there is room for a third of them comes to an end.

That a round offers all that is due, however much, is held by tests/unit/replica/upkeep/test_janitor.py; how quickly that goes is a
matter of the machine, and no test's.
"""

import asyncio

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect_async
from tests.system.harness import QUICK, Clusters, delete_all, until_now
from tests.system.objects.test_tombstones import told, waiting

KEYS = 1200
AT_ONCE = 100
KNOWN_MAX = KEYS // 3
"""Most are deleted only once others have been forgotten."""
DEADLINE_S = 300


async def delete_steadily(cluster: LocalCluster) -> int:
    """Delete all keys, some at a time, while r1 knows few; the most that it was seen to know."""
    most = 0
    client = await connect_async(cluster.document, deadline_s=1.9)
    try:
        async with asyncio.timeout(DEADLINE_S):
            for first in range(0, KEYS, AT_ONCE):
                keys = [f"key-{first + number}" for number in range(AT_ONCE)]
                await delete_all(client.dictionary("users"), keys)
                while (now := await asyncio.to_thread(known, cluster)) > KNOWN_MAX:
                    most = max(most, now)
                    await asyncio.sleep(0.3)
    finally:
        await client.aclose()
    return most


def known(cluster: LocalCluster) -> int:
    """How many keys r1 knows, deleted or not."""
    objects = told(cluster)["r1"].objects
    assert objects is not None
    return objects


@pytest.mark.slow
def test_deletions_are_collected_while_others_come(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    assert asyncio.run(delete_steadily(cluster)) > KNOWN_MAX, "it had to wait for what was forgotten"
    until_now(lambda: waiting(cluster, *cluster.urls) == [0, 0, 0], "all are forgotten", deadline_s=60)
