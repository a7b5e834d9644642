"""A year of 1-second probes of nine replicas, 284 million rows, on two cores and 4 GiB of driver memory.

Makes Parquet files by day (three racks whose outages are joint, replicas that fail by themselves, jitter of 2 ms, one
probe in a hundred lost), and measures, in a process of its own for each size, the whole report of them for a queue. One JSON line per size: rows, seconds, rows per second,
processor seconds, the most memory that the Java process and Python held at once, results, machine, load, commit.

With `--increments` a second line for each size: the run that takes the last day into a store that has the others
(`one_day`), and the run before, which took these (`days_before`).

    .venv/bin/python benchmarks/year_of_probes.py [--days 4 36 365] [--folder DIR] [--keep] [--increments]

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
from dataclasses import replace
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
    folder: Path,
    day: int,
    own: list[numpy.ndarray],
    racks: list[numpy.ndarray],
    random: numpy.random.Generator,
) -> int:
    """Write one day, in the order in which a prober goes round; give its number of rows."""
    count = len(REPLICAS)
    rounds = numpy.arange(DAY_S, dtype=float)[:, None] + day * DAY_S
    sent_s = rounds + numpy.arange(count) / 100 + random.normal(0, JITTER_S, (DAY_S, count))
    up = numpy.empty((DAY_S, count), dtype=bool)
    for index in range(count):
        times = sent_s[:, index]
        alone, rack = own[index], racks[index * RACKS // count]
        up[:, index] = (numpy.searchsorted(alone, times) % 2 == 0) & (
            numpy.searchsorted(rack, times) % 2 == 0
        )
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
    """Make the report of a folder of probes, in this process."""
    from quorate.spark_reports.report import Options, make_report  # noqa: PLC0415 - the parent needs no Spark

    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    wanted = Options(adt="queue", step_s=1.0 if options.step else None)
    if options.store:
        wanted = replace(wanted, store=options.store, cluster="measured")
    elif options.engine == "spark":
        spark = {"master": options.master, "driver_memory": options.driver_memory}
        wanted = replace(wanted, engine="spark", **spark)
    else:
        wanted = replace(wanted, engine="python")
    watch = Watch()
    watch.start()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="quorate-report-") as out:
        report = make_report(folder, Path(out), wanted)
        seconds = time.perf_counter() - began
        figures = json.loads(report.json.read_text(encoding="utf-8"))
    watch.stop()
    rows = next(each for each in figures["rows"] if each["kind"] == "probes")
    return {
        "rows": rows["read"],
        "used": rows["used"],
        "up_changes": figures["window"]["up_changes"],
        "seconds": round(seconds, 1),
        "rows_per_s": round(rows["read"] / seconds),
        "cpu_s": round(watch.cpu_s, 1),
        "rows_per_cpu_s": round(rows["read"] / watch.cpu_s),
        "input_mib": size >> 20,
        "peak_java_mib": watch.java_peak >> 20,
        "peak_python_mib": watch.python_peak >> 20,
    }


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """What the figures were measured on, and with."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine()
    )
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
    try:
        found = measured(folder, options)
        line = {"days": days, **found, "made_s": round(made_s, 1), "load_average_before": load}
        print(json.dumps(line | {"engine": options.engine} | circumstances(options)), flush=True)
        is_whole = found["rows"] == found["used"] == rows
        if options.increments:
            before, one_day = increments(folder, options)
            line = {"days": days, "one_day": one_day, "days_before": before, "load_average_before": load}
            print(json.dumps(line | circumstances(options)), flush=True)
            same = ("rows", "used", "up_changes")
            is_whole = is_whole and all(one_day[name] == found[name] for name in same)
        return bool(is_whole)
    except subprocess.CalledProcessError as error:
        print(json.dumps({"days": days, "failed": error.returncode}), flush=True)
        return False
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def measured(folder: Path, options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """What a process of its own measures."""
    command = [sys.executable, __file__, "--measure", str(folder), "--master", options.master]
    command += ["--driver-memory", options.driver_memory, "--engine", options.engine, *more]
    command += ["--step"] if options.step else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def increments(folder: Path, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take all days but the last into a store, and then the last."""
    *_, last = sorted((folder / "probes").iterdir())
    with tempfile.TemporaryDirectory(prefix="quorate-store-") as store:
        aside = last.rename(folder / "last-day")
        try:
            before = measured(folder, options, "--store", store, "--step")
        finally:
            aside.rename(last)
        return before, measured(folder, options, "--store", store, "--step")


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--days", type=int, nargs="+", default=[4, 36, 365])
    parser.add_argument("--folder", type=Path, help="where to make the files; else a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use those that are there")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument(
        "--step", action="store_true", help="say that the step is a second; else it is measured"
    )
    parser.add_argument("--engine", choices=("spark", "python"), default="spark")
    parser.add_argument(
        "--increments", action="store_true", help="measure the run of one day into a store too; with --step"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.step = options.step or options.increments
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return 0
    with tempfile.TemporaryDirectory(prefix="quorate-probes-") as temporary:
        place = options.folder or Path(temporary)
        good = [run_size(days, place, options) for days in options.days]
        return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
