"""Which answers of eventual consistency missed changes: for `quorate check`, and of a measured run."""

from collections.abc import Iterator, Mapping, Sequence
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
    """What the weak answers about each object missed; all other calls are to be linearizable."""
    for name, known in types.items():
        own = [call for call in calls if call.object == name]
        strong = [call for call in own if not call.is_weak]
        if len(strong) < len(own):
            weak = [call for call in own if call.is_weak]
            yield anomalies(name, weak, len(strong), _Explained({name: known}, strong))


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
        known = {name: typed(specification)}
        try:
            calls = calls_of(specification, by_object[name])
        except Unjudged:
            continue
        strong = [call for call in calls if not call.is_weak]
        if all(each.is_right for each in verdicts(known, strong, Model.LINEARIZABLE)):
            yield from weak_answers(known, calls)


def sentence_of(found: Anomalies) -> str:
    """It in words."""
    judged = "" if found.judged == found.weak else f", of which the first {found.judged:,} were judged"
    return f"{found.object}: {len(found.missed):,} of {found.weak:,} answers of eventual consistency missed changes{judged}"
