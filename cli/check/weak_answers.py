"""Which answers of eventual consistency missed changes: for `quorate check`, and of a measured run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...adts.dependency import dependencies
from ...adts.histories.calls import Call
from ...adts.histories.orders import Model
from ...adts.histories.verdict import Typed, verdicts
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
        strong = [call for call in own if not call.is_weak]
        is_explained = _Explained({name: known}, strong)
        if len(strong) < len(own) and is_explained(()):
            yield anomalies(name, [call for call in own if call.is_weak], len(strong), is_explained)


class _Explained:
    """Whether weak answers about one object and its other calls have a right order."""

    def __init__(self, types: Mapping[str, Typed], strong: Sequence[Call]) -> None:
        self._types = types
        self._strong = strong

    def __call__(self, weak: Sequence[Call]) -> bool | None:
        found = list(verdicts(self._types, [*self._strong, *weak], Model.LINEARIZABLE))
        return None if any(each.found is None for each in found) else all(each.is_right for each in found)


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
        f"{found.weak:,}" if found.judged == found.weak else f"the first {found.judged:,} (of {found.weak:,})"
    )
    return (
        f"{found.object}: {len(found.missed):,} of {judged} answers of eventual consistency have no place in the order: "
        "they missed changes, or showed one early"
    )
