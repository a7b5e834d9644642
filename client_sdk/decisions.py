"""What a decision does: from a summary, a view and what callers want, the next summary and their results. Pure.

This is the serial specification at work on summaries: `plan_queue` and `plan_cell` apply all wishes of one batch in
order. A wish that cannot be answered from this view stays without a result. Safety rests on what the caller (the
decider) guarantees: the view holds every entry at or below `bound` that is complete or ever can be.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from quorate.adts import cell, queue
from quorate.adts.log import Decision, Entry, Seen, Summary, Value
from quorate.api_specs.limits import ADOPTED_MAX, KEYED_ENTRIES_MAX
from quorate.api_specs.values import payload_bytes
from quorate.api_specs.wishes import Front, Swap, Take
from quorate.client_sdk.effects import Failed
from quorate.client_sdk.keys import KEY_REUSED, TOO_MANY_KEYS, digest
from quorate.timestamps.ballot import Ballot, step_of, turn_of
from quorate.timestamps.timestamp import Timestamp

NULL: Final = Value("null")

TURNS_MAX: Final = 64
"""Turns that a summary remembers: an owner that lost its turn looks again after as many others at most."""
TURNS_KEPT: Final = 8
"""Of these, so many however old: a steady owner's turn may have begun long before the accept it asks for."""


class Fate(Enum):
    """What became of an entry that some replicas hold and others refused."""

    IN_FORCE = "in force"
    """It is part of the decided state, or was taken: its operation took effect."""
    VOID = "void"
    """It never was complete and never will be: its operation may be run again with a new timestamp."""
    UNKNOWN = "unknown"


class Recover(Struct, frozen=True):
    """Decide the fate of an entry. `may_be_complete`: a final quorum may store it. Result: a Fate, and with a key
    the timestamp reserved for the next attempt."""

    entry: Entry
    may_be_complete: bool
    key: str = ""
    instead: Timestamp | None = None


class Reserve(Struct, frozen=True):
    """Give the operation of `key` these ids and timestamps, unless it has some. Result: the entries, without values."""

    key: str
    entries: tuple[Entry, ...]


class Settle(Struct, frozen=True):
    """Make what the view shows decided, without changing what it means. Result: the current value of a cell."""


Wish = Take | Front | Recover | Reserve | Swap | Settle


class Context(Struct, frozen=True):
    """What a plan needs to know besides summary and view."""

    ballot: Ballot
    take_bytes_max: int
    is_complete: Callable[[Seen], bool]
    recent_max: int
    forget_before: Timestamp
    """Ambiguous entries and keyed decisions older than this are beyond all retries: nobody asks for them any more.
    While there is no room for another key, and none may go, a new key is refused."""


class Plan(Struct):
    """The next summary (equal to the old one when nothing changes), results by the wish's place, and what happened.

    An entry among the events stands for the Deq that takes it: its payload may still have to be fetched.
    """

    summary: Summary
    results: dict[int, Any]
    events: list[str | Entry]


class _Draft:
    """A summary being changed."""

    def __init__(self, summary: Summary, context: Context) -> None:
        self.horizon = summary.horizon
        self.value = summary.value
        self.adopted = {entry.id: entry for entry in summary.adopted}
        self.ambiguous = dict(summary.ambiguous)
        self.recent = [known for known in summary.recent if known.ballot >= context.forget_before]
        self._turns = list(summary.turns)
        self._before = summary
        self.context = context

    def note_taken(self, found: Seen) -> None:
        """The entry is about to leave every view; if its own operation may still ask, leave word."""
        if not self.context.is_complete(found):
            self.ambiguous[found.entry.id] = found.entry.t

    def keyed(self, key: str) -> Decision | None:
        """The decision of an earlier attempt with the key, which may stand in the same batch as this one."""
        known = (*self.recent, *self._before.recent)
        return next((decision for decision in known if key and decision.id == key), None)

    def has_room_for(self, key: str, entries: Sequence[Entry]) -> bool:
        """Whether a decision under the key can be remembered with what it names; without a key it need not be."""
        if not key:
            return True
        named = [entry for known in self.recent for entry in known.taken]
        size = payload_bytes(named)
        if size and size + payload_bytes(entries) > self.context.take_bytes_max:
            return False
        return len(self.recent) < self.context.recent_max and len(named) + len(entries) <= KEYED_ENTRIES_MAX

    def has_room_to_adopt(self, entry: Entry) -> bool:
        """Whether the summary, and a settled front besides, can be sent. The first has room; who has none asks again."""
        adopted = (*self.adopted.values(), entry)
        is_light = payload_bytes(adopted) <= self.context.take_bytes_max
        return len(adopted) == 1 or (is_light and len(adopted) < ADOPTED_MAX)

    def note_changed(self, key: str = "", taken: tuple[Entry, ...] = (), digest: str = "") -> None:
        """This ballot changes the state; with a key, a repeat will find its answer here."""
        if key:
            self.recent.append(Decision(key, self.context.ballot, taken, digest))
        turn = turn_of(self.context.ballot)
        self._turns = [*(known for known in self._turns if turn_of(known) != turn), self.context.ballot]

    def finish(self, keep: set[str]) -> Summary:
        """The summary: the old one itself unless something changed, else without what nobody asks for any more.

        Ambiguous entries beyond all retries stay while a log still shows them (`keep`).
        """
        after = replace(
            self._before,
            horizon=self.horizon,
            value=self.value,
            adopted=tuple(sorted(self.adopted.values(), key=lambda entry: entry.t)),
            ambiguous=tuple(self.ambiguous.items()),
            turns=tuple(self._turns),
        )
        is_noted = any(known not in self._before.recent for known in self.recent)
        if after == self._before and not is_noted:
            return self._before
        old = self.context.forget_before
        latest = enumerate(self._turns[-TURNS_MAX:], TURNS_KEPT - min(len(self._turns), TURNS_MAX))
        turns = tuple(known for place, known in latest if place >= 0 or known >= old)
        dropped = self._turns[: len(self._turns) - len(turns)]
        return replace(
            after,
            ambiguous=tuple((i, t) for i, t in after.ambiguous if t >= old or i in keep),
            recent=tuple(self.recent),
            turns=turns,
            turns_floor=dropped[-1] if dropped else self._before.turns_floor,
        )


