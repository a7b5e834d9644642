"""What recording costs: operations a second with and without the recorder of `quorate measure`, in turn.

Three replicas on this machine; one process with two front ends, of which one is recorded as a measured run is. Each block
lets WORKERS tasks of one front end write registers as fast as they can; blocks follow each other as without, with, with,
without, so that what else the machine does falls on both. A block that records ends when its rows are written: else the next
one would pay for them. Told are the medians and the middle halves of operations a second, the differences of neighbours with
the 95 % interval of their median; the processor time of this process for one operation, which other work on the machine
disturbs less; and that of recording a row by itself.

    .venv/bin/python benchmarks/recorder_cost.py [--rounds N] [--block-s S]

Exit code 1 when recording costs 5 % or more of the processor time of an operation, by the median of neighbours.
"""

import argparse
import asyncio
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from quorate.adts.log import Value
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.protocol.core.values import Done, Write
from quorate.measurement.clock import RunClock
from quorate.measurement.run.load import observer
from quorate.measurement.run.recorder import Recorder

WORKERS: Final = 32
COST_MAX: Final = 0.05
ROWS_ALONE: Final = 50_000


class Block(NamedTuple):
    """What a block came to: operations a second, and seconds of processor time for each."""

    rate: float
    processor_s: float


async def block(client: AsyncClient, length_s: float, end: Callable[[], None] = lambda: None) -> Block:
    """Write registers for so long, and `end` it."""
    began_s, used_s, count = time.monotonic(), time.process_time(), 0

    async def work(number: int) -> None:
        nonlocal count
        register = client.register(f"cost-{number}")
        while time.monotonic() < began_s + length_s:
            await register.write(count)
            count += 1

    await asyncio.gather(*map(work, range(WORKERS)))
    end()
    taken_s = time.monotonic() - began_s
    return Block(count / taken_s, (time.process_time() - used_s) / count)


async def run(cluster: LocalCluster, folder: Path, rounds: int, length_s: float) -> list[tuple[Block, Block]]:
    """Pairs of neighbours: without, with."""
    choices = {f"register/cost-{number}": "majority" for number in range(WORKERS)}
    pairs = []
    async with connect_async(cluster.document) as bare, connect_async(cluster.document) as recorded:
        with closing(Recorder(folder / "operations-1.jsonl.gz")) as recorder:
            recorded.on_finished(observer("f1", choices, recorder.add, RunClock()))
            flushing = asyncio.ensure_future(recorder.run())
            for client in (bare, recorded):
                await block(client, length_s / 2)
            for number in range(rounds):
                is_bare_first = number % 2 == 0
                first = await block(bare, length_s) if is_bare_first else None
                with_ = await block(recorded, length_s, recorder.flush)
                pairs.append((first or await block(bare, length_s), with_))
            flushing.cancel()
            await asyncio.gather(flushing, return_exceptions=True)
    return pairs


def alone(path: Path) -> float:
    """The processor time of recording one row, all of it: made, encoded, compressed, written."""
    with closing(Recorder(path)) as recorder:
        observe = observer("f1", {"register/cost-1": "majority"}, recorder.add, RunClock())
        operation = Write("register/cost-1", Value("1"))
        outcome = Done(None, "Write/Ok", frozenset({"r1", "r2", "r3"}))
        began_s = time.process_time()
        for _ in range(ROWS_ALONE):
            observe(operation, 0.0, 0.001, outcome)
        recorder.flush()
        return (time.process_time() - began_s) / ROWS_ALONE


def spread(values: list[float], form: str) -> str:
    """The median, and the middle half."""
    low, _, high = quantiles(values, n=4)
    return f"{median(values):{form}} ({low:{form}} to {high:{form}})"


def of_median(values: list[float]) -> str:
    """The median and its 95 % interval, from the ranks between which it lies whatever the values' law is."""
    ranked, half = sorted(values), 1.96 * math.sqrt(len(values)) / 2
    low, high = (round(len(values) / 2 + each) for each in (-half, half))
    return (
        f"{median(values):.1%} (95 %: {ranked[max(0, low)]:.1%} to {ranked[min(len(ranked) - 1, high)]:.1%})"
    )


def commit() -> str:
    """The commit that is measured, if git knows."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> int:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--block-s", type=float, default=0.5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, LocalCluster.create(Path(name) / "cluster") as cluster:
        cluster.start()
        cluster.ready()
        pairs = asyncio.run(run(cluster, Path(name), options.rounds, options.block_s))
        alone_s = alone(Path(name) / "alone.jsonl.gz")
    bare, recorded = zip(*pairs, strict=True)
    costs = [with_.processor_s / without.processor_s - 1 for without, with_ in pairs]
    slower = [1 - with_.rate / without.rate for without, with_ in pairs]
    print(
        f"commit {commit()}, Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}"
    )
    print(
        f"load of the machine at the end: {os.getloadavg()[0]:.1f}; {options.rounds} rounds of {options.block_s:g} s"
    )
    print(f"operations a second without recording: {spread([each.rate for each in bare], '.0f')}")
    print(f"operations a second with recording:    {spread([each.rate for each in recorded], '.0f')}")
    print(f"slower by, pair by pair:               {of_median(slower)}")
    print(
        f"processor time without recording:      {spread([each.processor_s * 1e6 for each in bare], '.0f')} us"
    )
    print(
        f"processor time with recording:         {spread([each.processor_s * 1e6 for each in recorded], '.0f')} us"
    )
    print(
        f"a row by itself: {alone_s * 1e6:.1f} us, {alone_s / median([each.processor_s for each in bare]):.1%} of it"
    )
    print(f"recording costs of it, pair by pair:   {of_median(costs)}")
    return 1 if median(costs) >= COST_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
