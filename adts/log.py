"""What a log holds: entries, and the summary that subsumes collected ones. Pure values, the same for every data type.

Item values are JSON text: nothing below the edges of the system looks into them, and a value comes back as it went in. Nothing here
can be part of a cycle, so the garbage collector need not look at it (`gc=False`).
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any, Final, Literal, NewType

from msgspec import UNSET, Struct, UnsetType

from ..timestamps.ballot import NO_BALLOT, Ballot
from ..timestamps.timestamp import ZERO, Timestamp

Value = NewType("Value", str)
"""Canonical JSON text of a value (no blanks, object keys sorted)."""


class Entry(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A timestamped blind event: `[Enq(value); Ok()]`, `[Write(value); Ok()]`, `[Put(value); Ok()]` or `[Delete(); Ok()]`.

    `id` is the first timestamp the entry was given (under an idempotency key with a digest of the value; with more behind it
    where the item has times of its own, see `quorate.adts.times`); `t` differs from it when the entry had to be stamped anew.
    `value` is None for a deletion, and UNSET where a reply names an entry without its payload.
    """

    id: str
    t: Timestamp
    value: Value | None | UnsetType = UNSET


t_of: Final[Callable[[Entry], Timestamp]] = attrgetter("t")
value_of: Final[Callable[[Entry], Any]] = attrgetter("value")
"""What a replica asks of each entry, several times: no function of ours runs for it."""


class Decision(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A decision asked for under an idempotency key (its id): its ballot, and the entries that it took or reserved.

    `digest` says in short what was asked for, where the entries do not, so that the key used for something else is noticed. A call
    on an object of one's own type has a `result`.
    """

    id: str
    ballot: Ballot
    taken: tuple[Entry, ...] = ()
    digest: str = ""
    result: Value | None = None


class Leased(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An item of a queue that an acquire has met: delivered (`is_held`), or waiting to be delivered, for the first time or
    again. The horizon has passed its entry, which is kept here with its payload.

    `until_us` (microseconds since 1970) is the deadline of one that is held, from which it may be delivered again; of one
    that waits, when it is due. `deliveries` says how often it was delivered; with the entry's id it names one lease. After
    `expires_us` it is not delivered any more (0: never). `excused` are deliveries that do not count towards a maximum:
    those before it was taken back from the dead letters. `holder` names the caller that it was handed to last.
    """

    entry: Entry
    until_us: int = 0
    deliveries: int = 0
    is_held: bool = False
    expires_us: int = 0
    excused: int = 0
    holder: str = ""

    @property
    def token(self) -> str:
        """What names this lease: nobody else was or will be given the same one."""
        return f"{self.deliveries}/{self.entry.id}"


DeadReason = Literal["rejected", "deliveries", "expired"]


class Dead(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A dead letter: an item that is not delivered any more, because it was rejected, was delivered too often or expired."""

    entry: Entry
    reason: DeadReason
    deliveries: int = 0


class LeaseCounts(Struct, frozen=True, gc=False):
    """Of the items that an acquire has met: how many are delivered, wait to be (again), and are dead letters."""

    held: int = 0
    waiting: int = 0
    dead: int = 0


NO_LEASES: Final = LeaseCounts()


def count_leases(leases: tuple[Leased, ...], dead: tuple[Dead, ...]) -> LeaseCounts:
    """How many are delivered, wait and are dead."""
    held = sum(record.is_held for record in leases)
    return LeaseCounts(held, len(leases) - held, len(dead))


Ending = Literal["accept", "release", "reject", "drop"]


class Settled(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Leases that the decision of `ballot` ended, and how: digests of their tokens. A repeat finds its answer here."""

    ballot: Ballot
    how: Ending
    tokens: tuple[str, ...]


class Summary(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"terms": "turns", "terms_floor": "turns_floor"},  # As they are called on disk.
):
    """The decided state of one object, which subsumes every entry at or below its horizon.

    * `horizon`: a queue is consumed up to here; a cell (register, dictionary entry) got its `value` here.
    * `adopted`: entries that belong to every view over this summary, wherever the horizon stands, until taken.
    * `ambiguous`: ids of entries taken while it was not known whether they are complete, each with the ballot of the decision
      that took it, oldest first; their front end, when it recovers them, learns from here that they took effect.
    * `recent`: the latest decisions that were asked for under a key, oldest first, so that a repeat gets its answer.
    * `terms`: of the latest terms that changed the state, the last ballot of each, oldest first; an owner that lost its
      term tells from them whether its last accept is part of this summary. `terms_floor` is the newest one dropped.
    * `leases`: items of a queue that are delivered under a lease, or wait to be, by no order; `dead`: dead letters, oldest
      first; `settled`: how leases ended lately, oldest first.
    """

    horizon: Timestamp = ZERO
    value: Value | None = None
    adopted: tuple[Entry, ...] = ()
    ambiguous: tuple[tuple[str, Ballot], ...] = ()
    recent: tuple[Decision, ...] = ()
    terms: tuple[Ballot, ...] = ()
    terms_floor: Ballot = NO_BALLOT
    leases: tuple[Leased, ...] = ()
    dead: tuple[Dead, ...] = ()
    settled: tuple[Settled, ...] = ()

    def kept(self) -> tuple[Entry, ...]:
        """The entries that are kept here for leases and dead letters."""
        return tuple(record.entry for record in self.leases) + tuple(dead.entry for dead in self.dead)

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id, if it is among the recent ones."""
        return next((decision for decision in self.recent if decision.id == decision_id), None)


NOTHING = Summary()
"""The summary of an object nobody decided on."""


class Seen(Struct, gc=False):
    """An entry as the replies show it: which replicas hold it, and whether one of them knows it to be complete."""

    entry: Entry
    holders: AbstractSet[str] = frozenset()
    complete: bool = False
