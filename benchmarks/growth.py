"""How cost grows: with waiting items, objects, payloads, replicas, a replica that was away, one that is slow, and history.

    python benchmarks/growth.py [--only waiting,objects,payloads,replicas,behind,slow,size] [--scale 1.0]

One JSON line per figure: the median and the 99th percentile of one operation in flight, in milliseconds, and processor time
per operation of the client and of the busiest replica; or bytes and seconds, as the figure says. The three figures of a
table are taken in turns, so that what else the machine does meets all alike. Each table has a cluster of its own; items have
100 bytes unless said. `--scale` shrinks the large numbers, to see that it works.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from works import Operation, cpu_s, item, machine, own_cpu_s, rounded

from quorate.cli.local_cluster import LocalCluster, free_ports
from quorate.client_sdk import AsyncClient, AsyncQueue, connect_async
from quorate.measurement.fault_proxy import Proxy

OPERATIONS: Final = 150
"""Of each figure, in each turn."""
TURNS: Final = 4
FILL: Final = 1000
SLOW_S: Final = 5.0


class Row:
    """One figure: what is done, and what it took so far."""

    def __init__(self, operation: Operation) -> None:
        self.operation: Final = operation
        self.taken_s: list[float] = []
        self.client_s = self.replica_s = 0.0
        self.count = 0

    async def turn(self, cluster: LocalCluster, count: int = OPERATIONS) -> None:
        """Do it some times more, one after another."""
        client_s, replicas_s = own_cpu_s(), _replicas_s(cluster)
        for _ in range(count):
            begun_s = time.perf_counter()
            await self.operation(self.count)
            self.taken_s.append(time.perf_counter() - begun_s)
            self.count += 1
        self.client_s += own_cpu_s() - client_s
        self.replica_s += max(after - replicas_s[id] for id, after in _replicas_s(cluster).items())

    def figures(self) -> dict[str, float]:
        """What it took."""
        taken_s = sorted(self.taken_s)
        return {
            "p50_ms": rounded(taken_s[len(taken_s) // 2] * 1e3),
            "p99_ms": rounded(taken_s[len(taken_s) * 99 // 100] * 1e3),
            "client_cpu_us": rounded(self.client_s / self.count * 1e6),
            "replica_cpu_us": rounded(self.replica_s / self.count * 1e6),
        }


def _replicas_s(cluster: LocalCluster) -> dict[str, float]:
    return {id: cpu_s(pid) for id, pid in cluster.pids.items()}


def tell(table: str, what: str, figures: Mapping[str, float]) -> None:
    """One line."""
    print(json.dumps({"table": table, "at": what, **figures, **machine()}), flush=True)


async def in_turns(table: str, rows: Mapping[str, tuple[LocalCluster, Row]]) -> None:
    """All rows of a table in turns; a line for each."""
    for _ in range(TURNS):
        for cluster, row in rows.values():
            await row.turn(cluster)
    for what, (_, row) in rows.items():
        tell(table, what, row.figures())


class Stage:
    """Clusters and clients that end with it."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self._stack: Final = stack
        self._folder: Final = folder

    async def cluster(self, name: str, replicas: int = 3) -> tuple[LocalCluster, AsyncClient]:
        """A running cluster and a client of it."""
        made = LocalCluster.create(self._folder / name, replicas=replicas)
        cluster = self._stack.enter_context(made)
        await asyncio.to_thread(cluster.start)
        await asyncio.to_thread(cluster.ready)
        return cluster, await self._stack.enter_async_context(connect_async(cluster.document))


async def fill(queue: AsyncQueue, count: int) -> None:
    """Enqueue so many items, some batches at once."""
    numbers = iter(range(0, count, FILL))

    async def worker() -> None:
        for first in numbers:
            await queue.enqueue_many([item(number) for number in range(first, min(first + FILL, count))])

    await asyncio.gather(*(worker() for _ in range(4)))


async def waiting(stage: Stage, scale: float) -> None:
    """Dequeues from queues of different lengths."""
    cluster, client = await stage.cluster("waiting")
    rows = {}
    for length in (100, 10_000, round(1_000_000 * scale)):
        queue = client.queue(f"of-{length}")
        await fill(queue, length)
        rows[f"{length} items wait"] = (cluster, Row(_one_out_one_in(queue)))
    await in_turns("dequeue and enqueue", rows)


def _one_out_one_in(queue: AsyncQueue) -> Operation:
    """A dequeue and an enqueue, so that the length stays."""

    async def operation(number: int) -> None:
        assert await queue.dequeue() is not None
        await queue.enqueue(item(number))

    return operation


async def objects(stage: Stage, scale: float) -> None:
    """Writes to one of so many registers, at random."""
    cluster, client = await stage.cluster("objects")
    rows = {}
    for count in (1, 100, round(10_000 * scale)):
        registers = [client.register(f"of-{count}-{number}") for number in range(count)]
        for first in range(0, count, 200):
            await asyncio.gather(*(each.write(item(0)) for each in registers[first : first + 200]))
        dice = random.Random(count)

        async def write(number: int, registers: Any = registers, dice: Any = dice) -> None:
            await dice.choice(registers).write(item(number))

        rows[f"{count} registers"] = (cluster, Row(write))
    await in_turns("write", rows)


