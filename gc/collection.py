"""Which log entries are history: no view needs them any more. Pure, per data type, with the argument why it is safe.

Everything here rests on what is *decided* or *complete*, never on what was merely accepted: an accepted horizon may
still lose to a lower one, and what was dropped for its sake would be gone (DESIGN section 6).
"""

from collections.abc import Iterable

from ..adts.log import Entry, Summary
from ..adts.types.catalogue import is_overwritten
from ..timestamps.timestamp import ZERO, Timestamp


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


def may_forget(tombstone: Timestamp, summary: Summary, here: Entry | None, is_newer_here: bool) -> bool:
    """Whether a cell whose deletion at `tombstone` *every* replica has confirmed may be forgotten whole.

    `here` is the entry of that timestamp in this log, `is_newer_here` whether the log has a newer one. Yes, when this
    deletion is the newest here: all replicas hold it or something newer, so no older value can come back from one that
    slept; and late messages meet the store's floor, which takes over the object's promises.
    """
    if is_newer_here or summary.horizon > tombstone:
        return False
    if summary.horizon == tombstone > ZERO:
        return summary.value is None
    return here is not None and here.value is None
