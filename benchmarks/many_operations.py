"""A measured run of many operations on Spark: what counting them costs, and whether it grows in proportion.

Makes Parquet files by day (three replicas, two of them in a rack whose outages are joint, three front ends, two quorum choices of
queues), and measures, in a process of its own for each size, the whole report. One JSON line per size: rows, seconds, processor
seconds, bytes shuffled and spilled, the most rows that a task took from a shuffle beside the mean of its stage, the most memory that
the Java process and Python held at once, machine, load, commit.

    .venv/bin/python benchmarks/many_operations.py [--rows 2000000 20000000] [--folder DIR] [--keep]

Needs 60 bytes of disk for each row, and 200 more while it works. Exit code 1 when a row is lost, or a size fails.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow
import pyarrow.parquet
from year_of_probes import DAY_S, START_S, Watch, changes, circumstances

DAYS: Final = 10
REPLICAS: Final = ("r1", "r2", "r3")
CHOICES: Final = {
    "enq-1": {"Enq/Ok": [0, 1], "Deq/Ok": [3, 1], "Deq/Empty": [3, 0]},
    "enq-2": {"Enq/Ok": [0, 2], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
}
NEEDED: Final = {"enq-1": (1, 3), "enq-2": (2, 2)}
"""Votes for an Enq and for a Deq."""


def write_run(folder: Path, rows: int, seed: int = 1) -> None:
    """Write a run of so many operations, a day at a time."""
    random = numpy.random.default_rng(seed)
    total_s = DAYS * DAY_S
    rack, own = changes(random, DAY_S, 1800, total_s), changes(random, DAY_S, 1800, total_s)
    folder.mkdir(parents=True)
    document = {
        "format": 2,
        "replicas": {name: {"votes": 1} for name in REPLICAS},
        "choices": {
            name: {"adt": "queue", "ordering": "clock", "classes": classes}
            for name, classes in CHOICES.items()
        },
        "objects": {f"queue/{name}": name for name in CHOICES},
        "front_ends": ["c1", "c2", "c3"],
        "window": [START_S, START_S + total_s],
        "time_scale": 1,
        "plan": "a made-up plan",
        "made": {"quorate": "benchmark"},
    }
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    lines = ["replica,start_s,end_s,up"]
    for name, times in zip(REPLICAS, (rack, rack, own), strict=True):
        edges = [0.0, *times[times < total_s].round(3), float(total_s)]
        lines += [
            f"{name},{START_S + start:.3f},{START_S + end:.3f},{int(index % 2 == 0)}"
            for index, (start, end) in enumerate(pairwise(edges))
        ]
    (folder / "replicas.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for day in range(DAYS):
        write_day(folder, day, rows // DAYS, (rack, own), random)


def write_day(
    folder: Path,
    day: int,
    rows: int,
    failing: tuple[numpy.ndarray, numpy.ndarray],
    random: numpy.random.Generator,
) -> None:
    """Write the operations of a day, in the order of their start; one in 250 has an outcome that nobody knows."""
    # Starts are told apart by their microseconds, so that none looks like another of the same front end.
    start_us = numpy.sort(random.choice(DAY_S * 1000, rows, replace=rows > DAY_S * 500)) * 1000
    start_us += numpy.arange(rows) % 1000
    rack, own = (numpy.searchsorted(times, day * DAY_S + start_us / 1e6) % 2 == 0 for times in failing)
    up = 2 * rack + own
    choice, operation = random.integers(0, 2, rows), random.integers(0, 2, rows)
    needed = numpy.array(list(NEEDED.values()))[choice, operation]
    unknown = random.random(rows) < 0.004
    ok = (up >= needed) & ~unknown
    names = numpy.array(list(CHOICES))[choice]
    table = pyarrow.table(
        {
            "object": pyarrow.array(numpy.char.add("queue/", names)),
            "operation": pyarrow.array(numpy.array(["Enq", "Deq"])[operation]),
            "event_class": pyarrow.array(numpy.array(["Enq/Ok", "Deq/Ok"])[operation], mask=~ok),
            "choice": pyarrow.array(names),
            "front_end": pyarrow.array(numpy.array(["c1", "c2", "c3"])[random.integers(0, 3, rows)]),
            "start_s": START_S + day * DAY_S + start_us / 1e6,
            "latency_s": numpy.where(ok, random.lognormal(-6, 0.6, rows), 1.0).round(6),
            "outcome": pyarrow.array(
                numpy.where(ok, "ok", numpy.where(unknown, "unknown", "unavailable")).astype(str)
            ),
            "adt": pyarrow.array(["queue"]).take(pyarrow.array(numpy.zeros(rows, dtype=numpy.int8))),
            "answered": pyarrow.array([["r1", "r2"]]).take(
                pyarrow.array(numpy.zeros(rows, dtype=numpy.int8))
            ),
        }
    )
    date = numpy.datetime64(START_S + day * DAY_S, "s").astype("datetime64[D]")
    place = folder / "operations" / f"day={date}"
    place.mkdir(parents=True)
    pyarrow.parquet.write_table(table, place / "part-0.parquet", compression="zstd")


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Make the report of a run, in this process."""
    from quorate.spark_reports.report import Options, make_report  # noqa: PLC0415 - the parent needs no Spark

    with tempfile.TemporaryDirectory(prefix="quorate-report-", dir=options.folder) as scratch:
        log = Path(scratch, "log")
        log.mkdir()
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": log.as_uri(),
            "spark.local.dir": scratch,
        }
        watch = Watch()
        watch.start()
        began = time.perf_counter()
        wanted = Options(
            engine="spark", master=options.master, driver_memory=options.driver_memory, conf=conf
        )
        report = make_report(folder, Path(scratch, "out"), wanted)
        seconds = time.perf_counter() - began
        watch.stop()
        figures = json.loads(report.json.read_text(encoding="utf-8"))
        shuffled = shuffles([path for path in log.rglob("events*") if path.is_file()])
    rows = next(each for each in figures["rows"] if each["kind"] == "operations")
    return {
        "rows": rows["read"],
        "used": rows["used"],
        "outages_seen": sum(each["seen"]["outages"] for each in figures["operations"]),
        "seconds": round(seconds, 1),
        "cpu_s": round(watch.cpu_s, 1),
        "us_per_row": round(watch.cpu_s / rows["read"] * 1e6, 2),
        "peak_java_mib": watch.java_peak >> 20,
        "peak_python_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        **shuffled,
    }


