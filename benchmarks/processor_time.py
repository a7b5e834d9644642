"""Where the processor time of an operation goes: front end and replicas, and in each machine, HTTP, encoding, SQLite, sync.

For each kind of operation first the time of each process is taken, from the system's own account of its threads,
undisturbed; then the same goes on while all processes look what they are at (`sampled/sitecustomize.py`), and the time is
divided in the same proportions: a main thread's by samples, a writer's by what it measured of the database. One line per operation and process,
microseconds per item. Linux only. (Not called `profile`: the standard library has a module of that name.)
"""

import asyncio
import itertools
import json
import linecache
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

from circumstances import Line, Setting, fresh, threads_s
from plain_http import PlainConnection
from sampled.sitecustomize import START, STOP, listen
from works import IN_FLIGHT

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect_async
from quorate.measurement.speed.histogram import rounded
from quorate.measurement.speed.in_flight import Operation, in_flight
from quorate.measurement.speed.works import BATCHES_IN_FLIGHT, Ground, item

SAMPLED: Final = Path(__file__).parent / "sampled"
TOLD_S: Final = 10.0
STORED: Final = 100_000
"""Items that wait beside those that are enqueued, so that none of the measured dequeues finds nothing."""
FILL_S: Final = 300.0
SYNCS: Final = 300
ENCODING: Final = re.compile(r"msgspec|_ENCODE|_DECODE|_encode\(|_decode\(|[^.]decode\(|crc32")
"""Source lines within which the processor is in the encoder or decoder: C has no frames of its own."""

# The first pattern that a frame's file fits says what it is; what fits none is charged to the frame that called it.
PLACES: Final[Mapping[str, str]] = {
    r"/api_specs/(checking|weights)|/replica/(access|service/reply_budget)": "checks",
    r"/replica/(store/group_commit|service/member)": "handing to the writer",
    r"/client_sdk/transport/(http|httpx_)|/replica/(api|http|server)/": "HTTP",
    r"/uvicorn/|/starlette/|/fastapi/|/httpx/|/httpcore/|/httptools/": "HTTP",
    r"/(client_sdk|replica|adts|timestamps|quorums|gc|api_specs)/": "machine and store",
    r"/asyncio/|/selectors|/uvloop/": "event loop and sockets",
    r"/benchmarks/": "the caller",
}
WRITER: Final = "writer: machine, store"
CLASSES: Final = (
    "the caller",
    "machine and store",
    "HTTP",
    "event loop and sockets",
    "encoding",
    "checks",
    "handing to the writer",
    WRITER,
    "SQLite",
    "commit and sync",
    "other",
)


def class_of(stack: str) -> str:
    """What the main thread was busy with, by its stack, innermost frame first."""
    for frame in stack.split("|"):
        file, _, line = frame.rpartition(":")
        source = linecache.getline(file, int(line)) if line else ""
        if "/benchmarks/" not in file and ENCODING.search(source):
            return "encoding"
        for pattern, name in PLACES.items():
            if re.search(pattern, file):
                return name
    return "other"


class Work:
    """Operations of one kind, so many under way. `each`: as so many a batch of items counts."""

    def __init__(self, name: str, width: int, operation: Operation, each: int = 1) -> None:
        self.name: Final = f"{name}, {width} in flight"
        self._width: Final = width
        self._operation: Final = operation
        self._each: Final = each
        self._begun = 0

    async def run(self, is_over: Callable[[], bool]) -> int:
        """Go on until it is over; how many were done."""
        before = self._begun

        async def worker() -> None:
            while not is_over():
                self._begun += 1
                await self._operation(self._begun)

        await asyncio.gather(*(worker() for _ in range(self._width)))
        return (self._begun - before) * self._each

    async def for_seconds(self, seconds: float) -> int:
        """Go on for so long; how many were done."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        return await self.run(lambda: loop.time() > until_s)


class Spent(NamedTuple):
    """Seconds of processor time of a process, by its main thread and by all others (in a replica, the writer)."""

    main_s: float
    others_s: float

    @classmethod
    def so_far(cls, pid: int) -> Self:
        """Since it began."""
        threads = threads_s(pid)
        main_s = threads.pop(str(pid))
        return cls(main_s, sum(threads.values()))

    def since(self, before: "Spent") -> "Spent":
        """The difference."""
        return Spent(self.main_s - before.main_s, self.others_s - before.others_s)


async def spent_in(work: Work, pids: Mapping[str, int], seconds: float) -> tuple[int, dict[str, Spent]]:
    """How many operations were done, and what each process spent on them."""
    before = {who: Spent.so_far(pid) for who, pid in pids.items()}
    count = await work.for_seconds(seconds)
    return count, {who: Spent.so_far(pid).since(before[who]) for who, pid in pids.items()}


async def shares(
    work: Work, pids: Mapping[str, int], seconds: float, folder: Path
) -> dict[str, tuple[Counter[str], dict[str, float]]]:
    """Of each process, samples of its main thread by class, and the share of the other threads' time by class."""
    for pid in pids.values():
        (folder / str(pid)).unlink(missing_ok=True)
        os.kill(pid, START)
    _, spent = await spent_in(work, pids, seconds)
    for pid in pids.values():
        os.kill(pid, STOP)
    found = {}
    for who, pid in pids.items():
        told = await _read(folder / str(pid))
        main: Counter[str] = Counter()
        for stack, times in told["stacks"].items():
            main[class_of(stack)] += times
        others_s = spent[who].others_s
        # In a very short run it may be that none of them ran.
        others = {name: ns / 1e9 / others_s for name, ns in told["spent_ns"].items() if others_s}
        found[who] = main, others | {WRITER: max(0.0, 1 - sum(others.values()))}
    return found


