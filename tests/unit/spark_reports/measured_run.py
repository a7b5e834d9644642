"""A made-up measured run: three replicas, two of them in one rack whose outages are joint, and a client on top.

The client is the simplest that the model allows: an operation succeeds when enough votes are live at its start, is
`unavailable` otherwise, and now and then `unknown`. So measured figures should come out near the predicted ones.
"""

import csv
import gzip
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

START_S = 1_760_000_000.0
CLASSES_OF = {
    "queue": {
        "enq-1": {"Enq/Ok": [0, 1], "Deq/Ok": [3, 1], "Deq/Empty": [3, 0]},
        "enq-2": {"Enq/Ok": [0, 2], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
        "enq-3": {"Enq/Ok": [0, 3], "Deq/Ok": [1, 3], "Deq/Empty": [1, 0]},
        "read-write": {"Enq/Ok": [2, 2], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
    },
    "counter": {"alone": {"Add/Ok": [0, 1], "Read/Ok": [1, 0]}},
    "register": {"majority": {"Read/Ok": [2, 0], "Write/Ok": [0, 2], "Cas/Ok": [2, 2], "Cas/Fail": [2, 0]}},
}
RUN_CHOICES = {"queue": ("enq-1", "enq-2", "enq-3"), "register": ("majority",)}


FRONT_ENDS = ["c1", "c2", "c3"]


def choices(replicas: int = 3) -> dict[str, Any]:
    """Give the quorum choices of `run.json`, cut to what so few replicas allow."""
    return {
        name: {
            "adt": adt,
            "ordering": "quorum" if name == "read-write" else "clock",
            "classes": classes,
        }
        for adt, named in CLASSES_OF.items()
        for name, classes in named.items()
        if max(max(pair) for pair in classes.values()) <= replicas
    }


def document(replicas: int = 3, duration_s: float = 200.0, **changes: Any) -> dict[str, Any]:
    """Give `run.json` for a run of so many replicas, each object named for its choice."""
    found = choices(replicas)
    return {
        "format": 2,
        "replicas": {f"r{i + 1}": {"votes": 1, "rack": "a" if i < 2 else "b"} for i in range(replicas)},
        "choices": found,
        "objects": {f"{choice['adt']}/{name}": name for name, choice in found.items()},
        "front_ends": FRONT_ENDS,
        "window": [START_S, START_S + duration_s],
        "time_scale": 40,
        "plan": "a made-up plan",
        "made": {"quorate": "test"},
        **changes,
    }


def outages(rng: random.Random, duration_s: float) -> list[tuple[float, float]]:
    """Give disjoint outages of a few seconds, in order."""
    result = []
    time_s = rng.uniform(2, 20)
    while time_s < duration_s - 5:
        end_s = time_s + rng.uniform(0.5, 6)
        result.append((time_s, end_s))
        time_s = end_s + rng.expovariate(1 / 25)
    return result


def intervals(down: list[tuple[float, float]], duration_s: float) -> list[tuple[float, float, int]]:
    """Give the up and down intervals that tile the whole time."""
    result = []
    time_s = 0.0
    for start_s, end_s in down:
        result += [(time_s, start_s, 1), (start_s, end_s, 0)]
        time_s = end_s
    return [*result, (time_s, duration_s, 1)]


def write_run(
    folder: Path,
    *,
    seed: int = 1,
    operations: int = 2000,
    duration_s: float = 200.0,
    replicas: int = 3,
    failing: bool = True,
    compress: bool = False,
    run_choices: Mapping[str, tuple[str, ...]] = RUN_CHOICES,
) -> Path:
    """Write a run of about so many operations; equal arguments give equal files."""
    rng = random.Random(seed)
    rack = outages(rng, duration_s) if failing else []
    own = outages(rng, duration_s) if failing else []
    down = {f"r{i + 1}": own if i == 2 else rack for i in range(replicas)}
    folder.mkdir(parents=True, exist_ok=True)
    found = document(replicas, duration_s)
    (folder / "run.json").write_text(json.dumps(found), encoding="utf-8")
    with (folder / "replicas.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["replica", "start_s", "end_s", "up"])
        for replica, periods in down.items():
            for start_s, end_s, up in intervals(periods, duration_s):
                rows.writerow([replica, round(START_S + start_s, 3), round(START_S + end_s, 3), up])
    lines = [
        json.dumps(_operation(rng, found["choices"], down, duration_s, run_choices))
        for _ in range(operations)
    ]
    text = "".join(line + "\n" for line in lines)
    if compress:
        (folder / "operations.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (folder / "operations.jsonl").write_text(text, encoding="utf-8")
    return folder


def _operation(
    rng: random.Random,
    found: dict[str, Any],
    down: dict[str, list[tuple[float, float]]],
    duration_s: float,
    run_choices: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    runnable = [c for adt in run_choices.values() for c in adt if c in found] or ["alone"]
    choice = rng.choice(runnable)
    adt = found[choice]["adt"]
    event_class = rng.choice(list(found[choice]["classes"]))
    start_s = rng.uniform(0, duration_s)
    up = [r for r, periods in down.items() if not any(s <= start_s < e for s, e in periods)]
    operation = event_class.partition("/")[0]
    needed = max(found[choice]["classes"][f"{operation}/Ok"])
    outcome = "ok" if len(up) >= needed else "unavailable"
    if rng.random() < 0.004:
        outcome = "unknown"
    latency_s = rng.lognormvariate(-6, 0.6) if outcome == "ok" else 1.0 + rng.random() / 10
    return {
        "object": f"{adt}/{choice}",
        "adt": adt,
        "operation": operation,
        "event_class": event_class if outcome == "ok" else None,
        "choice": choice,
        "front_end": f"c{rng.randint(1, 3)}",
        "start_s": round(START_S + start_s, 6),
        "latency_s": round(latency_s, 6),
        "outcome": outcome,
        "answered": sorted(rng.sample(up, min(len(up), needed))),
    }


def write_links(folder: Path, *, seed: int = 1, duration_s: float = 200.0) -> int:
    """Cut front end c2 off r1 and r3 now and then, and leave a time in which nothing is known; give the number of rows."""
    rng = random.Random(seed)
    lines = ["front_end,replica,start_s,end_s,up"]
    for replica in ("r1", "r3"):
        for start_s, end_s, up in intervals(outages(rng, duration_s), duration_s):
            if not 40 <= start_s <= 50:
                lines.append(f"c2,{replica},{START_S + start_s:.3f},{START_S + end_s:.3f},{up}")
    (folder / "links.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def pack(folder: Path, name: str, *, keep: int = 0) -> None:
    """Turn JSON lines of operations or probes into Parquet by day and type, leaving the first `keep` lines in both."""
    from pyarrow import Table, dataset  # noqa: PLC0415 - only some tests need it

    path = folder / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    time_of = "start_s" if name == "operations" else "time_s"
    for row in rows:
        row["day"] = datetime.fromtimestamp(row[time_of], tz=UTC).strftime("%Y-%m-%d")
    parts = ["day", "adt"] if name == "operations" else ["day"]
    dataset.write_dataset(
        Table.from_pylist(rows),
        folder / name,
        format="parquet",
        partitioning=parts,
        partitioning_flavor="hive",
    )
    if keep:
        path.write_text("\n".join(lines[:keep]) + "\n", encoding="utf-8")
    else:
        path.unlink()


def start_on_whole_seconds(folder: Path) -> None:
    """Write the starts of packed operations as whole numbers, as a writer does whose clock has no more."""
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    for path in sorted((folder / "operations").rglob("*.parquet")):
        table = parquet.ParquetFile(path).read()
        starts = table.column("start_s").cast(pyarrow.int64(), safe=False)
        index = table.schema.get_field_index("start_s")
        parquet.write_table(table.set_column(index, "start_s", starts), path)


def compress(path: Path) -> None:
    """Put a file compressed in its place."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


BAD_OPERATIONS = [
    '{"object":"queue/demo","adt":"queue"',
    '{"adt":"queue"}',
    "[1, 2]",
    "null",
    '{"object":"queue/demo"}{"object":"queue/demo"}',
]
"""Lines that no change of a good operation can give."""

BAD_CHANGES: list[dict[str, Any]] = [
    {"latency_s": -0.5},
    {"latency_s": "0.5"},
    {"latency_s": None},
    {"start_s": 1.76e15},
    {"start_s": float("nan")},
    {"start_s": True},
    {"choice": "enq-9"},
    {"choice": 5},
    {"adt": "register"},
    {"object": "queue/nobodys"},
    {"object": "queue/enq-2"},
    {"front_end": "c9"},
    {"operation": "Peek"},
    {"outcome": "lost", "event_class": None},
    {"outcome": "ok", "event_class": None},
    {"outcome": "ok", "event_class": "Deq/Full"},
    {"outcome": "unavailable", "event_class": "Enq/Ok"},
    {"outcome": "ok", "operation": "Enq", "event_class": "Deq/Ok"},
    {"answered": ["r1", "r9"]},
    {"answered": [None]},
    {"answered": "r1"},
    {"start_s": START_S - 0.001},
    {"start_s": START_S + 1e6},
    {"start_s": -1.0},
]
"""Each makes a bad row of a good Enq under enq-1."""

BAD_INTERVALS = [
    "r1,1760000000,1760000001",
    "r1,a,1760000001,1",
    "r1,1d,2d,1",
    "r9,1760000000,1760000001,1",
    "r1,1760000001,1760000000,1",
    "r1,1760000000,1760000001,2",
    "r1,1760000000000000,1760000000000001,1",
    "r2,1760000000.5,1760000000.6,0",
    "r3,1760000100,1760000100,1",
    "r3,1760000100,1760000100,1",
]
BAD_LINKS = [
    "c9,r1,1760000000,1760000001,1",
    "c2,r9,1760000000,1760000001,1",
    "c2,r1,1760000000,1760000001",
]
BAD_PROBES = [
    "{",
    '{"replica":"r1","up":1}',
    '{"replica":"r9","time_s":1760000000,"up":1}',
    '{"replica":"r1","time_s":-1,"up":1}',
    '{"replica":"r1","time_s":1760000000,"up":2}',
    '{"replica":"r1","time_s":1760000000,"up":1,"latency_s":-1}',
    '{"replica":"r1","time_s":1760000001.25,"up":1,"latency_s":0.1}',
    '{"replica":"r1","time_s":1760000001.25,"up":0,"latency_s":null}',
]


def write_probes(folder: Path, *, seed: int = 1, step_s: float = 0.5, late_s: float = 0.3) -> int:
    """Add a prober's samples, which see a change a little late and get lost now and then; give their number."""
    rng = random.Random(seed)
    truth: dict[str, list[tuple[float, float, int]]] = {}
    for line in (folder / "replicas.csv").read_text().splitlines()[1:]:
        replica, start_s, end_s, up = line.split(",")
        if (
            up in ("0", "1")
            and float(start_s) < float(end_s) < START_S * 10
            and replica in ("r1", "r2", "r3")
        ):
            truth.setdefault(replica, []).append((float(start_s), float(end_s), int(up)))
    lines = []
    for replica, periods in truth.items():
        time_s = periods[0][0] + rng.random() * step_s
        while time_s < periods[-1][1]:
            seen = [up for start_s, end_s, up in periods if start_s <= time_s - late_s < end_s]
            if seen and rng.random() < 0.97:
                probe = {"replica": replica, "time_s": round(time_s, 6), "up": seen[0], "latency_s": 0.001}
                lines.append(json.dumps(probe if seen[0] else {**probe, "latency_s": None}))
            time_s += step_s * rng.uniform(0.9, 1.1)
    (folder / "probes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def good_enq() -> dict[str, Any]:
    """Give one good operation to spoil."""
    return {
        "object": "queue/enq-1",
        "adt": "queue",
        "operation": "Enq",
        "event_class": "Enq/Ok",
        "choice": "enq-1",
        "front_end": "c1",
        "start_s": START_S + 1,
        "latency_s": 0.001,
        "outcome": "ok",
        "answered": ["r1"],
    }


def write_bad_rows(folder: Path) -> int:
    """Add a file and lines of bad rows to a run; give how many rows are then kept aside. Blank lines are no rows.

    Of the intervals one of the twins is good, and a good row of r2 is contradicted: so they come to as many as are written.
    """
    lines = [*BAD_OPERATIONS, *(json.dumps({**good_enq(), **change}) for change in BAD_CHANGES)]
    twin = {**good_enq(), "start_s": START_S + 2.5}
    lines += [json.dumps({**twin, "latency_s": latency_s}) for latency_s in (10.0, 9.5)]
    (folder / "operations-bad.jsonl").write_text("\n\n".join(lines) + "\n  \n", encoding="utf-8")
    count = len(lines) - 1  # one of the twins is good
    for name, bad in (
        ("replicas.csv", BAD_INTERVALS),
        ("links.csv", BAD_LINKS),
        ("probes.jsonl", BAD_PROBES),
    ):
        if (folder / name).exists():
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write("\n".join(bad) + "\n")
            count += len(bad)
    return count
