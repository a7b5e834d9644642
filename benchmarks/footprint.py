"""What an item, a key and a register take on each replica's disk, by the size of their value.

    python benchmarks/footprint.py [--count 6000]

One JSON line for each: bytes of the stopped replica's database for each object or item, and resident memory in MB of the replica that
takes most, idle before and with all of them. Items are enqueued by hundreds; keys and registers are written 32 at once.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from circumstances import machine
from idempotency_keys import resident_mb

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect

BATCH: Final = 100
AT_ONCE: Final = 32
WORKS: Final = (
    *(("item", size) for size in (100, 300, 800, 1_000, 4_000, 10_000)),
    *(("key", size) for size in (100, 1_000)),
    ("register", 100),
)


def store(kind: str, value: str, count: int, document: Path) -> None:
    """Store so many of a kind, each with that value."""
    with connect(document) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        if kind == "item":
            for _ in range(0, count, BATCH):
                client.queue("jobs").enqueue_many([value] * BATCH)
            return
        keys = client.dictionary("keys")
        write: Callable[[int], object] = {
            "key": lambda n: keys.put(f"key-{n:09}", value),
            "register": lambda n: client.register(f"register-{n:09}").write(value),
        }[kind]
        list(pool.map(write, range(count)))


def main() -> None:
    """Print a line for each work."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=6_000, help="Items, keys or registers of each work.")
    count = parser.parse_args().count
    for kind, size in WORKS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "cluster"
            with LocalCluster.create(folder) as cluster:
                cluster.start()
                cluster.ready()
                idle_mb = resident_mb(cluster)
                store(kind, "x" * (size - 2), count, folder / "cluster.toml")
                full_mb = resident_mb(cluster)
            found = sum(path.stat().st_size for path in (folder / "r1").glob("replica.sqlite3*"))
        line = {"footprint": kind, "value_bytes": size, "count": count, "disk_bytes": round(found / count)}
        print(
            json.dumps(line | {"idle_mb": round(idle_mb), "full_mb": round(full_mb)} | machine()), flush=True
        )


if __name__ == "__main__":
    main()
