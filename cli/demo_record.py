"""The files of a measured run, in the form that the Spark report reads (`quorate.spark_reports.contract`).

Owns `operations.jsonl` (one line per finished operation), `replicas.csv` (when each replica was up) and `choices.json`
(the quorum choices that were run).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quorate.adts.catalogue import adt_of
from quorate.api_specs.cluster import ClusterDocument
from quorate.cli.values import compact


class UpTimes:
    """When each replica was up, from marks in the order of time (seconds)."""

    def __init__(self, replicas: list[str], start_s: float) -> None:
        self._since = dict.fromkeys(replicas, (start_s, True))
        self._intervals: list[tuple[str, float, float, bool]] = []

    def mark(self, replica: str, now_s: float, up: bool) -> None:
        """The replica went down or came up at `now_s`."""
        since_s, was_up = self._since[replica]
        self._intervals.append((replica, since_s, now_s, was_up))
        self._since[replica] = (now_s, up)

    def finished(self, now_s: float) -> list[tuple[str, float, float, bool]]:
        """All intervals, the last of each replica ending at `now_s`."""
        last = [(replica, since_s, now_s, up) for replica, (since_s, up) in self._since.items()]
        return self._intervals + last


def write_intervals(path: Path, intervals: list[tuple[str, float, float, bool]]) -> None:
    """Write `replicas.csv`."""
    lines = [f"{replica},{start_s:.6f},{end_s:.6f},{int(up)}\n" for replica, start_s, end_s, up in intervals]
    path.write_text("replica,start_s,end_s,up\n" + "".join(lines), encoding="utf-8")


def write_operations(path: Path, operations: list[dict[str, Any]]) -> None:
    """Write `operations.jsonl`."""
    path.write_text("".join(compact(each) + "\n" for each in operations), encoding="utf-8")


def write_choices(path: Path, document: ClusterDocument, names: Mapping[str, str]) -> None:
    """Write `choices.json`; `names` gives each choice an example object."""
    choices = {}
    for name, example in names.items():
        classes = document.choice_of(example).classes
        choices[name] = {
            "adt": adt_of(example),
            "classes": {each: [sizes.initial, sizes.final] for each, sizes in classes.items()},
        }
    votes = {id: {"votes": votes} for id, votes in document.votes.items()}
    path.write_text(json.dumps({"replicas": votes, "choices": choices}, indent=2) + "\n", encoding="utf-8")