def shuffles(logs: list[Path]) -> dict[str, Any]:
    """What the tasks of an event log moved: bytes written to shuffles and spilled, and the fullest task of the largest stage."""
    written = spilled = 0
    taken: dict[int, list[int]] = defaultdict(list)
    for log in logs:
        for line in log.open(encoding="utf-8"):
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd":
                continue
            metrics = event.get("Task Metrics") or {}
            written += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            spilled += metrics["Disk Bytes Spilled"]
            taken[event["Stage ID"]].append(metrics["Shuffle Read Metrics"]["Total Records Read"])
    largest = sorted(taken.values(), key=sum)[-2:]
    return {
        "shuffle_mib": written >> 20,
        "spilled_mib": spilled >> 20,
        "fullest_task_of_largest_stages": [
            {"rows": sum(tasks), "tasks": len(tasks), "most": max(tasks)} for tasks in largest
        ],
    }


def run_size(rows: int, place: Path, options: argparse.Namespace) -> bool:
    """Make a run of so many operations, measure it in a process of its own, and print the line."""
    folder = place / f"{rows}-operations"
    if not folder.exists():
        write_run(folder, rows)
    load = [round(each, 1) for each in os.getloadavg()]
    command = [sys.executable, __file__, "--measure", str(folder), "--master", options.master]
    command += ["--folder", str(place)]
    command += ["--driver-memory", options.driver_memory] if options.driver_memory else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not options.keep:
        shutil.rmtree(folder)
    if done.returncode:
        print(json.dumps({"rows": rows, "failed": done.returncode}), flush=True)
        return False
    found = json.loads(done.stdout)
    print(json.dumps(found | {"load_average_before": load} | circumstances(options)), flush=True)
    return bool(found["rows"] == found["used"] == rows)


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--folder", type=Path, help="where to make the files; else a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use those that are there")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--driver-memory", help="else as the report chooses it")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return 0
    with tempfile.TemporaryDirectory(prefix="quorate-operations-") as temporary:
        place = options.folder or Path(temporary)
        good = [run_size(rows, place, options) for rows in options.rows]
        return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
