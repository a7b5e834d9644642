"""Where a figure was found, and how processor time is read: what all benchmarks need and no package gives."""

import os
import platform
import resource
import subprocess
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).parents[1]


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


def rounded(number: float) -> float:
    """To four digits."""
    return float(f"{number:.4g}")