def plan_queue(
    summary: Summary, seen: dict[str, Seen], bound: Timestamp, wishes: Sequence[Wish], context: Context
) -> Plan:
    """The plan for a queue. Entries above `bound` are not touched (but the settled front, which is decided already)."""
    draft = _Draft(summary, context)
    results: dict[int, Any] = {}
    events: list[str | Entry] = []
    for place, wish in enumerate(wishes):
        if isinstance(wish, Recover):
            results[place] = _recover(draft, wish, events)
            _adopt(draft, wish, results[place])
    adopted_now = replace(
        summary,
        horizon=draft.horizon,
        adopted=tuple(draft.adopted.values()),
        ambiguous=tuple(draft.ambiguous.items()),
    )
    waiting = [
        found
        for found in queue.view(adopted_now, seen)
        if found.entry.t <= bound or found.entry.t <= draft.horizon
    ]
    for place, wish in enumerate(wishes):
        match wish:
            case Take():
                _take(draft, wish, place, waiting, results, events)
            case Front() if waiting:
                results[place] = (_settle_front(draft, waiting[0]),)
            case Reserve():
                results[place] = _reserve(draft, wish)
            case Settle():
                results[place] = None
    return Plan(draft.finish(set(seen)), results, events)


def _take(
    draft: _Draft,
    wish: Take,
    place: int,
    waiting: list[Seen],
    results: dict[int, Any],
    events: list[str | Entry],
) -> None:
    """Answer the wish, if it can be answered."""
    if (earlier := draft.keyed(wish.key)) is not None:
        results[place] = earlier.taken
        return
    if not waiting:
        return
    heads = _within(waiting[: wish.items_max], draft)
    entries = tuple(found.entry for found in heads)
    memo = tuple(_memo(draft, entry) for entry in entries) if wish.key else ()
    if not draft.has_room_for(wish.key, memo):
        results[place] = TOO_MANY_KEYS
        return
    del waiting[: len(heads)]
    draft.note_changed(wish.key, memo)
    for found in heads:
        draft.note_taken(found)
        draft.adopted.pop(found.entry.id, None)
        draft.horizon = max(draft.horizon, found.entry.t)
        events.append(found.entry)
    results[place] = entries


def _within(heads: list[Seen], draft: _Draft) -> list[Seen]:
    """As many of the heads as fit one answer, but at least one; those whose payload is not at hand count nothing."""
    size = 0
    for place, found in enumerate(heads):
        size += payload_bytes((found.entry,))
        if place and size > draft.context.take_bytes_max:
            return heads[:place]
    return heads


def _memo(draft: _Draft, entry: Entry) -> Entry:
    """How `recent` remembers a taken entry: the logs keep the payload for a while, but not of one only adopted."""
    was_adopted = any(adopted.id == entry.id for adopted in draft._before.adopted)
    return entry if was_adopted else Entry(entry.id, entry.t)


def _settle_front(draft: _Draft, front: Seen) -> Entry:
    """Move the horizon to the front entry and adopt it: what was not seen below it can never come before it.

    Without this a Peek could be contradicted: an older entry, stored at one replica and fenced at the others, might
    still be adopted by its recovery and be taken first.
    """
    if front.entry.t > draft.horizon:
        draft.horizon = front.entry.t
        draft.adopted[front.entry.id] = front.entry
    return front.entry


def _recover(draft: _Draft, wish: Recover, events: list[str | Entry]) -> tuple[Fate, tuple[Entry, ...]]:
    entry = wish.entry
    if entry.id in draft.ambiguous or entry.id in draft.adopted:
        return Fate.IN_FORCE, ()
    if entry.t > draft.horizon:
        return (Fate.IN_FORCE if draft.has_room_to_adopt(entry) else Fate.UNKNOWN), ()
    if wish.may_be_complete:
        return Fate.UNKNOWN, ()
    if not wish.key:
        return Fate.VOID, ()
    return _rereserve(draft, wish)


