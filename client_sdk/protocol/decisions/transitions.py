"""What a decision does: from a summary, a view and what callers want, the next summary and their results. Pure.

`plan_queue` and `plan_cell` apply all commands of one batch in order; `own_transitions` does for types of one's own. They work on summaries
and views, and do not call the serial specifications of `adts`: tests hold the two to the same answers
(`tests/paper/test_against_specification.py`, and the linearizations that `simulation` searches for). A command that cannot be answered from this view stays without a result. Safety rests on what the caller (the
proposer) guarantees: the view holds every entry at or below `bound` that is complete or ever can be.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ....adts import cell
from ....adts.log import Entry, Seen, Summary, Value
from ....adts.plain_class import PlainClass
from ....adts.specification import Invocation
from ....api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    PeekCommand,
    SettleCommand,
)
from ....api_specs.limits import Limits
from ....api_specs.mending import mended
from ....api_specs.messages import Purpose
from ....api_specs.values import comparable, is_equal, payload_bytes, work_bytes
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.values import Failed
from .idempotency import KEY_REUSED, TOO_MANY_KEYS, TOO_MANY_TAKEN, digest
from .lease_table import ClearCommand, PurgeDelayedCommand
from .summary_builder import Context, SummaryBuilder

NULL: Final = Value("null")


class Fate(Enum):
    """What became of an entry that some replicas hold and others refused."""

    IN_FORCE = "in force"
    """It is part of the decided state, or was taken: its operation took effect."""
    VOID = "void"
    """It never was complete and never will be: its operation may be run again with a new timestamp."""
    UNKNOWN = "unknown"


class RecoverCommand(Struct, frozen=True):
    """Decide the fate of an entry. `may_be_complete`: a final quorum may store it. `is_to_run`: it is a call, whose operation has those run that wait
    where they are as many as may, and asks again. Result: a Fate."""

    entry: Entry
    may_be_complete: bool
    is_to_run: bool = False


class ConfirmCommand(Struct, frozen=True):
    """Make what the view shows decided, without changing what it means. Result: the current value of a cell.

    `holds`: then begin no decision for a moment, for the asker is about to look whether one is made. `forgets`: it is to be forgotten. `carries`:
    have a final quorum accept it anew, though it be decided: that of a configuration before may have.
    """

    holds: bool = False
    forgets: bool = False
    carries: bool = False


class InvokeCommand(Struct, frozen=True):
    """A call on an object of one's own type. Result: the Response, or why the call cannot be run. It is decided by the front end that
    was called, which has the code."""

    type: PlainClass
    invocation: Invocation
    key: str = ""


class FoldCommand(Struct, frozen=True):
    """Take into the summary what lies in the log: of a cell its newest value; of one's own `type` the calls of blind operations, which are run, so
    that the log does not grow. Result: None. `forgets` and `carries`: as of ConfirmCommand."""

    type: PlainClass | None = None
    forgets: bool = False
    carries: bool = False


class RepairCommand(Struct, frozen=True):
    """Take out of the summary whatever keeps replicas from accepting it, and, of one's own `type`, out of the log what cannot be run.
    With `is_anew`, the state of one's own type becomes that of a new object. Result: a sentence for each change."""

    limits: Limits
    type: PlainClass | None = None
    is_anew: bool = False


Command = (
    DequeueCommand
    | PeekCommand
    | AcquireCommand
    | SettleCommand
    | ClearCommand
    | PurgeDelayedCommand
    | RecoverCommand
    | CompareAndSetCommand
    | InvokeCommand
    | FoldCommand
    | ConfirmCommand
    | RepairCommand
)


_SETTLING: Final = (ConfirmCommand, FoldCommand, PeekCommand, RecoverCommand)


def purpose_of(commands: Sequence[Command]) -> Purpose:
    """What a decision on all of these is for: to change something, if one of them may."""
    if not commands or not all(isinstance(command, _SETTLING) for command in commands):
        return "change"
    is_to_forget = (
        isinstance(command, (ConfirmCommand, FoldCommand)) and command.forgets for command in commands
    )
    return "forget" if all(is_to_forget) else "settle"


WORKS_ON_STATES: Final = (CompareAndSetCommand, InvokeCommand)
"""Commands that look at the whole state and at the whole of their arguments."""


def argument_work(command: CompareAndSetCommand | InvokeCommand) -> int:
    """What the arguments take, as `work_bytes` counts it."""
    if isinstance(command, InvokeCommand):
        return sum(work_bytes(str(each)) for each in command.invocation.args)
    return work_bytes(command.old or "") + work_bytes(command.new or "")


class Plan(Struct):
    """The next summary (equal to the old one when nothing changes), results by the command's place, and what happened.

    An entry among the events stands for the Deq that takes it: its payload may still have to be fetched.
    """

    summary: Summary
    results: dict[int, Any]
    events: list[str | Entry]


