"""What an assignment offers, and targets that it must meet, as text: `Enq >= 99.99%`, `Deq p50 <= 20ms`, `capacity >= 2000`. Pure.

target    :=  [OPERATION] [figure] (">=" | "<=") NUMBER ["%" | "ms"]
figure    :=  "availability" | "p50" | "p99" | "resilience"       of an operation; availability where none is named
           |  "load" | "capacity" | "messages" | "wait" | "rounds"   of the whole mix
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..choices.assignment import Assignment
from ..systems.systems import BadQuorums
from .cost import Strategy
from .strategy import Limits

_TARGET = re.compile(r"\s*(?:([A-Z]\w*)\b)?\s*([a-z]\w*)?\s*(>=|<=|=>|=<)\s*([0-9.eE+-]+)\s*(%|ms)?\s*")
_OF_OPERATION: Final = ("availability", "p50", "p99", "resilience")
_OF_MIX: Final = ("load", "capacity", "messages", "wait", "rounds")
_LIMITS: Final = ("load", "messages", "wait")
_ATTRIBUTES: Final = {"p50": "p50_ms", "p99": "p99_ms", "wait": "wait_ms"}


@dataclass(frozen=True)
class Offer:
    """What an assignment offers: shares, milliseconds (while all live replicas answer), operations a second, messages.

    `availability` is that of each operation however it ends, `overall` that of the mix. Absent figures were not asked for.
    """

    assignment: Assignment
    availability: Mapping[str, float]
    overall: float
    resilience: Mapping[str, int]
    rounds: float
    p50_ms: Mapping[str, float] = field(default_factory=dict)
    p99_ms: Mapping[str, float] = field(default_factory=dict)
    strategy: Strategy | None = None
    """Whom to ask how often; None where nobody asked for it."""

    def costs(self) -> tuple[float, ...]:
        """What the Pareto front weighs, less being better: downtimes as shares of the time, then the rest."""
        costs = () if self.strategy is None else self.strategy.costs()
        return (
            *(1 - each for each in self.availability.values()),
            *self.p50_ms.values(),
            *costs,
            self.rounds,
        )

    def goals(self) -> tuple[float, ...]:
        """The costs, so that rounding does not decide."""
        return tuple(round(each, 12) for each in self.costs())


@dataclass(frozen=True)
class Target:
    """A figure, of an operation or of the mix, and the number that it must reach or not exceed."""

    operation: str
    figure: str
    is_floor: bool
    number: float

    @property
    def is_cost(self) -> bool:
        """Whether the figure is one of a strategy."""
        return self.figure in ("load", "capacity", "messages", "wait")

    @property
    def is_limit(self) -> bool:
        """Whether a strategy can be made to keep it."""
        return self.figure in _LIMITS and not self.is_floor

    def is_met_by(self, offer: Offer) -> bool:
        """Whether its figure keeps the target; one that is not known does not."""
        value = self._value(offer)
        if value is None:
            return False
        return value >= self.number - 1e-12 if self.is_floor else value <= self.number + 1e-12

    def _value(self, offer: Offer) -> float | None:
        if self.figure == "rounds":
            return offer.rounds
        if self.figure in _OF_MIX:
            found: float | None = getattr(offer.strategy, _ATTRIBUTES.get(self.figure, self.figure), None)
            return found
        if self.figure == "availability" and not self.operation:
            return offer.overall
        by_operation: Mapping[str, float] = getattr(offer, _ATTRIBUTES.get(self.figure, self.figure))
        return by_operation.get(self.operation)


def limits_of(targets: Iterable[Target]) -> Limits:
    """The limits that these targets put on a strategy: of several on one figure the lowest."""
    lowest: dict[str, float] = {}
    for target in targets:
        if target.is_limit:
            lowest[target.figure] = min(target.number, lowest.get(target.figure, target.number))
    return Limits(*(lowest.get(figure) for figure in _LIMITS))


def parse_target(text: str, operations: Collection[str]) -> Target:
    """The target that `text` states; BadQuorums with an example where it states none."""
    found = _TARGET.fullmatch(text)
    number = _number(found[4]) if found else None
    if found is None or number is None:
        raise BadQuorums(
            f"{text!r} states no target: write it as 'Enq >= 99.99%', 'Deq p50 <= 20ms', 'load <= 0.5'"
        )
    operation, figure, unit = found[1] or "", found[2] or "availability", found[5] or ""
    if operation and operation not in operations:
        raise BadQuorums(f"{text!r}: the mix has no operation {operation!r}; it has {', '.join(operations)}")
    _check(text, operation, figure, unit)
    number = number / 100 if unit == "%" else number
    if figure == "availability" and not 0 <= number <= 1:
        raise BadQuorums(f"{text!r}: availability is 0 to 100 %; write it as 99.9% or 0.999")
    return Target(operation, figure, ">" in found[3], number)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _check(text: str, operation: str, figure: str, unit: str) -> None:
    if figure not in _OF_OPERATION + _OF_MIX:
        raise BadQuorums(f"{text!r}: no figure {figure!r}; use {', '.join(_OF_OPERATION + _OF_MIX)}")
    if operation and figure in _OF_MIX:
        raise BadQuorums(f"{text!r}: {figure} is of the whole mix; leave {operation} out")
    if not operation and figure in _OF_OPERATION[1:]:
        raise BadQuorums(f"{text!r}: say of which operation, as 'Deq {figure} …'")
    fits = {"p50": ("ms", ""), "p99": ("ms", ""), "wait": ("ms", ""), "availability": ("%", "")}
    if unit not in fits.get(figure, ("",)):
        raise BadQuorums(f"{text!r}: {figure} is not given in {unit}; leave the unit out")
