"""`quorate check`: is a recorded history one that the objects' types allow?

Owns the words of the command. `quorate.adts.histories` judges.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from ...adts.histories.calls import Call
from ...adts.histories.orders import Model
from ...adts.histories.verdict import Typed, Verdict, verdicts
from ...adts.histories.weak import Anomalies
from ...adts.own import Computed
from ...adts.specification import Specification
from ...adts.types.catalogue import adt_of, known_types
from ...adts.types.eventual_queue import EventualQueue
from ...adts.types.semiqueue import Semiqueue
from ...api_specs.cluster import ClusterDocument
from ..cluster.document import folder_of
from ..cluster.status import cluster_document
from ..failure import EXIT_FAILED, EXIT_UNKNOWN, Usage
from ..options import ClusterOption
from ..output import AsJson, answer, reported
from ..quorums.data_types import type_named, type_of_cluster, users_code
from ..values import spelled_out
from .drawing import drawn
from .history_file import Recorded, recorded
from .weak_answers import sentence_of, typed, weak_answers
from .words import Unjudged, calls_of

MISSED_SHOWN: Final = 5
"""Answers about one object."""
_UNORDERED: Final = {
    EventualQueue.name: "an eventual queue: any order is right, and so is finding nothing. peek and size are not judged.",
    Semiqueue.name: "a semiqueue: any order is right, but finding nothing only where nothing waits. peek and size are not judged.",
}


class _Checked(NamedTuple):
    """All that was found of a history; `unjudged` says why, by object."""

    calls: int
    objects: int
    verdicts: Sequence[Verdict]
    unjudged: Mapping[str, str]
    weak: Sequence[Anomalies]
    unordered: Mapping[str, str]
    """Queues that were judged as less than that, and as what."""

    @property
    def wrong(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.is_wrong]

    @property
    def given_up(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.found is None]


@reported
def check(
    history: Annotated[
        Path,
        typer.Argument(
            metavar="HISTORY",
            help="JSON lines, as the SDK writes them: connect(…, history=FILE).",
            show_default=False,
        ),
    ],
    type_name: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="The type of all objects, or your own: FILE.py:NAME. Else by the objects' names: queue/jobs, or a type of the cluster's; eventual-queue or semiqueue for one with outboxes.",
        ),
    ] = "",
    cluster: ClusterOption = "",
    model: Annotated[
        Model, typer.Option("--model", help="Real time counts for all, for each process, or for nobody.")
    ] = Model.LINEARIZABLE,
    as_json: AsJson = False,
) -> None:
    """Whether a recorded history is one that the objects' types allow; if not, the few calls that show it.

    Exit codes: 0 it is; 1 it is not; 3 not known, for something was not judged.
    """
    found = _checked(history, type_name, cluster, model)
    answer(as_json, _as_json(found, model), "\n".join(map(spelled_out, _lines(found, model))))
    if found.wrong:
        raise typer.Exit(EXIT_FAILED)
    if found.given_up or found.unjudged:
        raise typer.Exit(EXIT_UNKNOWN)


def _checked(history: Path, type_name: str, cluster: str, model: Model) -> _Checked:
    by_object: dict[str, list[Recorded]] = {}
    for operation in recorded(history):
        by_object.setdefault(operation.object, []).append(operation)
    types: dict[str, Typed] = {}
    unjudged: dict[str, str] = {}
    calls: list[Call] = []
    known: dict[str, Typed] = {}
    document = cluster_document(cluster) if cluster else None
    for name, operations in by_object.items():
        named = type_name or _type_of(name, operations[0], document)
        if named not in known:
            known[named] = typed(_named(named, cluster, document))
        try:
            calls += calls_of(known[named].specification, operations)
            types[name] = known[named]
        except Unjudged as why:
            unjudged[name] = str(why)
    is_own = any(isinstance(each.specification, Computed) for each in known.values())
    with users_code("the code of a type fails") if is_own else nullcontext():
        strong = [call for call in calls if not call.is_weak]
        found = list(verdicts(types, strong, model)) if strong else []
        weak = list(weak_answers(types, calls)) if model is Model.LINEARIZABLE else []
    judged = {name: each.specification.name for name, each in types.items()}
    unordered = {name: adt for name, adt in judged.items() if adt in _UNORDERED}
    return _Checked(len(strong), len(types), found, unjudged, weak, unordered)


def _type_of(name: str, first: Recorded, document: ClusterDocument | None) -> str:
    if "/" not in name:
        raise Usage(
            f"line {first.number}: the object {name!r} does not say its type, as queue/jobs does: give --type"
        )
    return adt_of(name) if document is None else document.judged_as(name)


def _named(name: str, cluster: str, document: ClusterDocument | None) -> Specification:
    """The type that `--type` or an object names: one of the catalogue, in a file, or of the cluster."""
    if document is None or ":" in name or name in known_types():
        return type_named(name)
    if name not in document.own_types:
        known = ", ".join(document.own_types) or "none"
        raise Usage(f"there is no data type {name!r}: the [types] of {cluster} name {known}")
    return type_of_cluster(document.own_types, name, folder_of(cluster))


_ADJECTIVE: Final = {
    Model.LINEARIZABLE: "linearizable",
    Model.SEQUENTIAL: "sequentially consistent",
    Model.SERIALIZABLE: "serializable",
}


def _name(verdict: Verdict) -> str:
    objects = ", ".join(verdict.objects)
    return objects if verdict.part is None else f"{objects}, {verdict.part}"


def _lines(found: _Checked, model: Model) -> Iterator[str]:
    for verdict in found.wrong:
        assert verdict.found is not None
        yield f"{_name(verdict)} is not {_ADJECTIVE[model]}. Of its {verdict.calls} calls these show it:"
        yield ""
        for line in drawn(verdict.found, verdict.shown):
            yield f"  {line}".rstrip()
        yield ""
    for verdict in found.given_up:
        yield f"{_name(verdict)}: given up, for too many of its {verdict.calls} calls overlap."
    for name, why in found.unjudged.items():
        yield f"{name}: not judged, for it {why}."
    yield from chain.from_iterable(map(_weak_lines, found.weak))
    for name, adt in found.unordered.items():
        yield f"{name} was judged as {_UNORDERED[adt]}"
    objects = "1 object" if found.objects == 1 else f"{found.objects} objects"
    calls = "1 call" if found.calls == 1 else f"{found.calls:,} calls"
    if found.wrong:
        yield f"Not {_ADJECTIVE[model]}: {calls} on {objects}."
    elif found.calls and not found.given_up:
        yield f"{_ADJECTIVE[model].capitalize()}: {calls} on {objects}."
    elif not found.calls and not found.weak:
        yield "There are no calls to judge."


def _weak_lines(found: Anomalies) -> Iterator[str]:
    yield f"{sentence_of(found)}."
    for call in found.missed[:MISSED_SHOWN]:
        yield f"  {call.process}: {call}"
    if len(found.missed) > MISSED_SHOWN:
        yield f"  and {len(found.missed) - MISSED_SHOWN:,} more"


def _as_json(found: _Checked, model: Model) -> Mapping[str, Any]:
    is_known = not found.given_up and not found.unjudged
    return {
        "model": model.value,
        "right": False if found.wrong else True if is_known else None,
        "calls": found.calls,
        "objects": found.objects,
        "wrong": [_wrong_as_json(verdict) for verdict in found.wrong],
        "given_up": [_name(verdict) for verdict in found.given_up],
        "not_judged": dict(found.unjudged),
        "judged_as": dict(found.unordered),
        "weak": [
            {
                "object": each.object,
                "answers": each.weak,
                "judged": each.judged,
                "without_place": len(each.missed),
            }
            for each in found.weak
        ],
    }


def _wrong_as_json(verdict: Verdict) -> Mapping[str, Any]:
    assert verdict.found is not None
    return {
        "objects": verdict.objects,
        "part": verdict.part,
        "calls": [
            {"process": call.process, "object": call.object, "call": str(call), "invoked": call.invoked}
            | ({"returned": call.returned} if call.is_known else {})
            for call in verdict.shown
        ],
        "longest_order": [str(call) for call in verdict.found.order],
        "cannot_come_next": [str(call) for call in verdict.found.stuck],
    }
