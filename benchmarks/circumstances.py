"""What all experiments share: how they are asked, a cluster of their own, where a figure was found, and how processor time is read."""

import argparse
import os
import platform
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from peers import Peers

from quorate.cli.cluster.local_cluster import LocalCluster

REPOSITORY: Final = Path(__file__).parents[1]

Line = dict[str, Any]


class Setting(NamedTuple):
    """How an experiment is run. `options`: what single ones take."""

    runs: int
    replicas: int
    is_trial: bool
    peers: Peers | None
    works: list[str]
    options: argparse.Namespace


@contextmanager
def fresh(replicas: int) -> Iterator[LocalCluster]:
    """A cluster of its own, whose replicas are ready."""
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        LocalCluster.create(Path(folder) / "c", replicas=replicas) as cluster,
    ):
        cluster.start()
        cluster.ready()
        yield cluster


def machine() -> dict[str, Any]:
    """Where and on what the figures were found; `load` is that of the last minute."""
    git = ["git", "-C", str(REPOSITORY)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False
    )
    return {
        "load": round(os.getloadavg()[0], 2),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "commit": head.stdout.strip() + (" with changes" if changed.stdout else ""),
    }


def own_cpu_s() -> float:
    """Processor time of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_s(pid: int) -> float:
    """Processor time of another process, all threads that it has; to the nanosecond, where `stat` counts by 10 ms."""
    return sum(threads_s(pid).values())


def threads_s(pid: int) -> dict[str, float]:
    """Processor time of each thread of a process, by thread id."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks}
