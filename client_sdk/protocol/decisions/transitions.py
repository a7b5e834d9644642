"""What a decision does: from a summary, a view and what callers want, the next summary and their results. Pure.

`plan_queue` and `plan_cell` apply all wishes of one batch in order. They work on summaries and views, and do not call the serial
specifications of `adts`: tests hold the two to the same answers (`tests/paper/test_against_specification.py`, and the linearizations
that `tests/sim` searches for). A wish that cannot be answered from this view stays without a result. Safety rests on what the caller (the
decider) guarantees: the view holds every entry at or below `bound` that is complete or ever can be.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ....adts import cell
from ....adts.log import Entry, Seen, Summary, Value
from ....adts.types import queue
from ....api_specs.limits import Limits
from ....api_specs.mending import mended
from ....api_specs.values import comparable, is_equal, payload_bytes
from ....api_specs.wishes import Front, Lend, Swap, Take, Tend
from ....timestamps.timestamp import Timestamp
from ..core.values import Failed
from .idempotency import KEY_REUSED, TOO_MANY_KEYS, digest
from .lease_table import Clear
from .summary_builder import Context, Draft

NULL: Final = Value("null")


class Fate(Enum):
    """What became of an entry that some replicas hold and others refused."""

    IN_FORCE = "in force"
    """It is part of the decided state, or was taken: its operation took effect."""
    VOID = "void"
    """It never was complete and never will be: its operation may be run again with a new timestamp."""
    UNKNOWN = "unknown"


class Recover(Struct, frozen=True):
    """Decide the fate of an entry. `may_be_complete`: a final quorum may store it. Result: a Fate."""

    entry: Entry
    may_be_complete: bool


class Settle(Struct, frozen=True):
    """Make what the view shows decided, without changing what it means. Result: the current value of a cell.

    `holds`: then begin no decision for a moment, for the asker is about to look whether one is made.
    """

    holds: bool = False


class Mend(Struct, frozen=True):
    """Take out of the summary whatever keeps replicas from accepting it. Result: a sentence for each change."""

    limits: Limits


Wish = Take | Front | Lend | Tend | Clear | Recover | Swap | Settle | Mend


class Plan(Struct):
    """The next summary (equal to the old one when nothing changes), results by the wish's place, and what happened.

    An entry among the events stands for the Deq that takes it: its payload may still have to be fetched.
    """

    summary: Summary
    results: dict[int, Any]
    events: list[str | Entry]


def plan_queue(
    summary: Summary, seen: dict[str, Seen], bound: Timestamp, wishes: Sequence[Wish], context: Context
) -> Plan:
    """The plan for a queue. Entries above `bound` are not touched (but the settled front, which is decided already)."""
    results: dict[int, Any] = {}
    summary, draft = _mend(summary, wishes, results, context)
    events: list[str | Entry] = []
    for place, wish in enumerate(wishes):
        if isinstance(wish, Recover):
            results[place] = _recover(draft, wish)
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
            case Lend() | Tend() | Clear():
                _lease(draft, wish, place, waiting, results, events)
            case Settle():
                results[place] = None
    return Plan(draft.finish(set(seen)), results, events)


def _mend(
    summary: Summary, wishes: Sequence[Wish], results: dict[int, Any], context: Context
) -> tuple[Summary, Draft]:
    """What the plan starts from."""
    told: tuple[str, ...] = ()
    for place, wish in enumerate(wishes):
        if isinstance(wish, Mend):
            summary, results[place] = mended(summary, wish.limits)
            told += results[place]
    draft = Draft(summary, context)
    if told:
        draft.note_changed()
    return summary, draft


def _take(
    draft: Draft,
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
        draft.pass_over(found)
        events.append(found.entry)
    results[place] = entries


def _lease(
    draft: Draft,
    wish: Lend | Tend | Clear,
    place: int,
    waiting: list[Seen],
    results: dict[int, Any],
    events: list[str | Entry],
) -> None:
    """Hand out, or settle what was handed out; items that are handed out leave the front as a dequeue's do."""
    ledger = draft.ledger
    result: Any
    if isinstance(wish, Lend):
        result = ledger.lend(wish, waiting, draft.pass_over)
        given = result if isinstance(result, tuple) else ()
        events += [f"Acquire();Ok({each.token})" for each in given]
    elif isinstance(wish, Tend):
        result = ledger.tend(wish)
        events.append(f"{wish.how.capitalize()}({', '.join(wish.tokens)})")
    else:
        result = ledger.clear(wish)
    if ledger.is_changed:
        draft.note_changed()
    if result is not None:
        results[place] = result


