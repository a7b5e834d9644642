"""What a replica tells another one of an object, and what that one takes of it. Pure.

Owns the rule for what may be installed late (docs/design.md, "Catch-up"). It must not know when replicas ask, nor how.
"""

from collections.abc import Sequence

from msgspec import Struct

from quorate.adts.log import Summary
from quorate.api_specs.messages import Append, Commit, Row
from quorate.replica.ports import Log, ObjectState, PutRow
from quorate.timestamps.ballot import NO_BALLOT, Ballot
from quorate.timestamps.timestamp import ZERO, Timestamp


class News(Struct, frozen=True):
    """Of one object: the summary that is known to be decided (none: NO_BALLOT), and rows that are not consumed."""

    name: str
    committed: Ballot = NO_BALLOT
    summary: Summary | None = None
    horizon: Timestamp = ZERO
    rows: tuple[Row, ...] = ()


def tell(name: str, timestamps: Sequence[Timestamp], log: Log) -> News:
    """What there is to tell of the object and these of its rows; a summary that is only accepted is not told."""
    state = log.state(name)
    if state is None:
        return News(name)
    above = consumed_upto(state)
    rows = tuple(row for row in log.wanted(name, timestamps) if row.entry.t > above)
    if state.committed == NO_BALLOT or state.accepted != state.committed:
        return News(name, rows=rows)
    return News(name, state.committed, state.summary, state.horizon, rows)


def consumed_upto(state: ObjectState) -> Timestamp:
    """No row at or below this timestamp is told or installed: it was consumed, replaced, or is of a forgotten life."""
    return max(state.horizon, state.collected, state.floor)


def decided(news: News) -> Commit | None:
    """The message that brings the decided summary; it goes first, because it may consume rows that are told."""
    if news.summary is None:
        return None
    return Commit(news.name, news.committed, news.horizon, summary=news.summary)


def repeats(news: News, state: ObjectState) -> Append | None:
    """The message that brings the rows above the fence, as a repeat of their front ends would."""
    least = max(state.fence, consumed_upto(state))
    entries = tuple(row.entry for row in news.rows if row.entry.t > least)
    return Append(news.name, entries, "repair") if entries else None


def below_the_fence(news: News, state: ObjectState, log: Log) -> list[PutRow]:
    """The rows that are taken although a fence lies above them: only complete ones, and none that was consumed.

    A complete entry was stored at a final quorum. Every decision that has a view above it met it there, so it is in every
    such view, and no answer is falsified when one more replica holds it.
    """
    least = consumed_upto(state)
    late = [row.entry for row in news.rows if row.complete and least < row.entry.t <= state.fence]
    here = log.stored(news.name, [entry.t for entry in late])
    return [PutRow(news.name, entry) for entry in late if entry.t not in here]


def marks(news: News) -> Commit | None:
    """The message that marks as complete what is known as complete there; it goes last, after the rows."""
    complete = tuple(row.entry.t for row in news.rows if row.complete)
    return Commit(news.name, NO_BALLOT, ZERO, complete=complete) if complete else None
