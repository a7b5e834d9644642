"""What one replica's word about another's store proves. Pure.

A store that was rolled back (an old copy put in its place) or swapped has forgotten promises, and nothing in its own
files shows it. The other replicas remember how far they saw it come: they are its witnesses (DESIGN section 4). A store's
clock is at or above every timestamp in it and never falls, so one that stands below what was seen is an older state.
What is lost unseen is what came after the last announcement.
"""

from msgspec import Struct

from quorate.api_specs.messages import Announcement, Testimony
from quorate.timestamps.timestamp import Timestamp


class Witness(Struct, frozen=True):
    """The store that another replica was seen with, and how far it had come."""

    store: str
    clock: Timestamp


def seen(known: Witness | None, announcement: Announcement) -> Witness:
    """What to remember after an announcement. It never takes back what was known of a store, nor lets another store in its
    place, unless the cluster document, which both sides hold, names that one."""
    if known is None or (known.store != announcement.store and announcement.named):
        return Witness(announcement.store, announcement.clock)
    if known.store != announcement.store or known.clock >= announcement.clock:
        return known
    return Witness(known.store, announcement.clock)


def contradiction(mine: Announcement, witness: str, testimony: Testimony) -> str | None:
    """The sentence that says why the store of `mine` must not vote, by what replica `witness` knew of it; else None."""
    if not testimony.store or (testimony.store != mine.store and mine.named):
        return None
    if testimony.store != mine.store:
        return (
            f"replica {witness} knows replica {mine.replica} with store {testimony.store}, and this is store "
            f"{mine.store}: {_REMEDY}"
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
