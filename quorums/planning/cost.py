"""What a strategy over quorums costs: load, capacity, messages, round trips, waiting. Pure.

Owns the arithmetic once it is known which quorum is asked how often; `strategy` looks for the best of these. An event first
accesses its operation's initial quorum, then its own final quorum, each drawn from a distribution (a *strategy*). With
initial quorums as reads and final quorums as writes, load and capacity are those of Naor and Wool (1998) and of quoracle.

Derivation, on the 2x2 grid with reads `a*b + c*d` and writes `(a + b)*(c + d)`, half reads and half writes. Read each row
with 1/2, write each of ac, ad, bc, bd with 1/4: every replica is read by 1/2 of the reads and written by 1/2 of the writes,
so each takes part in 1/2 of all operations: load 1/2. If a replica can serve 1000 accesses a second, the system serves
1000 / (1/2) = 2000 operations: its capacity. Each operation asks 2 replicas and hears from 2: 4 messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from ...adts.specification import EventClass, operation_of
from ..choices.assignment import Assignment, Mix, is_empty
from ..choices.choices import Constraints
from ..systems.systems import BadQuorums, System, is_quorum, replicas_of, without
from .latency import AnswerTime, mean_ms, of_quorum

Draw = tuple[tuple[frozenset[str], float], ...]
"""Quorums, each with its probability."""


class Access(NamedTuple):
    """One access: an operation's initial quorum or an event class's final quorum."""

    of: str
    is_final: bool


class Slot(NamedTuple):
    """An access, the system that a quorum is drawn from, and the share of events that make it, for each mix."""

    access: Access
    system: System
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Workload:
    """Mixes of event classes, each with the share of the time in which it is what happens; how much replicas can do.

    `read_capacity` and `write_capacity`: accesses to initial and to final quorums that a replica serves in a second, 1
    where it is not given; a replica with both serves them at the same time, each with its share. `times`: answer times in
    milliseconds; replicas that are not given answer at once.
    """

    mixes: tuple[tuple[float, Mix], ...]
    read_capacity: Mapping[str, float] = field(default_factory=dict)
    write_capacity: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, AnswerTime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.mixes or not all(share > 0 for share, _ in self.mixes):
            raise BadQuorums(
                "the workload has no mix, or one with no share of the time; give each a share above 0"
            )
        for capacities in (self.read_capacity, self.write_capacity):
            for name, capacity in capacities.items():
                if not 0 < capacity < float("inf"):
                    raise BadQuorums(f"the capacity of replica {name!r} is {capacity}; give a number above 0")

    def cost(self, slot: Slot, mix: int, replica: str) -> float:
        """The load that one draw of `replica` for this slot puts on it."""
        capacity = self.write_capacity if slot.access.is_final else self.read_capacity
        return slot.shares[mix] / capacity.get(replica, 1.0)

    @property
    def weights(self) -> tuple[float, ...]:
        """The share of the time of each mix; together 1."""
        total = sum(share for share, _ in self.mixes)
        return tuple(share / total for share, _ in self.mixes)


@dataclass(frozen=True)
class Strategy:
    """Which quorums are asked how often, and what follows from it.

    `load` is the share of its capacity that the busiest replica spends when one operation comes each second, averaged over
    the mixes; `capacity` how many operations a second make the busiest replica busy all the time. `messages` counts
    requests and replies of an operation, `wait_ms` its mean time when just the drawn quorum is asked, `rounds` its round
    trips. No strategy does better than `bound` in what was optimised, which float arithmetic lets differ a little.
    """

    draws: Mapping[Access, Draw]
    load: float
    capacity: float
    messages: float
    rounds: float
    wait_ms: float
    bound: float | None = None

    def costs(self) -> tuple[float, ...]:
        """What one strategy may beat another in, less being better."""
        return self.load, self.messages, self.wait_ms


def one_mix(constraints: Constraints, mix: Mix) -> dict[EventClass, float]:
    """The mix as shares that sum to 1; BadQuorums where it names what the type lacks, or nothing at all."""
    for name, share in mix.items():
        if name not in constraints.classes:
            known = ", ".join(constraints.classes)
            raise BadQuorums(f"the mix names {name!r}; event classes here are {known}")
        if not 0 <= share < float("inf"):
            raise BadQuorums(f"the mix gives {name} the share {share}; give 0 or more")
    total = sum(mix.values())
    if not total:
        raise BadQuorums("the mix holds nothing; give at least one event class a share above 0")
    return {name: float(Fraction(share) / Fraction(total)) for name, share in mix.items() if share}


def slots_of(assignment: Assignment, workload: Workload) -> list[Slot]:
    """Every access that some mix makes, to a quorum that is not empty."""
    mixes = [one_mix(assignment.constraints, mix) for _, mix in workload.mixes]
    slots = []
    for operation, system in assignment.initials.items():
        shares = [sum(s for name, s in mix.items() if operation_of(name) == operation) for mix in mixes]
        slots.append(Slot(Access(operation, False), system, tuple(shares)))
    for name, system in assignment.finals.items():
        slots.append(Slot(Access(name, True), system, tuple(mix.get(name, 0.0) for mix in mixes)))
    return [slot for slot in slots if any(slot.shares) and not is_empty(slot.system)]


def evaluate(
    slots: Sequence[Slot], draws: Mapping[Access, Draw], workload: Workload, bound: float | None = None
) -> Strategy:
    """The cost of drawing quorums so; BadQuorums when a set drawn is no quorum or the chances do not sum to 1."""
    for slot in slots:
        _check_draw(slot, draws[slot.access])
    weights = workload.weights
    loads = [_loads(slots, draws, workload, mix) for mix in range(len(weights))]
    busiest = [max(each.values(), default=0.0) for each in loads]
    total = [sum(w * share for w, share in zip(weights, slot.shares, strict=True)) for slot in slots]
    return Strategy(
        draws=dict(draws),
        load=sum(w * each for w, each in zip(weights, busiest, strict=True)),
        capacity=sum(w / each if each else float("inf") for w, each in zip(weights, busiest, strict=True)),
        messages=sum(
            share * p * messages_of(quorum)
            for slot, share in zip(slots, total, strict=True)
            for quorum, p in draws[slot.access]
        ),
        rounds=sum(total),
        wait_ms=sum(
            share * p * wait_ms(slot.system, quorum, workload)
            for slot, share in zip(slots, total, strict=True)
            for quorum, p in draws[slot.access]
        ),
        bound=bound,
    )


def messages_of(quorum: frozenset[str]) -> int:
    """A request to each member and a reply from it."""
    return 2 * len(quorum)


def wait_ms(system: System, asked: frozenset[str], workload: Workload) -> float:
    """The mean time until those asked hold a quorum of `system`: for a minimal quorum, until the slowest has answered."""
    if not workload.times:
        return 0.0
    left = without(system, {name for name in replicas_of(system) if name not in asked})
    found = None if left is None else mean_ms([of_quorum(left, workload.times)])
    if found is None:
        raise BadQuorums(f"{sorted(asked)} is no quorum of {system}")
    return found


def rounds_of(assignment: Assignment, event_class: EventClass) -> int:
    """Round trips of an event: one for each of its two quorums that is not empty.

    The SDK saves some: a dequeue's write carries the next one's read, so that in a steady stream each is one round.
    """
    pair = (assignment.initials[operation_of(event_class)], assignment.finals[event_class])
    return sum(not is_empty(system) for system in pair)


def _loads(
    slots: Sequence[Slot], draws: Mapping[Access, Draw], workload: Workload, mix: int
) -> dict[str, float]:
    loads: dict[str, float] = {}
    for slot in slots:
        for quorum, p in draws[slot.access]:
            for name in sorted(quorum):
                loads[name] = loads.get(name, 0.0) + p * workload.cost(slot, mix, name)
    return loads


def _check_draw(slot: Slot, draw: Draw) -> None:
    for quorum, p in draw:
        if not is_quorum(slot.system, quorum):
            raise BadQuorums(f"{slot.access.of}: {sorted(quorum)} is no quorum of {slot.system}")
        if not p >= 0:
            raise BadQuorums(f"{slot.access.of}: {sorted(quorum)} is drawn with {p}; give 0 or more")
    if abs(sum(p for _, p in draw) - 1) > 1e-9:
        raise BadQuorums(
            f"{slot.access.of}: the chances of its quorums sum to {sum(p for _, p in draw)}, not to 1"
        )
