"""How fast one consumer and several drain a queue: real replicas on loopback, consumers in processes of their own.

A run fills a fresh queue, lets all consumers connect, starts them together, and counts the items that they took until the queue
is empty.
"""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any, Final

from circumstances import Line, Setting, fresh

from quorate.client_sdk import QuorateError, connect
from quorate.measurement.speed.histogram import rounded

FILL: Final = 1000
"""Items in one enqueue."""
READY_S: Final = 120.0
DRAIN_S: Final = 600.0
DEADLINE_S: Final = 20.0
PREFETCH: Final = 128
RUNS_MAX: Final = 3
PEER_ITEMS: Final = 20_000
"""RabbitMQ takes so many in a second or two; with fewer, its start would be what is measured."""

Rates = dict[str, list[float]]
"""Items a second of each way to drain, run by run."""


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


def drained(path: Path, name: str, consumers: int, batch: int, items: int) -> dict[str, Any]:
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


def run(setting: Setting) -> Iterator[Line]:
    """How fast one consumer process and sixteen drain a queue, in turn; with peers also RabbitMQ's, which acknowledge as many items at once as our
    batch has: first when no more than these are sent to them before, as with us, then when RabbitMQ sends up to PREFETCH ahead."""
    many, batches, each = (2, (1,), 50) if setting.is_trial else (16, (1, 10), 3000)
    with ExitStack() as stack:
        path = stack.enter_context(fresh(setting.replicas)).document_path
        peer = None if setting.peers is None else stack.enter_context(setting.peers.asked("consumers"))
        for batch in batches:
            rates: Rates = {}
            for pair in range(min(setting.runs, RUNS_MAX)):
                name, items = f"b{batch}-p{pair}", each * batch
                for way, consumers in (("one", 1), ("many", many)):
                    yield _kept(rates, way, drained(path, f"{name}-c{consumers}", consumers, batch, items))
                for prefetch in (batch, PREFETCH) if peer is not None else ():
                    question = {"name": f"{name}-f{prefetch}", "prefetch": prefetch, "batch": batch}
                    question |= {"consumers": many, "items": max(items, PEER_ITEMS)}
                    assert peer is not None
                    yield _kept(rates, f"RabbitMQ, prefetch {prefetch}", peer.ask(**question))
            yield {"summary": f"{many} consumers, batches of {batch}"} | summary(rates)


def _kept(rates: Rates, way: str, result: Line) -> Line:
    rates.setdefault(way, []).append(result["items_per_s"])
    return {"way": way} | result


def summary(rates: Rates) -> Line:
    """Medians, and of `many` to each other way the ratio of each pair: median, least, most."""
    line: Line = {way: rounded(median(each)) for way, each in rates.items()}
    for way, others in rates.items():
        if way != "many":
            ratios = sorted(mine / other for mine, other in zip(rates["many"], others, strict=True))
            line[f"many to {way}"] = [rounded(each) for each in (median(ratios), ratios[0], ratios[-1])]
    return line
