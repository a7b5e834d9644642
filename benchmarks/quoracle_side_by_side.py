"""The calculus beside quoracle 0.0.4: the same optimum, and how long each takes.

For majorities of 5 to 13, one of 13 replicas of unequal capacity, and grids of 2x3 and 3x3, with 75 % reads: build the system, find the strategy of least load, and
ask it for load and capacity. Each repeat uses fresh names, so that no cache of either library helps; imports are not
counted. quoracle is a development dependency: `make test` has installed it.

    .venv/bin/python benchmarks/quoracle_side_by_side.py [--repeats N]

Exit code 1 when an optimum differs by more than 1e-6, or when the calculus is slower for the majority of 13.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import reduce
from importlib.metadata import version
from operator import add, mul
from pathlib import Path
from statistics import median
from typing import NamedTuple

warnings.simplefilter("ignore")  # pulp and matplotlib warn about themselves

import quoracle
import scipy.optimize  # noqa: F401  # so that its import is not counted

from quorate.adts.types.file import File
from quorate.quorums.choices.assignment import of_pair
from quorate.quorums.choices.choices import constraints_of
from quorate.quorums.planning.cost import Workload
from quorate.quorums.planning.strategy import best_strategy
from quorate.quorums.systems.systems import grid, majority

READ = 0.75
CLOSE = 1e-6
FILE = constraints_of(File(), replication="timestamps")
MIX = {"Read/Ok": READ, "Write/Ok": 1 - READ}

Figures = tuple[float, float]


def theirs(names: list[str], width: int, capacities: list[float]) -> Figures:
    """Load and capacity by quoracle; a width of 0 is a majority."""
    nodes = [quoracle.Node(name, capacity=each) for name, each in zip(names, capacities, strict=True)]
    rows = [nodes[at : at + width] for at in range(0, len(nodes), width)] if width else []
    reads = reduce(add, (reduce(mul, row) for row in rows)) if width else quoracle.majority(nodes)
    strategy = quoracle.QuorumSystem(reads=reads).strategy(read_fraction=READ)
    return strategy.load(read_fraction=READ), strategy.capacity(read_fraction=READ)


def ours(names: list[str], width: int, capacities: list[float]) -> Figures:
    """The same by the calculus."""
    rows = [names[at : at + width] for at in range(0, len(names), width)] if width else []
    capacity = dict(zip(names, capacities, strict=True))
    workload = Workload(((1.0, MIX),), capacity, capacity)
    found = best_strategy(of_pair(FILE, grid(rows) if width else majority(names)), workload)
    return found.load, found.capacity


class Case(NamedTuple):
    """A system: a majority where `width` is 0, else a grid; capacities from 1 to `capacity_max` in turn."""

    name: str
    replicas: int
    width: int = 0
    capacity_max: int = 1


CASES = [
    *(Case(f"majority of {count}", count) for count in range(5, 14, 2)),
    Case("13, unequal", 13, capacity_max=4),
    Case("grid 2x3", 6, 3),
    Case("grid 3x3", 9, 3),
]


def timed(
    run: Callable[[list[str], int, list[float]], Figures], case: Case, repeats: int
) -> tuple[Figures, list[float]]:
    """The figures, and the milliseconds of each repeat."""
    figures, times = (0.0, 0.0), []
    capacities = [1.0 + index % case.capacity_max for index in range(case.replicas)]
    for repeat in range(repeats):
        names = [f"{run.__name__}{repeat}x{index}" for index in range(case.replicas)]
        began = time.perf_counter()
        figures = run(names, case.width, capacities)
        times.append((time.perf_counter() - began) * 1000)
    return figures, times


def shown(times: list[float]) -> str:
    """Median, least and most."""
    return f"{median(times):9.2f} ({min(times):.2f} to {max(times):.2f})"


def machine() -> str:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{model}, {os.cpu_count()} cores, load averages {load}, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    """The commit, and whether files differ from it."""
    run = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*run, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*run, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return (head.stdout.strip() or "no git checkout") + (" with changes" if changed.stdout else "")


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="at least 5 are asked for")
    repeats = max(1, parser.parse_args().repeats)
    print(machine())
    print(
        f"commit {commit()}; quoracle {version('quoracle')}, pulp {version('pulp')}, scipy {version('scipy')}"
    )
    print(f"{repeats} repeats; milliseconds: median (least to most)\n")
    print(f"{'system':15} {'load':>10} {'differs':>9}   {'quoracle':>26}   {'quorate':>24}   {'times':>6}")
    good = True
    for case in CASES:
        (load, capacity), slow = timed(theirs, case, repeats)
        (our_load, our_capacity), quick = timed(ours, case, repeats)
        differs = max(abs(load - our_load), abs(capacity - our_capacity))
        factor = median(slow) / median(quick)
        print(
            f"{case.name:15} {our_load:10.7f} {differs:9.1e}   {shown(slow):>26}   {shown(quick):>24}   {factor:6.1f}"
        )
        good = good and differs <= CLOSE and (case.replicas != 13 or factor > 1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
