"""Which choice of each standing rule is to be in force, by who is live: when the cluster switches, and how. Pure.

A switch is a change of the configuration as any other, whose rules differ in `fallen_back` alone (Herlihy, "Dynamic Quorum Adjustment for
Partitioned Data", ACM TODS 12(2), 1987). Whoever looks may be wrong about who is live, and several may act at once: no promise rests on it. Owns
how long a condition must hold, who acts first, and what becomes of a switch that cannot end. Must not know how who is live is found out, nor clocks:
`now_s` is of one that never steps.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ...api_specs.cluster import ClusterDocument, switch_problem, with_states
from .reconfiguration import Steps, change, is_like, take_back

GAP_S_MAX: Final = 5.0
"""Who has not looked for longer does not know what was meanwhile, and begins to count anew."""
STAND_IN_S: Final = 10.0
"""From when it is due: each live member whose id comes later waits so much longer, and for a change under way as long as keys are remembered, too."""
STUCK_S_MAX: Final = 10.0
"""For no longer is a switch that cannot end left as it is, however long its condition must hold: less may be available meanwhile than without it."""

States = tuple[tuple[str, bool], ...]
"""Whether each standing rule, by its objects, has fallen back."""


class Move(NamedTuple):
    """What is to be done about the configuration `at`: bring the cluster to `states`, by taking the change under way back or by going on. `is_ours`:
    now, by who looks. `reason` is in words."""

    at: ClusterDocument
    states: States
    takes_back: bool
    is_ours: bool
    reason: str

    @property
    def goal(self) -> tuple[States, bool]:
        """Two moves with the same goal are one, though the configuration has gone on between them."""
        return self.states, self.takes_back

    def steps(self) -> Steps:
        """Those of an operator who wants that. The change that he takes back is this one alone."""
        if self.takes_back:
            document, _ = yield from take_back(self.at, self.at.number)
            return document
        return (yield from change(self.at, lambda at: with_states(at, dict(self.states))))


class Waits(NamedTuple):
    """A switch is due that cannot be made now; why, in words."""

    reason: str


class _Due(NamedTuple):
    """A rule is to be switched, since when, and why."""

    since_s: float
    reason: str


class StandingRules:
    """The look of member `own` at its cluster."""

    def __init__(self, own: str) -> None:
        self._own: Final = own
        self._since_s: dict[tuple[str, tuple[str, ...], int], float] = {}
        """Since when the condition of a rule has not been as its state is, by objects and condition."""
        self._looked_s = float("-inf")
        self._number = -1
        self._here_s = 0.0
        """Since when the cluster is in this configuration, as far as is known, and was looked at without a gap."""
        self._stuck_s: float | None = None
        """Since when a switch under way cannot end."""

    def look(self, at: ClusterDocument, live: Collection[str], now_s: float) -> Move | Waits | None:
        """What is due, where these members are live and the configuration is in force; None where nothing is. Called each second or more often."""
        is_gap = now_s > self._looked_s + GAP_S_MAX
        self._looked_s = now_s
        if is_gap or at.number != self._number:
            self._number, self._here_s, self._stuck_s = at.number, now_s, None
        due = self._due(at, live, now_s)
        if at.former is not None and _is_switch(at.former, at):
            return self._under_way(at, at.former, due, live, now_s)
        if not due:
            return None
        reason = "; ".join(each.reason for each in due.values())
        if at.former is not None:
            return Waits(f"{reason}; another change of the configuration is under way, which comes first")
        states = _flipped(at, due)
        if problem := switch_problem(at, with_states(at, dict(states)), live):
            return Waits(f"{reason}; it cannot be switched now: {problem}")
        since_s = min(each.since_s for each in due.values())
        return Move(at, states, False, self._is_ours(live, now_s - since_s, STAND_IN_S), reason)

    def _due(self, at: ClusterDocument, live: Collection[str], now_s: float) -> dict[str, _Due]:
        """The rules to be switched, by objects: not within `after_s` of the switch before."""
        since_s, due = {}, {}
        for rule in at.choices:
            if (fallback := rule.standing) is None:
                continue
            holds = fallback.holds(at.own_votes, live)
            if holds == rule.has_fallen_back:
                continue
            key = (rule.objects, fallback.down, fallback.live_below)
            since_s[key] = self._since_s.get(key, now_s)
            due_s = max(since_s[key], self._here_s) + fallback.after_s
            if now_s >= due_s:
                words = "falls back:" if holds else "goes back: it is no longer true that"
                due[rule.objects] = _Due(due_s, f"{rule.objects} {words} {fallback.condition}")
        self._since_s = since_s
        return due

    def _under_way(
        self,
        at: ClusterDocument,
        old: ClusterDocument,
        due: Mapping[str, _Due],
        live: Collection[str],
        now_s: float,
    ) -> Move:
        """It goes on, unless it is not wanted any more, or has not been able to end for as long as a condition must hold, `STUCK_S_MAX` at most: less may be
        available while both choices are in force than under either."""
        if problem := switch_problem(old, at, live):
            self._stuck_s = now_s if self._stuck_s is None else self._stuck_s
        else:
            self._stuck_s = None
        before = states_of(old)
        pause_s = max(
            min(rule.standing.after_s, STUCK_S_MAX)
            for rule in at.choices
            if rule.standing is not None and (rule.objects, rule.has_fallen_back) not in before
        )
        patience_s = STAND_IN_S + at.memory_s
        if due and _flipped(at, due) == before:
            since_s = min(each.since_s for each in due.values())
            reason = "; ".join(each.reason for each in due.values())
        elif self._stuck_s is not None and now_s >= self._stuck_s + pause_s:
            since_s = self._stuck_s + pause_s
            reason = f"the switch under way cannot end and is taken back: {problem}"
        else:
            is_ours = self._is_ours(live, now_s - self._here_s, patience_s)
            return Move(at, states_of(at), False, is_ours, "the switch under way goes on")
        return Move(at, before, True, self._is_ours(live, now_s - since_s, patience_s), reason)

    def _is_ours(self, live: Collection[str], late_s: float, patience_s: float) -> bool:
        """Whether this member acts, where something is due for so long: of those that are live the first by id does so at once."""
        return late_s >= patience_s * sum(name < self._own for name in live)


def states_of(document: ClusterDocument) -> States:
    """Which choices are in force; of a configuration that changes, which are to be."""
    return tuple((rule.objects, rule.has_fallen_back) for rule in document.standing_rules)


def _flipped(document: ClusterDocument, due: Collection[str]) -> States:
    return tuple((objects, state != (objects in due)) for objects, state in states_of(document))


def _is_switch(old: ClusterDocument, new: ClusterDocument) -> bool:
    """Whether the two differ in nothing but which choices of standing rules are in force."""
    return is_like(with_states(old, dict(states_of(new))), new)
