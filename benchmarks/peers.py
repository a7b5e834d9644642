"""Other systems at the same works, by scripts that are not part of this repository: run them, and set our figures beside theirs.

A script prints one JSON line per figure, with `peer`, `mode`, `workload`, `figure` and `median`; RUNS and ONLY in its
environment say how often and which works. Of etcd's three clients only gRPC is run (`peer_run.py`), and its JSON gateway
under our load generator.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

HERE: Final = Path(__file__).parent
RUN: Final = HERE / "peer_run.py"
RABBITMQ_WORKS: Final = {"A", "B", "C", "D"}
ETCD_WORKS: Final = {"A", "B", "C", "REST"}
DEADLINE_S: Final = 900.0

Key = tuple[str, str]
Figure = tuple[str, str, str, str]
Theirs = dict[Figure, float]

OPPONENTS: Final[Mapping[Key, Figure]] = {
    ("A", "enqueue p50"): ("RabbitMQ", "pika", "A", "enqueue p50"),
    ("A", "dequeue p50"): ("RabbitMQ", "pika", "A", "dequeue (basic_get + ack sent) p50"),
    ("A", "put p50"): ("etcd", "grpc-aio", "A", "put p50"),
    ("A", "get p50"): ("etcd", "grpc-aio", "A", "get (linearizable) p50"),
    ("A", "compare-and-set p50"): ("etcd", "grpc-aio", "A", "CAS p50"),
    ("B", "enqueue"): ("RabbitMQ", "aio-pika", "B", "enqueue"),
    ("B", "dequeue"): ("RabbitMQ", "aio-pika", "B", "dequeue (prefetch 64, ack each)"),
    ("B", "put"): ("etcd", "grpc-aio", "B", "put"),
    ("B", "get"): ("etcd", "grpc-aio", "B", "get (linearizable)"),
    ("C", "batch enqueue"): ("etcd", "grpc-aio", "C", "enqueue txn 64 x 8 in flight"),
    ("C", "batch dequeue"): ("RabbitMQ", "pika select", "C", "dequeue, prefetch 2000, ack each 500"),
    ("D", "enqueue gap"): ("RabbitMQ", "aio-pika", "D", "gap after kill -9 leader node"),
    ("D", "dequeue gap"): ("RabbitMQ", "aio-pika", "D", "gap after kill -9 leader node"),
    ("REST", "enqueue"): ("etcd", "json-plain, leader", "REST", "enqueue"),
}
"""Whose figure each of ours is held against: peer, mode, work, figure."""

BETTER_WAYS: Final[Mapping[Figure, Figure]] = {
    ("etcd", "grpc-aio", "C", "enqueue txn 64 x 8 in flight"): (
        "etcd",
        "grpc-aio",
        "C",
        "enqueue txn 64 x 16 in flight",
    ),
    ("etcd", "json-plain, leader", "REST", "enqueue"): (
        "etcd",
        "json-plain, all members",
        "REST",
        "enqueue",
    ),
}
"""A second way to do the same; the quicker one of each run counts."""


class Peers:
    """The folder of scripts, and a Python that has the packages they need."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder: Final = folder
        self._python: Final = python

    def works(self, works: Sequence[str]) -> Theirs:
        """What each peer's script, run once, finds."""
        found: Theirs = {}
        if wanted := ",".join(sorted(RABBITMQ_WORKS & set(works))):
            found |= self._figures("RabbitMQ", [str(self._folder / "rabbitmq_peer.py")], wanted)
        if wanted := ",".join(sorted(ETCD_WORKS & set(works))):
            found |= self._figures("etcd", [str(RUN), str(self._folder), "etcd", "--works", wanted], "")
        return found

    def lines(self, *words: str, script: str = RUN.name) -> list[dict[str, Any]]:
        """What `peer_run.py`, or another script beside it, prints when told so."""
        return self._told([str(HERE / script), str(self._folder), *words], "")

    @contextmanager
    def asked(self, *words: str) -> Iterator["Asked"]:
        """`peer_run.py`, asked by lines."""
        command = [self._python, str(RUN), str(self._folder), *words]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment(""), text=True
        )
        try:
            yield Asked(process)
        finally:
            process.communicate(timeout=DEADLINE_S)

    def _figures(self, peer: str, words: list[str], only: str) -> Theirs:
        try:
            lines = self._told(words, only)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{peer} failed, and its figures of this run are missing: {error}", file=sys.stderr)
            return {}
        return {(peer, line["mode"], line["workload"], line["figure"]): line["median"] for line in lines}

    def _told(self, words: list[str], only: str) -> list[dict[str, Any]]:
        """The lines of a script that ended well; its own words go to standard error."""
        done = subprocess.run(
            [self._python, *words],
            stdout=subprocess.PIPE,
            env=self._environment(only),
            text=True,
            check=True,
            timeout=DEADLINE_S,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _environment(self, only: str) -> dict[str, str]:
        environment = {**os.environ, "RUNS": "1", "ONLY": only}
        environment.pop("PYTHONPATH", None)
        return environment


class Asked:
    """A process that answers each line with one; its first line says that it is ready."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process: Final = process
        self._answer()

    def ask(self, **question: Any) -> dict[str, Any]:
        """Its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peers' script ended; its reason is in standard error")
        answer: dict[str, Any] = json.loads(line)
        return answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--peers` and `--peers-python`."""
    parser.add_argument(
        "--peers", type=Path, default=os.environ.get("QUORATE_PEERS"), help="a folder with scripts for others"
    )
    parser.add_argument(
        "--peers-python", default=sys.executable, help="a Python that has the peers' client packages"
    )


def chosen(options: argparse.Namespace) -> Peers | None:
    """The peers that were asked for."""
    return Peers(Path(options.peers), options.peers_python) if options.peers else None


def beside(key: Key, ours: Sequence[float], theirs: Sequence[Theirs]) -> dict[str, Any]:
    """Their figure of each run, and ours as a ratio of it; runs in which theirs failed are left out."""
    opponent = OPPONENTS.get(key)
    if opponent is None:
        return {}
    other_way = BETTER_WAYS.get(opponent, opponent)
    pairs = [
        (mine, max(each[opponent], each.get(other_way, 0.0)))
        for mine, each in zip(ours, theirs, strict=False)
        if opponent in each
    ]
    if not pairs:
        return {}
    ratios = sorted(mine / other for mine, other in pairs)
    return {
        "peer": " ".join(opponent[:2]),
        "peer_runs": [other for _, other in pairs],
        "ratio": round(median(ratios), 3),
        "ratio_min": round(ratios[0], 3),
        "ratio_max": round(ratios[-1], 3),
    }