async def payloads(stage: Stage, scale: float) -> None:
    """Items of different sizes."""
    del scale
    cluster, client = await stage.cluster("payloads")
    rows = {}
    for size in (100, 10_000, 1_000_000):
        queue, value = client.queue(f"of-{size}"), "x" * (size - 2)

        async def both(_: int, queue: AsyncQueue = queue, value: str = value) -> None:
            await queue.enqueue(value)
            assert await queue.dequeue() == value

        rows[f"{size} bytes"] = (cluster, Row(both))
    await in_turns("enqueue and dequeue", rows)


async def replicas(stage: Stage, scale: float) -> None:
    """Groups of different sizes, majority quorums."""
    del scale
    rows = {}
    for count in (3, 5, 7):
        cluster, client = await stage.cluster(f"n{count}", count)
        queue = client.queue("q")
        await fill(queue, 100)
        rows[f"{count} replicas"] = (cluster, Row(_one_out_one_in(queue)))
    await in_turns("dequeue and enqueue", rows)


async def behind(stage: Stage, scale: float) -> None:
    """A replica comes back after a day's work of the others."""
    cluster, client = await stage.cluster("behind")
    queue = client.queue("q")
    await fill(queue, 100)
    before = Row(_one_out_one_in(queue))
    await before.turn(cluster, OPERATIONS * TURNS)
    tell("dequeue and enqueue", "all replicas up", before.figures())
    await asyncio.to_thread(cluster.kill, "r3")
    for _ in range(round(100 * scale)):
        await fill(queue, FILL)
        left = FILL
        while left:
            left -= len(await queue.dequeue(max_items=left))
    away = Row(_one_out_one_in(queue))
    await away.turn(cluster, OPERATIONS * TURNS)
    tell("dequeue and enqueue", "one replica away", away.figures())
    await asyncio.to_thread(cluster.restart, "r3")
    after = Row(_one_out_one_in(queue))
    await after.turn(cluster, OPERATIONS * TURNS)
    tell("dequeue and enqueue", f"it is back, {round(100_000 * scale)} items later", after.figures())


async def slow(stage: Stage, scale: float) -> None:
    """One replica answers SLOW_S late."""
    del scale
    cluster, client = await stage.cluster("slow")
    async with Proxy(cluster.urls["r3"], free_ports(1)[0], seed=0) as proxy:
        proxy.to_client.delay_s = SLOW_S
        async with connect_async(cluster.document, endpoints={"r3": proxy.url}) as hampered:
            rows = {}
            for what, each in (("all prompt", client), (f"one answers after {SLOW_S:.0f} s", hampered)):
                queue = each.queue(what.replace(" ", "-"))
                await fill(queue, 100)
                rows[what] = (cluster, Row(_one_out_one_in(queue)))
            await in_turns("dequeue and enqueue", rows)


async def size(stage: Stage, scale: float) -> None:
    """Bytes per live item, and how long a replica takes to start after many operations."""
    cluster, client = await stage.cluster("size")
    queue = client.queue("q")
    count = round(1_000_000 * scale)
    empty_disk, empty_memory = _disk_bytes(cluster), _memory_bytes(cluster)
    await fill(queue, count)
    tell(
        "one live item of 100 bytes",
        f"of {count}",
        {
            "disk_bytes": rounded((_disk_bytes(cluster) - empty_disk) / count),
            "memory_bytes": rounded((_memory_bytes(cluster) - empty_memory) / count),
        },
    )
    await asyncio.to_thread(cluster.kill, "r1")
    begun_s = time.perf_counter()
    await asyncio.to_thread(cluster.restart, "r1")
    tell("start until ready", f"{count} items wait", {"s": rounded(time.perf_counter() - begun_s)})
    left = count
    while left:
        left -= len(await queue.dequeue(max_items=min(left, FILL)))
    await asyncio.to_thread(cluster.kill, "r1")
    begun_s = time.perf_counter()
    await asyncio.to_thread(cluster.restart, "r1")
    tell(
        "start until ready",
        f"after {2 * count} operations, none waits",
        {"s": rounded(time.perf_counter() - begun_s), "disk_bytes": _disk_bytes(cluster)},
    )


def _disk_bytes(cluster: LocalCluster) -> int:
    """Of replica r1's folder."""
    return sum(file.stat().st_size for file in cluster.data_folder("r1").rglob("*") if file.is_file())


def _memory_bytes(cluster: LocalCluster) -> int:
    """Resident memory of replica r1."""
    status = Path(f"/proc/{cluster.pids['r1']}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


TABLES: Final[dict[str, Callable[[Stage, float], Awaitable[None]]]] = {
    table.__name__: table for table in (waiting, objects, payloads, replicas, behind, slow, size)
}


async def _run(names: list[str], scale: float) -> None:
    for name in names:
        with tempfile.TemporaryDirectory(prefix="quorate-growth-") as folder:
            async with AsyncExitStack() as stack:
                await TABLES[name](Stage(stack, Path(folder)), scale)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    asyncio.run(_run(names, options.scale))


if __name__ == "__main__":
    main()
