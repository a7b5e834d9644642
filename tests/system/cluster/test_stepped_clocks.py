"""Shows that what is remembered is remembered by elapsed time, on real replicas and clients whose clocks are stepped.

A compare-and-set and a dequeue under keys are done; all replicas' clocks step ahead by ten minutes, and the clients' with them; others
decide; two seconds later the keys are repeated, and get their first answers.
"""

import asyncio
import time

import pytest

from quorate.client_sdk.api.history import History
from tests.system.cluster.test_wrong_clocks import MEASURED, client_with, started
from tests.system.harness import Clusters

STEP_S = 600.0
"""More than keys are remembered for: two minutes, the longest deadline, and twice the accepted offset of clocks."""
REMEMBERING = f"{MEASURED}\n[limits]\nretry_window_s = 120.0\n"
"""However slowly replicas start on a busy machine."""
PAUSE_S = 2.0


@pytest.mark.parametrize("step_s", [STEP_S, -STEP_S], ids=["ahead", "back"])
def test_keys_of_decisions_survive_a_step_of_all_clocks(clusters: Clusters, step_s: float) -> None:
    asyncio.run(_repeat_after_a_step(clusters, step_s))


async def _repeat_after_a_step(clusters: Clusters, step_s: float) -> None:
    cluster = started(clusters, (0.0, 0.0, 0.0), REMEMBERING)
    async with client_with(cluster, 0.0, History(clusters.history)) as client:
        await client.queue("jobs").enqueue_many(["first", "second", "third"])
        assert await client.queue("jobs").dequeue(idempotency_key="k") == "first"
        assert await client.register("leader").compare_and_set(None, "me", idempotency_key="k")
    done_s = time.monotonic()
    for replica in cluster.urls:
        await asyncio.to_thread(cluster.kill, replica)
        cluster.serve_options[replica] = ["--clock-offset", str(step_s)]
        await asyncio.to_thread(cluster.restart, replica)
    await asyncio.to_thread(cluster.ready)
    async with client_with(cluster, step_s, History(clusters.history)) as other:
        assert await other.queue("jobs").dequeue() == "second"
        assert await other.register("leader").compare_and_set("me", "other")
        assert time.monotonic() - done_s < cluster.document.limits.retry_window_s
        await asyncio.sleep(PAUSE_S)
        assert await other.queue("jobs").dequeue(idempotency_key="k") == "first"
        assert await other.register("leader").compare_and_set(None, "me", idempotency_key="k")
        assert await other.register("leader").read() == "other"
        assert await other.queue("jobs").dequeue() == "third"
