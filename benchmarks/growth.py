"""How cost grows: with waiting items, objects, payloads, replicas, a replica that was away, one that is slow, and history.

    python benchmarks/growth.py [--only waiting,objects,payloads,replicas,behind,slow,size] [--scale 1.0] [--turns 12]
                                [--groups 3 5 7] [--replicas 3]

One JSON line per figure: the median and the 99th percentile of one operation in flight, in milliseconds, and processor time
per operation of the client and of one replica (the mean of all); or bytes and seconds, as the figure says. The figures of a
table are taken in turns, so that what else the machine does meets all alike; a last line has the greatest ratio of one to
the first. Each table has a cluster of its own; items have 100 bytes unless said. `--scale` shrinks the large numbers, to see
that it works; `--groups` are those that `replicas` compares; other tables have
`--replicas` (`behind` and `slow` at least 3). What each table took is told on standard error.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from circumstances import cpu_s, machine, own_cpu_s, rounded
from works import Operation, item

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, AsyncQueue, connect_async
from quorate.measurement.faults.proxy import CHUNK_BYTES, Proxy

OPERATIONS: Final = 50
"""Of each figure, in each turn; fewer than the shortest queue has items."""
TURNS: Final = 12
GROUPS: Final = (3, 5, 7)
LARGE_TURNS: Final = 4
LARGE_WAIT: Final = 10
FILL: Final = 1000
SLOW_S: Final = 5.0


class Row:
    """One figure: what is done and how often in a turn, what it took so far, and what is put right after each turn."""

    def __init__(
        self, cluster: LocalCluster, operation: Operation, *, restore: Operation | None = None
    ) -> None:
        self._cluster: Final = cluster
        self._operation: Final = operation
        self._restore: Final = restore
        self._taken_s: list[float] = []
        self._client_s = self._replica_s = 0.0

    async def turn(self) -> None:
        """Do it some times more, one after another."""
        client_s, replica_s = own_cpu_s(), self._replicas_s()
        for _ in range(OPERATIONS):
            begun_s = time.perf_counter()
            await self._operation(len(self._taken_s))
            self._taken_s.append(time.perf_counter() - begun_s)
        self._client_s += own_cpu_s() - client_s
        self._replica_s += self._replicas_s() - replica_s
        if self._restore is not None:
            await self._restore(len(self._taken_s))

    def figures(self) -> dict[str, float]:
        """What it took."""
        taken_s, count = sorted(self._taken_s), len(self._taken_s)
        return {
            "p50_ms": rounded(taken_s[count // 2] * 1e3),
            "p99_ms": rounded(taken_s[count * 99 // 100] * 1e3),
            "client_cpu_us": rounded(self._client_s / count * 1e6),
            "replica_cpu_us": rounded(self._replica_s / count * 1e6),
        }

    def _replicas_s(self) -> float:
        return fmean(cpu_s(pid) for pid in self._cluster.pids.values())


def tell(table: str, what: str, figures: Mapping[str, float]) -> None:
    """One line."""
    print(json.dumps({"table": table, "at": what, **figures, **machine()}), flush=True)


async def in_turns(table: str, rows: Mapping[str, Row], turns: int) -> None:
    """All rows of a table in turns; a line for each, and how far they are from flat."""
    for _ in range(turns):
        for row in rows.values():
            await row.turn()
    figures = {what: row.figures() for what, row in rows.items()}
    for what, found in figures.items():
        tell(table, what, found)
    first, *others = figures.values()
    if others:
        names = [name for name in first if name != "p99_ms"]
        worst = {name: rounded(max(each[name] / first[name] for each in others)) for name in names}
        tell(table, "greatest ratio to the first", worst)


class Stage:
    """Clusters and clients that end with it. `turns`: of each table's rows; `groups`: by their number of replicas; `replicas`:
    of every other cluster."""

    def __init__(
        self, stack: AsyncExitStack, folder: Path, turns: int, groups: Sequence[int], replicas: int
    ) -> None:
        self._stack: Final = stack
        self._folder: Final = folder
        self.turns: Final = turns
        self.groups: Final = groups
        self._replicas: Final = replicas

    async def cluster(self, name: str, replicas: int | None = None) -> tuple[LocalCluster, AsyncClient]:
        """A running cluster and a client of it."""
        made = LocalCluster.create(self._folder / name, replicas=replicas or self._replicas)
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
    """Dequeues from queues of different lengths; what a turn took is put back after it."""
    cluster, client = await stage.cluster("waiting")
    rows = {}
    for length in (100, 10_000, round(1_000_000 * scale)):
        queue = client.queue(f"of-{length}")
        await fill(queue, length)
        rows[f"{length} items wait"] = Row(cluster, _one_out(queue), restore=_refill(queue))
    await in_turns("dequeue", rows, stage.turns)


def _one_out(queue: AsyncQueue) -> Operation:
    async def operation(_: int) -> None:
        assert await queue.dequeue() is not None

    return operation


def _refill(queue: AsyncQueue) -> Operation:
    async def operation(_: int) -> None:
        await queue.enqueue_many([item(number) for number in range(OPERATIONS)])

    return operation


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

        rows[f"{count} registers"] = Row(cluster, write)
    await in_turns("write", rows, stage.turns)


async def payloads(stage: Stage, scale: float) -> None:
    """Items of different sizes, each on a cluster of its own: large ones are forgotten and folded into the file later, and
    would be charged to others."""
    del scale
    rows = {}
    for size in (100, 10_000, 1_000_000):
        cluster, client = await stage.cluster(f"payloads-{size}")
        queue, value = client.queue(f"of-{size}"), "x" * (size - 2)

        async def both(_: int, queue: AsyncQueue = queue, value: str = value) -> None:
            assert await queue.dequeue() == value
            await queue.enqueue(value)

        for _ in range(LARGE_WAIT):
            await queue.enqueue(value)
        rows[f"{size} bytes"] = Row(cluster, both)
    await in_turns("dequeue and enqueue of one size", rows, min(LARGE_TURNS, stage.turns))


async def replicas(stage: Stage, scale: float) -> None:
    """Groups of different sizes, majority quorums."""
    del scale
    rows = {}
    for count in stage.groups:
        cluster, client = await stage.cluster(f"n{count}", count)
        queue = client.queue("q")
        await fill(queue, 100)
        rows[f"{count} replicas"] = Row(cluster, _one_out_one_in(queue))
    await in_turns("dequeue and enqueue", rows, stage.turns)


async def behind(stage: Stage, scale: float) -> None:
    """A replica is away for a day's work of the others, and comes back, beside a cluster where none was away. The day: items
    that came and went, and as many that wait."""
    count = round(100_000 * scale)
    clusters, queues = {}, {}
    for name in ("none away", "one away"):
        clusters[name], client = await stage.cluster(name.replace(" ", "-"))
        queues[name] = client.queue("q")
        await fill(queues[name], 100)
        if name == "one away":
            await asyncio.to_thread(clusters[name].kill, "r3")
        await fill(queues[name], 2 * count)
        await drain(queues[name], count)
    level, away = (Row(clusters[name], _one_out_one_in(queues[name])) for name in clusters)
    table = "dequeue and enqueue, one replica behind"
    await in_turns(table, {"none away": level, "one away": away}, stage.turns)
    await asyncio.to_thread(clusters["one away"].restart, "r3")
    level, back = (Row(clusters[name], _one_out_one_in(queues[name])) for name in clusters)
    await in_turns(table, {"none away": level, f"it is back, {2 * count} items later": back}, stage.turns)
    await asyncio.to_thread(clusters["one away"].kill, "r1")
    level, needed = (Row(clusters[name], _one_out_one_in(queues[name])) for name in clusters)
    await in_turns(
        table, {"none away": level, "another is killed: the one behind is needed": needed}, stage.turns
    )


async def drain(queue: AsyncQueue, count: int) -> None:
    """Dequeue so many items."""
    while count:
        count -= len(await queue.dequeue(max_items=min(count, FILL)))


class _Late(Proxy):
    """Hands on what the server says SLOW_S later."""

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        if is_request:
            await super().carry(reader, writer, is_request=True)
            return
        loop = asyncio.get_running_loop()
        while chunk := await reader.read(CHUNK_BYTES):
            loop.call_later(SLOW_S, writer.write, chunk)
        await asyncio.sleep(SLOW_S)


async def slow(stage: Stage, scale: float) -> None:
    """One replica answers SLOW_S late."""
    del scale
    cluster, client = await stage.cluster("slow")
    async with (
        _Late(cluster.urls["r3"]) as proxy,
        connect_async(cluster.document, endpoints={"r3": proxy.url}) as hampered,
    ):
        rows = {}
        for what, each in (("all prompt", client), (f"one answers after {SLOW_S:.0f} s", hampered)):
            queue = each.queue(what.replace(" ", "-"))
            await fill(queue, 100)
            rows[what] = Row(cluster, _one_out_one_in(queue))
        await in_turns("dequeue and enqueue, one replica slow", rows, stage.turns)


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
    tell("start until ready", f"{count} items wait", await _start_again(cluster))
    await drain(queue, count)
    tell("start until ready", f"after {2 * count} operations, none waits", await _start_again(cluster))


async def _start_again(cluster: LocalCluster) -> dict[str, float]:
    """Kill a replica; how long its start takes, and how much it keeps on disk."""
    await asyncio.to_thread(cluster.kill, "r1")
    begun_s = time.perf_counter()
    await asyncio.to_thread(cluster.restart, "r1")
    return {"s": rounded(time.perf_counter() - begun_s), "disk_bytes": _disk_bytes(cluster)}


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


async def _run(names: list[str], scale: float, turns: int, groups: Sequence[int], replicas: int) -> None:
    for name in names:
        begun_s = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="quorate-growth-") as folder:
            async with AsyncExitStack() as stack:
                await TABLES[name](Stage(stack, Path(folder), turns, groups, replicas), scale)
        print(f"{name}: {time.perf_counter() - begun_s:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    parser.add_argument("--replicas", type=int, default=3)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    asyncio.run(_run(names, options.scale, options.turns, options.groups, options.replicas))


if __name__ == "__main__":
    main()
