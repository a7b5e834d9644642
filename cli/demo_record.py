"""The files of a measured run, in the form that the Spark report reads (`quorate.spark_reports.contract`).

Owns `operations.jsonl` (one line per finished operation), `replicas.csv` (when each replica was up) and `choices.json`
(the quorum choices that were run). Of a choice in numbers of votes `choices.json` has `classes`: event class to [initial,
final]. Of one in quorum systems, for which no numbers of votes would be true, it has `initials` (operation to system) and
`finals` (event class to system) instead, in the language of `quorate.quorums.expressions`; "choose(0; )" is nobody.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from quorate.adts.catalogue import adt_of
from quorate.adts.specification import operation_of
from quorate.api_specs.cluster import ClusterDocument
from quorate.cli.values import compact
from quorate.client_sdk.effects import (
    Bury,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Items,
    Operation,
    Outcome,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    Write,
)
from quorate.quorums.choice import QuorumChoice
from quorate.quorums.system_choice import SystemChoice

Observer = Callable[[Operation, float, float, Outcome], None]
Interval = tuple[str, float, float, bool]
"""Replica, start and end in seconds since 1970, and whether it was up."""

_OPERATIONS: Final[Mapping[type[Operation], str]] = {
    Enqueue: "Enq",
    Dequeue: "Deq",
    Peek: "Peek",
    QueueSize: "Size",
    CompareAndSet: "Cas",
    PutIfAbsent: "PutIfAbsent",
    Items: "Items",
    Bury: "Delete",
}


class Recorder:
    """Records of finished operations. `choices` names each quorum choice by an object that is run with it."""

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.records: Final[list[dict[str, Any]]] = []
        self._choices: Final = {example: name for name, example in choices.items()}

    def observer(self, front_end: str) -> Observer:
        """What a client of that name calls after each operation."""

        def observe(operation: Operation, start_s: float, latency_s: float, outcome: Outcome) -> None:
            self.records.append(self._record(front_end, operation, start_s, latency_s, outcome))

        return observe

    def _record(
        self, front_end: str, operation: Operation, start_s: float, latency_s: float, outcome: Outcome
    ) -> dict[str, Any]:
        adt = adt_of(operation.object)
        event_class, ending = None, "ok"
        match outcome:
            case Done():
                event_class = outcome.event_class
            case Failed():
                ending = "unavailable" if outcome.definite else "unknown"
        return {
            "object": operation.object,
            "adt": adt,
            "operation": operation_name(operation) if event_class is None else operation_of(event_class),
            # Registers and dictionaries all run with the one choice of their type.
            "choice": self._choices.get(operation.object, adt),
            "front_end": front_end,
            "start_s": start_s,
            "latency_s": latency_s,
            "outcome": ending,
            "event_class": event_class,
            "answered": sorted(outcome.answered),
        }


def operation_name(operation: Operation) -> str:
    """The operation's name in its serial specification."""
    is_cell_of_dictionary = adt_of(operation.object) == "dictionary"
    match operation:
        case Read():
            return "Get" if is_cell_of_dictionary else "Read"
        case Write(value=value):
            return "Write" if not is_cell_of_dictionary else "Delete" if value is None else "Put"
    return _OPERATIONS[type(operation)]


class UpTimes:
    """When each replica was up, from marks in the order of time (seconds since 1970)."""

    def __init__(self, replicas: list[str], start_s: float) -> None:
        self._since = dict.fromkeys(replicas, (start_s, True))
        self._intervals: list[Interval] = []

    def mark(self, replica: str, now_s: float, *, up: bool) -> None:
        """The replica went down or came up at `now_s`."""
        since_s, was_up = self._since[replica]
        self._intervals.append((replica, since_s, now_s, was_up))
        self._since[replica] = (now_s, up)

    def end(self, now_s: float) -> None:
        """Nothing is watched any longer."""
        for replica, (_, up) in list(self._since.items()):
            self.mark(replica, now_s, up=up)

    def intervals(self) -> list[Interval]:
        """All intervals up to the last mark of each replica."""
        return list(self._intervals)

    def were_all_up(self, start_s: float, end_s: float) -> bool:
        """Whether no replica was known to be down at any moment from `start_s` to `end_s`."""
        return not any(
            not up and since_s < end_s and start_s < to_s for _, since_s, to_s, up in self._intervals
        )


def write_run(
    folder: Path,
    records: list[dict[str, Any]],
    intervals: list[Interval],
    document: ClusterDocument,
    choices: Mapping[str, str],
) -> None:
    """Write the three files of a run into `folder`."""
    (folder / "operations.jsonl").write_text(
        "".join(compact(each) + "\n" for each in records), encoding="utf-8"
    )
    lines = [f"{replica},{start_s:.6f},{end_s:.6f},{int(up)}\n" for replica, start_s, end_s, up in intervals]
    (folder / "replicas.csv").write_text("replica,start_s,end_s,up\n" + "".join(lines), encoding="utf-8")
    (folder / "choices.json").write_text(
        json.dumps(_choices(document, choices), indent=2) + "\n", encoding="utf-8"
    )


def _choices(document: ClusterDocument, choices: Mapping[str, str]) -> dict[str, Any]:
    written = {
        name: {"adt": adt_of(example)} | _quorums(document.choice_of(example))
        for name, example in choices.items()
    }
    votes = {id: {"votes": votes} for id, votes in document.votes.items()}
    return {"replicas": votes, "choices": written}


def _quorums(choice: QuorumChoice) -> dict[str, Any]:
    if isinstance(choice, SystemChoice):
        systems = choice.assignment
        return {
            "initials": {operation: str(system) for operation, system in systems.initials.items()},
            "finals": {name: str(system) for name, system in systems.finals.items()},
        }
    return {"classes": {name: [sizes.initial, sizes.final] for name, sizes in choice.classes.items()}}
