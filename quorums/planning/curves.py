"""How load and capacity of an offer change with the mix: one operation from never to always. Pure.

As `plot_load` and `plot_capacity` of quoracle over the fraction of reads: at each share the strategy is the best one for it.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from ...adts.specification import EventClass, operation_of
from ..choices.assignment import Assignment, Mix
from ..systems.systems import BadQuorums
from .search import Setting
from .strategy import NoStrategy, best_strategy

STEPS: Final = 20
"""Between never and always."""


class Point(NamedTuple):
    """At this share of the operation: the least load, and how many operations a second are the most."""

    share: float
    load: float
    capacity: float


def curve(assignment: Assignment, setting: Setting, operation: str) -> list[Point]:
    """The points of an assignment where it has a strategy: one for each share from 0 to 1.

    Raises:
        BadQuorums: the mix has this operation alone, or does not have it.
        MissingSolver: scipy is not installed.
    """
    points = []
    for step in range(STEPS + 1):
        share = step / STEPS
        workload = replace(setting.workload, mixes=((1.0, _with_share(setting.mix, operation, share)),))
        try:
            found = best_strategy(assignment, workload, spare=setting.spare)
        except NoStrategy:
            continue
        if found.load:  # Else nobody is asked, and there is no limit.
            points.append(Point(share, found.load, found.capacity))
    return points


def _with_share(mix: Mix, operation: str, share: float) -> dict[EventClass, float]:
    """The mix in which the operation has this share; what is within it and without keeps its proportions."""
    own = {name: float(each) for name, each in mix.items() if operation_of(name) == operation}
    others = {name: float(each) for name, each in mix.items() if name not in own}
    sums = sum(own.values()), sum(others.values())
    if not all(sums):
        raise BadQuorums(
            f"a plot over the share of {operation} needs a mix of {operation} and something else"
        )
    return {name: each * share / sums[0] for name, each in own.items()} | {
        name: each * (1 - share) / sums[1] for name, each in others.items()
    }
