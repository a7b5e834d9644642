"""The verdict on a history: right, or a small part of it that is not. Pure.

Linearizable and serializable objects may be judged one at a time (*locality*, Herlihy and Wing 1990, theorem 1), and where an
object falls apart by an argument (a dictionary's keys), each part alone: that takes time exponential in what overlaps on a
part, not on the object. Calls that look at all parts need the whole; a part that is wrong alone is wrong with them, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..own import Computed
from ..specification import SerialSpecification, Specification
from .calls import Call
from .counterexample import Smaller
from .orders import Model
from .search import VISITS_MAX, Found, Inconclusive, search

FIRST_VISITS: Final = 5_000
"""Of each object's first search: a tenth of a second. What takes longer waits until nothing was found wrong elsewhere, for that settles it."""
LANES_COST: Final = 20
"""How much longer a step takes where time counts within processes only."""


class Typed(NamedTuple):
    """What is known of an object's type."""

    specification: Specification
    split_by: str | None = None
    """The argument by which its objects fall apart (`Relation.split_by`)."""

    def part_of(self, call: Call) -> Any | None:
        """The part that a call concerns, in a tuple; None where it concerns all."""
        names = list(self.specification.arguments[call.invocation.operation])
        return (call.invocation.args[names.index(self.split_by)],) if self.split_by in names else None


class Verdict(NamedTuple):
    """What was found of the calls of an object, of a part of it, or (sequential) of all: `found` is None where the search was
    given up. `shown` are the few calls that it is of, where they have no right order."""

    objects: tuple[str, ...]
    part: Any | None
    calls: int
    found: Found | None
    shown: tuple[Call, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether there is a right order."""
        return self.found is not None and self.found.is_right

    @property
    def is_wrong(self) -> bool:
        """Whether there is certainly none."""
        return self.found is not None and not self.found.is_right


def verdicts(
    types: Mapping[str, Typed], calls: Sequence[Call], model: Model, visits_max: int = VISITS_MAX
) -> Iterator[Verdict]:
    """Judge the calls on objects, whose types are given by the objects' names: object by object and part by part, or all
    together where the model wants that. What is wrong is made small. Where something is wrong, what takes long is given up.
    """
    if model is not Model.LINEARIZABLE:
        # What is linearizable is sequential and serializable, and is found sooner.
        found = list(verdicts(types, calls, Model.LINEARIZABLE, visits_max))
        if all(each.is_right for each in found):
            yield from found
            return
        visits_max //= LANES_COST
    if model is Model.SEQUENTIAL:
        yield _judged(types, None, calls, model, visits_max)
        return
    by_object: dict[str, list[Call]] = {name: [] for name in types}
    for call in calls:
        by_object[call.object].append(call)
    first = {
        name: list(_of_object({name: types[name]}, own, model, min(FIRST_VISITS, visits_max)))
        for name, own in by_object.items()
    }
    is_wrong = any(each.is_wrong for found in first.values() for each in found)
    for name, found in first.items():
        if is_wrong or all(each.found is not None for each in found):
            yield from found
        else:
            yield from _of_object({name: types[name]}, by_object[name], model, visits_max)


def _of_object(
    types: Mapping[str, Typed], calls: Sequence[Call], model: Model, visits_max: int
) -> Iterator[Verdict]:
    parts: dict[Any, list[Call]] = {}
    for call in calls:
        parts.setdefault(types[call.object].part_of(call), []).append(call)
    whole = parts.pop(None, None)
    are_right = True
    for part, own in parts.items():
        verdict = _judged(types, part[0], own, model, visits_max)
        are_right &= verdict.is_right
        yield verdict
    if are_right and whole:
        yield _judged(types, None, calls, model, visits_max)


def _judged(
    types: Mapping[str, Typed], part: Any | None, calls: Sequence[Call], model: Model, visits_max: int
) -> Verdict:
    specifications = {name: typed.specification for name, typed in types.items()}
    try:
        found, shown = _found(specifications, calls, model, visits_max)
    except Inconclusive:
        return Verdict(tuple(types), part, len(calls), None)
    return Verdict(tuple(types), part, len(calls), found, shown)


def _found(
    specifications: Mapping[str, Specification], calls: Sequence[Call], model: Model, visits_max: int
) -> tuple[Found, tuple[Call, ...]]:
    found = search(specifications, calls, model, visits_max)
    if found.is_right:
        return found, ()
    small = Smaller(specifications, calls, model, found, visits_max)
    small.end_earlier()
    # What changes the state of a type of one's own is known as far as its dependencies were searched: the verdict shall not
    # rest on that.
    bare: Mapping[str, SerialSpecification] = {
        name: each.serial if isinstance(each, Computed) else each for name, each in specifications.items()
    }
    if bare != specifications and search(bare, small.calls, model, visits_max).is_right:
        found = search(bare, calls, model, visits_max)
        return found, () if found.is_right else tuple(calls)
    small.leave_out()
    return small.found, tuple(small.calls)
