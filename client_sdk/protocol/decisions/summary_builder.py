"""A summary while a decision changes it: what it must remember, for how long, and what there is room for. Pure.

Owns the rules by which a summary stays bounded. Must not know what commands want (`quorate.client_sdk.protocol.decisions.transitions`).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from ....adts.log import Decision, Entry, Seen, Summary, Value
from ....adts.types import queue
from ....api_specs.checking import ID_CHARS_MAX
from ....api_specs.limits import (
    ADOPTED_MAX,
    AMBIGUOUS_BYTES_MAX,
    DEFAULTS,
    ENTRY_BYTES,
    Limits,
)
from ....api_specs.messages import Aged
from ....api_specs.values import payload_bytes, payload_work, text_bytes, waiting_weight
from ....timestamps.ballot import Ballot, step_of, term_of
from ....timestamps.timestamp import Timestamp
from .idempotency import Memory
from .lease_table import Context as LeasingContext
from .lease_table import Ledger, aged_parts

ID_BYTES_MAX: Final = 4 * ID_CHARS_MAX
TERMS_MAX: Final = 64
"""Terms that a summary remembers: an owner that lost its term looks again after as many others at most."""
TERMS_KEPT: Final = 8
"""Of these, so many however old: a steady owner's term may have begun long before the accept it asks for."""


class Context(LeasingContext, frozen=True):
    """What a plan needs to know besides summary and view."""

    ballot: Ballot
    take_bytes_max: int
    is_complete: Callable[[Seen], bool]
    recent_max: int
    aged: Sequence[Aged]
    """What replicas have held for the retry window: nobody asks for it any more. While there is no room for another key, and
    none may go, a new key is refused."""
    terms_before: Timestamp
    """Terms older than this need not be remembered."""
    callers: Sequence[Hashable]
    """Who asks for each command."""
    asker_of: Callable[[Decision], Hashable]
    """Who asked for a decision that is remembered."""
    limits: Limits = DEFAULTS


WHOLE_PART: Final = 8
"""Of a page, what is remembered whole of what was taken under keys takes such a part."""


def remembered_bytes(recent: Iterable[Decision]) -> int:
    """What the payloads weigh that are remembered with decisions."""
    return payload_bytes([entry for known in recent for entry in known.taken])


def fits_whole(size: int, more: int, page_bytes_max: int) -> bool:
    """Whether payloads of `more` bytes may be remembered besides `size` of others: each accept carries them. The first ones may,
    whatever they weigh."""
    return not size or size + more <= page_bytes_max // WHOLE_PART


