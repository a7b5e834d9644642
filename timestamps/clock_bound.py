"""How far a front end's clock may be from true time, from what the replicas' answers show. Pure.

Every reply carries the replica's clock. It was read between sending and receiving, so the replica's clock minus ours
(the monotonic one, which never steps) is at least (theirs - received), and at most (theirs - sent) and what it has gained
since: Cristian's method (1989). The operator vouches only for the replicas' own error against true time. Where a replica's clock is wrong by more than that,
the bounds that most replicas agree on are taken (Marzullo 1984): one wrong clock must not carry all front ends away. A replica that is away counts as it was
seen last. It is left out only for as long as all that answer agree, and would refuse what is stamped by what most showed: one that comes back and contradicts
them brings the others' readings back as well.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from .clock import Now

DRIFT_PART: Final = 5000
DRIFT: Final = 1 / DRIFT_PART
"""How far true time may run ahead of our clock, or behind it, as a share of what our clock has counted since."""
SETTLE_S: Final = 0.5
"""So long after the first reply, what was measured must do, though no majority of the replicas agrees on it."""

AWAY_S: Final = 10.0
"""So long a replica gave no answer while others did, before it is away: what it showed may be left out."""


class _Span(NamedTuple):
    """Between what one replica's clock minus ours was at the moment `at_ns`. In whole nanoseconds, as all sums here: a double counts
    microseconds since 1970 by quarters, and would lose the drift between two replies that come within a millisecond."""

    least_ns: int
    most_ns: int
    at_ns: int

    def at(self, now_ns: int) -> tuple[int, int]:
        """The same at a later moment: wider by the drift."""
        drift_ns = _drift_ns(now_ns - self.at_ns)
        return self.least_ns - drift_ns, self.most_ns + drift_ns


_NOBODY: Final = frozenset[str]()


class ClockBound:
    """Bounds of true time in terms of the front end's clock, in microseconds."""

    def __init__(
        self,
        *,
        offset_max_s: float,
        replica_error_s: float,
        front_end_error_s: float | None,
        replicas: int = 1,
    ) -> None:
        self._replicas = replicas
        self._replica_error_ns = _ns(replica_error_s)
        self._refused_ns = _ns(offset_max_s) + 2 * self._replica_error_ns
        """A replica refuses what is stamped by a clock that differs from its own by more."""
        self._declared_us = None if front_end_error_s is None else int(front_end_error_s * 1e6)
        self.is_known = self._declared_us is not None
        """Whether there is a bound at all: declared, or measured at least once."""
        self._agreed = _Span(0, 0, 0)
        """What most replicas agree on; nothing before the first reply."""
        self._agreeing = 0
        self._first_s = 0.0
        self._spans: dict[str, _Span] = {}
        self._silent_s: dict[str, float] = {}
        """Since when replicas have given no answer, though others did."""
        self._left_out = _NOBODY
        """Those that are away and do not count at present. Their spans are kept."""

    @property
    def is_agreed(self) -> bool:
        """Whether the bound is declared, or most replicas agree on it, of those that are not left out."""
        return self._declared_us is not None or 2 * self._agreeing > self._replicas - len(self._left_out)

    def is_settled(self, now: Now) -> bool:
        """Whether the bound may be gone by: declared, or such that one wrong clock cannot have made it, as soon as most
        replicas agree on it. Where those do not answer, there is nothing better than what the others showed."""
        return self.is_agreed or (self.is_known and now.mono_s >= self._first_s + SETTLE_S)

    def follow(self, replicas: Collection[str]) -> None:
        """These are the replicas from now on: what others showed counts no longer."""
        self._replicas = len(replicas)
        self._spans = {name: span for name, span in self._spans.items() if name in replicas}
        self._silent_s = {name: since_s for name, since_s in self._silent_s.items() if name in replicas}
        self._left_out = self._left_out.intersection(replicas)

    def miss(self, replica: str, now: Now) -> None:
        """A replica was asked, and gave no answer that shows its clock."""
        self._silent_s.setdefault(replica, now.mono_s)

    def measure(self, replica: str, theirs_us: int, sent: Now, received: Now) -> None:
        """Take in one reply's clock reading; one that contradicts the same replica's earlier ones starts it afresh.

        Our own clock here is the monotonic one: after a step of the wall clock all that was measured would be wrong.
        """
        if self._declared_us is not None:
            return
        if not self._spans:
            self._first_s = received.mono_s
        theirs_ns, at_ns, sent_ns = 1000 * theirs_us, _ns(received.mono_s), _ns(sent.mono_s)
        # Their clock was read at some moment since we sent: it may have drifted ahead of ours until now.
        least, most = theirs_ns - at_ns, theirs_ns - sent_ns + _drift_ns(at_ns - sent_ns)
        if (before := self._spans.get(replica)) is not None:
            kept_least, kept_most = before.at(at_ns)
            if max(kept_least, least) <= min(kept_most, most) + 2 * self._replica_error_ns:
                least, most = max(kept_least, least), min(kept_most, most)
        self._spans[replica] = _Span(least, most, at_ns)
        self._agreed = _Span(*self._go_by(replica, received.mono_s), at_ns)
        self.is_known = True

    def _go_by(self, replica: str, now_s: float) -> tuple[int, int]:
        """That one has just answered. What most showed; what those showed alone that answer, where these agree, and would refuse what is stamped by the
        former: nothing new could be stored by it."""
        now_ns, slack_ns = _ns(now_s), 2 * self._replica_error_ns
        least, most, self._agreeing = _most_agree_on(
            [span.at(now_ns) for span in self._spans.values()], slack_ns
        )
        self._left_out = _NOBODY
        if not self._silent_s or not (away := self._away_beside(replica, now_s)):
            return least, most
        here = [span.at(now_ns) for name, span in self._spans.items() if name not in away]
        here_least, here_most, agreeing = _most_agree_on(here, slack_ns)
        if agreeing < len(here):
            return least, most
        # Stamps are at the upper bound.
        if here_least - self._refused_ns <= most <= here_most + self._refused_ns:
            self._left_out = away - self._spans.keys()
            return least, most
        self._left_out, self._agreeing = away, agreeing
        return here_least, here_most

    def _away_beside(self, replica: str, now_s: float) -> frozenset[str]:
        """Note that this one has answered. Which others are away."""
        if self._spans.keys() <= self._silent_s.keys():  # Nobody answered: it may have been our own network.
            self._silent_s = dict.fromkeys(self._silent_s, now_s)
        self._silent_s.pop(replica, None)
        return frozenset(name for name, since_s in self._silent_s.items() if now_s >= since_s + AWAY_S)

    def upper_us(self, now: Now) -> int:
        """True time is not after this, once it `is_known`."""
        if self._declared_us is not None:
            return now.wall_us + self._declared_us
        now_ns = _ns(now.mono_s)
        return -((now_ns + self._agreed.at(now_ns)[1] + self._replica_error_ns) // -1000)

    def lower_us(self, now: Now) -> int:
        """True time is not before this, once it `is_known`."""
        if self._declared_us is not None:
            return now.wall_us - self._declared_us
        now_ns = _ns(now.mono_s)
        return (now_ns + self._agreed.at(now_ns)[0] - self._replica_error_ns) // 1000

    def reached_s(self, true_us: int, now: Now) -> float:
        """The monotonic time from which true time is certainly not before this. Our clock may run fast meanwhile, so the
        lower bound gains less than our clock counts."""
        return now.mono_s + max(0, true_us - self.lower_us(now)) / (1e6 * (1 - DRIFT))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _drift_ns(counted_ns: int) -> int:
    """How far true time may be off after our clock has counted so much, rounded up."""
    return -(counted_ns // -DRIFT_PART)


def _most_agree_on(spans: Sequence[tuple[int, int]], slack_ns: int) -> tuple[int, int, int]:
    """What all spans agree on, to within `slack_ns`; where they do not, what most of them do. And how many those are."""
    least, most = max(low for low, _ in spans), min(high for _, high in spans)
    if least <= most + slack_ns:
        return least, most, len(spans)
    around = ([span for span in spans if span[0] <= low <= span[1] + slack_ns] for low, _ in sorted(spans))
    agreeing = max(around, key=len)
    return max(low for low, _ in agreeing), min(high for _, high in agreeing), len(agreeing)
