"""When arguments matter: what all instances of a dependency have in common, and what lets an object fall apart. Pure.

Owns the recognition of "the same key" and its like from instances that a search has found. Must not search itself.

Example: over the items a and b, Deq/Ok is made illegal by Enq/Ok in the instances (Ok(a), Enq(b)) and (Ok(b), Enq(a)),
but in none with equal items. So the condition is `item ≠ item'`: a Deq depends on the Enqs of *other* items. Get(k)
depends on Put(k', x) in instances of equal keys alone: `key = key'`. Names with a prime are those of the event depended
on. Where all operations that change anything name a key, and depend on one another only for equal keys, each key is an
object of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from .specification import Event, EventClass, SerialSpecification, operation_of

Instances = dict[tuple[Event, Event], None]
"""(p, q) of each instance found, in order."""

Pair = tuple[EventClass, EventClass]
"""(P, Q): P depends on Q."""

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda left, right: bool(left == right),
    "<": lambda left, right: _ordered(left, right) and bool(left < right),
    ">": lambda left, right: _ordered(left, right) and bool(left > right),
    "≠": lambda left, right: bool(left != right),
}
"""The strongest first: of those that hold, the first is told."""


NULL: Final = "null"


class Condition(NamedTuple):
    """`left comparison right`, as in `key = key'`, `new' = null`: an argument or result of the dependent event, of the event
    depended on (with a prime), or null."""

    left: str
    comparison: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"


def conditions_of(
    specification: SerialSpecification, instances: Iterable[tuple[Event, Event]], seen: Sequence[Event]
) -> tuple[Condition, ...]:
    """The comparisons that hold in every instance, without those that hold for any two events of these classes.

    `instances` are of one pair of event classes and not empty; `seen` are all events that occur.
    """
    found = [_values(specification, p, q) for p, q in instances]
    p, q = next(iter(instances))
    of_p = [event for event in seen if event.event_class == p.event_class]
    of_q = [event for event in seen if event.event_class == q.event_class]
    possible = [_values(specification, one, other) for one, other in product(of_p, of_q)]
    conditions = []
    for left, right in _comparable(found):
        comparison = next((name for name in _COMPARISONS if _always(found, left, name, right)), None)
        if comparison is not None and not _always(possible, left, comparison, right):
            conditions.append(Condition(left, comparison, right))
    return tuple(conditions)


def _comparable(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each name of p with each of q; in place of those that are null throughout, these with null."""
    names = [name for name in found[0] if name != NULL]
    null = [name for name in names if all(values[name] is None for values in found)]
    for name in null:
        yield name, NULL
    rest = [name for name in names if name not in null]
    ours = [name for name in rest if not name.endswith("'")]
    yield from product(ours, (name for name in rest if name.endswith("'")))


def _always(found: Iterable[Mapping[str, Any]], left: str, comparison: str, right: str) -> bool:
    return all(_COMPARISONS[comparison](values[left], values[right]) for values in found)


def _values(specification: SerialSpecification, p: Event, q: Event) -> Mapping[str, Any]:
    of_q = {f"{name}'": value for name, value in named(specification, q).items()}
    return {**named(specification, p), **of_q, NULL: None}


def named(specification: SerialSpecification, event: Event) -> Mapping[str, Any]:
    """The arguments and results of an event by name."""
    arguments = specification.arguments[event.invocation.operation]
    results = specification.results.get(event.event_class, ())
    return dict(zip(arguments, event.invocation.args, strict=True)) | dict(
        zip(results, event.response.results, strict=True)
    )


def splitting_operations(
    specification: SerialSpecification,
    conditions: Mapping[Pair, tuple[Condition, ...]],
    changes: Iterable[EventClass],
) -> tuple[str | None, tuple[str, ...]]:
    """The argument by which objects of the type fall apart, and the operations that name it; (None, ()) if none does.

    It is an argument of every operation that changes something; any two operations that name it depend on each other for
    equal values alone, and some do. Operations that do not name it look at all parts.
    """
    arguments = specification.arguments
    changing = [arguments[operation_of(name)] for name in changes]
    for argument in dict.fromkeys(name for names in arguments.values() for name in names):
        split = tuple(operation for operation, names in arguments.items() if argument in names)
        among = [
            found for (p, q), found in conditions.items() if {operation_of(p), operation_of(q)} <= set(split)
        ]
        equal = Condition(argument, "=", f"{argument}'")
        if among and all(argument in names for names in changing) and all(equal in found for found in among):
            return argument, split
    return None, ()


def _ordered(left: Any, right: Any) -> bool:
    return isinstance(left, int) and isinstance(right, int)
