"""Shows what a replica does whose disk refuses a write for good: it votes no more until it was restarted, and loses nothing.

Three replicas work under load when the kernel begins to refuse every write of r3 to a file (RLIMIT_FSIZE at nothing: its
writes end with EFBIG). SQLite calls that an I/O error, not a full disk, so r3 holds what is on its disk in doubt: it
answers 503, says to check the disk and restart, and stays so when writes would succeed again, while the others go on.
Killed and started again it votes. In the end r2 is killed, everything is read and drained from r1 and r3, and the
history is checked.

What a *full* disk does is shown by `test_full_disk.py`, where small disks may be mounted; this needs no rights.
"""

import asyncio
import resource
from contextlib import AsyncExitStack
from typing import Final

import httpx

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.client_sdk import connect_async
from quorate.client_sdk.api.history import History
from tests.system.harness import WAIT_S, Clusters, until
from tests.system.histories import Told
from tests.system.load import DEADLINE_S, MAJORITIES, Load, goes_on, last_look

CLIENTS: Final = 2


def refuse_writes(cluster: LocalCluster, replica: str, *, bytes_max: int) -> None:
    """From now on the replica's process cannot write beyond so many bytes of any file."""
    limits = (bytes_max, resource.RLIM_INFINITY)
    resource.prlimit(cluster.pids[replica], resource.RLIMIT_FSIZE, limits)


async def _break_and_mend(cluster: LocalCluster, load: Load) -> None:
    url = cluster.urls["r3"]
    await goes_on(load, MAJORITIES, "before a write fails")
    refuse_writes(cluster, "r3", bytes_max=0)
    await until(lambda: not is_ready(url), "r3 says that it is not ready")
    async with httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as client:
        problem = (await client.get(url + "/v1/health/ready")).json()
    assert problem["type"] == "/problems/storage-failed", problem
    assert "disk I/O error" in problem["detail"], problem
    assert "check the disk, then restart the replica" in problem["detail"], problem
    await goes_on(load, MAJORITIES, "while r3 cannot write")
    refuse_writes(cluster, "r3", bytes_max=resource.RLIM_INFINITY)
    await goes_on(load, MAJORITIES, "when r3 could write again")
    assert not is_ready(url), "what is on its disk is in doubt until a start has looked at all of it"
    await asyncio.to_thread(cluster.kill, "r3")
    await asyncio.to_thread(cluster.restart, "r3")
    await goes_on(load, MAJORITIES, "when r3 is back")
    load.is_over = True


async def _run(clusters: Clusters, cluster: LocalCluster) -> None:
    load = Load()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            connecting = connect_async(
                cluster.document, deadline_s=DEADLINE_S, history=History(clusters.history)
            )
            client = await stack.enter_async_context(connecting)
            for worker in load.workers(client):
                group.create_task(worker)
        group.create_task(_break_and_mend(cluster, load))
    await asyncio.to_thread(cluster.kill, "r2")
    async with connect_async(cluster.document, deadline_s=DEADLINE_S, history=clusters.history) as last:
        await last_look(last)


def test_a_replica_that_cannot_write_votes_no_more_until_its_restart(clusters: Clusters) -> None:
    cluster = clusters.start()
    asyncio.run(_run(clusters, cluster))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check() == 0, "a search was given up"
