"""Which answers of eventual consistency missed changes: for `quorate check`, and of a measured run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...adts.dependency import dependencies
from ...adts.histories.calls import Call
from ...adts.histories.verdict import Typed
from ...adts.histories.weak import Anomalies, anomalies
from ...adts.own import Computed
from ...adts.specification import Specification
from .history_file import Recorded, recorded
from .words import Unjudged, calls_of


def typed(specification: Specification) -> Typed:
    """A type as histories are judged by it."""
    if isinstance(specification, Computed):
        # Whether its parts are independent is known as far as its dependencies were searched.
        return Typed(specification)
    return Typed(specification, dependencies(specification).split_by)


def weak_answers(types: Mapping[str, Typed], calls: Sequence[Call]) -> Iterator[Anomalies]:
    """What the weak answers about each object missed whose other calls are linearizable."""
    for name, known in types.items():
        own = [call for call in calls if call.object == name]
        if any(call.is_weak for call in own) and (found := _of_object(name, known, own)) is not None:
            yield found


def _of_object(name: str, known: Typed, calls: Sequence[Call]) -> Anomalies | None:
    """Part by part (a dictionary's keys), where answers about all parts are weak ones; these are judged by the calls on all parts."""
    parts: dict[Any, list[Call]] = {}
    for call in calls:
        parts.setdefault(known.part_of(call), []).append(call)
    whole = parts.pop(None, [])
    if not all(call.is_weak for call in whole):
        return anomalies(name, known.specification, calls)
    judged = list(parts.values())
    if whole:
        judged.append([*whole, *(call for call in calls if not call.is_weak)])
    found = [anomalies(name, known.specification, each) for each in judged]
    told = [each for each in found if each is not None]
    if len(told) < len(found):
        return None
    missed = sorted((call for each in told for call in each.missed), key=lambda call: call.returned)
    return Anomalies(name, sum(each.weak for each in told), sum(each.judged for each in told), tuple(missed))


def missed_in(history: Path, types: Mapping[str, Specification]) -> Iterator[Anomalies]:
    """What the weak answers about each object of a recorded history missed. `types` by the objects' full names; others are left out, and
    so are objects whose other calls are not linearizable, or cannot be judged."""
    by_object: dict[str, list[Recorded]] = {}
    for operation in recorded(history):
        by_object.setdefault(operation.object, []).append(operation)
    for name, specification in types.items():
        if not any(operation.is_weak for operation in by_object.get(name, ())):
            continue
        with suppress(Unjudged):
            yield from weak_answers({name: typed(specification)}, calls_of(specification, by_object[name]))


def sentence_of(found: Anomalies) -> str:
    """It in words."""
    judged = (
        f"{found.weak:,}"
        if found.judged == found.weak
        else f"{found.judged:,} that were judged (of {found.weak:,})"
    )
    return (
        f"{found.object}: {len(found.missed):,} of {judged} answers of eventual consistency have no place in the order: "
        "they missed changes, or showed one early"
    )
