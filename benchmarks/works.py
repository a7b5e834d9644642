"""How quick the service is: the same works on a fresh cluster of three replicas on this machine, run after run.

    python benchmarks/works.py [--works A,B,C,D,REST] [--runs N] [--replicas 3] [--scale 1.0] [--peers FOLDER]

One JSON line per figure: every run's value, median, least and most, processor time per operation of the client and of
each replica, the machine's load, the commit. Items have 100 bytes; an operation is acknowledged when it is on disk at a
quorum. A: one operation in flight, milliseconds. B: 64 in flight from one process, operations a second. C: the best
batches, items a second. D: the longest gap, in seconds, between acknowledgements at 200 operations a second after one
replica is killed with SIGKILL, the worst of all three, and beside it the longest before. REST: enqueues a second over the ADT API, 64 plain connections.

`--scale` shrinks the numbers of operations that make a rate, to see that it works.

`--peers` (or QUORATE_PEERS) names a folder with scripts that run the same works on other systems: then each run of ours is
followed by one of theirs, and a line has their figures and the ratio of ours to them too, median, least and most.
"""

import argparse
import asyncio
import itertools
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from circumstances import cpu_s, machine, own_cpu_s, rounded
from peers import Theirs, add_options, beside, chosen
from plain_http import PlainConnection

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.errors import QuorateError

ITEM_BYTES: Final = 100
IN_FLIGHT: Final = 64
ONE_OPERATIONS: Final = 400
MANY_OPERATIONS: Final = 12_000
REST_OPERATIONS: Final = 3000
BATCH_ITEMS: Final = 500
BATCHES: Final = 120
BATCHES_IN_FLIGHT: Final = 4
PACE: Final = 200
"""Operations a second while a replica is killed."""
PACED_S: Final = 4.0
KILL_AT_S: Final = 1.5
WARM_UP: Final = 50
WORKS: Final = ("A", "B", "C", "D", "REST")

Operation = Callable[[int], Awaitable[Any]]


def item(number: int) -> str:
    """A value whose JSON text has ITEM_BYTES bytes."""
    return f"{number:08d}".ljust(ITEM_BYTES - 2, "x")


