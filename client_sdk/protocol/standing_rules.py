"""Which choice of each standing rule is to be in force, by who is live: when the cluster switches, and how. Pure.

A switch is a change of the configuration as any other, whose rules differ in `fallen_back` alone (Herlihy, "Dynamic Quorum Adjustment for
Partitioned Data", ACM TODS 12(2), 1987). Whoever looks may be wrong about who is live, and several may act at once: no promise rests on it. Owns
how long a condition must hold, who acts first, what becomes of a switch that cannot end, and that members who differ about who is live do not switch to
and fro for ever. Must not know how who is live is found out, nor clocks:
`now_s` is of one that never steps.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from ...api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, switch_problem, with_states
from .reconfiguration import Steps, change, is_like, take_back

GAP_S_MAX: Final = 5.0
"""Who has not looked for longer does not know what was meanwhile, and begins to count anew."""
STAND_IN_S: Final = 10.0
"""From when it is due: each live member whose id comes later waits so much longer, and for a change under way as long as keys are remembered, too."""
STUCK_S_MAX: Final = 10.0
"""For no longer is a switch that cannot end left as it is, however long its condition must hold: less may be available meanwhile than without it."""
PAUSE_S_MAX: Final = 900.0
"""A rule that fell back soon after it had gone back waits twice as long before it goes back again, so long at most."""
DOUBLINGS_MAX: Final = 9

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


class _Seen(NamedTuple):
    """What was seen of a rule: whether it has fallen back, since when its condition has not been as that is, when it had gone back last, and how often in
    a row it fell back soon after that."""

    has_fallen_back: bool
    since_s: float | None = None
    back_s: float = float("-inf")
    flaps: int = 0

    def at(self, now_s: float, soon_s: float, rule: ChoiceRule, *, holds: bool, goes_back: bool) -> "_Seen":
        """The same at this moment, where the rule is so, or is about to go back. It fell back soon if that was within `soon_s`."""
        since_s, back_s, flaps = self.since_s, self.back_s, self.flaps
        if goes_back or (self.has_fallen_back and not rule.has_fallen_back):
            back_s = now_s
        elif rule.has_fallen_back and not self.has_fallen_back:
            flaps = min(flaps + 1, DOUBLINGS_MAX) if now_s <= back_s + soon_s else 0
        if holds == rule.has_fallen_back:
            since_s = None
        elif since_s is None:
            since_s = now_s
        return _Seen(rule.has_fallen_back, since_s, back_s, flaps)

    def pause_s(self, after_s: float) -> float:
        """How long the condition must have been otherwise. A fallback stays for longer where it was left too early before."""
        return min(after_s * 2**self.flaps, max(after_s, PAUSE_S_MAX)) if self.has_fallen_back else after_s


class StandingRules:
    """The look of member `own` at its cluster."""

    def __init__(self, own: str) -> None:
        self._own: Final = own
        self._seen: dict[tuple[str, tuple[str, ...], int], _Seen] = {}
        """By objects and condition."""
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
            return Waits(paused) if (paused := self._paused(at, now_s)) else None
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
        seen, due = {}, {}
        before = {} if at.former is None else dict(states_of(at.former))
        for rule, fallback in _standing(at):
            holds, key = fallback.holds(at.own_votes, live), _key(rule, fallback)
            goes_back = before.get(rule.objects, False) and not rule.has_fallen_back
            soon_s = 2 * fallback.after_s + STAND_IN_S * len(at.own_votes)
            known = self._seen.get(key, _Seen(rule.has_fallen_back))
            found = seen[key] = known.at(now_s, soon_s, rule, holds=holds, goes_back=goes_back)
            if found.since_s is None:
                continue
            due_s = max(found.since_s, self._here_s) + found.pause_s(fallback.after_s)
            if now_s >= due_s:
                words = "falls back:" if holds else "goes back: it is no longer true that"
                due[rule.objects] = _Due(due_s, f"{rule.objects} {words} {fallback.condition}")
        self._seen = seen
        return due

    def _paused(self, at: ClusterDocument, now_s: float) -> str:
        """Which rules would go back now, had they not fallen back soon after that before; in words."""
        found = []
        for rule, fallback in _standing(at):
            seen = self._seen[_key(rule, fallback)]
            is_paused = seen.flaps and seen.since_s is not None and rule.has_fallen_back
            if is_paused and now_s >= max(seen.since_s or 0.0, self._here_s) + fallback.after_s:
                found.append(
                    f"{rule.objects} fell back soon after it had gone back, so it goes back only once it has not been true for "
                    f"{seen.pause_s(fallback.after_s):g} s that {fallback.condition}: see whether all members reach each other"
                )
        return "; ".join(found)

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


def _standing(document: ClusterDocument) -> Iterator[tuple[ChoiceRule, Fallback]]:
    return ((rule, rule.standing) for rule in document.choices if rule.standing is not None)


def _key(rule: ChoiceRule, fallback: Fallback) -> tuple[str, tuple[str, ...], int]:
    return rule.objects, fallback.down, fallback.live_below


def states_of(document: ClusterDocument) -> States:
    """Which choices are in force; of a configuration that changes, which are to be."""
    return tuple((rule.objects, rule.has_fallen_back) for rule in document.standing_rules)


def _flipped(document: ClusterDocument, due: Collection[str]) -> States:
    return tuple((objects, state != (objects in due)) for objects, state in states_of(document))


def _is_switch(old: ClusterDocument, new: ClusterDocument) -> bool:
    """Whether the two differ in nothing but which choices of standing rules are in force."""
    return is_like(with_states(old, dict(states_of(new))), new)