async def _read(file: Path) -> dict[str, dict[str, int]]:
    """What a process writes when it is told to stop."""
    async with asyncio.timeout(TOLD_S):
        while not file.exists():
            await asyncio.sleep(0.01)
    told: dict[str, dict[str, int]] = json.loads(file.read_text())
    return told


async def measure(work: Work, cluster: LocalCluster, seconds: float, folder: Path) -> list[Line]:
    """Two lines: the front end, and the replicas' mean."""
    pids = {"front end": os.getpid()} | cluster.pids
    await work.for_seconds(seconds / 4)
    count, spent = await spent_in(work, pids, seconds)
    found = await shares(work, pids, seconds, folder)
    lines: list[Line] = []
    for process, members in (("front end", ["front end"]), ("replica", list(cluster.pids))):
        classes: Counter[str] = Counter()
        for who in members:
            main, others = found[who]
            each_us = 1e6 / count / len(members)
            for name, times in main.items():
                classes[name] += spent[who].main_s * times / main.total() * each_us
            for name, share in others.items():
                classes[name] += spent[who].others_s * share * each_us
        line: dict[str, Any] = {"cpu": work.name, "process": process, "us": rounded(classes.total())}
        line |= {"count": count, "samples": sum(found[who][0].total() for who in members)}
        line["classes"] = {name: rounded(classes[name]) for name in CLASSES if classes[name]}
        lines.append(line)
    return lines


async def connected(place: SplitResult) -> PlainConnection:
    """A plain connection to a replica."""
    return await PlainConnection.open(str(place.hostname), place.port or 0)


def works(ground: Ground, urls: Iterable[str]) -> list[Work]:
    """One in flight, as in A; 64, as in B; batches, as in C; plain HTTP. What is enqueued is there before it is dequeued."""
    places = itertools.cycle(map(urlsplit, urls))
    free: list[PlainConnection] = []

    async def post(number: int) -> None:
        connection = free.pop() if free else await connected(next(places))
        body = json.dumps({"items": [item(number)]}).encode()
        assert await connection.post("/v1/queues/rest/items", body) == HTTPStatus.OK
        free.append(connection)

    ways = [(1, ground.queue()), (1, ground.dictionary()), (IN_FLIGHT, ground.queue())]
    ways += [(IN_FLIGHT, ground.dictionary()), (BATCHES_IN_FLIGHT, ground.batches())]
    found = [Work(step.operation, width, step.call, step.items) for width, steps in ways for step in steps]
    return [*found, Work("enqueue over REST", IN_FLIGHT, post)]


def time_sync(folder: Path) -> Line:
    """A line: what a sync of a little that was appended takes."""
    taken_s = []
    with (folder / "appended").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            begun_s = time.perf_counter()
            os.fdatasync(file.fileno())
            taken_s.append(time.perf_counter() - begun_s)
    return {"sync": "fdatasync after 4 KiB", "p50_us": rounded(median(taken_s) * 1e6)}


def run(setting: Setting) -> Iterator[Line]:
    """Where the processor time of an operation goes, in the front end and in each replica."""
    seconds, stored = (0.1, 3000) if setting.is_trial else (5.0, STORED)
    with tempfile.TemporaryDirectory(prefix="quorate-cpu-") as folder:
        samples = Path(folder) / "samples"
        samples.mkdir()
        listen(str(samples))
        yield time_sync(Path(folder))
        before = dict(os.environ)
        path = [str(SAMPLED), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ |= {"QUORATE_SAMPLES": str(samples), "PYTHONPATH": os.pathsep.join(path)}
        try:
            yield from asyncio.run(_divided(setting.replicas, seconds, stored, samples))
        finally:  # Other experiments run in this process, too.
            os.environ.clear()
            os.environ |= before


async def _divided(replicas: int, seconds: float, stored: int, samples: Path) -> list[Line]:
    """All works, on a cluster of its own."""
    with fresh(replicas) as cluster:
        async with connect_async(cluster.document) as client:
            ground = Ground(client, "spent-")
            enqueue, _ = ground.batches()
            await in_flight(enqueue.call, BATCHES_IN_FLIGHT, FILL_S, stored // enqueue.items)
            return [
                line
                for work in works(ground, list(cluster.urls.values()))
                for line in await measure(work, cluster, seconds, samples)
            ]
