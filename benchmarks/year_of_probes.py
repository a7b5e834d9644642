"""A year of 1-second probes of nine replicas, 284 million rows, on two cores and 4 GiB of driver memory.

Makes Parquet files by day (three racks whose outages are joint, replicas that fail by themselves, jitter of 2 ms, one
probe in a hundred lost), and measures, in a process of its own for each size, what a report does with them: samples to
intervals, intervals to joint up-sets, and the time of each up-set. One JSON line per size: rows, seconds, rows per second,
processor seconds, the most memory that the Java process and Python held at once, results, machine, load, commit.

    .venv/bin/python benchmarks/year_of_probes.py [--days 4 36 365] [--folder DIR] [--keep]

Needs 2 GB of disk for the year, and 4 GB more while it sorts. Exit code 1 when a row is lost, or a size fails.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow
import pyarrow.parquet

REPLICAS: Final = [f"r{index + 1}" for index in range(9)]
RACKS: Final = 3
DAY_S: Final = 86_400
START_S: Final = 1_735_689_600  # 2025-01-01
LOST: Final = 0.01
JITTER_S: Final = 0.002
REPLICA_UP_S, REPLICA_DOWN_S = 7 * DAY_S, 1800
RACK_UP_S, RACK_DOWN_S = 30 * DAY_S, 7200
SAMPLE_EVERY_S: Final = 0.25


def changes(random: numpy.random.Generator, up_s: float, down_s: float, total_s: float) -> numpy.ndarray:
    """When something that is up at 0 goes down and up in turn, both for exponential times."""
    count = int(4 * total_s / (up_s + down_s)) + 20
    lengths = numpy.column_stack([random.exponential(up_s, count), random.exponential(down_s, count)])
    return lengths.ravel().cumsum()


def write_days(folder: Path, days: int, seed: int = 1) -> int:
    """Write `probes/day=…/part-0.parquet` for each day; give the number of rows."""
    random = numpy.random.default_rng(seed)
    own = [changes(random, REPLICA_UP_S, REPLICA_DOWN_S, days * DAY_S) for _ in REPLICAS]
    racks = [changes(random, RACK_UP_S, RACK_DOWN_S, days * DAY_S) for _ in range(RACKS)]
    return sum(write_day(folder, day, own, racks, random) for day in range(days))


def write_day(
    folder: Path, day: int, own: list[numpy.ndarray], racks: list[numpy.ndarray], random: numpy.random.Generator
) -> int:
    """Write one day, in the order in which a prober goes round; give its number of rows."""
    count = len(REPLICAS)
    rounds = numpy.arange(DAY_S, dtype=float)[:, None] + day * DAY_S
    sent_s = rounds + numpy.arange(count) / 100 + random.normal(0, JITTER_S, (DAY_S, count))
    up = numpy.empty((DAY_S, count), dtype=bool)
    for index in range(count):
        times = sent_s[:, index]
        alone, rack = own[index], racks[index * RACKS // count]
        up[:, index] = (numpy.searchsorted(alone, times) % 2 == 0) & (numpy.searchsorted(rack, times) % 2 == 0)
    kept = random.random(DAY_S * count) >= LOST
    is_up = up.ravel()[kept]
    numbers = numpy.tile(numpy.arange(count, dtype=numpy.int32), DAY_S)[kept]
    latency_s = numpy.round(random.lognormal(-7, 0.5, is_up.size), 6)
    names = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(REPLICAS))
    table = pyarrow.table(
        {
            "replica": names.cast(pyarrow.string()),
            "time_s": numpy.round((sent_s + START_S).ravel()[kept], 6),
            "up": is_up.astype(numpy.int32),
            "latency_s": pyarrow.array(latency_s, mask=~is_up),
        }
    )
    date = numpy.datetime64(START_S + day * DAY_S, "s").astype("datetime64[D]")
    place = folder / "probes" / f"day={date}"
    place.mkdir(parents=True)
    pyarrow.parquet.write_table(table, place / "part-0.parquet", compression="zstd")
    return table.num_rows


class Watch(threading.Thread):
    """Looks at this process and all below it a few times a second: their memory now, and their processor time so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.java_peak = self.python_peak = 0
        self.cpu_s = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        """Look until stopped."""
        while not self._done.wait(SAMPLE_EVERY_S):
            self.look()

    def stop(self) -> None:
        """Look a last time."""
        self._done.set()
        self.join()
        self.look()

    def look(self) -> None:
        """Add up what the processes hold."""
        held = {"java": 0, "python": 0}
        cpu_s = 0.0
        for process in family(os.getpid()):
            held["java" if process["name"] == "java" else "python"] += process["rss"]
            cpu_s += process["cpu_s"]
        self.java_peak = max(self.java_peak, held["java"])
        self.python_peak = max(self.python_peak, held["python"])
        self.cpu_s = max(self.cpu_s, cpu_s)


