"""When each of several things was up, from marks as they happen. Pure."""

from collections.abc import Hashable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Interval(NamedTuple, Generic[Name]):
    """Something was up, or down, from `start_s` to `end_s`."""

    name: Name
    start_s: float
    end_s: float
    up: bool


class UpTimes(Generic[Name]):
    """Marks in the order of time for each name; all are up at `start_s` (seconds since 1970)."""

    def __init__(self, names: Iterable[Name], start_s: float) -> None:
        self._since: Final = dict.fromkeys(names, (start_s, True))
        self._closed: Final[list[Interval[Name]]] = []

    def mark(self, name: Name, now_s: float, *, up: bool) -> None:
        """It went down or came up at `now_s`; no change is no mark."""
        since_s, was_up = self._since[name]
        if up != was_up:
            self._closed.append(Interval(name, since_s, now_s, was_up))
            self._since[name] = (now_s, up)

    def is_up(self, name: Name) -> bool:
        """Whether it is up after the last mark."""
        return self._since[name][1]

    def intervals(self, now_s: float) -> list[Interval[Name]]:
        """All that is known at `now_s`, in the order of time: the intervals of one name follow each other without a gap."""
        still = (Interval(name, since_s, now_s, up) for name, (since_s, up) in self._since.items())
        return sorted((*self._closed, *still), key=lambda each: each.start_s)


def were_all_up(intervals: Iterable[Interval[Name]], start_s: float, end_s: float) -> bool:
    """Whether nothing was known to be down at any moment from `start_s` to `end_s`."""
    return not any(not each.up and each.start_s < end_s and start_s < each.end_s for each in intervals)
