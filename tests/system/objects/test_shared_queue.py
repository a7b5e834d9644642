"""Shows that consumers of one queue may lose the front end that decides for them all, and lose and double no item.

Six consumers, each a process of its own, share a queue that is being filled. They hand their dequeues over to the front end
in one replica. That replica is ended with SIGKILL while all of them use it, and later stopped with SIGSTOP; another one
takes its place, until it is back. Each item is delivered once. The only ones nobody got are those whose dequeue was under
way at the host when it died or stopped, whose consumers were told that its outcome is unknown.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quorate.cli.cluster.document import DEFAULT_NAME
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.protocol.coordinators import Coordinators
from tests.system.harness import ROOT, Clusters, drained, until
from tests.system.histories import Told

CONSUMERS: Final = 6
NAME: Final = "jobs"
PACE_S: Final = 0.03
AFTER: Final = 20
"""Items that are enqueued between one step of the test and the next."""
STOP_S: Final = 90.0


class Consumers:
    """The processes, and which replica's front end each was served by, in order."""

    def __init__(self, processes: list["subprocess.Popen[str]"], folder: Path) -> None:
        self._processes: Final = processes
        self._folder: Final = folder

    def latest(self) -> list[str]:
        """The replica that decides for each consumer now; "" for one that nobody decided for yet."""
        told = [self._out(number).read_text().split() for number in range(len(self._processes))]
        return [each[-1] if each else "" for each in told]

    def _out(self, number: int) -> Path:
        return self._folder / f"consumer-{number}.out"


@contextmanager
def consuming(clusters: Clusters, cluster: LocalCluster) -> Iterator[Consumers]:
    """Consumers that run; they end with their input, and well."""
    command = [sys.executable, "-m", "tests.system.consumer", str(cluster.root / DEFAULT_NAME)]
    processes = []
    for number in range(CONSUMERS):
        with (clusters.folder / f"consumer-{number}.out").open("w") as out:
            arguments = [*command, str(clusters.history), NAME]
            processes.append(
                subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, text=True)
            )
    try:
        yield Consumers(processes, clusters.folder)
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        codes = []
        for process in processes:
            try:
                codes.append(process.wait(STOP_S))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
    assert codes == [0] * CONSUMERS


class Producer:
    """Enqueues numbers, one after another, until it is over."""

    def __init__(self, client: AsyncClient) -> None:
        self.sent = 0
        self.is_over = False
        self._client: Final = client

    async def run(self) -> None:
        """A majority is always up, so each enqueue must be acknowledged."""
        queue = self._client.queue(NAME)
        while not self.is_over:
            await queue.enqueue(self.sent)
            self.sent += 1
            await asyncio.sleep(PACE_S)

    async def more(self) -> None:
        """Wait until a good number of items more were enqueued."""
        goal = self.sent + AFTER
        await until(lambda: self.sent >= goal, "items are enqueued")


async def _run(cluster: LocalCluster, clusters: Clusters, consumers: Consumers, host: str) -> int:
    async with (
        connect_async(cluster.document, history=clusters.history, deadline_s=20) as client,
        asyncio.TaskGroup() as group,
    ):
        producer = Producer(client)
        group.create_task(producer.run())
        await until(lambda: consumers.latest() == [host] * CONSUMERS, "all forward to the host")
        await producer.more()
        await asyncio.to_thread(cluster.kill, host)
        await until(lambda: host not in consumers.latest(), "all forward to another replica")
        await producer.more()
        await asyncio.to_thread(cluster.restart, host)
        await until(lambda: host in consumers.latest(), "the host is asked again when it is back")
        await producer.more()
        os.kill(cluster.pids[host], signal.SIGSTOP)
        await until(lambda: host not in consumers.latest(), "a host that is silent is left, too")
        await producer.more()
        os.kill(cluster.pids[host], signal.SIGCONT)
        await until(lambda: host in consumers.latest(), "the host is asked again when it goes on")
        await producer.more()
        producer.is_over = True
    return producer.sent


async def _rest(cluster: LocalCluster, clusters: Clusters) -> None:
    async with connect_async(cluster.document, history=clusters.history) as client:
        await drained(client.queue(NAME), max_items=1)


def test_consumers_of_one_queue_survive_the_front_end_that_decides_for_them(clusters: Clusters) -> None:
    cluster = clusters.start()
    host = Coordinators(cluster.document, None).ranked(f"queue/{NAME}")[0]
    assert host is not None
    with consuming(clusters, cluster) as consumers:
        sent = asyncio.run(_run(cluster, clusters, consumers, host))
    asyncio.run(_rest(cluster, clusters))
    told = Told(clusters.history)
    print(f"{sent} items; {dict(told.ends[f'queue/{NAME}'])}; decided by {consumers.latest()}")
    assert told.check() == 0, "the search for an order was given up"
    delivered = [
        line["result"] for line in _lines(clusters.history) if line["f"] == "dequeue" and line["type"] == "ok"
    ]
    items = [item for item in delivered if item is not None]
    assert len(items) == len(set(items)), "an item was delivered twice"
    unknown = told.unknown(f"queue/{NAME}")
    assert sent - len(items) <= unknown <= 3 * CONSUMERS, "only what was under way is not known"


def _lines(history: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    begun = {line["id"]: line["f"] for line in lines if line["type"] == "invoke"}
    return [{"result": None, **line, "f": begun[line["id"]]} for line in lines]
