"""The standing rule that would have served most of a mix, over a trace: which are tried, and what each gave. Pure.

Owns the bounds. Every rule of two choices and a condition is ranked by what it would have given if switching took no time, from how long
each set of members was up; the first of them go through the whole trace (`adaptive`).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

from ...adts.specification import EventClass, Specification
from ..choices.assignment import of_pair
from ..choices.choice import QuorumChoice
from ..choices.choices import constraints_of
from ..choices.system_choice import SystemChoice
from ..systems.systems import System
from ..systems.systems import votes as votes_system
from .adaptive import (
    Condition,
    Course,
    InForce,
    Piece,
    StandingRule,
    Stretch,
    could_change,
    course,
    overlaid,
    serves,
)

DOWN_MAX: Final = 12
"""Groups of members that are asked about: those that were down together for longest."""
UP_SETS_MAX: Final = 1024
"""Sets of members that rules are ranked by: those that were up for longest."""
RULES_MAX: Final = 64
RULES_MIN: Final = 4
STEPS_MAX: Final = 1_000_000
"""Stretches that all rules go through together; at least `RULES_MIN` go, however long the trace is."""


class View(NamedTuple):
    """Which members so many callers could reach, over the same time as the trace of the members."""

    callers: int
    stretches: Sequence[Stretch]


class Candidate(NamedTuple):
    """A rule, by the names of its choices."""

    normal: str
    fallback: str
    rule: StandingRule


class Result(NamedTuple):
    """What a rule gave: the share of the mix, and of each event class, over all callers."""

    candidate: Candidate
    course: Course
    served: float
    available: Mapping[EventClass, float]


@dataclass(frozen=True)
class Trace:
    """Members with their votes, when they were up, and what callers saw; where that is the same, `views` has the same stretches."""

    votes: Mapping[str, int]
    members: Sequence[Stretch]
    views: Sequence[View]

    @cached_property
    def lasted(self) -> Mapping[frozenset[str], int]:
        """How long each set of members was up."""
        found: Counter[frozenset[str]] = Counter()
        for start, end, up in self.members:
            found[up] += end - start
        return found

    def pieces(self, found: Course) -> Iterator[tuple[int, Piece]]:
        """What callers saw, cut where what is in force changes, with how many callers saw it."""
        for callers, stretches in self.views:
            for piece in overlaid(found.phases, stretches):
                yield callers, piece

    def available(
        self, rule: StandingRule, found: Course, classes: Sequence[EventClass]
    ) -> dict[EventClass, float]:
        """The share of the time, over all callers, in which each event class had its quorums."""
        lasted: Counter[tuple[InForce, frozenset[str]]] = Counter()
        for callers, (start, end, up, in_force) in self.pieces(found):
            lasted[in_force, up] += (end - start) * callers
        total = sum(lasted.values())
        return {
            name: sum(time for (in_force, up), time in lasted.items() if rule.serves(name, up, in_force))
            / total
            for name in classes
        }


@dataclass(frozen=True)
class Search:
    """What is looked for: `fixed` are choices by name, the best first; `mix` gives the share of each event class that is wanted, `classes` all
    of which something is to be said. `after` and `lasts` are those of `StandingRule`."""

    specification: Specification
    fixed: Mapping[str, QuorumChoice]
    mix: Mapping[EventClass, float]
    classes: Sequence[EventClass]
    after: int
    lasts: int

    def best(self, trace: Trace) -> tuple[Result, int] | None:
        """The rule that served most, and how many went through the trace; None where none could switch."""
        most = max(RULES_MIN, min(RULES_MAX, STEPS_MAX // max(1, len(trace.members))))
        ranked = self._ranked(trace)[:most]
        results = [self._result(trace, each) for each in ranked]
        # Of rules that serve alike, one that switches less; then the one that was ranked first.
        found = max(results, key=lambda each: (round(each.served, 12), -each.course.switches), default=None)
        return None if found is None else (found, len(ranked))

    def _result(self, trace: Trace, candidate: Candidate) -> Result:
        found = course(trace.members, candidate.rule)
        available = trace.available(candidate.rule, found, self.classes)
        return Result(
            candidate, found, sum(share * available[name] for name, share in self.mix.items()), available
        )

    def _ranked(self, trace: Trace) -> list[Candidate]:
        """The candidates that can switch at all, by what they would give without a moment between two choices."""
        lasted = sorted(trace.lasted.items(), key=lambda each: (-each[1], sorted(each[0])))[:UP_SETS_MAX]
        known = _Known(lasted, trace.votes, self.mix)
        found: list[tuple[float, int, Candidate]] = []
        for condition, majority in self._conditions(lasted, trace.votes):
            held = [condition.holds(up) for up, _ in lasted]
            fallbacks = {**self.fixed, **majority}
            for normal, fallback in product(self.fixed, fallbacks):
                one, two = self.fixed[normal], fallbacks[fallback]
                if normal != fallback and known.can_switch(one, two, held):
                    rule = StandingRule(one, two, condition, trace.votes, self.after, self.lasts)
                    candidate = Candidate(normal, fallback, rule)
                    found.append((-known.worth(one, two, held), len(found), candidate))
        return [candidate for _, _, candidate in sorted(found)]

    def _conditions(
        self, lasted: Sequence[tuple[frozenset[str], int]], votes: Mapping[str, int]
    ) -> list[tuple[Condition, dict[str, QuorumChoice]]]:
        """Conditions that held for part of the time; those on certain members each with a majority of the others, by name."""
        groups = {frozenset(votes.keys() - up) for up, _ in lasted} | {frozenset([name]) for name in votes}
        times = {group: sum(time for up, time in lasted if group.isdisjoint(up)) for group in groups}
        often = [group for group in groups if group and times[group]]
        often.sort(key=lambda group: (-times[group], sorted(group)))
        found = [(Condition(group), self._majority_without(group, votes)) for group in often[:DOWN_MAX]]
        live = sorted({len(up) for up, _ in lasted})
        return found + [(Condition(live_below=least), {}) for least in live[1:]]

    def _majority_without(self, group: Collection[str], votes: Mapping[str, int]) -> dict[str, QuorumChoice]:
        others = {name: own for name, own in votes.items() if name not in group}
        if (system := majority_of(others)) is None:
            return {}
        assignment = of_pair(constraints_of(self.specification), system, system)
        choice = SystemChoice(self.specification, votes, assignment, "clock", "atomic")
        return {f"majority of {', '.join(others)}": choice}


def majority_of(votes: Mapping[str, int]) -> System | None:
    """More than half of these votes; None where there are none."""
    total = sum(votes.values())
    return votes_system(votes, total // 2 + 1) if total else None


class _Known:
    """What choices give while certain members are up, each asked once: numbers in the order of the sets of members."""

    def __init__(
        self,
        lasted: Sequence[tuple[frozenset[str], int]],
        votes: Mapping[str, int],
        mix: Mapping[EventClass, float],
    ) -> None:
        self._lasted: Final = lasted
        self._votes: Final = votes
        self._mix: Final = mix
        self._worth: Final[dict[QuorumChoice, list[float]]] = {}
        self._held: Final[dict[QuorumChoice, list[bool]]] = {}

    def worth(self, normal: QuorumChoice, fallback: QuorumChoice, held: Sequence[bool]) -> float:
        """What both would serve, each while it is wanted."""
        pairs = zip(self._served(normal), self._served(fallback), held, strict=True)
        return sum(two if is_held else one for one, two, is_held in pairs)

    def can_switch(self, normal: QuorumChoice, fallback: QuorumChoice, held: Sequence[bool]) -> bool:
        """Whether a change to the fallback could ever begin while it is wanted."""
        pairs = zip(self._allowed(normal), self._allowed(fallback), held, strict=True)
        return any(one and two and is_wanted for one, two, is_wanted in pairs)

    def _served(self, choice: QuorumChoice) -> list[float]:
        if choice not in self._worth:
            self._worth[choice] = [
                time * sum(share for name, share in self._mix.items() if serves(choice, name, up))
                for up, time in self._lasted
            ]
        return self._worth[choice]

    def _allowed(self, choice: QuorumChoice) -> list[bool]:
        """Whether a change from or to it could come to its end, as far as its own quorums go."""
        if choice not in self._held:
            asked = tuple(choice.asked())
            self._held[choice] = [could_change(asked, self._votes, up) for up, _ in self._lasted]
        return self._held[choice]
