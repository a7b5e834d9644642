"""The small files of a measured run: `run.json` and the true times (`replicas.csv`, `links.csv`, `replica-links.csv`), as
docs/reference/measurements.md describes them.

Owns their text and how they are replaced: whole, so that a reader never meets half of one.
"""

import json
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ... import __version__
from ...adts.specification import operation_of
from ...adts.types.eventual_queue import EventualQueue
from ...api_specs.classes_held import EMPTY
from ...api_specs.cluster import ClusterDocument
from ...quorums.choices.system_choice import SystemChoice
from ...quorums.systems.systems import System
from ..up_times import Interval
from .recorder import NotWritten

FORMAT: Final = 2
RUN: Final = "run.json"
REPLICAS: Final = "replicas.csv"
LINKS: Final = "links.csv"
REPLICA_LINKS: Final = "replica-links.csv"
HISTORY: Final = "history.jsonl"
"""Of runs with objects of eventual consistency: what was asked and answered."""


class Run(Struct, frozen=True):
    """What `run.json` says. `objects` names the choice of each object; `window` is in seconds since 1970; `notes` are
    sentences on what lessens the measurement."""

    document: ClusterDocument
    objects: Mapping[str, str]
    front_ends: tuple[str, ...]
    window: tuple[float, float]
    racks: Mapping[str, tuple[str, ...]] = {}
    time_scale: float = 1.0
    probe_step_s: float | None = None
    plan: str | None = None
    made: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


def clear(folder: Path) -> None:
    """Take away a former run, so that none of its rows are met beside the new ones; what is no part of a run stays."""
    for name in (RUN, REPLICAS, LINKS, REPLICA_LINKS, HISTORY):
        (folder / name).unlink(missing_ok=True)
    for rows in ("operations", "probes"):
        for path in folder.glob(f"{rows}*.jsonl*"):
            path.unlink()
        shutil.rmtree(folder / rows, ignore_errors=True)


def write_run(folder: Path, run: Run) -> None:
    """Write `run.json`, over a former one."""
    rack_of = {replica: rack for rack, members in run.racks.items() for replica in members}
    replicas = {
        id: {"votes": votes} | ({"rack": rack_of[id]} if id in rack_of else {})
        for id, votes in run.document.votes.items()
    }
    told: dict[str, Any] = {
        "format": FORMAT,
        "replicas": replicas,
        "choices": {name: choice_as_json(run.document, object) for object, name in run.objects.items()},
        "objects": dict(run.objects),
        "front_ends": list(run.front_ends),
        "window": list(run.window),
        "time_scale": run.time_scale,
    }
    if run.probe_step_s is not None:
        told["prober"] = {"step_s": run.probe_step_s}
    if run.plan is not None:
        told["plan"] = run.plan
    told["made"] = machine() | dict(run.made)
    told["notes"] = list(run.notes)
    _replace(folder / RUN, json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def add_notes(folder: Path, notes: Iterable[str]) -> None:
    """Add sentences to those of a run that is over."""
    told = json.loads((folder / RUN).read_text(encoding="utf-8"))
    told["notes"] += notes
    _replace(folder / RUN, json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def choice_as_json(document: ClusterDocument, object_name: str) -> dict[str, Any]:
    """The quorum choice that an object is kept by."""
    choice = document.choice_of(object_name)
    told: dict[str, Any] = {"adt": document.judged_as(object_name), "ordering": choice.ordering}
    if choice.is_weak:
        told["consistency"] = choice.consistency
    if isinstance(choice, SystemChoice):
        told["initials"] = _systems(choice.assignment.initials)
        told["finals"] = _systems(choice.assignment.finals)
    else:
        told["classes"] = {name: list(sizes) for name, sizes in choice.classes.items()}
    rule = document.rule_of(object_name)
    if rule.has_outboxes:
        _through_outboxes(told, document)
    if rule.has_exact_empty:
        _after_all_outboxes(told, document)
    return told


def _through_outboxes(told: dict[str, Any], document: ClusterDocument) -> None:
    """An enqueue is stored by any one replica; operations that a queue with outboxes does not have are left out."""
    classes = EventualQueue.depends
    operations = set(map(operation_of, classes))
    if "classes" in told:
        told["classes"] = {name: told["classes"][name] for name in classes} | {"Enq/Ok": [0, 1]}
        return
    told["initials"] = {name: text for name, text in told["initials"].items() if name in operations}
    told["finals"] = {name: text for name, text in told["finals"].items() if name in classes}
    told["finals"]["Enq/Ok"] = " + ".join(document.votes)


def _after_all_outboxes(told: dict[str, Any], document: ClusterDocument) -> None:
    """A dequeue that found no item has looked at the outbox of every replica before it answers so."""
    if "classes" in told:
        told["classes"][EMPTY] = [sum(document.votes.values()), told["classes"][EMPTY][1]]
        return
    told["initials"][EMPTY] = "*".join(document.votes)


def _systems(systems: Mapping[str, System]) -> dict[str, str]:
    """Each system as text, which `quorate.quorums.systems.expressions` reads; "choose(0; )" is an empty quorum: nobody."""
    return {name: str(system) for name, system in systems.items()}


def machine() -> dict[str, Any]:
    """By what a run is made, for people."""
    return {
        "quorate": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def write_up_times(path: Path, names: str, intervals: Iterable[Interval[Any]]) -> None:
    """Write `replicas.csv` or one of the files of links, over a former one; `names` heads the columns that say what was up.

    The name of each interval is a replica, or who asks and the replica that is asked.
    """
    lines = [f"{names},start_s,end_s,up\n"]
    for each in intervals:
        name = each.name if isinstance(each.name, str) else ",".join(each.name)
        lines.append(f"{name},{each.start_s:.6f},{each.end_s:.6f},{int(each.up)}\n")
    _replace(path, "".join(lines))


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise NotWritten(path, error) from None
