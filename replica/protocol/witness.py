"""What one replica's word about another's store proves. Pure.

A store that was rolled back (an old copy put in its place) or swapped has forgotten promises, and nothing in its own
files shows it. The other replicas remember how far they saw it come: they are its witnesses (DESIGN section 4). A store's
clock is at or above every timestamp in it and never falls, so one that stands below what was seen is an older state.
What is lost unseen is what came after the last announcement.

A store made anew has forgotten all, and may bear the id of the one before, for the document names it. So each has a birth of its
own, and votes for the first time only when every other replica has noted that: then any one of them knows a later one for another.
One that is to join a running cluster has not voted, and may be made anew until it is a member.
"""

from msgspec import Struct

from ...api_specs.messages import Announcement, Testimony
from ...timestamps.timestamp import ZERO, Timestamp


class Witness(Struct, frozen=True):
    """The store that another replica was seen with, how far it had come, and its birth."""

    store: str
    clock: Timestamp
    born: str = ""


def seen(known: Witness | None, announcement: Announcement, *, is_member: bool = True) -> Witness:
    """What to remember after an announcement. It never takes back what was known of a member's store, nor lets another store in its
    place, unless that one may vote already and the cluster file, which both sides hold, names it."""
    if not is_member:
        return Witness(announcement.store, ZERO, announcement.born)
    now = Witness(announcement.store, announcement.clock, announcement.born)
    if known is None:
        return now
    if known.store != announcement.store:
        return now if announcement.named and not announcement.is_new else known
    return now if known.born == announcement.born and known.clock < announcement.clock else known


def contradiction(mine: Announcement, witness: str, testimony: Testimony) -> str | None:
    """The sentence that says why the store of `mine` must not vote, by what replica `witness` knew of it; else None."""
    if mine.is_new and testimony.refuses:
        return f"replica {mine.replica} is new, and replica {witness} says: {testimony.refuses}"
    if not testimony.store:
        return None
    if testimony.store != mine.store:
        if mine.named and not mine.is_new:
            return None
        return (
            f"replica {witness} knows replica {mine.replica} with store {testimony.store}, and this is store "
            f"{mine.store}: {_REMEDY}"
        )
    if testimony.born != mine.born:
        return (
            f"replica {witness} knows store {mine.store} of replica {mine.replica}, and this one was made anew under its id: "
            f"{_REMEDY}"
        )
    if testimony.clock > mine.clock:
        return (
            f"replica {witness} saw store {mine.store} of replica {mine.replica} at {testimony.clock}, and it stands at "
            f"{mine.clock}: an older copy was put in its place, so {_REMEDY}"
        )
    return None


_REMEDY = (
    "promises made since are forgotten, and it does not vote. Put the newest folder back, or stop all replicas and make "
    "a new store from the others' with `quorate replace`"
)
