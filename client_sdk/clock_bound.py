"""How far a front end's clock may be from true time, from what the replicas' answers show. Pure.

Every reply carries the replica's clock. It was read between sending and receiving, so the replica's clock minus ours
(the monotonic one, which never steps) is
at most (theirs - sent) and at least (theirs - received): Cristian's method (1989). The operator vouches only for the
replicas' own error against true time.
"""

from math import ceil, floor
from typing import Final

from quorate.client_sdk.effects import Now

DRIFT: Final = 200e-6
"""How fast two quartz clocks may part, as a share of the time since they were compared."""


class ClockBound:
    """Bounds of true time in terms of the front end's clock, in microseconds."""

    def __init__(self, *, replica_error_s: float, front_end_error_s: float | None) -> None:
        self._replica_error_us = replica_error_s * 1e6
        self._declared_us = None if front_end_error_s is None else front_end_error_s * 1e6
        self._least_us = float("-inf")
        self._most_us = float("inf")
        self._at_s = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is a bound at all: declared, or measured at least once."""
        return self._declared_us is not None or self._most_us < float("inf")

    def measure(self, theirs_us: int, sent: Now, received: Now) -> None:
        """Take in one reply's clock reading; readings that contradict the earlier ones start afresh.

        Our own clock here is the monotonic one: after a step of the wall clock all that was measured would be wrong.
        """
        least, most = theirs_us - received.mono_s * 1e6, theirs_us - sent.mono_s * 1e6
        drift_us = (received.mono_s - self._at_s) * DRIFT * 1e6
        kept_least, kept_most = max(self._least_us - drift_us, least), min(self._most_us + drift_us, most)
        if kept_least > kept_most + 2 * self._replica_error_us:
            kept_least, kept_most = least, most
        self._least_us, self._most_us, self._at_s = kept_least, kept_most, received.mono_s

    def upper_us(self, now: Now) -> int:
        """True time is not after this."""
        if self._declared_us is not None:
            return now.wall_us + int(self._declared_us)
        drift_us = (now.mono_s - self._at_s) * DRIFT * 1e6
        return ceil(now.mono_s * 1e6 + self._most_us + drift_us + self._replica_error_us)

    def lower_us(self, now: Now) -> int:
        """True time is not before this."""
        if self._declared_us is not None:
            return now.wall_us - int(self._declared_us)
        drift_us = (now.mono_s - self._at_s) * DRIFT * 1e6
        return floor(now.mono_s * 1e6 + self._least_us - drift_us - self._replica_error_us)
