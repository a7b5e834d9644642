"""Replicas whose disks fill up, in a mount namespace of their own: `python -m tests.system.full_disk FOLDER`.

Run below `unshare --user --map-root-user --mount`, so that anybody may mount, and nothing stays mounted. Ends with 0 when
all held; `tests/system/failures/test_full_disk.py` says what is shown.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.cli.failure import Failure
from quorate.client_sdk import AsyncClient, LimitReached, OutcomeUnknown, Unavailable, connect_async
from quorate.client_sdk.api.history import History
from tests.system.harness import Clusters, until
from tests.system.histories import Told
from tests.system.in_vain import failure_in
from tests.system.load import DEADLINE_S, MAJORITIES, Load, goes_on, last_look

CLIENTS: Final = 2
DISK_BYTES: Final = 4 * 1024 * 1024
TIMEOUT_S: Final = 60.0
IN_VAIN_S: Final = 1.0
FULL: Final = "database or disk is full"
"""What SQLite says."""
TOLD: Final = f"{FULL}|bytes free"
"""What a client is told: that, or since the janitor has looked, what the bound of `--disk-free-min` says."""


def mount(cluster: LocalCluster, replica: str) -> None:
    """Give a replica that does not run yet a small disk of its own, with what its folder held."""
    folder = cluster.data_folder(replica)
    kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    options = f"size={DISK_BYTES},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "quorate-test", str(folder)], check=True)
    for name, content in kept.items():
        (folder / name).write_bytes(content)


def fill(cluster: LocalCluster, replica: str) -> None:
    """Leave no room on the replica's disk."""
    with _filler(cluster, replica).open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def make_room(cluster: LocalCluster, replica: str) -> None:
    """Undo `fill`."""
    _filler(cluster, replica).unlink()


def _filler(cluster: LocalCluster, replica: str) -> Path:
    return cluster.data_folder(replica) / "filler"


class Readiness:
    """What a replica's readiness endpoint says, polled in the background."""

    def __init__(self, cluster: LocalCluster, replica: str) -> None:
        self._url: Final = cluster.urls[replica] + "/v1/health/ready"
        self.is_ready = True
        self.problem: dict[str, Any] = {}

    async def poll(self) -> None:
        """Ask for ever."""
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            while True:
                response = await client.get(self._url)
                self.is_ready = response.is_success
                if not self.is_ready:
                    self.problem = response.json()
                await asyncio.sleep(0.02)


async def _one_is_full(cluster: LocalCluster, load: Load) -> None:
    """It says so, and the others go on."""
    readiness = Readiness(cluster, "r3")
    polling = asyncio.create_task(readiness.poll())
    try:
        await goes_on(load, MAJORITIES, "before the disk is full")
        fill(cluster, "r3")
        await until(lambda: not readiness.is_ready, "r3 says that it is not ready")
        assert FULL in readiness.problem["detail"], readiness.problem
        assert "make room" in readiness.problem["advice"], readiness.problem
        await goes_on(load, MAJORITIES, "with the disk of r3 full")
        assert not readiness.is_ready, "nothing was written there meanwhile"
        load.is_over = True
    finally:
        polling.cancel()


async def _back_by_itself(cluster: LocalCluster) -> None:
    """r3 finds out that there is room, though no client writes and the other replicas are stopped."""
    others = [cluster.pids[replica] for replica in ("r1", "r2")]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    make_room(cluster, "r3")
    await until(lambda: is_ready(cluster.urls["r3"]), "r3 is ready again, by itself")
    for pid in others:
        os.kill(pid, signal.SIGCONT)


async def _under_load(cluster: LocalCluster, history: Path) -> None:
    load = Load()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            connecting = connect_async(cluster.document, deadline_s=DEADLINE_S, history=History(history))
            client = await stack.enter_async_context(connecting)
            for worker in load.workers(client):
                group.create_task(worker)
        await _one_is_full(cluster, load)
    assert not is_ready(cluster.urls["r3"])
    await _back_by_itself(cluster)


async def _one_is_full_and_one_dead(cluster: LocalCluster, client: AsyncClient) -> None:
    """What is settled is still read, at r2 and r3. What is written has an unknown outcome: r2 has it."""
    settled = client.dictionary("settled")
    await settled.put("key", "value")
    fill(cluster, "r3")
    await asyncio.to_thread(cluster.kill, "r1")
    assert await settled.get("key") == "value"
    leader, jobs, tries = client.register("leader"), client.queue("jobs"), itertools.count()
    await failure_in(
        lambda: leader.write(f"perhaps-{next(tries)}", deadline_s=IN_VAIN_S), OutcomeUnknown, words=TOLD
    )
    refused = await failure_in(lambda: jobs.dequeue(deadline_s=IN_VAIN_S), Unavailable, words=TOLD)
    assert refused.definite, "no replica but r2 could promise, so nothing was proposed"
    assert await settled.get("key") == "value"


def _restart_when_full(cluster: LocalCluster) -> None:
    """Killed and started on a full disk, r3 says what to do, and does not call itself damaged."""
    cluster.kill("r3")
    with pytest.raises(Failure, match="ended while it started"):
        cluster.restart("r3")
    words = cluster.last_words("r3")
    assert FULL in words, words
    assert "Make room on the disk" in words, words
    make_room(cluster, "r3")
    cluster.start()
    cluster.ready()


async def _all_are_full(cluster: LocalCluster, client: AsyncClient) -> None:
    """Nothing is acknowledged, and nothing that was is lost."""
    for replica in cluster.urls:
        fill(cluster, replica)
    jobs, tries = client.queue("jobs"), itertools.count()
    for _ in range(3):
        await failure_in(
            lambda: jobs.enqueue(f"perhaps-{next(tries)}", deadline_s=IN_VAIN_S),
            *(OutcomeUnknown, LimitReached),
            words=TOLD,
        )
    for replica in cluster.urls:
        make_room(cluster, replica)
    await asyncio.to_thread(cluster.ready)


async def _quiet(cluster: LocalCluster, history: Path) -> None:
    async with connect_async(cluster.document, deadline_s=DEADLINE_S, history=History(history)) as client:
        await _one_is_full_and_one_dead(cluster, client)
        await asyncio.to_thread(_restart_when_full, cluster)
        await _all_are_full(cluster, client)
        await asyncio.to_thread(cluster.kill, "r2")  # What is there must be at r1 and r3.
        await last_look(client)
        assert await client.dictionary("settled").get("key") == "value"


def main(folder: Path) -> None:
    """All of it, with clusters below `folder`."""
    clusters = Clusters(folder)
    cluster = clusters.make()
    for replica in cluster.urls:
        mount(cluster, replica)
        cluster.serve_options[replica] = [
            "--disk-free-min",
            "1",
        ]  # Else a disk as small as these is full at once.
    try:
        cluster.start()
        cluster.ready()
        asyncio.run(_under_load(cluster, clusters.history))
        asyncio.run(_quiet(cluster, clusters.history))
    except BaseException:
        print(clusters.shown())
        raise
    finally:
        clusters.stop()
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check() == 0, "a search was given up"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
