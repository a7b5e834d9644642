"""Which log entries are history: no view needs them any more. Pure, per data type, with the argument why it is safe.

Everything here rests on what is *decided* or *complete*, never on what was merely accepted: an accepted horizon may
still lose to a lower one, and what was dropped for its sake would be gone (DESIGN section 6).
"""

from collections.abc import Iterable
from typing import Protocol

from ..adts.log import NOTHING, Summary
from ..adts.types.catalogue import SPECIFICATIONS, adt_of, is_overwritten
from ..timestamps.ballot import NO_BALLOT, Ballot, term_of
from ..timestamps.timestamp import ZERO, Timestamp


class Promises(Protocol):
    """What is asked of an object's state to know whether it is promises alone."""

    @property
    def fence(self) -> Timestamp:
        """No row at or below this is taken."""

    @property
    def promised(self) -> Timestamp:
        """No lower term is taken."""

    @property
    def accepted(self) -> Ballot:
        """The ballot of the summary that was accepted last."""

    @property
    def collected(self) -> Timestamp:
        """Rows at or below this are history."""


def collected_by_commit(adt: str, horizon: Timestamp) -> Timestamp:
    """Up to where a *committed* summary's horizon makes the log history.

    Queue: decided horizons only rise, every later view starts above, and adopted entries travel in the summary.
    Cell: the summary's own value has the horizon's timestamp, so older ones can never be the newest again.
    Type of one's own: the summary's state has all that lay at or below the horizon folded in.
    """
    del adt  # The same for every type so far; the argument differs.
    return horizon


def collected_by_completion(adt: str, complete: Iterable[Timestamp]) -> Timestamp | None:
    """The complete entry below which the log is history, or None.

    Cell: every initial quorum of a reader meets the final quorum that stores the complete entry, so it sees that one or
    a newer, and an older never wins. Others: completeness says nothing about being consumed, or folded into the state.
    """
    return max(complete, default=None) if is_overwritten(adt) else None


def ended_at(name: str, summary: Summary, accepted: Ballot) -> Timestamp | None:
    """When the object came to nothing, by what was accepted last: the timestamp of a deletion of a dictionary's key, or of the last call that left
    an object of one's own type as new as it was; of what was nothing before, the term. None where it is something, or where nobody has decided
    anything.

    Nothing is decided on nothing where an operation under an idempotency key finds nothing, and does nothing: it must end what an earlier
    attempt may have had accepted elsewhere. A call that does nothing and ends Ok is remembered under its key, at a horizon of its own. A queue
    or register that has a horizon was something: a backup may hold that, and could not tell that it is over.
    """
    if summary.horizon > ZERO:
        is_nothing = summary.value is None and not summary.adopted and may_end(adt_of(name))
        return summary.horizon if is_nothing else None
    return term_of(accepted) if accepted > NO_BALLOT and summary == NOTHING else None


def may_end(adt: str) -> bool:
    """Whether an object that has a horizon and no value is as new: a dictionary's key, and one of a type of one's own."""
    return adt == "dictionary" or adt not in SPECIFICATIONS


def may_forget(decided: Ballot, accepted: Ballot, ended: Timestamp | None, *, is_newer_here: bool) -> bool:
    """Whether an object may be forgotten whole of which *every* replica has held for the retry window that it came to nothing by the decision of this
    ballot. `accepted`: the ballot that was accepted last here. `ended`: when it came to nothing by that (`ended_at`).

    Yes, while that decision is the newest here; `is_newer_here`: the log has an entry that the summary does not cover. An older value comes back
    from nowhere: all replicas hold the decision, or have forgotten the object; who is told by them in between is told of it, or of nothing; and
    what somebody was told, or had sent, before all of them held it, is older than the window, and nobody takes it in any more. Another decision
    that it is nothing, at the same timestamp, may have been made since, and has ended what a replica accepted in between: that one is young.
    """
    return not is_newer_here and ended is not None and decided == accepted


def holds_promises_alone(state: Promises) -> bool:
    """Whether nothing was ever decided here of the object; it has no rows either, then this replica may forget it alone.

    The store's floor rises to its fence and its promise, so that what they refused is refused: rows and terms at or below, of this
    object and of all that the store does not know. That must be older than the window: nobody takes anything so old in any more, but
    from a replica that holds it, whatever the floor (`quorate.replica.protocol.catch_up`).
    """
    return state.accepted == NO_BALLOT and state.collected == ZERO
