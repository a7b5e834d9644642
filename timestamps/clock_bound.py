"""How far a front end's clock may be from true time, from what the replicas' answers show. Pure.

Every reply carries the replica's clock. It was read between sending and receiving, so the replica's clock minus ours
(the monotonic one, which never steps) is
at most (theirs - sent) and at least (theirs - received): Cristian's method (1989). The operator vouches only for the
replicas' own error against true time. Where a replica's clock is wrong by more than that, the bounds that most replicas
agree on are taken (Marzullo 1984): one wrong clock must not carry all front ends away.
"""

from collections.abc import Sequence
from math import ceil, floor
from typing import Final, NamedTuple

from .clock import Now

DRIFT: Final = 200e-6
"""How far true time may run ahead of our clock, or behind it, as a share of what our clock has counted since."""
SETTLE_S: Final = 0.5
"""So long after the first reply, what was measured must do, though no majority of the replicas agrees on it."""


class _Span(NamedTuple):
    """Between what one replica's clock minus ours was at the moment `at_s`, in microseconds beyond the base."""

    least_us: float
    most_us: float
    at_s: float

    def at(self, now_s: float) -> tuple[float, float]:
        """The same at a later moment: wider by the drift."""
        drift_us = (now_s - self.at_s) * DRIFT * 1e6
        return self.least_us - drift_us, self.most_us + drift_us


class ClockBound:
    """Bounds of true time in terms of the front end's clock, in microseconds."""

    def __init__(self, *, replica_error_s: float, front_end_error_s: float | None, replicas: int = 1) -> None:
        self._replicas: Final = replicas
        self._replica_error_us = replica_error_s * 1e6
        self._declared_us = None if front_end_error_s is None else front_end_error_s * 1e6
        self._base_us = 0
        """What a replica's clock minus ours was when the first one replied. Counted from there, a microsecond's share of drift is
        not lost: in microseconds since 1970 a double counts by quarters."""
        self._least_us = float("-inf")
        self._most_us = float("inf")
        self._at_s = 0.0
        self._first_s = 0.0
        self._agreeing = 0
        self._spans: dict[str, _Span] = {}

    @property
    def is_known(self) -> bool:
        """Whether there is a bound at all: declared, or measured at least once."""
        return self._declared_us is not None or self._most_us < float("inf")

    def is_settled(self, now: Now) -> bool:
        """Whether the bound may be gone by: declared, or such that one wrong clock cannot have made it, as soon as most
        replicas agree on it. Where those do not answer, there is nothing better than what the others showed."""
        if self._declared_us is not None or 2 * self._agreeing > self._replicas:
            return True
        return self.is_known and now.mono_s >= self._first_s + SETTLE_S

    def measure(self, replica: str, theirs_us: int, sent: Now, received: Now) -> None:
        """Take in one reply's clock reading; one that contradicts the same replica's earlier ones starts it afresh.

        Our own clock here is the monotonic one: after a step of the wall clock all that was measured would be wrong.
        """
        if self._declared_us is not None:
            return
        if not self._spans:
            self._first_s = received.mono_s
            self._base_us = theirs_us - int(received.mono_s * 1e6)
        beyond_us, at_s = theirs_us - self._base_us, received.mono_s
        # The clock was read at some moment between: until now the difference may have drifted.
        drift_us = (received.mono_s - sent.mono_s) * DRIFT * 1e6
        least, most = beyond_us - received.mono_s * 1e6 - drift_us, beyond_us - sent.mono_s * 1e6 + drift_us
        if (before := self._spans.get(replica)) is not None:
            kept_least, kept_most = before.at(at_s)
            if max(kept_least, least) <= min(kept_most, most) + 2 * self._replica_error_us:
                least, most = max(kept_least, least), min(kept_most, most)
        self._spans[replica] = _Span(least, most, at_s)
        self._at_s = at_s
        self._least_us, self._most_us, self._agreeing = _agreed(
            [span.at(at_s) for span in self._spans.values()], 2 * self._replica_error_us
        )

    def upper_us(self, now: Now) -> int:
        """True time is not after this."""
        if self._declared_us is not None:
            return now.wall_us + int(self._declared_us)
        drift_us = (now.mono_s - self._at_s) * DRIFT * 1e6
        return self._base_us + ceil(now.mono_s * 1e6 + self._most_us + drift_us + self._replica_error_us)

    def lower_us(self, now: Now) -> int:
        """True time is not before this."""
        if self._declared_us is not None:
            return now.wall_us - int(self._declared_us)
        drift_us = (now.mono_s - self._at_s) * DRIFT * 1e6
        return self._base_us + floor(now.mono_s * 1e6 + self._least_us - drift_us - self._replica_error_us)

    def reached_s(self, true_us: int, now: Now) -> float:
        """The monotonic time from which true time is certainly not before this. Our clock may run fast meanwhile, so the
        lower bound gains less than our clock counts."""
        return now.mono_s + max(0, true_us - self.lower_us(now)) / (1e6 * (1 - DRIFT))


def _agreed(spans: Sequence[tuple[float, float]], slack_us: float) -> tuple[float, float, int]:
    """What all spans agree on, to within `slack_us`; where they do not, what most of them do. And how many those are."""
    least, most = max(spans)[0], min(high for _, high in spans)
    if least <= most + slack_us:
        return least, most, len(spans)
    around = ([span for span in spans if span[0] <= low <= span[1] + slack_us] for low, _ in sorted(spans))
    agreeing = max(around, key=len)
    return max(low for low, _ in agreeing), min(high for _, high in agreeing), len(agreeing)
