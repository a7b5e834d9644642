"""What consumers under leases cost, one by one and with items taken ahead: real replicas on loopback, consumers in processes of their own.

Each consumer acquires an item and acknowledges it, until the queue is empty, or loops over `queue.consume(prefetch=…)`. Runs of both
ways alternate, so that what else the machine does meets both alike. Prints one JSON line per run: items a second, and
microseconds of processor time per item, of the consumers and of the replicas together. At the end one line has the medians and
for each number of items taken ahead the ratios of the pairs, to one by one: median, least, most.

    python benchmarks/prefetching.py [--consumers 16] [--prefetch 16 64] [--pairs 3] [--items 3000] [--replicas 3]
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from contextlib import ExitStack
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any, Final

from circumstances import cpu_s, machine, own_cpu_s, rounded

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import Queue as Handle
from quorate.client_sdk import QuorateError, connect

FILL: Final = 1000
"""Items in one enqueue."""
READY_S: Final = 120.0
DRAIN_S: Final = 600.0
DEADLINE_S: Final = 20.0
LEASE_S: Final = 120.0
"""None is renewed, and none ends: by either way the same is asked for."""
FIGURES: Final = ("items_per_s", "consumers_us", "replicas_us")


def one_by_one(queue: Handle) -> int:
    """Acquire and acknowledge until nothing is left: how many that were."""
    taken = 0
    while leases := queue.acquire(lease_s=LEASE_S):
        queue.ack(*leases)
        taken += len(leases)
    return taken


def ahead(queue: Handle, prefetch: int) -> int:
    """The same, taken ahead."""
    taken = 0
    for lease in queue.consume(prefetch, LEASE_S, wait_s=0):
        lease.ack()
        taken += 1
    return taken


def consume(path: str, name: str, prefetch: int, start: Barrier, told: "Queue[dict[str, float]]") -> None:
    """One consumer, and what it tells: how many it took, from when until when, and its processor time meanwhile."""
    with connect(path, deadline_s=DEADLINE_S) as client:
        client.queue(f"{name}-other").size()  # connections are made before the clock starts
        start.wait(READY_S)
        begun_s, cpu_begun_s, taken = time.monotonic(), own_cpu_s(), 0
        try:
            taken = ahead(client.queue(name), prefetch) if prefetch else one_by_one(client.queue(name))
        except QuorateError as error:
            print(json.dumps({"failed": str(error)}), flush=True)
        told.put(
            {
                "taken": taken,
                "begun_s": begun_s,
                "ended_s": time.monotonic(),
                "cpu_s": own_cpu_s() - cpu_begun_s,
            }
        )


def run(cluster: LocalCluster, name: str, prefetch: int, options: argparse.Namespace) -> dict[str, Any]:
    """Fill a queue and have it drained."""
    path, consumers = str(cluster.document_path), options.consumers
    with connect(path) as client:
        for first in range(0, options.items, FILL):
            client.queue(name).enqueue_many(range(first, min(first + FILL, options.items)))
    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(consumers + 1), context.Queue()
    processes = [
        context.Process(target=consume, args=(path, name, prefetch, start, told)) for _ in range(consumers)
    ]
    for process in processes:
        process.start()
    start.wait(READY_S)
    before_s = sum(cpu_s(pid) for pid in cluster.pids.values())
    results = [told.get(timeout=READY_S + DRAIN_S) for _ in processes]
    replicas_s = sum(cpu_s(pid) for pid in cluster.pids.values()) - before_s
    for process in processes:
        process.join()
    seconds = max(each["ended_s"] for each in results) - min(each["begun_s"] for each in results)
    taken = sum(each["taken"] for each in results)
    return {
        "prefetch": prefetch,
        "consumers": consumers,
        "items": options.items,
        "taken": taken,
        "seconds": round(seconds, 2),
        "items_per_s": rounded(taken / seconds),
        "consumers_us": rounded(sum(each["cpu_s"] for each in results) / taken * 1e6),
        "replicas_us": rounded(replicas_s / taken * 1e6),
    }


def summary(lines: list[dict[str, Any]], prefetches: list[int]) -> dict[str, Any]:
    """Medians, and ratios to one by one."""
    by = {prefetch: [line for line in lines if line["prefetch"] == prefetch] for prefetch in (0, *prefetches)}
    told: dict[str, Any] = {}
    for prefetch, found in by.items():
        way = f"prefetch {prefetch}" if prefetch else "one by one"
        told[way] = {figure: rounded(median(each[figure] for each in found)) for figure in FIGURES}
        if prefetch:
            for figure in FIGURES:
                ratios = sorted(a[figure] / b[figure] for a, b in zip(found, by[0], strict=True))
                told[way][f"{figure} to one by one"] = [
                    rounded(each) for each in (median(ratios), ratios[0], ratios[-1])
                ]
    return told


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--consumers", type=int, default=16)
    parser.add_argument("--prefetch", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--items", type=int, default=3000, help="per run")
    parser.add_argument("--replicas", type=int, default=3)
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quorate-prefetching-")))
        cluster = stack.enter_context(LocalCluster.create(folder / "c", replicas=options.replicas))
        cluster.start()
        cluster.ready()
        for pair in range(options.pairs):
            for prefetch in (0, *options.prefetch):
                lines.append(run(cluster, f"p{pair}-{prefetch}", prefetch, options))
                print(json.dumps(lines[-1] | machine()), flush=True)
    told = summary(lines, options.prefetch)
    print(json.dumps({"summary": f"{options.consumers} consumers"} | told | machine()), flush=True)


if __name__ == "__main__":
    main()
