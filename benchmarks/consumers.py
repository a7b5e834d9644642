"""How fast one consumer and several drain a queue: real replicas on loopback, consumers in processes of their own.

For each batch size, runs of one consumer and of many alternate, so that what else the machine does meets both alike. A run
fills a fresh queue, lets all consumers connect, starts them together, and counts the items that they took until the queue
is empty. Prints one JSON line per run, and at the end one per batch size with the medians and their ratio; each names the
machine, its load and the commit.

    .venv/bin/python benchmarks/consumers.py [--consumers 16] [--batches 1 10] [--pairs 3] [--items 3000]
"""

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any, Final

from quorate.cli.document import DEFAULT_NAME, new_document, write_new
from quorate.cli.local_cluster import LocalCluster, free_ports
from quorate.client_sdk import QuorateError, connect

FILL: Final = 1000
"""Items in one enqueue."""
READY_S: Final = 120.0
DRAIN_S: Final = 600.0
DEADLINE_S: Final = 20.0


def machine() -> dict[str, Any]:
    """Where this was measured."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    return {
        "commit": found.stdout.strip(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def consume(path: str, name: str, batch: int, start: Barrier, told: "Queue[dict[str, float]]") -> None:
    """One consumer: take until the queue is empty, and tell how much it was, from when until when."""
    taken = failed = 0
    with connect(path, deadline_s=DEADLINE_S) as client:
        queue = client.queue(name)
        client.queue(f"{name}-other").size()  # connections are made before the clock starts
        start.wait(READY_S)
        begun_s = ended_s = time.monotonic()
        while True:
            try:
                items = queue.dequeue(max_items=batch)
            except QuorateError:
                failed += 1
                continue
            if not items:
                break
            taken += len(items)
            ended_s = time.monotonic()
    told.put({"taken": taken, "failed": failed, "begun_s": begun_s, "ended_s": ended_s})


def run(path: Path, name: str, consumers: int, batch: int, items: int) -> dict[str, Any]:
    """Fill a queue and have it drained."""
    with connect(path) as client:
        for first in range(0, items, FILL):
            client.queue(name).enqueue_many(range(first, min(first + FILL, items)))
    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(consumers), context.Queue()
    processes = [
        context.Process(target=consume, args=(str(path), name, batch, start, told)) for _ in range(consumers)
    ]
    for process in processes:
        process.start()
    results = [told.get(timeout=READY_S + DRAIN_S) for _ in processes]
    for process in processes:
        process.join()
    seconds = max(each["ended_s"] for each in results) - min(each["begun_s"] for each in results)
    taken = sum(each["taken"] for each in results)
    return {
        "consumers": consumers,
        "batch": batch,
        "items": items,
        "taken": taken,
        "failed": sum(each["failed"] for each in results),
        "seconds": round(seconds, 2),
        "items_per_s": round(taken / seconds, 1),
    }


def measure(path: Path, options: argparse.Namespace, where: Mapping[str, Any]) -> None:
    """All runs."""
    for batch in options.batches:
        rates: dict[int, list[float]] = {1: [], options.consumers: []}
        for pair in range(options.pairs):
            for consumers, measured in rates.items():
                name = f"b{batch}-p{pair}-c{consumers}"
                result = run(path, name, consumers, batch, options.items * batch)
                measured.append(result["items_per_s"])
                print(json.dumps(result | where | {"load": round(os.getloadavg()[0], 1)}), flush=True)
        one, many = median(rates[1]), median(rates[options.consumers])
        figures = {"batch": batch, "one": one, "many": many, "ratio": round(many / one, 2)}
        print(json.dumps({"consumers": options.consumers, "median": figures} | where), flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=16)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--items", type=int, default=3000, help="per run, times the batch size")
    options = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DEFAULT_NAME
        urls = {f"r{n}": f"http://127.0.0.1:{port}" for n, port in enumerate(free_ports(3), 1)}
        write_new(path, new_document(urls, name="consumers"))
        cluster = LocalCluster(Path(folder))
        cluster.format_missing()
        cluster.start()
        try:
            cluster.ready()
            measure(path, options, where)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
