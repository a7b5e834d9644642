"""What a log holds: entries, and the summary that subsumes collected ones. Pure values, the same for every data type.

Item values are JSON text: nothing below the edges of the system looks into them, and a value comes back as it went in.
"""

from typing import NewType

from msgspec import UNSET, Struct, UnsetType

from quorate.timestamps.ballot import NO_BALLOT, Ballot
from quorate.timestamps.timestamp import ZERO, Timestamp

Value = NewType("Value", str)
"""Canonical JSON text of a value (no blanks, object keys sorted), so that equal values are equal text."""


class Entry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A timestamped blind event: `[Enq(value); Ok()]`, `[Write(value); Ok()]`, `[Put(value); Ok()]` or `[Delete(); Ok()]`.

    `id` is the first timestamp the entry was given (under an idempotency key with a digest of the value); `t` differs from it when the entry had to be stamped anew.
    `value` is None for a deletion, and UNSET where a reply names an entry without its payload.
    """

    id: str
    t: Timestamp
    value: Value | None | UnsetType = UNSET


class Decision(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A decision asked for under an idempotency key (its id): its ballot, and the entries that it took or reserved.

    `digest` says in short what was asked for, where the entries do not, so that the key used for something else is noticed.
    """

    id: str
    ballot: Ballot
    taken: tuple[Entry, ...] = ()
    digest: str = ""


class Summary(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The decided state of one object, which subsumes every entry at or below its horizon.

    * `horizon`: a queue is consumed up to here; a cell (register, dictionary entry) got its `value` here.
    * `adopted`: entries that belong to every view over this summary, wherever the horizon stands, until taken.
    * `ambiguous`: ids and timestamps of entries taken while it was not known whether they are complete; their front
      end, when it recovers them, learns from here that they took effect.
    * `recent`: the latest decisions that were asked for under a key, oldest first, so that a repeat gets its answer.
    * `turns`: of the latest turns that changed the state, the last ballot of each, oldest first; an owner that lost its
      turn tells from them whether its last accept is part of this summary. `turns_floor` is the newest one dropped.
    """

    horizon: Timestamp = ZERO
    value: Value | None = None
    adopted: tuple[Entry, ...] = ()
    ambiguous: tuple[tuple[str, Timestamp], ...] = ()
    recent: tuple[Decision, ...] = ()
    turns: tuple[Ballot, ...] = ()
    turns_floor: Ballot = NO_BALLOT

    def is_ambiguous(self, entry_id: str) -> bool:
        """Whether the entry was taken while it was not known to be complete."""
        return any(known == entry_id for known, _ in self.ambiguous)

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id, if it is among the recent ones."""
        return next((decision for decision in self.recent if decision.id == decision_id), None)


NOTHING = Summary()
"""The summary of an object nobody decided on."""


class Seen(Struct):
    """An entry as the replies show it: which replicas hold it, and whether one of them knows it to be complete."""

    entry: Entry
    holders: set[str]
    complete: bool = False
