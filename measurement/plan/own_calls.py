"""Types of one's own in a plan: where their classes are, and which calls are made of them. Pure, but for the user's code."""

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Final

from ...adts.log import Value
from ...adts.plain_class import BadClass, PlainClass, arguments_text, thawed
from ...adts.specification import Invocation
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Limits
from ...api_specs.values import check_value
from .plan import OPERATIONS, BadPlan, Plan, Workload

CALLS_MAX: Final = 1000
"""Of the combinations of a class's examples the first so many are called with, in turn."""


def own_types_of(plan: Plan, document: ClusterDocument | None = None) -> Mapping[str, str]:
    """Where the class of each type of one's own is that the plan measures, by type; `document` is a running cluster's.

    Raises BadPlan for a type that the cluster has not.
    """
    types = plan.types if document is None else document.own_types
    wanted = dict.fromkeys(each.type for each in plan.workloads if each.type not in OPERATIONS)
    if missing := next((name for name in wanted if name not in types), None):
        raise BadPlan(f"workloads, type: {unknown_type(missing, types)}")
    return {name: types[name] for name in wanted}


def unknown_type(name: str, types: Mapping[str, str]) -> str:
    """What to say of a type that is neither Quorate's nor one of these."""
    known = ", ".join((*OPERATIONS, *types))
    return f'{name!r} is not kept by replicas; use {known}, or your own class, named in [types], as {name} = "shop:Seats"'


def check_calls(plan: Plan, classes: Mapping[str, PlainClass], limits: Limits | None = None) -> None:
    """Raises BadPlan where a workload names what is no operation of its type's class, or calls it with what no replica takes."""
    for number, workload in enumerate(plan.workloads, 1):
        if (found := classes.get(workload.type)) is not None:
            for problem in _problems(workload, found, limits or Limits()):
                raise BadPlan(f"workloads {number}, rates: {problem}")


def _problems(workload: Workload, found: PlainClass, limits: Limits) -> Iterator[str]:
    for operation in workload.rates:
        if operation not in found.arguments:
            known = ", ".join(found.arguments)
            yield f"{found.name} has no operation {operation!r}; use {known}"
        else:
            yield from _refused(found, operation, limits)


def _refused(found: PlainClass, operation: str, limits: Limits) -> Iterator[str]:
    try:
        for call in calls_of(found, operation):
            if (problem := check_value(Value(arguments_text(call)), limits)) is not None:
                yield f"the examples of {operation}: {problem}"
    except BadClass as error:
        yield f"the examples of {error}"


def calls_of(found: PlainClass, operation: str) -> list[Invocation]:
    """The calls of an operation, which follow one another: with the examples of its arguments. Raises BadClass."""
    examples = islice(product(*found.arguments[operation].values()), CALLS_MAX)
    return [found.call(operation, *map(thawed, each)) for each in examples]
