"""Throughput and latency over operations in flight, ours and the peers': what `plots.py` draws.

    python benchmarks/sweep.py [--widths 1 4 16 64 256] [--seconds 3] [--replicas 3] [--peers FOLDER]

One process keeps so many operations of one kind under way, each with 100 bytes, three replicas on loopback, on disk at a
quorum before it is acknowledged. One JSON line per system, operation and width: operations a second, and the percentiles of
what each took, in milliseconds. RabbitMQ's dequeues a second are those of a consumer that items are pushed to, where these
are more; what a dequeue takes is told of `basic_get` with an acknowledgement, which has no answer.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, Final

from circumstances import machine
from in_flight import in_flight
from peers import add_options, chosen
from works import WARM_UP, Operation, item

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async

WIDTHS: Final = [1, 4, 16, 64, 256]
KEYS: Final = 1000
MOST: Final = 200_000
"""Operations of one point at most."""


def tell(system: str, name: str, width: int, found: dict[str, Any], widths_load: dict[str, Any]) -> None:
    """One line."""
    line = {"sweep": name, "system": system, "in_flight": width}
    print(json.dumps(line | found | widths_load), flush=True)


async def ours(client: AsyncClient, widths: list[int], seconds: float) -> None:
    """All kinds of operations, at all widths."""
    dictionary = client.dictionary("sweep")
    keys = [f"key-{number}" for number in range(KEYS)]
    await in_flight(lambda n: dictionary.put(keys[n], item(n)), 64, seconds, KEYS)
    for width in widths:
        queue = client.queue(f"sweep-{width}")
        for number in range(WARM_UP):
            await queue.enqueue(item(number))
            await queue.dequeue()
        enqueued = await in_flight(lambda n, queue=queue: queue.enqueue(item(n)), width, seconds, MOST)  # type: ignore[misc]
        tell("Quorate", "enqueue", width, enqueued, machine())
        operations: dict[str, tuple[Operation, float]] = {
            "dequeue": (lambda _, queue=queue: queue.dequeue(), enqueued["count"]),
            "put": (lambda n: dictionary.put(keys[n % KEYS], item(n)), MOST),
            "get": (lambda n: dictionary.get(keys[n % KEYS]), MOST),
        }
        for name, (operation, most) in operations.items():
            tell("Quorate", name, width, await in_flight(operation, width, seconds, int(most)), machine())


async def run(widths: list[int], seconds: float, replicas: int) -> None:
    """On a cluster of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="quorate-sweep-") as folder,
        LocalCluster.create(Path(folder) / "c", replicas=replicas) as cluster,
    ):
        cluster.start()
        cluster.ready()
        async with connect_async(cluster.document) as client:
            await ours(client, widths, seconds)


def main() -> None:
    """Ours, then theirs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--replicas", type=int, default=3)
    add_options(parser)
    options = parser.parse_args()
    asyncio.run(run(options.widths, options.seconds, options.replicas))
    if (peers := chosen(options)) is not None:
        words = ["--widths", *map(str, options.widths), "--seconds", str(options.seconds)]
        for line in peers.lines("sweep", *words):
            print(json.dumps(line | machine()), flush=True)


if __name__ == "__main__":
    main()
