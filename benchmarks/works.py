"""The works beside the peers, and the sweep over operations in flight.

A to C are works of `quorate.measurement.speed`, as `quorate bench` has them. A: one operation in flight, milliseconds. B: 64 in flight from one
process, operations a second. C: the best batches, items a second. D: the longest gap, in seconds, between acknowledgements at 200 operations a
second after one replica is killed with SIGKILL, the worst of all, and beside it the longest before. REST: enqueues a second over the ADT API,
64 plain connections.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from statistics import median
from typing import Final
from urllib.parse import urlsplit

from circumstances import Line, Setting, cpu_s, fresh, own_cpu_s
from peers import Theirs, beside
from plain_http import PlainConnection

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.errors import QuorateError
from quorate.measurement.speed.figures import Figure
from quorate.measurement.speed.histogram import rounded
from quorate.measurement.speed.in_flight import Operation, in_flight
from quorate.measurement.speed.works import WARM_UP, Bounds, Ground, item, timed

IN_FLIGHT: Final = 64
REST_OPERATIONS: Final = 3000
LONG_S: Final = 300.0
PACE: Final = 200
"""Operations a second while a replica is killed."""
PACED_S: Final = 4.0
KILL_AT_S: Final = 1.5
SINGLES: Final = ["queue", "dictionary"]
WIDTHS: Final = [1, 4, 16, 64, 256]
MOST: Final = 200_000
"""Operations of one point of the sweep at most."""
TRIAL: Final = 0.02
"""So much of the operations."""

Spent = Mapping[str, float]
"""Microseconds of processor time per item, by process."""
Figures = dict[tuple[str, str], tuple[float, Spent]]
"""By name and unit."""


class Spending:
    """Processor time of the client and of each replica while one figure after the other is made."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._pids: Final = cluster.pids
        self._before: dict[str, float] = {}

    def begin(self) -> None:
        """What is spent from here on counts."""
        self._before = self._so_far()

    def of(self, figure: Figure) -> Spent:
        """For each of its items."""
        items = max(1, figure.count * figure.items_each)
        return {
            who: round((spent_s - self._before[who]) / items * 1e6, 1)
            for who, spent_s in self._so_far().items()
        }

    def _so_far(self) -> dict[str, float]:
        return {"client": own_cpu_s()} | {id: cpu_s(pid) for id, pid in self._pids.items()}


async def singly(cluster: LocalCluster, client: AsyncClient, scale: float) -> Figures:
    """A: one operation in flight."""
    spending, bounds = Spending(cluster), Bounds(LONG_S, round(400 * scale))
    return {
        (f"{figure.operation} {name}", "ms"): (value, spending.of(figure))
        async for figure in timed(Ground(client, "one-"), SINGLES, [1], bounds, begins=spending.begin)
        for name, value in figure.ms.items()
        if name in ("p50", "p99")
    }


async def rates(
    works: list[str], items: int, cluster: LocalCluster, client: AsyncClient, scale: float
) -> Figures:
    """B and C: how many items a second."""
    spending, ground, bounds = (
        Spending(cluster),
        Ground(client, "many-"),
        Bounds(LONG_S, round(items * scale)),
    )
    return {
        (figure.operation, "items/s"): (figure.items_per_s, spending.of(figure))
        async for figure in timed(ground, works, [IN_FLIGHT], bounds, begins=spending.begin)
    }


async def work_d(cluster: LocalCluster, client: AsyncClient, _: float) -> Figures:
    """A steady stream, and the longest silence in it around the death of each replica in turn."""
    queue = client.queue("paced")
    await queue.enqueue_many([item(number) for number in range(WARM_UP)])
    await queue.dequeue(max_items=WARM_UP)
    gaps: dict[str, list[float]] = {}
    for victim in cluster.urls:
        for name, operation in (
            ("enqueue", lambda n: queue.enqueue(item(n))),
            ("dequeue", lambda _: queue.dequeue()),
        ):
            before_s, after_s = await longest_gaps_s(operation, partial(cluster.kill, victim))
            gaps.setdefault(f"{name} gap before", []).append(before_s)
            gaps.setdefault(f"{name} gap", []).append(after_s)
            await asyncio.to_thread(cluster.restart, victim)
    return {(name, "s"): (max(found), {}) for name, found in gaps.items()}


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