def family(top: int) -> list[dict[str, Any]]:
    """A process and all below it: name, resident bytes, processor seconds."""
    seen: dict[int, dict[str, Any]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        ticks = sum(map(int, fields[11:15]))
        seen[int(stat.parent.name)] = {
            "name": name,
            "parent": int(fields[1]),
            "rss": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
            "cpu_s": ticks / os.sysconf("SC_CLK_TCK"),
        }
    found, level = [], {top}
    while level:
        found += [seen[each] for each in level if each in seen]
        level = {each for each, process in seen.items() if process["parent"] in level}
    return found


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the jobs over a folder of probes, in this process."""
    from quorate.spark_reports import probe_files, probe_jobs, trace_jobs  # noqa: PLC0415 - the parent needs no Spark
    from quorate.spark_reports.probes import Spacing  # noqa: PLC0415
    from quorate.spark_reports.session import local_session  # noqa: PLC0415

    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    watch = Watch()
    watch.start()
    began = time.perf_counter()
    memory, lost_max = options.driver_memory, options.lost_max
    with local_session(options.master, driver_memory=memory, input_bytes=size) as spark:
        started_s = time.perf_counter() - began
        tested = probe_jobs.tested_samples(probe_files.read_samples(spark, [folder]), REPLICAS)
        spacing = Spacing(1_000_000, lost_max) if options.step else None
        found = probe_jobs.find_intervals(tested, REPLICAS, spacing, parts=probe_jobs.parts_of(size))
        intervals_s = time.perf_counter() - began
        votes = spark.createDataFrame([(name, 1 << i, 1) for i, name in enumerate(REPLICAS)], trace_jobs.REPLICA_SCHEMA)
        intervals = found.intervals.join(votes, "replica").persist()
        up_sets = trace_jobs.joint_up_sets(intervals, len(REPLICAS)).persist()
        times = trace_jobs.up_set_times(up_sets).collect()
        result = {
            "rows": found.samples,
            "step_us": found.spacing.step_us,
            "intervals": intervals.count(),
            "joint_intervals": up_sets.count(),
            "up_sets": len(times),
            "known_days": round(sum(row.time_us for row in times) / 1e6 / DAY_S, 3),
            "all_up": round(max(row.time_us for row in times) / sum(row.time_us for row in times), 6),
            "rejected": found.rejected.count(),
        }
        total_s = time.perf_counter() - began
    watch.stop()
    return result | {
        "input_mib": size >> 20,
        "start_s": round(started_s, 1),
        "intervals_s": round(intervals_s - started_s, 1),
        "seconds": round(total_s, 1),
        "rows_per_s": round(found.samples / (total_s - started_s)),
        "cpu_s": round(watch.cpu_s, 1),
        "peak_java_mib": watch.java_peak >> 20,
        "peak_python_mib": watch.python_peak >> 20,
    }


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """What the figures were measured on, and with."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    run = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*run, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*run, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return {
        "master": options.master,
        "driver_memory": options.driver_memory,
        "machine": f"{model}, {os.cpu_count()} cores",
        "load_average_after": [round(each, 1) for each in os.getloadavg()],
        "commit": head.stdout.strip() + (" with changes" if changed.stdout else ""),
    }


def run_size(days: int, place: Path, options: argparse.Namespace) -> bool:
    """Make the files of so many days, measure them in a process of their own, and print the line."""
    folder = place / f"{days}-days"
    began = time.perf_counter()
    if not folder.exists():
        rows = write_days(folder, days)
        (folder / "rows").write_text(str(rows))
    rows = int((folder / "rows").read_text())
    made_s = time.perf_counter() - began
    load = [round(each, 1) for each in os.getloadavg()]
    command = [sys.executable, __file__, "--measure", str(folder / "probes"), "--master", options.master]
    command += ["--driver-memory", options.driver_memory, "--lost-max", str(options.lost_max)]
    command += ["--step"] if options.step else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not options.keep:
        shutil.rmtree(folder)
    if done.returncode:
        print(json.dumps({"days": days, "failed": done.returncode}), flush=True)
        return False
    found = json.loads(done.stdout)
    line = {"days": days, **found, "made_s": round(made_s, 1), "load_average_before": load}
    print(json.dumps(line | circumstances(options)), flush=True)
    return bool(found["rows"] == rows and found["rejected"] == 0)


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, nargs="+", default=[4, 36, 365])
    parser.add_argument("--folder", type=Path, help="where to make the files; else a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use those that are there")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument("--lost-max", type=int, default=3, help="lost probes in a row that are bridged")
    parser.add_argument("--step", action="store_true", help="say that the step is a second; else it is measured")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return 0
    with tempfile.TemporaryDirectory(prefix="quorate-probes-") as temporary:
        place = options.folder or Path(temporary)
        return 0 if all([run_size(days, place, options) for days in options.days]) else 1


if __name__ == "__main__":
    sys.exit(main())
