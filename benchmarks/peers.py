"""Other systems at the same works, by scripts that are not part of this repository: run them, and set our figures beside theirs.

A script prints one JSON line per figure, with `peer`, `mode`, `workload`, `figure` and `median`; RUNS and ONLY in its
environment say how often and which works.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

PEERS: Final = {"RabbitMQ": "rabbitmq_peer.py", "etcd": "etcd_peer.py"}
WORKS: Final = {"A", "B", "C", "D"}
DEADLINE_S: Final = 900.0

Key = tuple[str, str]
Theirs = dict[tuple[str, str, str, str], float]

OPPONENTS: Final[Mapping[Key, tuple[str, str, str, str]]] = {
    ("A", "enqueue p50"): ("RabbitMQ", "pika", "A", "enqueue p50"),
    ("A", "dequeue p50"): ("RabbitMQ", "pika", "A", "dequeue (basic_get + ack sent) p50"),
    ("A", "write p50"): ("etcd", "grpc-aio", "A", "put p50"),
    ("A", "read p50"): ("etcd", "grpc-aio", "A", "get (linearizable) p50"),
    ("A", "compare-and-set p50"): ("etcd", "grpc-aio", "A", "CAS p50"),
    ("B", "enqueue"): ("RabbitMQ", "aio-pika", "B", "enqueue"),
    ("B", "dequeue"): ("RabbitMQ", "aio-pika", "B", "dequeue (prefetch 64, ack each)"),
    ("B", "put"): ("etcd", "grpc-aio", "B", "put"),
    ("B", "get"): ("etcd", "grpc-aio", "B", "get (linearizable)"),
    ("C", "enqueue"): ("etcd", "grpc-aio", "C", "enqueue txn 64 x 8 in flight"),
    ("C", "dequeue"): ("RabbitMQ", "pika select", "C", "dequeue, prefetch 2000, ack each 500"),
    ("D", "enqueue gap"): ("RabbitMQ", "aio-pika", "D", "gap after kill -9 leader node"),
    ("D", "dequeue gap"): ("RabbitMQ", "aio-pika", "D", "gap after kill -9 leader node"),
    ("REST", "enqueue"): ("etcd", "json-aiohttp", "B", "enqueue"),
}
"""Whose figure each of ours is held against: peer, mode, work, figure."""


def run_peers(folder: Path, python: str, works: Sequence[str]) -> Theirs:
    """What each peer's script, run once, finds."""
    wanted = {"B" if work == "REST" else work for work in works} & WORKS
    environment = {**os.environ, "RUNS": "1", "ONLY": ",".join(sorted(wanted))}
    environment.pop("PYTHONPATH", None)
    found: Theirs = {}
    for peer, script in PEERS.items():
        command = [python, str(folder / script)]
        told = subprocess.run(
            command, stdout=subprocess.PIPE, env=environment, text=True, check=False, timeout=DEADLINE_S
        )
        for line in map(json.loads, told.stdout.splitlines()):
            found[peer, line["mode"], line["workload"], line["figure"]] = line["median"]
    return found


def beside(key: Key, ours: Sequence[float], theirs: Sequence[Theirs]) -> dict[str, Any]:
    """Their figure of each run, and ours as a ratio of it."""
    opponent = OPPONENTS.get(key)
    if opponent is None or any(opponent not in each for each in theirs) or not theirs:
        return {}
    figures = [each[opponent] for each in theirs]
    ratios = sorted(mine / other for mine, other in zip(ours, figures, strict=True))
    return {
        "peer": " ".join(opponent[:2]),
        "peer_runs": figures,
        "ratio": round(median(ratios), 3),
        "ratio_min": round(ratios[0], 3),
        "ratio_max": round(ratios[-1], 3),
    }
