"""How long each replica takes to answer, and from that how long to wait before others are asked, or a request is sent again. Pure.

As TCP does (RFC 6298, section 2): where answers take longer under load, repeats would only add to the load.
"""

from collections.abc import Iterable
from typing import Final

HEDGE_S: Final = (0.02, 0.2)
"""Where a quorum alone was asked, the others are asked, too, after this time at the earliest, and at the latest."""
RESEND_S_FIRST: Final = 0.2
"""A request without an answer is sent again after this time at the earliest, then after twice the time …"""
RESEND_S_MAX: Final = 1.0
"""… up to this, …"""
ANSWER_S_MAX: Final = 2.0
"""… or to what its replica's answers take, up to this."""
_GAIN: Final = 1 / 8
_GAIN_OF_DEVIATION: Final = 1 / 4
_DEVIATIONS: Final = 4


class AnswerTimes:
    """Smoothed times, and their smoothed deviations, by replica, in seconds."""

    def __init__(self, hedge_s: tuple[float, float] = HEDGE_S) -> None:
        """`hedge_s`: how long others are not asked, at least and at most."""
        self._hedge_s: Final = hedge_s
        self._known: Final[dict[str, tuple[float, float]]] = {}

    def note(self, replica: str, took_s: float) -> None:
        """An answer took so long, from when its request was to be sent."""
        if replica not in self._known:
            self._known[replica] = took_s, took_s / 2
            return
        mean_s, deviation_s = self._known[replica]
        deviation_s += _GAIN_OF_DEVIATION * (abs(took_s - mean_s) - deviation_s)
        self._known[replica] = mean_s + _GAIN * (took_s - mean_s), deviation_s

    def is_known(self, replica: str) -> bool:
        """Whether it has answered."""
        return replica in self._known

    def least_s(self, replica: str) -> float:
        """How long it takes at best: a few answers that took much longer change nothing. 0 where that is not known."""
        mean_s, deviation_s = self._known.get(replica, (0.0, 0.0))
        return max(0.0, mean_s - deviation_s)

    def hedge_s(self, replicas: Iterable[str]) -> float:
        """How long to wait for all of these before others are asked."""
        least_s, most_s = self._hedge_s
        return min(max([least_s, *map(self._usual_s, replicas)]), most_s)

    def resend_s(self, replica: str) -> float:
        """How long to wait for an answer before the request is sent again."""
        return min(max(RESEND_S_FIRST, self._usual_s(replica)), ANSWER_S_MAX)

    def _usual_s(self, replica: str) -> float:
        """Nearly all of its answers come within that time."""
        mean_s, deviation_s = self._known.get(replica, (0.0, 0.0))
        return mean_s + _DEVIATIONS * deviation_s