def _within(heads: list[Seen], draft: Draft) -> list[Seen]:
    """As many of the heads as fit one answer, but at least one; those whose payload is not at hand count nothing."""
    size = 0
    for place, found in enumerate(heads):
        size += payload_bytes((found.entry,))
        if place and size > draft.context.take_bytes_max:
            return heads[:place]
    return heads


def _memo(draft: Draft, entry: Entry) -> Entry:
    """How `recent` remembers a taken entry: the logs keep the payload for a while, but not of one only adopted."""
    was_adopted = any(adopted.id == entry.id for adopted in draft.before.adopted)
    return entry if was_adopted else Entry(entry.id, entry.t)


def _settle_front(draft: Draft, front: Seen) -> Entry:
    """Move the horizon to the front entry and adopt it: what was not seen below it can never come before it.

    Without this a Peek could be contradicted: an older entry, stored at one replica and fenced at the others, might
    still be adopted by its recovery and be taken first.
    """
    if front.entry.t > draft.horizon:
        draft.horizon = front.entry.t
        draft.adopted[front.entry.id] = front.entry
    return front.entry


def _recover(draft: Draft, wish: Recover) -> Fate:
    entry = wish.entry
    if entry.id in draft.ambiguous or entry.id in draft.adopted:
        return Fate.IN_FORCE
    if entry.t > draft.horizon:
        return Fate.IN_FORCE if draft.has_room_to_adopt(entry) else Fate.UNKNOWN
    return Fate.UNKNOWN if wish.may_be_complete else Fate.VOID


def _adopt(draft: Draft, wish: Recover, fate: Fate) -> None:
    entry = wish.entry
    is_new = entry.id not in draft.ambiguous and entry.id not in draft.adopted
    if fate is Fate.IN_FORCE and is_new and entry.t > draft.horizon:
        draft.adopted[entry.id] = entry


def plan_cell(
    summary: Summary, seen: dict[str, Seen], stamp: Timestamp, wishes: Sequence[Wish], context: Context
) -> Plan:
    """The plan for a cell. `stamp` is the timestamp of a new value: all that can ever be complete below it is seen."""
    results: dict[int, Any] = {}
    summary, draft = _mend(summary, wishes, results, context)
    events: list[str | Entry] = []
    everything = dict(seen)
    for place, wish in enumerate(wishes):
        if isinstance(wish, Recover):
            results[place] = _recover(draft, wish)
            if results[place] is Fate.IN_FORCE and wish.entry.t > draft.horizon:
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


def _note_recovered(draft: Draft, wishes: Sequence[Wish]) -> None:
    """A recovered entry that a newer one covers took effect just before it; its other attempts must hear so."""
    for wish in wishes:
        if isinstance(wish, Recover) and wish.entry.t > draft.horizon:
            draft.note_ambiguous(wish.entry)


def _swap(
    draft: Draft, wish: Swap, value: Value | None, events: list[str | Entry]
) -> tuple[bool | Failed, Value | None, bool]:
    """Result, the value afterwards, and whether this very decision changed it."""
    if (earlier := draft.keyed(wish.key)) is not None:
        return (True if earlier.digest == _digest(wish) else KEY_REUSED), value, False
    matches = value is None if wish.only_absent else is_equal(value or NULL, wish.old or NULL)
    if matches and not draft.has_room_for(wish.key, ()):
        return TOO_MANY_KEYS, value, False
    events.append(f"Cas({wish.old},{wish.new});{'Ok' if matches else 'Fail'}()")
    if not matches:
        return False, value, False
    draft.note_changed(wish.key, digest=_digest(wish) if wish.key else "")
    return True, wish.new, True


def _digest(wish: Swap) -> str:
    return digest(comparable(wish.old), comparable(wish.new))


def is_short(plan: Plan, wishes: list[Wish]) -> bool:
    """Whether somebody gets fewer items than asked for: an older view is no reason to give fewer than there are."""
    return any(
        isinstance(wish, Take | Lend)
        and isinstance(some := plan.results.get(place), tuple)
        and len(some) < wish.items_max
        for place, wish in enumerate(wishes)
    )


def entries_wanted(wishes: Sequence[Wish]) -> int:
    """How many entries the wishes need at the front of a queue."""
    return sum(
        1 if isinstance(wish, Front) else wish.items_max
        for wish in wishes
        if isinstance(wish, Take | Front | Lend)
    )
