"""What will fail when: the faults of a plan, drawn from it and its seed. Pure, and the same at every run.

Owns the laws and the draws. Each process draws from a stream of its own, named after its place in the plan, so that a
further one leaves the draws of the others as they were. Times are real seconds from the start of the measurement.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from .plan import Kind, Law, Partition, Plan, Process

Uniform = Callable[[], float]
"""The next draw from [0, 1)."""
Streams = Callable[[str], Uniform]
"""A stream of draws for each name; the same name gives the same draws."""

_PERIOD_S_MIN: Final = 1e-6


class Outage(Struct, frozen=True, order=True):
    """A replica is down from `start_s` to `end_s`, in the way of `kind`, because of `cause`: a place in the plan."""

    start_s: float
    end_s: float
    replica: str
    kind: Kind
    cause: str


class Parting(Struct, frozen=True, order=True):
    """`asker`, a front end or a replica, cannot reach another replica from `start_s` to `end_s`."""

    start_s: float
    end_s: float
    asker: str
    replica: str
    cause: str


class Schedule(Struct, frozen=True):
    """All faults of a run of `length_s`, each list in the order of time. Faults of different causes may overlap."""

    length_s: float
    outages: tuple[Outage, ...]
    partings: tuple[Parting, ...]


def draw(plan: Plan, streams: Streams, replicas: tuple[str, ...] = ()) -> Schedule:
    """The faults of the plan. `replicas` are those of a running cluster; else the plan's own."""
    every = plan.replicas or replicas
    outages = [*_failures(plan, streams, every), *_rack_outages(plan, streams), *_planned(plan)]
    partings = list(_partings(plan, streams))
    return Schedule(plan.length_s, tuple(sorted(outages)), tuple(sorted(partings)))


def period(law: Law, mean_s: float, shape: float, uniform: Uniform) -> float:
    """One draw from a law with this mean, by the inverse of its distribution function.

    An exponential law is a Weibull law of shape 1; a Weibull law's mean is its scale times gamma(1 + 1/shape).
    """
    strength = -math.log1p(-uniform())
    if law == "weibull":
        strength = strength ** (1 / shape) / math.gamma(1 + 1 / shape)
    return max(_PERIOD_S_MIN, mean_s * strength)


def downs(process: Process, duration_s: float, uniform: Uniform) -> Iterator[tuple[float, float]]:
    """The times down of a process that is up and new at 0, those that begin before `duration_s`, the last cut there."""
    now_s = 0.0
    while True:
        now_s += period(process.law, process.mttf, process.shape, uniform)
        if now_s >= duration_s:
            return
        end_s = now_s + period(process.repair_law, process.mttr, process.repair_shape, uniform)
        yield now_s, min(end_s, duration_s)
        now_s = end_s


def _failures(plan: Plan, streams: Streams, every: tuple[str, ...]) -> Iterator[Outage]:
    for number, failures in enumerate(plan.failures, 1):
        for replica in failures.replicas or every:
            for start_s, end_s in _drawn(plan, failures, streams(f"failures/{number}/{replica}")):
                yield Outage(start_s, end_s, replica, failures.kind, f"failures {number}")


def _rack_outages(plan: Plan, streams: Streams) -> Iterator[Outage]:
    for number, outages in enumerate(plan.outages, 1):
        for rack in outages.racks or tuple(plan.cluster.racks):
            for start_s, end_s in _drawn(plan, outages, streams(f"outages/{number}/{rack}")):
                for replica in plan.cluster.racks[rack]:
                    yield Outage(start_s, end_s, replica, outages.kind, f"outages {number}, rack {rack}")


def _planned(plan: Plan) -> Iterator[Outage]:
    for number, planned in enumerate(plan.planned, 1):
        for place, replica in enumerate(planned.replicas):
            at_s = planned.at + place * planned.stagger
            if at_s < plan.time.duration:
                yield Outage(*_real(plan, at_s, planned.lasts), replica, planned.kind, f"planned {number}")


def _partings(plan: Plan, streams: Streams) -> Iterator[Parting]:
    for number, partition in enumerate(plan.partitions, 1):
        times: list[tuple[float, float]] = []
        if partition.process is not None:
            times = list(_drawn(plan, partition.process, streams(f"partitions/{number}")))
        elif partition.at is not None and partition.lasts is not None:
            times = [_real(plan, partition.at, partition.lasts)]
        for start_s, end_s in times:
            for asker, replica in _parted(partition):
                yield Parting(start_s, end_s, asker, replica, f"partitions {number}")


def _parted(partition: Partition) -> Iterator[tuple[str, str]]:
    """Who does not reach which replica; between replicas, neither reaches the other."""
    for replica in partition.replicas:
        for front_end in partition.front_ends:
            yield front_end, replica
        for other in partition.other_replicas:
            yield other, replica
            yield replica, other


def _drawn(plan: Plan, process: Process, uniform: Uniform) -> Iterator[tuple[float, float]]:
    for start_s, end_s in downs(process, plan.time.duration, uniform):
        yield start_s / plan.time.scale, end_s / plan.time.scale


def _real(plan: Plan, at_s: float, lasts_s: float) -> tuple[float, float]:
    return at_s / plan.time.scale, min(at_s + lasts_s, plan.time.duration) / plan.time.scale