def plan_queue(
    summary: Summary, seen: dict[str, Seen], bound: Timestamp, commands: Sequence[Command], context: Context
) -> Plan:
    """The plan for a queue. Entries above `bound` are not touched (but the settled front, which is decided already)."""
    results: dict[int, Any] = {}
    summary, builder = begun(summary, commands, results, context)
    events: list[str | Entry] = []
    adopt_recovered(builder, commands, results)
    waiting = [
        found for found in builder.view(seen) if found.entry.t <= bound or found.entry.t <= builder.horizon
    ]
    room = builder.room_to_take(waiting)
    waiting, later = waiting[:room], waiting[room:]
    for place, command in enumerate(commands):
        match command:
            case DequeueCommand():
                _take(builder, command, place, waiting, results, events)
            case PeekCommand() if waiting or later:
                results[place] = (_settle_front(builder, (*waiting, *later)[0]),)
            case AcquireCommand() | SettleCommand() | ClearCommand() | PurgeDelayedCommand():
                _lease(builder, command, place, waiting, results, events)
            case ConfirmCommand():
                results[place] = None
        if later and not waiting and isinstance(command, DequeueCommand | AcquireCommand):
            results.setdefault(place, TOO_MANY_TAKEN)
    return Plan(builder.finish(set(seen)), results, events)


def begun(
    summary: Summary, commands: Sequence[Command], results: dict[int, Any], context: Context
) -> tuple[Summary, SummaryBuilder]:
    """What the plan starts from."""
    told: tuple[str, ...] = ()
    for place, command in enumerate(commands):
        if isinstance(command, RepairCommand):
            summary, results[place] = mended(summary, command.limits)
            if command.is_anew:
                # There is always something to tell: no later decision begins anew again.
                results[place] += (f"the state of a new object, in place of {summary.value or 'the same'}",)
                summary = replace(summary, value=None)
            told += results[place]
    builder = SummaryBuilder(summary, context)
    if told:
        builder.note_changed()
    return summary, builder


def _take(
    builder: SummaryBuilder,
    command: DequeueCommand,
    place: int,
    waiting: list[Seen],
    results: dict[int, Any],
    events: list[str | Entry],
) -> None:
    """Answer the command, if it can be answered."""
    if (earlier := builder.keyed(command.key)) is not None:
        results[place] = earlier.taken
        return
    if not waiting:
        return
    heads = _within(waiting[: command.items_max], builder)
    entries = tuple(found.entry for found in heads)
    memo = _memo(builder, heads) if command.key else ()
    if not builder.has_room_for(place, command.key, memo):
        results[place] = TOO_MANY_KEYS
        return
    del waiting[: len(heads)]
    builder.note_keyed(place, command.key, memo)
    for found in heads:
        builder.pass_over(found)
        events.append(found.entry)
    results[place] = entries


def _lease(
    builder: SummaryBuilder,
    command: AcquireCommand | SettleCommand | ClearCommand | PurgeDelayedCommand,
    place: int,
    waiting: list[Seen],
    results: dict[int, Any],
    events: list[str | Entry],
) -> None:
    """Deliver, or settle what was delivered; items that are delivered leave the front as a dequeue's do."""
    ledger = builder.ledger
    result: Any
    if isinstance(command, AcquireCommand):
        result = ledger.lend(command, waiting, builder.pass_over)
        given = result if isinstance(result, tuple) else ()
        events += [f"Acquire();Ok({each.token})" for each in given]
    elif isinstance(command, SettleCommand):
        result = ledger.settle(command)
        events.append(f"{command.how.capitalize()}({', '.join(command.tokens)})")
    elif isinstance(command, ClearCommand):
        result = ledger.clear(command)
    else:
        result = ledger.purge_delayed(command)
    if ledger.is_changed:
        builder.note_changed()
    if result is not None:
        results[place] = result


def _within(heads: list[Seen], builder: SummaryBuilder) -> list[Seen]:
    """As many of the heads as fit one answer, but at least one; those whose payload is not at hand count nothing."""
    size = 0
    for place, found in enumerate(heads):
        size += payload_bytes((found.entry,))
        if place and size > builder.context.take_bytes_max:
            return heads[:place]
    return heads


def _memo(builder: SummaryBuilder, heads: list[Seen]) -> tuple[Entry, ...]:
    """How `recent` remembers what is taken: by name where the logs keep the payload for a while. Of what is only adopted none may have it; of what may
    not be complete too few for a repeat, if their replicas stop: it is kept whole as far as there is room."""
    incomplete = [found.entry for found in heads if not builder.context.is_complete(found)]
    whole = {entry.id for entry in incomplete} if builder.has_room_to_keep_whole(incomplete) else set()
    whole |= builder.adopted.keys()
    return tuple(
        found.entry if found.entry.id in whole else Entry(found.entry.id, found.entry.t) for found in heads
    )


def _settle_front(builder: SummaryBuilder, front: Seen) -> Entry:
    """Move the horizon to the front entry and adopt it: what was not seen below it can never come before it.

    Without this a Peek could be contradicted: an older entry, stored at one replica and fenced at the others, might
    still be adopted by its recovery and be taken first.
    """
    if front.entry.t > builder.horizon:
        builder.horizon = front.entry.t
        builder.adopted[front.entry.id] = front.entry
    return front.entry


