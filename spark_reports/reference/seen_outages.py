"""Outages as operations saw them, from what stretches of time come to: each can be made apart, and neighbours are joined.

Of the attempts of one choice and operation, an outage lasts from the first one that was not answered to the next that was, or
to the end of the last failed one. Where attempts of one moment ended differently, somebody was answered: the failed ones
stand first. So a stretch is told by where its first attempts failed, its first answer, the outages within it, and the one
it ends in, and `joined` is associative: neighbours may be joined in any grouping.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..model.aggregates import SeenOutage


class Stretch(NamedTuple):
    """What the attempts that began in one stretch of time come to; times in microseconds.

    Args:
        leading_us: when the first attempt began, if it was not answered.
        answered_us: when the first answered attempt began; None if none was.
        periods: outages that began after an answer and ended by another, both in this stretch.
        total_us: their time together.
        longest_us: the longest of them.
        open_us: since when nobody was answered, at the end of the stretch; None where the last attempt was.
        ended_us: the latest end of an attempt that was not answered.
    """

    leading_us: int | None = None
    answered_us: int | None = None
    periods: int = 0
    total_us: int = 0
    longest_us: int = 0
    open_us: int | None = None
    ended_us: int | None = None


NOTHING: Final = Stretch()
"""A stretch in which nothing was tried."""


def joined(earlier: Stretch, later: Stretch) -> Stretch:
    """Give what two neighbouring stretches come to together."""
    since_us = _first(earlier.open_us, later.leading_us)
    closed = [(each.periods, each.total_us, each.longest_us) for each in (earlier, later)]
    if earlier.answered_us is not None:
        closed.append(_closed(since_us, later.answered_us))
    periods, totals, longest = zip(*closed, strict=True)
    return Stretch(
        leading_us=since_us if earlier.answered_us is None else earlier.leading_us,
        answered_us=_first(earlier.answered_us, later.answered_us),
        periods=sum(periods),
        total_us=sum(totals),
        longest_us=max(longest),
        open_us=since_us if later.answered_us is None else later.open_us,
        ended_us=max((end for end in (earlier.ended_us, later.ended_us) if end is not None), default=None),
    )


def outages(choice: str, operation: str, whole: Stretch) -> Iterable[SeenOutage]:
    """Give the outages of all attempts of a choice and operation; nothing where none was seen."""
    found = [(whole.periods, whole.total_us, whole.longest_us), _closed(whole.leading_us, whole.answered_us)]
    if whole.open_us is not None and whole.ended_us is not None:
        length_us = whole.ended_us - whole.open_us
        found.append((1, length_us, length_us))
    periods, totals, longest = zip(*found, strict=True)
    if sum(periods):
        yield SeenOutage(choice, operation, sum(periods), sum(totals), max(longest))


def _closed(since_us: int | None, answered_us: int | None) -> tuple[int, int, int]:
    """The outage that an answer ended: periods, total and longest; none where somebody was answered at its moment."""
    if since_us is None or answered_us is None or since_us >= answered_us:
        return 0, 0, 0
    return 1, answered_us - since_us, answered_us - since_us


def _first(*moments: int | None) -> int | None:
    return next((each for each in moments if each is not None), None)