class SummaryBuilder:
    """A summary being changed."""

    def __init__(self, summary: Summary, context: Context) -> None:
        self.horizon = summary.horizon
        self.value = summary.value
        self.adopted = {entry.id: entry for entry in summary.adopted}
        self.ambiguous = dict(summary.ambiguous)
        old = [each.recent for each in context.aged]
        self.recent = list(summary.recent[aged_parts([known.ballot for known in summary.recent], old) :])
        self._terms = list(summary.terms)
        self.before = summary
        self.context = context
        self.ledger = Ledger(summary, context)

    def view(self, seen: Mapping[str, Seen]) -> list[Seen]:
        """The entries that wait over what is decided so far, oldest first."""
        over = replace(
            self.before,
            horizon=self.horizon,
            adopted=tuple(self.adopted.values()),
            ambiguous=self._named(),
        )
        return queue.view(over, seen)

    def _named(self) -> tuple[tuple[str, Ballot], ...]:
        """What was taken and may not be complete; the list from before, which may be long, where nothing came to it."""
        before = self.before.ambiguous
        return before if len(self.ambiguous) == len(before) else tuple(self.ambiguous.items())

    def note_taken(self, found: Seen) -> None:
        """The entry is about to leave every view; if its own operation may still ask, leave word."""
        if not self.context.is_complete(found):
            self.note_ambiguous(found.entry)

    def note_ambiguous(self, entry: Entry) -> None:
        """Leave word that the entry took effect, under the ballot that did so first."""
        self.ambiguous.setdefault(entry.id, self.context.ballot)

    def room_to_take(self, waiting: Sequence[Seen]) -> int:
        """How many of these, from the first on, may be taken now: of what may not be complete the id is remembered, until nobody asks any more."""
        if (
            not waiting
            or (len(self.ambiguous) + len(waiting)) * (ID_BYTES_MAX + ENTRY_BYTES) <= AMBIGUOUS_BYTES_MAX
        ):
            return len(waiting)
        first = aged_parts([*self.ambiguous.values()], [each.ambiguous for each in self.context.aged])
        room = AMBIGUOUS_BYTES_MAX - sum(text_bytes(id) + ENTRY_BYTES for id in [*self.ambiguous][first:])
        for place, found in enumerate(waiting):
            if not self.context.is_complete(found):
                room -= text_bytes(found.entry.id) + ENTRY_BYTES
                if room < 0:
                    return place
        return len(waiting)

    def pass_over(self, found: Seen) -> None:
        """The entry at the front leaves it: the horizon passes it."""
        self.note_taken(found)
        self.adopted.pop(found.entry.id, None)
        self.horizon = max(self.horizon, found.entry.t)

    def keyed(self, key: str) -> Decision | None:
        """The decision of an earlier attempt with the key, which may stand in the same batch as this one."""
        known = (*self.recent, *self.before.recent)
        return next((decision for decision in known if key and decision.id == key), None)

    def has_room_for(
        self, place: int, key: str, entries: Sequence[Entry] = (), result: Value | None = None
    ) -> bool:
        """Whether what the command at this place decides under the key can be remembered, with what it names; without a key it need not be."""
        return not key or self._memory.has_room(self.context.callers[place], entries, result)

    @cached_property
    def _memory(self) -> Memory:
        """Of the decisions under keys."""
        memory = Memory(self.context.recent_max, self.context.take_bytes_max)
        for known in self.recent:
            memory.add(self.context.asker_of(known), known)
        return memory

    def has_room_to_keep_whole(self, entries: Sequence[Entry]) -> bool:
        """Whether the payloads of these may be remembered."""
        return fits_whole(remembered_bytes(self.recent), payload_bytes(entries), self.context.take_bytes_max)

    def has_room_to_adopt(self, entry: Entry, *, is_to_run: bool = False) -> bool:
        """Whether the summary, and a settled front besides, can be sent; and calls that are to run are no more work than a replica stores of them. The
        first has room; who has none asks again."""
        adopted = (*self.adopted.values(), entry)
        is_light = payload_bytes(adopted) <= self.context.take_bytes_max
        if is_to_run:
            weight = waiting_weight(len(adopted), payload_work(adopted), self.value)
            is_light = is_light and weight <= self.context.limits.waiting_bytes_max(1)
        return len(adopted) == 1 or (is_light and len(adopted) < ADOPTED_MAX)

    def note_keyed(
        self,
        place: int,
        key: str,
        taken: tuple[Entry, ...] = (),
        digest: str = "",
        result: Value | None = None,
    ) -> None:
        """The command at this place changes the state; with a key, a repeat will find its answer here."""
        if key:
            decision = Decision(key, self.context.ballot, taken, digest, result)
            self._memory.add(self.context.callers[place], decision)
            self.recent.append(decision)
        self.note_changed()

    def note_changed(self) -> None:
        """This ballot changes the state."""
        term = term_of(self.context.ballot)
        self._terms = [*(known for known in self._terms if term_of(known) != term), self.context.ballot]

    def finish(self, keep: set[str]) -> Summary:
        """The summary: the old one itself unless something changed, else without what nobody asks for any more.

        Ambiguous entries beyond all retries stay while a log still shows them (`keep`).
        """
        after = replace(
            self.before,
            horizon=self.horizon,
            value=self.value,
            adopted=tuple(sorted(self.adopted.values(), key=lambda entry: entry.t)),
            ambiguous=self._named(),
            terms=tuple(self._terms),
            leases=self.ledger.leases,
            dead=self.ledger.dead,
        )
        if after == self.before:  # What is remembered under a key changes the terms, too.
            return self.before
        old = self.context.terms_before
        latest = enumerate(self._terms[-TERMS_MAX:], TERMS_KEPT - min(len(self._terms), TERMS_MAX))
        terms = tuple(known for place, known in latest if place >= 0 or known >= old)
        dropped = self._terms[: len(self._terms) - len(terms)]
        return replace(
            after,
            ambiguous=self._unforgotten(after.ambiguous, keep),
            recent=tuple(self.recent),
            terms=terms,
            terms_floor=dropped[-1] if dropped else self.before.terms_floor,
            settled=self.ledger.settled_since([each.settled for each in self.context.aged]),
        )

    def _unforgotten(
        self, ambiguous: tuple[tuple[str, Ballot], ...], keep: set[str]
    ) -> tuple[tuple[str, Ballot], ...]:
        old = aged_parts([ballot for _, ballot in ambiguous], [each.ambiguous for each in self.context.aged])
        return tuple(part for place, part in enumerate(ambiguous) if place >= old or part[0] in keep)


def is_surely_remembered(rested_s: float, term_s: float) -> bool:
    """Whether summaries still remember a term whose owner has rested so long, where each term of others takes `term_s` at least."""
    return rested_s <= TERMS_MAX * term_s


def is_included(summary: Summary, ballot: Ballot) -> bool | None:
    """Whether the decision that was proposed under `ballot` is part of the chain that led to `summary`.

    None when the summary no longer remembers that far back.
    """
    term, step = term_of(ballot), step_of(ballot)
    if any(term_of(known) == term and step_of(known) >= step for known in summary.terms):
        return True
    return None if summary.terms_floor >= ballot else False
