"""Which replicas a front end asks first, where some will do. Pure. It matters to speed only.

All front ends prefer the same replicas for an object, so that who reads meets those that hold what was written last; for other
objects others, so that all share the work.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, log2
from typing import Final
from zlib import crc32

from .answer_times import AnswerTimes

IsEnough = Callable[[frozenset[str]], bool]
"""Whether replicas are a quorum, or more."""
AGAIN_S: Final = 1.0
"""Who is not preferred is asked, too, after so long: so it is known how quick it is. And for so long nobody is preferred who was, and failed."""
SILENT_S: Final = 0.1
"""Who is silent for longer fails. A shorter while is any machine's hiccup, and readers would ask others than writers after each."""
SLOWER: Final = 4
"""Who takes so many times as long as the quickest comes after it, for each object."""
LEAST_S: Final = 0.001
"""Answers that take less than this are as good as each other."""


class Preference:
    """The order of one front end: by object, but those last that are slow, or have not answered of late."""

    def __init__(self, own: str | None, replicas: Iterable[str], times: AnswerTimes | None = None) -> None:
        self.times: Final = times or AnswerTimes()
        self._own: Final = own
        self._replicas: tuple[str, ...] = tuple(sorted(replicas))
        self._ill: Final[set[str]] = set()
        self._failed_s: dict[str, float] = {}
        self._heard_s: dict[str, float] = {}
        self._tried_s: dict[str, float] = {}

    def follow(self, replicas: Iterable[str]) -> None:
        """These are the replicas from now on."""
        self._replicas = tuple(sorted(replicas))

    def order(self, name: str, now_s: float) -> list[str]:
        """All replicas, in the order in which they are asked for this object."""
        family = "/".join(name.split("/", 2)[:2])  # Keys of a dictionary are often asked for together.
        begin = crc32(family.encode()) % len(self._replicas)
        # The own one answers without a network: beside it all others would be slow.
        quickest_s = min(
            [self.times.least_s(each) for each in self._replicas if each != self._own], default=0.0
        )

        def rank(replica: str) -> tuple[bool, int]:
            ratio = (self.times.least_s(replica) + LEAST_S) / (quickest_s + LEAST_S)
            is_failing = replica in self._ill or now_s - self._failed_s.get(replica, -inf) < AGAIN_S
            return is_failing, max(0, int(log2(ratio) / log2(SLOWER)))

        return sorted(self._replicas[begin:] + self._replicas[:begin], key=rank)

    def first(
        self, name: str, replicas: Collection[str], is_enough: IsEnough, now_s: float
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The first of these replicas that are enough; and others that are asked beside them: up to a majority, so that nothing that is acknowledged is
        held by few for longer than need be, and those of which it is not known how quick they are now."""
        order = [each for each in self.order(name, now_s) if each in replicas]
        count = next(
            (each for each in range(1, len(order)) if is_enough(frozenset(order[:each]))), len(order)
        )
        quorum = frozenset(order[:count])
        for replica in order[: count - 1]:  # Votes may differ.
            if is_enough(quorum - {replica}):
                quorum -= {replica}
        others = [each for each in order if each not in quorum]
        beside = frozenset(others[: max(0, len(order) // 2 + 1 - len(quorum))]) | self._untried(others, now_s)
        self._tried_s.update(dict.fromkeys(quorum | beside, now_s))
        return quorum, beside

    def _untried(self, replicas: Iterable[str], now_s: float) -> frozenset[str]:
        tried_s, times = self._tried_s, self.times
        return frozenset(
            each for each in replicas if not times.is_known(each) or now_s - tried_s.get(each, -inf) > AGAIN_S
        )

    def well_first(self, replicas: Sequence[str]) -> Sequence[str]:
        """These, the own one first and those last that have not answered of late, in their order otherwise."""
        return sorted(replicas, key=lambda replica: (replica in self._ill, replica != self._own))

    def note_failing(self, replica: str, now_s: float, *, is_silent: bool) -> None:
        """It was asked first, and others were asked in its place: it refused; or it was silent, which is normal for a moment."""
        if not is_silent or now_s - self._heard_s.get(replica, -inf) > SILENT_S:
            self._failed_s[replica] = now_s

    def note(self, replica: str, now_s: float, *, is_well: bool) -> None:
        """The replica has answered, or has not."""
        if is_well:
            self._ill.discard(replica)
            self._heard_s[replica] = now_s
        else:
            self._ill.add(replica)
