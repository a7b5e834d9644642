"""A made-up measured run: three replicas, two of them in one rack whose outages are joint, and a client on top.

The client is the simplest that the model allows: an operation succeeds when enough votes are live at its start, is
`unavailable` otherwise, and now and then `unknown`. So measured figures should come out near the predicted ones.
"""

import csv
import gzip
import json
import random
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
    lines = [json.dumps(_operation(rng, found["choices"], down, duration_s)) for _ in range(operations)]
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
) -> dict[str, Any]:
    runnable = [c for adt in RUN_CHOICES.values() for c in adt if c in found] or ["alone"]
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
]


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
    """Add a file and lines of bad rows to a run; give their number. Blank lines are no rows."""
    lines = [*BAD_OPERATIONS, *(json.dumps({**good_enq(), **change}) for change in BAD_CHANGES)]
    (folder / "operations-bad.jsonl").write_text("\n\n".join(lines) + "\n  \n", encoding="utf-8")
    with (folder / "replicas.csv").open("a", encoding="utf-8") as file:
        file.write("\n".join(BAD_INTERVALS) + "\n")
    return len(lines) + len(BAD_INTERVALS)
