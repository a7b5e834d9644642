"""What a prober made of each replica, against the truth.

Both are laid side by side: between two changes of either, a *segment* says what was true and what was seen, up, down or
unknown. Everything else is asked of the segments of one replica in order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice

from ..input.rows import Interval
from ..model.aggregates import Probed
from .overlaps import states


@dataclass(frozen=True, slots=True)
class Segment:
    """`true` and `seen` are 1, 0 or, where nothing is known, None."""

    start_us: int
    end_us: int
    true: int | None
    seen: int | None


def segments(true: Iterable[Interval], seen: Iterable[Interval]) -> list[Segment]:
    """Lay the truth and the prober's view of one replica side by side."""
    rows = [*(("true", each) for each in true), *(("seen", each) for each in seen)]
    return [
        Segment(start_us, end_us, state.get("true"), state.get("seen"))
        for start_us, end_us, state in states(rows)
    ]


def probed(true: Sequence[Interval], seen: Sequence[Interval]) -> Iterator[Probed]:
    """Compare truth and view of each replica that was probed."""
    for replica in sorted({each.replica for each in seen}):
        own = [[each for each in rows if each.replica == replica] for rows in (true, seen)]
        yield _probed(replica, segments(*own))


def _probed(replica: str, found: Sequence[Segment]) -> Probed:
    watched = [each for each in found if each.true is not None and each.seen is not None]
    outages = [own for own in _stretches(found, "true") if own[0].seen is not None]
    detected = [own for own in outages if any(each.seen == 0 for each in own)]
    delays = [next(each.start_us for each in own if each.seen == 0) - own[0].start_us for own in detected]
    recoveries = [
        found_us for own in detected if (found_us := _recovery_us(own[-1].end_us, found)) is not None
    ]
    alarms = [own for own in _stretches(found, "seen") if all(each.true == 1 for each in own)]
    return Probed(
        replica=replica,
        watched_us=sum(each.end_us - each.start_us for each in watched),
        agreed_us=sum(each.end_us - each.start_us for each in watched if each.true == each.seen),
        outages=len(outages),
        detected=len(detected),
        false_alarms=len(alarms),
        detection_us=sum(delays),
        detection_max_us=max(delays, default=0),
        recoveries=len(recoveries),
        recovery_us=sum(recoveries),
    )


def _stretches(found: Sequence[Segment], column: str) -> list[list[Segment]]:
    """The stretches in which `column` is 0; segments touch each other, so that neighbours belong together."""
    groups = groupby(found, key=lambda each: getattr(each, column) == 0)
    return [list(own) for is_down, own in groups if is_down]


def _recovery_us(ended_us: int, found: Sequence[Segment]) -> int | None:
    """From the end of an outage to the first moment at which it was seen up; None if it ended in the unknown."""
    after = islice(found, bisect_left(found, ended_us, key=lambda each: each.start_us), None)
    first = next(after, None)
    if first is None or first.true != 1:
        return None
    seen = next((each for each in chain([first], after) if each.seen == 1), None)
    return None if seen is None else seen.start_us - ended_us
