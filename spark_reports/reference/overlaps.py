"""What several intervals of one replica, or of one link, say together where they overlap. Plain Python; `trace_jobs` does the
same on Spark.

Of intervals that are wholly alike one is kept. Where intervals overlap and agree they are joined. Where they contradict each
other nobody can tell which is right: that time is unknown, and every row that takes part is kept aside; what else it says
still counts, for a wrong row of a second must not take away a day.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TypeVar

from ..input.rows import Interval
from ..model import contract

Key = TypeVar("Key", bound=Hashable)

Line = tuple[Interval, str]
"""An interval, and the text that it was read from."""


def settled(lines: Iterable[Line]) -> tuple[list[Interval], list[tuple[str, str]]]:
    """Give disjoint intervals, and the text and reason of each line that is kept aside.

    Example: up from 0 to 10 and down from 4 to 5 become up from 0 to 4 and from 5 to 10; both lines are kept aside.
    """
    intervals: list[Interval] = []
    aside: list[tuple[str, str]] = []
    for _, of_one in groupby(sorted(lines), key=lambda line: (line[0].front_end, line[0].replica)):
        own: list[Line] = []
        for _, alike in groupby(of_one, key=lambda line: line[0]):
            first, *twins = alike
            own.append(first)
            aside += [(text, contract.SAME_INTERVAL) for _, text in twins]
        disjoint, contested = _laid_out([interval for interval, _ in own])
        intervals += disjoint
        aside += [(own[index][1], contract.CONTRADICTS) for index in sorted(contested)]
    return intervals, aside


def states(rows: Iterable[tuple[Key, Interval]]) -> Iterator[tuple[int, int, Mapping[Key, int | None]]]:
    """Each stretch between two changes, and what each key's disjoint intervals say in it: 1, 0, or None for nothing."""
    changes: dict[int, list[tuple[Key, int | None]]] = defaultdict(list)
    for key, each in rows:
        changes[each.end_us].insert(0, (key, None))
        changes[each.start_us].append((key, each.up))
    state: dict[Key, int | None] = {}
    for start_us, end_us in pairwise(sorted(changes)):
        state.update(changes[start_us])
        yield start_us, end_us, state


def _laid_out(own: list[Interval]) -> tuple[list[Interval], set[int]]:
    """Give the time of which nothing contradicts anything, joined, and the numbers of the intervals that contradict."""
    joined: list[Interval] = []
    contested: set[int] = set()
    for start_us, end_us, speaking in _between_changes(own):
        states = {own[index].up for index in speaking}
        if len(states) > 1:
            contested |= speaking
        elif states:
            piece = replace(own[min(speaking)], start_us=start_us, end_us=end_us)
            if joined and (joined[-1].end_us, joined[-1].up) == (start_us, piece.up):
                joined[-1] = replace(joined[-1], end_us=end_us)
            else:
                joined.append(piece)
    return joined, contested


def _between_changes(own: list[Interval]) -> Iterator[tuple[int, int, set[int]]]:
    """Each stretch between two moments at which an interval starts or ends, and which intervals cover it."""
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for index, each in enumerate(own):
        starts.setdefault(each.start_us, []).append(index)
        ends.setdefault(each.end_us, []).append(index)
    speaking: set[int] = set()
    for start_us, end_us in pairwise(sorted(starts.keys() | ends.keys())):
        # First in, then out: an interval without length speaks of nothing.
        speaking.update(starts.get(start_us, ()))
        speaking.difference_update(ends.get(start_us, ()))
        yield start_us, end_us, set(speaking)
