"""Which calls may come next, by consistency model.

* `linearizable` (Herlihy and Wing 1990): a call that returned before another was invoked comes before it, on all clients.
* `sequential` (Lamport 1979): the same, for calls of one process; over all objects together.
* `serializable` (Papadimitriou 1979): in any order; a call is a transaction.

Owns what *placed* means: how a search names the calls that it has placed. Must not know what calls mean.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Protocol

from .calls import NEVER, Call


class Model(Enum):
    """A consistency model; see above."""

    LINEARIZABLE = "linearizable"
    SEQUENTIAL = "sequential"
    SERIALIZABLE = "serializable"


class Order(Protocol):
    """What may come next. Numbers are those of the calls in `calls`, which are in an order of its own: known ones first."""

    calls: Sequence[Call]
    known: int
    """How many of them returned."""

    def start(self) -> Hashable:
        """No call is placed."""

    def is_done(self, placed: Any) -> bool:
        """Whether all that returned are placed."""

    def next(self, placed: Any) -> list[int]:
        """The calls that may come next, known ones first."""

    def with_one(self, placed: Any, number: int) -> Hashable:
        """One more is placed, of `next`."""

    def passed(self, met: Iterable[Any]) -> float:
        """The moment beyond which none of these reaches: when the first call that none has placed returned."""


class RealTime:
    """Linearizable. Known calls in the order of their returns: the first that is not placed, at *base*, bounds what may come
    next, for whatever was invoked after it returned comes later. What is placed beyond base is a short row of bits, however long
    the history is (Lowe 2017, just-in-time linearization).
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        known = sorted((call for call in calls if call.is_known), key=lambda call: call.returned)
        unknown = sorted((call for call in calls if not call.is_known), key=lambda call: call.invoked)
        self.calls: Sequence[Call] = [*known, *unknown]
        self.known = len(known)
        self._returned = [call.returned for call in known]
        self._begun = [call.invoked for call in unknown]
        self._open = list(_open_at_returns(known))

    def start(self) -> tuple[int, int, int]:
        """See Order: base, what is placed beyond it, the unknown ones placed."""
        return 0, 0, 0

    def is_done(self, placed: tuple[int, int, int]) -> bool:
        """See Order."""
        return placed[0] == self.known

    def next(self, placed: tuple[int, int, int]) -> list[int]:
        """See Order."""
        base, window, of_unknown = placed
        found = [number for number in self._open[base] if not window >> (number - base) & 1]
        begun = bisect_right(self._begun, self._returned[base])
        return found + [self.known + number for number in range(begun) if not of_unknown >> number & 1]

    def with_one(self, placed: tuple[int, int, int], number: int) -> tuple[int, int, int]:
        """See Order."""
        base, window, of_unknown = placed
        if number >= self.known:
            return base, window, of_unknown | 1 << (number - self.known)
        window |= 1 << (number - base)
        if number > base:
            return base, window, of_unknown
        gone = (~window & (window + 1)).bit_length() - 1
        return base + gone, window >> gone, of_unknown

    def passed(self, met: Iterable[tuple[int, int, int]]) -> float:
        """See Order."""
        return self._returned[max(base for base, _, _ in met)]


def _open_at_returns(known: Sequence[Call]) -> Iterator[list[int]]:
    """For each call, in the order of their returns: itself and the later ones that were invoked before it returned."""
    by_invocation = sorted(range(len(known)), key=lambda number: known[number].invoked)
    begun, at = list[int](), 0
    for base, call in enumerate(known):
        while at < len(by_invocation) and known[by_invocation[at]].invoked <= call.returned:
            begun.append(by_invocation[at])
            at += 1
        begun = [number for number in begun if number >= base]
        yield sorted(begun)


class Lanes:
    """Real time counts within a lane only: a process (sequential), or each call alone (serializable)."""

    def __init__(self, calls: Sequence[Call], *, by_process: bool) -> None:
        self.calls: Sequence[Call] = sorted(calls, key=lambda call: (not call.is_known, call.returned))
        self.known = sum(call.is_known for call in calls)
        self._all = (1 << self.known) - 1
        lanes: dict[Hashable, list[int]] = {}
        for number, call in enumerate(self.calls):
            # Calls alike can be swapped where no time counts: they come one after the other.
            lane = call.process if by_process else (call.object, call.invocation, call.answers)
            lanes.setdefault(lane, []).append(number)
        self._lanes = [sorted(lane, key=lambda number: self.calls[number].invoked) for lane in lanes.values()]
        self._before = [0] * len(self.calls)
        for lane_calls in self._lanes:
            if by_process:
                self._note_time(lane_calls)
            else:
                for other, number in pairwise(lane_calls):
                    self._before[number] = 1 << other

    def _note_time(self, lane: Sequence[int]) -> None:
        """Of a lane's calls, in the order of their invocations: those that returned before."""
        ended, before, at = sorted(lane, key=lambda number: self.calls[number].returned), 0, 0
        for number in lane:
            while self.calls[ended[at]].returned < self.calls[number].invoked:
                before |= 1 << ended[at]
                at += 1
            self._before[number] = before

    def start(self) -> int:
        """See Order: the placed ones as bits."""
        return 0

    def is_done(self, placed: int) -> bool:
        """See Order."""
        return placed & self._all == self._all

    def next(self, placed: int) -> list[int]:
        """See Order."""
        found = []
        for lane in self._lanes:
            bound: float = NEVER
            for number in lane:
                if placed >> number & 1:
                    continue
                if self.calls[number].invoked > bound:
                    break
                bound = min(bound, self.calls[number].returned)
                if not self._before[number] & ~placed:
                    found.append(number)
        return sorted(found)

    def with_one(self, placed: int, number: int) -> int:
        """See Order."""
        return placed | 1 << number

    def passed(self, met: Iterable[int]) -> float:
        """See Order."""
        return NEVER


def order_of(model: Model, calls: Sequence[Call]) -> Order:
    """What `model` says of these calls."""
    if model is Model.LINEARIZABLE:
        return RealTime(calls)
    return Lanes(calls, by_process=model is Model.SEQUENTIAL)