def _recover(builder: SummaryBuilder, command: RecoverCommand) -> Fate:
    entry = command.entry
    if entry.id in builder.ambiguous or entry.id in builder.adopted:
        return Fate.IN_FORCE
    if entry.t > builder.horizon:
        has_room = builder.has_room_to_adopt(entry, is_to_run=command.is_to_run)
        return Fate.IN_FORCE if has_room else Fate.UNKNOWN
    return Fate.UNKNOWN if command.may_be_complete or _is_old(builder, entry) else Fate.VOID


def _is_old(builder: SummaryBuilder, entry: Entry) -> bool:
    """Whether it may have been taken, or deleted, and be forgotten since, as where its front end's machine was suspended."""
    return entry.t < builder.context.terms_before


def adopt_recovered(builder: SummaryBuilder, commands: Sequence[Command], results: dict[int, Any]) -> None:
    """Tell the fates that are asked for. Entries that are in force, and not known to be, belong to every view from now on."""
    for place, command in enumerate(commands):
        if isinstance(command, RecoverCommand):
            results[place] = _recover(builder, command)
            _adopt(builder, command, results[place])


def _adopt(builder: SummaryBuilder, command: RecoverCommand, fate: Fate) -> None:
    entry = command.entry
    is_new = entry.id not in builder.ambiguous and entry.id not in builder.adopted
    if fate is Fate.IN_FORCE and is_new and entry.t > builder.horizon:
        builder.adopted[entry.id] = entry


def plan_cell(
    summary: Summary, seen: dict[str, Seen], stamp: Timestamp, commands: Sequence[Command], context: Context
) -> Plan:
    """The plan for a cell. `stamp` is the timestamp of a new value: all that can ever be complete below it is seen."""
    results: dict[int, Any] = {}
    summary, builder = begun(summary, commands, results, context)
    events: list[str | Entry] = []
    everything = dict(seen)
    for place, command in enumerate(commands):
        if isinstance(command, RecoverCommand):
            results[place] = _recover(builder, command)
            if command.entry.id not in seen and builder.horizon == ZERO and _is_old(builder, command.entry):
                results[place] = Fate.UNKNOWN  # A key that was forgotten looks the same.
            if results[place] is Fate.IN_FORCE and command.entry.t > builder.horizon:
                everything.setdefault(command.entry.id, Seen(command.entry))
    timestamp, value, source = cell.current(summary, everything)
    is_changed, is_folded = False, any(isinstance(command, FoldCommand) for command in commands)
    for place, command in enumerate(commands):
        match command:
            case CompareAndSetCommand():
                results[place], value, swapped = _swap(builder, command, place, value, events)
                is_changed = is_changed or swapped
            case ConfirmCommand() | FoldCommand():
                results[place] = value
    if is_changed or (source is not None and (is_folded or not context.is_complete(source))):
        if source is not None:
            builder.note_taken(source)
            _note_recovered(builder, commands)
        builder.horizon, builder.value = stamp if is_changed else timestamp, value
    return Plan(builder.finish(set()), results, events)


def _note_recovered(builder: SummaryBuilder, commands: Sequence[Command]) -> None:
    """A recovered entry that a newer one covers took effect just before it; its other attempts must hear so."""
    for command in commands:
        if isinstance(command, RecoverCommand) and command.entry.t > builder.horizon:
            builder.note_ambiguous(command.entry)


def _swap(
    builder: SummaryBuilder,
    command: CompareAndSetCommand,
    place: int,
    value: Value | None,
    events: list[str | Entry],
) -> tuple[bool | Failed, Value | None, bool]:
    """Result, the value afterwards, and whether this very decision changed it."""
    if (earlier := builder.keyed(command.key)) is not None:
        return (True if earlier.digest == _digest(command) else KEY_REUSED), value, False
    matches = value is None if command.only_absent else is_equal(value or NULL, command.old or NULL)
    if matches and not builder.has_room_for(place, command.key):
        return TOO_MANY_KEYS, value, False
    events.append(f"Cas({command.old},{command.new});{'Ok' if matches else 'Fail'}()")
    if not matches:
        return False, value, False
    builder.note_keyed(place, command.key, digest=_digest(command) if command.key else "")
    return True, command.new, True


def _digest(command: CompareAndSetCommand) -> str:
    return digest(comparable(command.old), comparable(command.new))


def is_short(plan: Plan, commands: list[Command]) -> bool:
    """Whether somebody gets fewer items than asked for: an older view is no reason to give fewer than there are."""
    return any(
        isinstance(command, DequeueCommand | AcquireCommand)
        and isinstance(some := plan.results.get(place), tuple)
        and len(some) < command.items_max
        for place, command in enumerate(commands)
    )


def entries_wanted(commands: Sequence[Command]) -> int:
    """How many entries the commands need at the front of a queue."""
    return sum(
        1 if isinstance(command, PeekCommand) else command.items_max
        for command in commands
        if isinstance(command, DequeueCommand | PeekCommand | AcquireCommand)
    )
