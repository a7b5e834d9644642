"""What catching up takes, and what others feel of it: a replica comes back to entries that it missed while callers are served.

    python benchmarks/catch_up.py [--missed 100000] [--runs 3]
    python benchmarks/catch_up.py --cost 5      what it takes of the throughput while nothing is missing, in so many pairs

One JSON line per figure. The missed entries lie in one queue; the others are served from another one, an enqueue and a dequeue
in turn, one in flight, in milliseconds: `alone` before the replica stops, `without it` while it is down, and `beside` while
it catches up. `caught up` is the time from its start until it has got them, in seconds. With `--cost`: enqueues a second, 64 in flight, on
fresh clusters with catching up and without it in turn, and the ratio of the first to the second.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import httpx
from circumstances import machine, rounded
from in_flight import in_flight
from works import item

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async

AWAY: Final = "r3"
ALONE_S: Final = 10.0
DEADLINE_S: Final = 600.0
LOOK_S: Final = 0.5
BATCH: Final = 500
IN_FLIGHT: Final = 64
COST_S: Final = 8.0
WITHOUT: Final = """
from quorate.replica.upkeep.catching_up import CatchingUp
CatchingUp.start = lambda _: None
from quorate.cli.main import main
main()
"""

Figures = dict[str, float]


async def latencies_ms(client: AsyncClient, is_over: Callable[[], bool]) -> list[float]:
    """Of operations on the other queue, one after another until it is over; sorted."""
    queue, found = client.queue("others"), []
    while not is_over():
        for operation in (lambda: queue.enqueue(item(len(found))), queue.dequeue):
            begun_s = time.perf_counter()
            await operation()
            found.append((time.perf_counter() - begun_s) * 1e3)
    return sorted(found)


def described(name: str, found: list[float]) -> Figures:
    """Median and 99th percentile."""
    return {f"{name} p50": found[len(found) // 2], f"{name} p99": found[len(found) * 99 // 100]}


def until(after_s: float) -> Callable[[], bool]:
    """Is over when so much time has passed."""
    end_s = time.monotonic() + after_s
    return lambda: time.monotonic() > end_s


def brought(cluster: LocalCluster) -> float:
    """How many entries the replica that was away has got from the others."""
    told = httpx.get(cluster.urls[AWAY] + "/metrics", timeout=10.0, trust_env=False).text
    return sum(map(float, re.findall(r"^quorate_catch_up_entries_total{\S*} (\S+)$", told, re.MULTILINE)))


async def caught_up_s(cluster: LocalCluster, begun_s: float, entries: int) -> float:
    """When the replica that was away has got so many entries."""
    while time.monotonic() < begun_s + DEADLINE_S:
        if await asyncio.to_thread(brought, cluster) >= entries:
            return time.monotonic() - begun_s
        await asyncio.sleep(LOOK_S)
    raise SystemExit(f"{AWAY} has not caught up within {DEADLINE_S} s")


class Without(LocalCluster):
    """Replicas that do not catch up."""

    PROGRAM = (sys.executable, "-c", WITHOUT)


async def enqueues_a_second(kind: type[LocalCluster]) -> float:
    """On a cluster of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        kind.create(Path(folder) / "c") as cluster,
    ):
        cluster.start()
        cluster.ready()
        async with connect_async(cluster.document) as client:
            queue = client.queue("jobs")
            await in_flight(lambda number: queue.enqueue(item(number)), IN_FLIGHT, 1.0, sys.maxsize)
            found = await in_flight(
                lambda number: queue.enqueue(item(number)), IN_FLIGHT, COST_S, sys.maxsize
            )
            return found["per_s"]


def tell(figure: str, unit: str, values: list[float], **more: int) -> None:
    """A line with the figure of all runs."""
    line = {"figure": figure, "unit": unit, **more}
    line |= {"median": median(values), "min": min(values), "max": max(values), "runs": values}
    print(json.dumps(line | machine()), flush=True)


def tell_cost(pairs: int) -> None:
    """A line with each, and one with the ratio."""
    runs: dict[str, list[float]] = {"with": [], "without": [], "ratio": []}
    for number in range(pairs):
        kinds = [("with", LocalCluster), ("without", Without)]
        for name, kind in kinds if number % 2 else reversed(kinds):
            runs[name].append(rounded(asyncio.run(enqueues_a_second(kind))))
        runs["ratio"].append(rounded(runs["with"][-1] / runs["without"][-1]))
    for name, values in runs.items():
        tell(name, "" if name == "ratio" else "enqueues/s", values)


async def run_once(missed: int) -> Figures:
    """On a cluster of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        LocalCluster.create(Path(folder) / "c") as cluster,
    ):
        cluster.start()
        cluster.ready()
        async with connect_async(cluster.document) as client:
            figures = described("alone", await latencies_ms(client, until(ALONE_S)))
            cluster.kill(AWAY)
            for first in range(0, missed, BATCH):
                await client.queue("missed").enqueue_many([item(first + n) for n in range(BATCH)])
            figures |= described("without it", await latencies_ms(client, until(ALONE_S)))
            begun_s = time.monotonic()
            cluster.restart(AWAY)
            waiting = asyncio.create_task(caught_up_s(cluster, begun_s, missed))
            figures |= described("beside", await latencies_ms(client, waiting.done))
            return figures | {"caught up": await waiting}


def main() -> None:
    """Run, and print one line per figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--missed", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cost", type=int, default=0, metavar="PAIRS")
    options = parser.parse_args()
    if options.cost:
        tell_cost(options.cost)
        return
    runs = [asyncio.run(run_once(options.missed)) for _ in range(options.runs)]
    for name in runs[0]:
        values = [rounded(run[name]) for run in runs]
        tell(name, "s" if name == "caught up" else "ms", values, missed=options.missed)


if __name__ == "__main__":
    main()