def _adopt(draft: _Draft, wish: Recover, result: tuple[Fate, tuple[Entry, ...]]) -> None:
    entry = wish.entry
    is_new = entry.id not in draft.ambiguous and entry.id not in draft.adopted
    if result[0] is Fate.IN_FORCE and is_new and entry.t > draft.horizon:
        draft.adopted[entry.id] = entry


def _rereserve(draft: _Draft, wish: Recover) -> tuple[Fate, tuple[Entry, ...]]:
    """Another front end may run the same keyed operation: the next timestamp is agreed in the decision, too."""
    for place, decision in enumerate(draft.recent):
        if decision.id != wish.key:
            continue
        reserved = next((entry for entry in decision.taken if entry.id == wish.entry.id), None)
        if reserved is None or wish.instead is None:
            break
        if reserved.t == wish.entry.t:
            reserved = Entry(reserved.id, wish.instead)
            taken = tuple(reserved if entry.id == reserved.id else entry for entry in decision.taken)
            draft.recent[place] = replace(decision, taken=taken)
        return Fate.VOID, (reserved,)
    return Fate.UNKNOWN, ()


def _reserve(draft: _Draft, wish: Reserve) -> tuple[Entry, ...] | Failed:
    if (earlier := draft.keyed(wish.key)) is not None:
        return earlier.taken
    if not draft.has_room_for(wish.key, wish.entries):
        return TOO_MANY_KEYS
    draft.note_changed(wish.key, wish.entries)
    return wish.entries


def plan_cell(
    summary: Summary, seen: dict[str, Seen], stamp: Timestamp, wishes: Sequence[Wish], context: Context
) -> Plan:
    """The plan for a cell. `stamp` is the timestamp of a new value: all that can ever be complete below it is seen."""
    draft = _Draft(summary, context)
    results: dict[int, Any] = {}
    events: list[str | Entry] = []
    everything = dict(seen)
    for place, wish in enumerate(wishes):
        if isinstance(wish, Recover):
            results[place] = _recover(draft, wish, events)
            if results[place][0] is Fate.IN_FORCE and wish.entry.t > draft.horizon:
                everything.setdefault(wish.entry.id, Seen(wish.entry, set()))
    timestamp, value, source = cell.current(summary, everything)
    is_changed = False
    for place, wish in enumerate(wishes):
        match wish:
            case Swap():
                results[place], value, swapped = _swap(draft, wish, value, events)
                is_changed = is_changed or swapped
            case Settle():
                results[place] = value
    if is_changed or (source is not None and not context.is_complete(source)):
        if source is not None:
            draft.note_taken(source)
            _note_recovered(draft, wishes)
        draft.horizon, draft.value = stamp if is_changed else timestamp, value
    return Plan(draft.finish(set()), results, events)


def _note_recovered(draft: _Draft, wishes: Sequence[Wish]) -> None:
    """A recovered entry that a newer one covers took effect just before it; its other attempts must hear so."""
    for wish in wishes:
        if isinstance(wish, Recover) and wish.entry.t > draft.horizon:
            draft.ambiguous[wish.entry.id] = wish.entry.t


def _swap(
    draft: _Draft, wish: Swap, value: Value | None, events: list[str | Entry]
) -> tuple[bool | Failed, Value | None, bool]:
    """Result, the value afterwards, and whether this very decision changed it."""
    if (earlier := draft.keyed(wish.key)) is not None:
        return (True if earlier.digest == digest(wish.old, wish.new) else KEY_REUSED), value, False
    matches = value is None if wish.only_absent else (value or NULL) == (wish.old or NULL)
    if matches and not draft.has_room_for(wish.key, ()):
        return TOO_MANY_KEYS, value, False
    events.append(f"Cas({wish.old},{wish.new});{'Ok' if matches else 'Fail'}()")
    if not matches:
        return False, value, False
    draft.note_changed(wish.key, digest=digest(wish.old, wish.new) if wish.key else "")
    return True, wish.new, True


def is_included(summary: Summary, ballot: Ballot) -> bool | None:
    """Whether the decision that was proposed under `ballot` is part of the chain that led to `summary`.

    None when the summary no longer remembers that far back.
    """
    turn, step = turn_of(ballot), step_of(ballot)
    if any(turn_of(known) == turn and step_of(known) >= step for known in summary.turns):
        return True
    return None if summary.turns_floor >= ballot else False


def is_short(plan: Plan, wishes: list[Wish]) -> bool:
    """Whether somebody gets fewer items than asked for: an older view is no reason to give fewer than there are."""
    return any(
        isinstance(wish, Take)
        and isinstance(some := plan.results.get(place), tuple)
        and len(some) < wish.items_max
        for place, wish in enumerate(wishes)
    )


def entries_wanted(wishes: list[Wish]) -> int:
    """How many entries the wishes need at the front of a queue."""
    return sum(
        wish.items_max if isinstance(wish, Take) else 1 for wish in wishes if isinstance(wish, Take | Front)
    )
