"""Shows that files are bounded by what is alive and by the windows, not by history: 24,000 operations, 100 live items.

12,000 items are enqueued and dequeued again in batches of 100, so that never more than 100 wait. The cluster file
shortens the windows: what is taken is remembered for memory_s = retry_window_s + deadline_s_max + 2 * offset_max_s = 2 + 1.9 +
2 * 1 = 5.9 s, and at least consumed_lag_s = 1 s. The arithmetic of the bound:

* A row is deleted in the first round of the janitor (one a second) after both have passed: it lives 5.9 + 1 s, and half
  as long again is granted for a busy machine. So the rows at any moment are at most those of the busiest 10.4 seconds, which
  the test knows for it counts what it enqueued, and the 100 live ones.
* A row has its value (3500 bytes), its id and timestamp (34 bytes each), and takes a page of 4096 bytes, for two do not fit there. With the
  timestamp again in the index that is under 4300 bytes. Free pages up to 500 (2 MiB) may stay in the file, and the write-ahead log
  is cut back to 16 MiB. History alone would be 12,000 rows of such a page in each file, and growing.

The load is held to 420 items a second, also after a busy machine has held it up: the windows are short beside the run then.
"""

import asyncio
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncQueue, OutcomeUnknown, Unavailable, connect_async
from quorate.replica.data_folder.identity import DATABASE_FILE
from quorate.replica.store.database import VACUUM_PAGES, WAL_BYTES_MAX
from tests.system.harness import QUICK, Clusters, until_now

ITEMS: Final = 12_000
LIVE_MAX: Final = 100
VALUE: Final = "x" * 3500
ITEMS_PER_S: Final = 420
ROW_LIFE_S: Final = 10.4
ROW_BYTES: Final = 4300
PAGE_BYTES: Final = 4096
HISTORY_BYTES: Final = ITEMS * PAGE_BYTES
SAMPLE_S: Final = 0.5
DEADLINE_S: Final = 150.0
AT_REST_S: Final = 60.0


class Sampled:
    """What was enqueued when, and how many rows each replica had meanwhile."""

    def __init__(self) -> None:
        self.enqueued: list[float] = []
        """The time of each batch of LIVE_MAX items."""
        self.rows_max = 0
        self.bytes_max = 0

    def busiest(self, life_s: float) -> int:
        """The most items that were enqueued in any `life_s` seconds."""
        most = first = 0
        for place, at_s in enumerate(self.enqueued):
            while self.enqueued[first] < at_s - life_s:
                first += 1
            most = max(most, place - first + 1)
        return most * LIVE_MAX


def rows(cluster: LocalCluster, replica: str) -> int:
    """Rows in a replica's database, read beside it."""
    file = cluster.data_folder(replica) / DATABASE_FILE
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)
    try:
        return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])
    finally:
        connection.close()


def folder_bytes(folder: Path) -> int:
    """Bytes of all files of a data folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


async def _emptied(queue: AsyncQueue) -> None:
    while True:
        with suppress(OutcomeUnknown, Unavailable):
            if not await queue.dequeue(max_items=LIVE_MAX):
                return


async def _operate(cluster: LocalCluster, sampled: Sampled) -> None:
    async with connect_async(cluster.document, deadline_s=1.9) as client:
        queue = client.queue("jobs")
        next_s = time.monotonic()
        for first in range(0, ITEMS, LIVE_MAX):
            items = [f"{first + number}-{VALUE}" for number in range(LIVE_MAX)]
            with suppress(
                OutcomeUnknown, Unavailable
            ):  # A busy machine may take longer than this short deadline lasts.
                await queue.enqueue_many(items)
            sampled.enqueued.append(time.monotonic())
            await _emptied(queue)
            next_s = max(next_s + LIVE_MAX / ITEMS_PER_S, time.monotonic())
            await asyncio.sleep(next_s - time.monotonic())


async def _sample(cluster: LocalCluster, sampled: Sampled) -> None:
    while True:
        for replica in cluster.urls:
            sampled.rows_max = max(sampled.rows_max, await asyncio.to_thread(rows, cluster, replica))
            sampled.bytes_max = max(sampled.bytes_max, folder_bytes(cluster.data_folder(replica)))
        await asyncio.sleep(SAMPLE_S)


async def _run(cluster: LocalCluster, sampled: Sampled) -> None:
    async with asyncio.timeout(DEADLINE_S):
        sampling = asyncio.create_task(_sample(cluster, sampled))
        try:
            await _operate(cluster, sampled)
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)


@pytest.mark.slow
def test_files_stay_small_whatever_the_history(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    sampled = Sampled()
    asyncio.run(_run(cluster, sampled))
    rows_bound = sampled.busiest(ROW_LIFE_S) + LIVE_MAX
    bytes_bound = rows_bound * ROW_BYTES + VACUUM_PAGES * PAGE_BYTES + WAL_BYTES_MAX
    took_s = sampled.enqueued[-1] - sampled.enqueued[0]
    print(
        f"{2 * ITEMS} operations in {took_s:.0f} s; rows at most {sampled.rows_max} (bound {rows_bound}); "
        f"bytes at most {sampled.bytes_max} (bound {bytes_bound})"
    )
    assert rows_bound < ITEMS / 2, "the load was too short to tell a bound from the whole history"
    assert bytes_bound < HISTORY_BYTES, "the same in bytes"
    assert LIVE_MAX <= sampled.rows_max <= rows_bound
    assert sampled.bytes_max <= bytes_bound
    until_now(
        lambda: max(rows(cluster, replica) for replica in cluster.urls) <= LIVE_MAX,
        "all delete their history at rest",
        deadline_s=AT_REST_S,
    )
