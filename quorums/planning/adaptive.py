"""A standing rule over a trace: two quorum choices, and the condition on live members under which each is in force. Pure.

Herlihy 1987 (Dynamic Quorum Adjustment for Partitioned Data): quorums inflate and deflate as replicas fail. Here the ordinary change of a
cluster's configuration switches: old, both together, new. It costs time, and it cannot happen at all while too few members are up:

* it begins once the condition has held (or not held) for `after`, and `after` the switch before, while members are up that could bring
  it to its end: they hold every quorum of both choices, so that what the old one stored can be copied, and the others hold none, so that
  nothing can be read or stored under the old one without them (`could_change`);
* while both are in force, each operation needs a quorum of both;
* it ends once such members have been up for `lasts`;
* it is taken back where such members have not been up for `after`, or the condition has been over for as long, by a majority.

Objects without a rule, and the register by which the cluster changes, have majorities: a change takes one. Times are whole numbers, in any
unit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from ...adts.specification import EventClass, operation_of
from ..choices.choice import QuorumChoice
from ..systems.tally import Quorum

InForce = Literal["normal", "fallback", "joint"]


class Stretch(NamedTuple):
    """A time in which exactly these members were up. What lies between two stretches is unknown."""

    start: int
    end: int
    up: frozenset[str]


class Phase(NamedTuple):
    """A time in which one choice was in force, or both together."""

    start: int
    end: int
    in_force: InForce


class Course(NamedTuple):
    """What was in force when, and how many changes began."""

    phases: list[Phase]
    switches: int


class Piece(NamedTuple):
    """A part of a stretch in one phase."""

    start: int
    end: int
    up: frozenset[str]
    in_force: InForce


@dataclass(frozen=True)
class Condition:
    """On the members that are up: each of `down` is down, or, without these, fewer than `live_below` members are up."""

    down: frozenset[str] = frozenset()
    live_below: int = 0

    def holds(self, up: Collection[str]) -> bool:
        """Whether it holds while exactly these are up."""
        return self.down.isdisjoint(up) if self.down else len(up) < self.live_below


class _Facts(NamedTuple):
    """What a set of members that are up allows."""

    holds: bool
    can_switch: bool
    has_majority: bool


@dataclass(frozen=True)
class StandingRule:
    """`fallback` is in force while the condition holds, `normal` while it does not; both are for the members in `votes`."""

    normal: QuorumChoice
    fallback: QuorumChoice
    condition: Condition
    votes: Mapping[str, int]
    after: int
    lasts: int

    @cached_property
    def _asked(self) -> tuple[Quorum, ...]:
        return (*self.normal.asked(), *self.fallback.asked())

    def facts(self, up: frozenset[str]) -> _Facts:
        """What these members that are up allow."""
        can_switch = could_change(self._asked, self.votes, up)
        return _Facts(self.condition.holds(up), can_switch, has_majority(self.votes, up))

    def serves(self, event_class: EventClass, up: frozenset[str], in_force: InForce) -> bool:
        """Whether these members hold both quorums of the event class, of the choice in force."""
        sides = {
            "normal": (self.normal,),
            "fallback": (self.fallback,),
            "joint": (self.normal, self.fallback),
        }
        return all(serves(choice, event_class, up) for choice in sides[in_force])


def has_majority(votes: Mapping[str, int], up: Collection[str]) -> bool:
    """Whether the members that are up have more than half of the votes."""
    return 2 * sum(own for name, own in votes.items() if name in up) > sum(votes.values())


def could_change(quorums: Iterable[Quorum], votes: Mapping[str, int], up: Collection[str]) -> bool:
    """Whether the members that are up could bring a change to its end between choices with these quorums: they hold each and have a majority, and
    the others hold none. Then a cluster could, too, in both directions (`quorate.api_specs.cluster.switch_problem`)."""
    others = votes.keys() - up
    return has_majority(votes, up) and all(
        quorum.is_met_by(up) and not quorum.is_met_by(others) for quorum in quorums
    )


def serves(choice: QuorumChoice, event_class: EventClass, up: Collection[str]) -> bool:
    """Whether these members hold the initial and the final quorum of the event class."""
    initial = choice.initial_of(operation_of(event_class))
    return initial.is_met_by(up) and choice.final_of(event_class).is_met_by(up)


def course(stretches: Iterable[Stretch], rule: StandingRule) -> Course:
    """What is in force when, over stretches in the order of time; `normal` at first.

    Where time is unknown nothing is switched, and all waiting begins anew behind it.

    Derivation, on five members with majorities, `down = {d, e}`, a fallback to majorities of a, b and c, `after` 10, `lasts` 1: d fails
    at 100, e at 200. From 200 on the condition holds, so at 210 the change begins: a, b and c hold every majority of the five, and of
    themselves, and d and e are none. At 211 the fallback is in force. c fails at 300: two of three still answer. d is back at 400, and
    at 410 the change back begins: a, b and d hold every majority, and c and e are none of a, b and c. At 411 majorities are in force.
    """
    machine = _Machine(rule)
    for stretch in stretches:
        machine.go_on(stretch)
    machine.close()
    return Course(machine.phases, machine.switches)


class _Machine:
    """Where a rule has come to."""

    def __init__(self, rule: StandingRule) -> None:
        self.phases: Final[list[Phase]] = []
        self.switches = 0
        self._rule: Final = rule
        self._known: Final[dict[frozenset[str], _Facts]] = {}
        self._is_fallback = False
        """Whether the fallback is in force, or what a change under way goes to."""
        self._is_joint = False
        self._held = False
        self._since = 0
        """From when on the condition has been as it is."""
        self._here = 0
        """When the last step was taken."""
        self._can = False
        """Whether a change under way could come to its end, and from when on that has been so."""
        self._can_since = 0
        self._open = 0
        """When the phase of now began, and up to when it is known."""
        self._end = 0

    def go_on(self, stretch: Stretch) -> None:
        """Go on by one stretch, in which nothing changes but by the rule."""
        start, end, up = stretch
        if (facts := self._known.get(up)) is None:
            facts = self._known[up] = self._rule.facts(up)
        if start != self._end:
            self.close()
            self._open = self._here = self._since = self._can_since = start
            self._held = facts.holds
        elif facts.holds != self._held:
            self._since, self._held = start, facts.holds
        at = self._next(start, end, facts)
        while at is not None:
            self._switch(at)
            at = self._next(at, end, facts)
        self._end = end

    def close(self) -> None:
        """Note the phase of now, as far as it is known."""
        if self._open < self._end:
            in_force: InForce = "joint" if self._is_joint else "fallback" if self._is_fallback else "normal"
            self.phases.append(Phase(self._open, self._end, in_force))

    def _next(self, at: int, end: int, facts: _Facts) -> int | None:
        """When the next step is taken, within this stretch; None where none is."""
        due = max(self._since, self._here) + self._rule.after
        if not self._is_joint:
            is_wanted = self._held != self._is_fallback and facts.can_switch
            begin = max(at, due)
            return begin if is_wanted and begin < end else None
        if facts.can_switch != self._can:
            self._can, self._can_since = not self._can, at
        times = [due] if self._held != self._is_fallback else []
        times += [] if self._can else [self._can_since + self._rule.after]
        back = max(at, min(times, default=end)) if facts.has_majority else end
        if self._can and self._done <= min(end, back):
            return self._done
        return back if back < end else None

    @property
    def _done(self) -> int:
        """When the change under way comes to its end, if it goes on being able to."""
        return self._can_since + self._rule.lasts

    def _switch(self, at: int) -> None:
        self._end = at
        self.close()
        self._open = self._here = at
        if not self._is_joint:
            self._is_fallback = self._held
            self._can, self._can_since = True, at
            self.switches += 1
        elif not self._can or self._done > at:  # It is taken back.
            self._is_fallback = not self._is_fallback
        self._is_joint = not self._is_joint


def overlaid(found: Iterable[Phase], stretches: Iterable[Stretch]) -> Iterator[Piece]:
    """The stretches, as members were or as a caller saw them, cut where what is in force changes; without times of no phase."""
    left = iter(found)
    phase = next(left, None)
    for start, end, up in stretches:
        while phase is not None and phase.start < end:
            low, high = max(start, phase.start), min(end, phase.end)
            if low < high:
                yield Piece(low, high, up, phase.in_force)
            if phase.end > end:
                break
            phase = next(left, None)