class Bench:
    """One run on one cluster, and the figures that come of it."""

    def __init__(self, cluster: LocalCluster, client: AsyncClient, scale: float) -> None:
        self.scale: Final = scale
        self.cluster: Final = cluster
        self.client: Final = client
        self.figures: dict[tuple[str, str, str], tuple[float, dict[str, float]]] = {}

    @contextmanager
    def processor_time(self, operations: int) -> Iterator[dict[str, float]]:
        """Microseconds of processor time per operation, by process, filled in at the end."""
        found: dict[str, float] = {}
        before = {"client": own_cpu_s()} | {id: cpu_s(pid) for id, pid in self.cluster.pids.items()}
        yield found
        after = {"client": own_cpu_s()} | {id: cpu_s(pid) for id, pid in self.cluster.pids.items()}
        for who, spent_s in after.items():
            found[who] = round((spent_s - before[who]) / operations * 1e6, 1)

    async def one_at_a_time(
        self, work: str, name: str, operation: Operation, count: int = ONE_OPERATIONS
    ) -> None:
        """The median and the 99th percentile of the time that one operation takes, in milliseconds."""
        taken_s: list[float] = []
        with self.processor_time(count) as spent:
            for number in range(count):
                begun_s = time.perf_counter()
                await operation(number)
                taken_s.append(time.perf_counter() - begun_s)
        taken_s.sort()
        self.figures[work, f"{name} p50", "ms"] = taken_s[count // 2] * 1e3, spent
        self.figures[work, f"{name} p99", "ms"] = taken_s[count * 99 // 100] * 1e3, spent

    async def rate(
        self,
        work: str,
        name: str,
        operation: Operation,
        count: int,
        *,
        in_flight: int = IN_FLIGHT,
        each: int = 1,
    ) -> None:
        """How many a second, with so many under way; an operation counts for `each`."""
        count = round(count * self.scale)
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                await operation(number)

        begun_s = time.perf_counter()
        with self.processor_time(count * each) as spent:
            await asyncio.gather(*(worker() for _ in range(in_flight)))
        self.figures[work, name, "items/s"] = count * each / (time.perf_counter() - begun_s), spent


async def work_a(bench: Bench) -> None:
    """One operation in flight."""
    queue, register = bench.client.queue("one"), bench.client.register("one")
    for number in range(WARM_UP):
        await queue.enqueue(item(number))
        await queue.dequeue()
    await bench.one_at_a_time("A", "enqueue", lambda number: queue.enqueue(item(number)))
    await bench.one_at_a_time("A", "dequeue", lambda _: queue.dequeue())
    await register.write(item(-1))
    await bench.one_at_a_time("A", "write", lambda number: register.write(item(number)))
    await bench.one_at_a_time("A", "read", lambda _: register.read())
    await register.write(item(0))
    await bench.one_at_a_time(
        "A", "compare-and-set", lambda number: register.compare_and_set(item(number), item(number + 1))
    )


async def work_b(bench: Bench) -> None:
    """64 operations in flight."""
    queue, dictionary = bench.client.queue("many"), bench.client.dictionary("many")
    await bench.rate("B", "enqueue", lambda number: queue.enqueue(item(number)), MANY_OPERATIONS)
    await bench.rate("B", "dequeue", lambda _: queue.dequeue(), MANY_OPERATIONS)
    keys = [f"key-{number}" for number in range(1000)]
    await bench.rate("B", "put", lambda n: dictionary.put(keys[n % len(keys)], item(n)), MANY_OPERATIONS)
    await bench.rate("B", "get", lambda n: dictionary.get(keys[n % len(keys)]), MANY_OPERATIONS)


async def work_c(bench: Bench) -> None:
    """Batches, a few in flight."""
    queue = bench.client.queue("batches")

    async def enqueue(number: int) -> None:
        await queue.enqueue_many([item(number * BATCH_ITEMS + place) for place in range(BATCH_ITEMS)])

    async def dequeue(_: int) -> None:
        left = BATCH_ITEMS
        while left:
            left -= len(await queue.dequeue(max_items=left))

    for name, operation in (("enqueue", enqueue), ("dequeue", dequeue)):
        await bench.rate("C", name, operation, BATCHES, in_flight=BATCHES_IN_FLIGHT, each=BATCH_ITEMS)


async def work_d(bench: Bench) -> None:
    """A steady stream, and the longest silence in it around the death of each replica in turn."""
    queue = bench.client.queue("paced")
    await queue.enqueue_many([item(number) for number in range(WARM_UP)])
    await queue.dequeue(max_items=WARM_UP)
    gaps: dict[str, list[float]] = {}
    for victim in bench.cluster.urls:
        for name, operation in (
            ("enqueue", lambda n: queue.enqueue(item(n))),
            ("dequeue", lambda _: queue.dequeue()),
        ):
            before_s, after_s = await longest_gaps_s(operation, partial(bench.cluster.kill, victim))
            gaps.setdefault(f"{name} gap before", []).append(before_s)
            gaps.setdefault(f"{name} gap", []).append(after_s)
            await asyncio.to_thread(bench.cluster.restart, victim)
    for name, found in gaps.items():
        bench.figures["D", name, "s"] = max(found), {}


async def longest_gaps_s(operation: Operation, kill: Callable[[], None]) -> tuple[float, float]:
    """The longest between two acknowledgements that followed each other: in the time before the kill, which shows what the
    machine's other work does, and from the kill on."""
    acknowledged: list[float] = []

    async def one(number: int) -> None:
        with_deadline_s = time.monotonic() + PACED_S
        while time.monotonic() < with_deadline_s:
            try:
                await operation(number)
            except QuorateError:
                continue
            acknowledged.append(time.monotonic())
            return

    begun_s, tasks = time.monotonic(), []
    killed_s, killing = 0.0, None
    for number in range(int(PACE * PACED_S)):
        await asyncio.sleep(max(0.0, begun_s + number / PACE - time.monotonic()))
        if killing is None and time.monotonic() >= begun_s + KILL_AT_S:
            killed_s = time.monotonic()
            # In a thread: who waits here until the process is gone holds up the stream, and finds that as a gap.
            killing = asyncio.create_task(asyncio.to_thread(kill))
        tasks.append(asyncio.create_task(one(number)))
    assert killing is not None, "the stream goes on until long after the kill"
    await asyncio.gather(killing, *tasks)
    pairs = list(itertools.pairwise(sorted(acknowledged)))
    return (
        max(later - earlier for earlier, later in pairs if later < killed_s),
        max(later - earlier for earlier, later in pairs if later >= killed_s),
    )


async def work_rest(bench: Bench) -> None:
    """Enqueues over the typed endpoints, spread over all replicas by plain connections."""
    places = [url.removeprefix("http://").rpartition(":") for url in bench.cluster.urls.values()]
    connections = [
        await PlainConnection.open(places[n % len(places)][0], int(places[n % len(places)][2]))
        for n in range(IN_FLIGHT)
    ]
    free = list(connections)

    async def enqueue(number: int) -> None:
        connection = free.pop()
        body = json.dumps({"items": [item(number)]}).encode()
        status = await connection.post("/v1/queues/rest/items", body)
        assert status < 300, f"an enqueue over REST was answered with {status}"
        free.append(connection)

    for number in range(IN_FLIGHT):
        await enqueue(number)
    await bench.rate("REST", "enqueue", enqueue, REST_OPERATIONS)
    for connection in connections:
        connection.close()


RUN: Final[dict[str, Callable[[Bench], Awaitable[None]]]] = dict(
    zip(WORKS, (work_a, work_b, work_c, work_d, work_rest), strict=True)
)


async def run_once(works: list[str], replicas: int, scale: float) -> Bench:
    """All works, on a cluster of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        LocalCluster.create(Path(folder) / "c", replicas=replicas) as cluster,
    ):
        cluster.start()
        cluster.ready()
        async with connect_async(cluster.document) as client:
            bench = Bench(cluster, client, scale)
            for work in works:
                await RUN[work](bench)
            return bench


def main() -> None:
    """Run, and print one line per figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--works", default="A,B,C")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    add_options(parser)
    options = parser.parse_args()
    peers = chosen(options)
    works = options.works.split(",")
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    benches: list[Bench] = []
    loads: list[float] = []
    theirs: list[Theirs] = []
    for _ in range(options.runs):
        loads.append(os.getloadavg()[0])
        benches.append(asyncio.run(run_once(works, options.replicas, options.scale)))
        if peers is not None:
            theirs.append(peers.works(works))
    for work, figure, unit in benches[0].figures:
        values = [bench.figures[work, figure, unit][0] for bench in benches]
        spent = [bench.figures[work, figure, unit][1] for bench in benches]
        line = {"work": work, "figure": figure, "unit": unit, "median": rounded(median(values))}
        line |= {"min": rounded(min(values)), "max": rounded(max(values)), "runs": list(map(rounded, values))}
        line |= {"cpu_us": {who: rounded(median(each[who] for each in spent)) for who in spent[0]}}
        line |= beside((work, figure), values, theirs)
        print(json.dumps(line | machine() | {"load": [round(load, 2) for load in loads]}), flush=True)


if __name__ == "__main__":
    main()
