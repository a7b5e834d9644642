"""How long keyed enqueues go on at a steady rate: one queue, one client process, every enqueue under a key of its own.

    python benchmarks/idempotency_keys.py [--rate 5000] [--seconds 180] [--consume]

One JSON line for every ten seconds and one for all: enqueues acknowledged in each second, those refused or of unknown outcome,
median and 99th percentile in milliseconds from when each was due, resident memory of the largest replica in MB. With
`--consume`, a second client dequeues the items meanwhile, in batches.
"""

import argparse
import asyncio
import json
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from circumstances import machine, rounded
from works import item

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.errors import QuorateError

TICK_S: Final = 0.01
SPAN_S: Final = 10.0
DEQUEUED_MAX: Final = 500
DEADLINE_S: Final = 24.0
"""Of an operation: below the retry window."""


def resident_mb(cluster: LocalCluster) -> float:
    """Of the replica that takes most."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in cluster.pids.values()]
    return max(pages) * 4096 / 1e6


class Enqueues:
    """What came of those that were due in one span."""

    def __init__(self) -> None:
        self.taken_ms: list[float] = []
        self.failed: dict[str, int] = {}

    async def one(self, client: AsyncClient, number: int, due_s: float) -> None:
        """Waits for the acknowledgement."""
        try:
            await client.queue("keyed").enqueue(item(number), idempotency_key=f"key-{number}")
        except QuorateError as error:
            name = type(error).__name__
            self.failed[name] = self.failed.get(name, 0) + 1
        else:
            self.taken_ms.append((time.monotonic() - due_s) * 1e3)

    def told(self, seconds: float) -> dict[str, Any]:
        """For a line."""
        taken = sorted(self.taken_ms) or [float("nan")]
        return {
            "acknowledged_per_s": rounded(len(self.taken_ms) / seconds),
            "failed": self.failed,
            "p50_ms": rounded(taken[len(taken) // 2]),
            "p99_ms": rounded(taken[len(taken) * 99 // 100]),
        }


async def consume(client: AsyncClient) -> None:
    """Until cancelled."""
    queue = client.queue("keyed")
    while True:
        if not await queue.dequeue(max_items=DEQUEUED_MAX):
            await asyncio.sleep(TICK_S)


async def run(rate: int, seconds: float, *, is_consumed: bool) -> None:
    """On a cluster of its own; prints the lines."""
    async with AsyncExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="quorate-bench-"))
        cluster = opened.enter_context(LocalCluster.create(Path(folder) / "c"))
        cluster.start()
        cluster.ready()
        producer, consumer = [
            await opened.enter_async_context(connect_async(cluster.document, deadline_s=DEADLINE_S))
            for _ in range(2)
        ]
        eating = asyncio.create_task(consume(consumer)) if is_consumed else None
        spans: list[Enqueues] = []
        begun_s, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            for place in range(int(seconds / SPAN_S)):
                spans.append(Enqueues())
                while (now_s := time.monotonic()) < begun_s + (place + 1) * SPAN_S:
                    while (due_s := begun_s + number / rate) <= now_s:
                        group.create_task(spans[-1].one(producer, number, due_s))
                        number += 1
                    await asyncio.sleep(TICK_S)
                if place:
                    tell(spans[-2], SPAN_S, cluster, span=place)
        took_s = time.monotonic() - begun_s
        if eating is not None:
            eating.cancel()
        whole = Enqueues()
        for span in spans:
            whole.taken_ms += span.taken_ms
            for name, times in span.failed.items():
                whole.failed[name] = whole.failed.get(name, 0) + times
        tell(whole, took_s, cluster, rate=rate, took_s=rounded(took_s), consumed=is_consumed, **machine())


def tell(found: Enqueues, seconds: float, cluster: LocalCluster, **more: Any) -> None:
    """One line."""
    line = more | found.told(seconds) | {"resident_mb": rounded(resident_mb(cluster))}
    print(json.dumps(line), flush=True)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--consume", action="store_true")
    options = parser.parse_args()
    asyncio.run(run(options.rate, options.seconds, is_consumed=options.consume))


if __name__ == "__main__":
    main()
