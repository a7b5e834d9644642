"""How fast one consumer and several drain a queue: real replicas on loopback, consumers in processes of their own.

For each batch size, runs of one consumer and of many alternate, so that what else the machine does meets both alike. A run
fills a fresh queue, lets all consumers connect, starts them together, and counts the items that they took until the queue
is empty. Prints one JSON line per run, and at the end one per batch size with the medians and the ratios, least and most of
the pairs; each names the machine, its load and the commit.

    python benchmarks/consumers.py [--consumers 16] [--batches 1 10] [--pairs 3] [--items 3000] [--replicas 3] [--peers FOLDER]

With `--peers`, RabbitMQ's consumers drain a quorum queue in turn with ours, as many, each in a process of its own, which
acknowledges as many items at once as our batch has: first when no more than these are sent to it before it has
acknowledged them (prefetch), as with us, then when RabbitMQ sends up to PREFETCH ahead.
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

from circumstances import machine, rounded
from peers import Asked, add_options, chosen

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import QuorateError, connect

FILL: Final = 1000
"""Items in one enqueue."""
READY_S: Final = 120.0
DRAIN_S: Final = 600.0
DEADLINE_S: Final = 20.0
PREFETCH: Final = 128
PEER_ITEMS: Final = 20_000
"""RabbitMQ takes so many in a second or two; with fewer, its start would be what is measured."""


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


class Table:
    """The rates of each way to drain, run by run."""

    def __init__(self) -> None:
        self._rates: Final[dict[str, list[float]]] = {}

    def add(self, way: str, result: dict[str, Any]) -> None:
        """A run, and its line."""
        self._rates.setdefault(way, []).append(result["items_per_s"])
        print(json.dumps({"way": way} | result | machine()), flush=True)

    def summary(self) -> dict[str, Any]:
        """Medians, and of `many` to each other way the ratio of each pair: median, least, most."""
        many = self._rates["many"]
        line: dict[str, Any] = {way: rounded(median(rates)) for way, rates in self._rates.items()}
        for way, rates in self._rates.items():
            if way != "many":
                ratios = sorted(mine / other for mine, other in zip(many, rates, strict=True))
                line[f"many to {way}"] = [rounded(each) for each in (median(ratios), ratios[0], ratios[-1])]
        return line


def measure(path: Path, peer: Asked | None, options: argparse.Namespace) -> None:
    """All runs."""
    for batch in options.batches:
        table = Table()
        for pair in range(options.pairs):
            items = options.items * batch
            for way, consumers in (("one", 1), ("many", options.consumers)):
                table.add(way, run(path, f"b{batch}-p{pair}-c{consumers}", consumers, batch, items))
            for prefetch in (batch, PREFETCH) if peer is not None else ():
                question = {"name": f"b{batch}-p{pair}-f{prefetch}", "prefetch": prefetch, "batch": batch}
                question |= {"consumers": options.consumers, "items": max(items, PEER_ITEMS)}
                table.add(f"RabbitMQ, prefetch {prefetch}", peer.ask(**question))
        line = {"summary": f"{options.consumers} consumers, batches of {batch}"} | table.summary()
        print(json.dumps(line | machine()), flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--consumers", type=int, default=16)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--items", type=int, default=3000, help="per run, times the batch size")
    parser.add_argument("--replicas", type=int, default=3)
    add_options(parser)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quorate-consumers-")))
        cluster = stack.enter_context(LocalCluster.create(folder / "c", replicas=options.replicas))
        cluster.start()
        cluster.ready()
        peers = chosen(options)
        peer = None if peers is None else stack.enter_context(peers.asked("consumers"))
        measure(cluster.document_path, peer, options)


if __name__ == "__main__":
    main()