async def work_rest(cluster: LocalCluster, _: AsyncClient, scale: float) -> Figures:
    """Enqueues over the typed endpoints, spread over all replicas by plain connections."""
    places = itertools.islice(itertools.cycle(map(urlsplit, cluster.urls.values())), IN_FLIGHT)
    free = [await PlainConnection.open(str(place.hostname), place.port or 0) for place in places]

    async def enqueue(number: int) -> None:
        connection = free.pop()
        status = await connection.post(
            "/v1/queues/rest/items", json.dumps({"items": [item(number)]}).encode()
        )
        assert status < 300, f"an enqueue over REST was answered with {status}"
        free.append(connection)

    await in_flight(enqueue, IN_FLIGHT, LONG_S, IN_FLIGHT)
    taken = await in_flight(enqueue, IN_FLIGHT, LONG_S, max(IN_FLIGHT, round(REST_OPERATIONS * scale)))
    for connection in free:
        connection.close()
    return {("enqueue", "items/s"): (len(taken.each_s) / taken.seconds, {})}


RUN: Final[dict[str, Callable[[LocalCluster, AsyncClient, float], Awaitable[Figures]]]] = {
    "A": singly,
    "B": partial(rates, SINGLES, 12_000),
    "C": partial(rates, ["batches"], 60_000),
    "D": work_d,
    "REST": work_rest,
}


async def run_once(setting: Setting) -> dict[str, Figures]:
    """All works, on a cluster of its own."""
    scale = TRIAL if setting.is_trial else 1.0
    with fresh(setting.replicas) as cluster:
        async with connect_async(cluster.document) as client:
            return {work: await RUN[work](cluster, client, scale) for work in setting.works}


def run(setting: Setting) -> Iterator[Line]:
    """The works, run after run: every run's value, median, least and most, processor time per item of the client and of each replica; beside
    the peers also their figures, and the ratio of ours to theirs."""
    ours: list[dict[str, Figures]] = []
    theirs: list[Theirs] = []
    for _ in range(setting.runs):
        ours.append(asyncio.run(run_once(setting)))
        if setting.peers is not None:
            theirs.append(setting.peers.works(setting.works))
    for work, figures in ours[0].items():
        for figure, unit in figures:
            values = [each[work][figure, unit][0] for each in ours]
            spent = [each[work][figure, unit][1] for each in ours]
            line: Line = {"work": work, "figure": figure, "unit": unit, "median": rounded(median(values))}
            line |= {
                "min": rounded(min(values)),
                "max": rounded(max(values)),
                "runs": [*map(rounded, values)],
            }
            line |= {"cpu_us": {who: rounded(median(each[who] for each in spent)) for who in spent[0]}}
            yield line | beside((work, figure), values, theirs)


def sweep(setting: Setting) -> Iterator[Line]:
    """Throughput and latency over operations in flight, ours and then the peers': what `plots.py` draws. RabbitMQ's dequeues a second are those
    of a consumer that items are pushed to, where these are more; what a dequeue takes is told of `basic_get` with an acknowledgement."""
    widths, seconds = ([1, 8], 0.2) if setting.is_trial else (WIDTHS, 3.0)
    for each in asyncio.run(_swept(setting.replicas, widths, Bounds(seconds, MOST))):
        line: Line = {"sweep": each.operation, "system": "Quorate", "in_flight": each.in_flight}
        line |= {"count": each.count, "per_s": each.items_per_s}
        yield line | {f"{name}_ms": value for name, value in each.ms.items()}
    if setting.peers is not None:
        yield from setting.peers.lines("sweep", "--widths", *map(str, widths), "--seconds", str(seconds))


async def _swept(replicas: int, widths: list[int], bounds: Bounds) -> list[Figure]:
    with fresh(replicas) as cluster:
        async with connect_async(cluster.document) as client:
            return [each async for each in timed(Ground(client, "sweep-"), SINGLES, widths, bounds)]
