"""What a store remembers of an object, so that the usual questions about its newest rows ask no statement."""

from bisect import bisect_left, bisect_right, insort
from typing import Final

from quorate.replica.ports import ObjectState
from quorate.timestamps.timestamp import Timestamp

RECENT_MAX: Final = 1000
"""Timestamps of its newest rows that a cached object remembers."""


class CachedObject:
    """What is known about an object without asking the statements.

    `recent` holds the timestamp of every row above `recent_above`, in order, so that the usual questions about the newest
    rows (whether a timestamp has one, which is the next below) need no query, and no walk.
    """

    __slots__ = ("number", "recent", "recent_above", "state")

    def __init__(self, number: int, state: ObjectState | None, recent_above: Timestamp) -> None:
        self.number = number
        self.state = state
        self.recent: list[Timestamp] = []
        self.recent_above = recent_above

    def add(self, timestamp: Timestamp) -> None:
        if timestamp <= self.recent_above:
            return
        insort(self.recent, timestamp)
        if len(self.recent) > RECENT_MAX:
            self.drop(self.recent[RECENT_MAX // 2])

    def drop(self, upto: Timestamp) -> None:
        """Remember only what lies above `upto`; what is below must be asked for."""
        if upto > self.recent_above:
            del self.recent[: bisect_right(self.recent, upto)]
            self.recent_above = upto

    def has(self, timestamp: Timestamp) -> bool:
        """Whether it is among the recent ones."""
        place = bisect_left(self.recent, timestamp)
        return place < len(self.recent) and self.recent[place] == timestamp
