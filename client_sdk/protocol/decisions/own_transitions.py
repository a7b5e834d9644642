"""What a decision does to an object of one's own type: calls of blind operations that lie in its log run, in the order of their timestamps,
then the calls that want an answer. Pure, but for the user's code.

Herlihy's method with a checkpoint (Herlihy 1986, section 3.2): the summary has the state, and everything up to the horizon is in it. Safety
rests on what the proposer guarantees: the view holds every entry at or below `bound` that is complete or ever can be.
"""

from collections.abc import Sequence
from typing import Any, Final

from ....adts.log import Entry, Seen, Summary, Value
from ....adts.plain_class import OK, BadClass, PlainClass, arguments_text, call_in, read, written
from ....adts.specification import Invocation, Response
from ....api_specs.limits import STATE_BYTES_MAX, Limits
from ....api_specs.values import check_value, comparable, text_bytes, work_bytes
from ....timestamps.timestamp import Timestamp
from ..core.values import Failed
from .idempotency import KEY_REUSED, TOO_MANY_KEYS, TOO_MANY_TAKEN, digest
from .pending import ITEMS_AT_A_PLACE, RUN_BYTES_MAX
from .summary_builder import Context, SummaryBuilder
from .transitions import (
    Command,
    ConfirmCommand,
    FoldCommand,
    InvokeCommand,
    Plan,
    RepairCommand,
    adopt_recovered,
    begun,
)

EVENT_CHARS_MAX: Final = 200
FOLDED_MAX: Final = 2 * ITEMS_AT_A_PLACE
"""Calls from the log that run in one decision, on states and arguments of RUN_BYTES_MAX together: decisions on other objects wait for no more."""
_WITH_TYPE: Final = (InvokeCommand, FoldCommand, RepairCommand)


def plan_own(
    summary: Summary,
    seen: dict[str, Seen],
    bound: Timestamp,
    stamp: Timestamp,
    commands: Sequence[Command],
    context: Context,
) -> Plan:
    """The plan for an object of one's own type. `stamp` is the timestamp of a new state, and entries above `bound` are not touched. Who
    wants an answer gets none before all that lies in the log up to the stamp has run."""
    results: dict[int, Any] = {}
    summary, builder = begun(summary, commands, results, context)
    events: list[str | Entry] = []
    adopt_recovered(builder, commands, results)
    types = [each.type for each in commands if isinstance(each, _WITH_TYPE) and each.type is not None]
    is_repair = any(isinstance(command, RepairCommand) for command in commands)
    left_out: list[str] | None = [] if is_repair else None
    waiting = builder.view(seen)
    failed = _unread(types[0], builder) if types else None
    if types and failed is None:
        failed = _fold(builder, types[0], waiting, bound, events, left_out)
    has_run = bound >= stamp and not waiting
    for place, command in enumerate(commands):
        match command:
            case RepairCommand():
                # Also where there was no room to go on: what was taken out before is gone.
                told = (*results[place], *(left_out or ()))
                results[place] = told if told or failed is None else failed
            case InvokeCommand() if failed is not None:
                results[place] = failed if (known := _known(builder, command)) is None else known
            case InvokeCommand() if has_run:
                results[place] = _invoke(builder, command, place, stamp, events)
            case FoldCommand() if has_run or failed is not None:
                results[place] = None
            case ConfirmCommand():
                results[place] = None
    if is_repair and types and not has_run and failed is None:
        # Who has nothing to tell yet is answered by the next decision, which runs further ones.
        results = {place: told for place, told in results.items() if told != ()}
    return Plan(builder.finish(set(seen)), results, events)


def _unread(found: PlainClass, builder: SummaryBuilder) -> Failed | None:
    """Why the class cannot read the state, if it cannot: nothing is run then, and nothing taken out."""
    try:
        found.check(builder.value)
    except BadClass as error:
        return Failed("refused", str(error), definite=True)
    return None


def _fold(
    builder: SummaryBuilder,
    found: PlainClass,
    waiting: list[Seen],
    bound: Timestamp,
    events: list[str | Entry],
    left_out: list[str] | None,
) -> Failed | None:
    """Run the calls that wait, and take them out of `waiting`, as many as one decision runs; the next one runs further ones. Why the
    next call cannot be run, if it cannot: no state without it is shown, but where it may be `left_out`, which tells of it then."""
    done_bytes, left = 0, min(FOLDED_MAX, builder.context.limits.page_entries_max)
    room = builder.room_to_take(waiting)
    while waiting and waiting[0].entry.t <= bound and left and done_bytes <= RUN_BYTES_MAX:
        if not room:
            return TOO_MANY_TAKEN
        room -= 1
        text = str(waiting[0].entry.value)
        done_bytes += work_bytes(builder.value or "") + work_bytes(text)
        problem = _run_stored(builder, found, text, events)
        if problem is not None and left_out is None:
            return _not_run(text, problem)
        if problem is not None and left_out is not None:
            left_out.append(f"taken out of the log: {text} ({problem})")
        builder.pass_over(waiting.pop(0))
        builder.note_changed()
        left -= 1
    return None


def _run_stored(
    builder: SummaryBuilder, found: PlainClass, text: str, events: list[str | Entry]
) -> str | None:
    """Run a call from the log; or why it cannot be run."""
    try:
        builder.value, call, response = step_stored(found, builder.value, text, builder.context.limits)
    except BadClass as error:
        return str(error)
    events.append(_event(call, response))
    return None


def step_stored(
    found: PlainClass, before: str | None, text: str, limits: Limits
) -> tuple[Value | None, Invocation, Response]:
    """The state after a call from the log, the call, and its response. Raises BadClass, which says why it cannot be run."""
    call = call_in(text)
    after, response = found.run(before, call)
    if after is not None and (problem := check_value(after, limits)) is not None:
        raise BadClass(problem)
    return None if after is None else Value(after), call, response


def _not_run(text: str, why: str) -> Failed:
    shown = text if len(text) <= EVENT_CHARS_MAX else f"{text[:EVENT_CHARS_MAX]}…"
    told = f"the call {shown}, which lies in the object's log, cannot be run: {why} (`quorate repair` takes it out)"
    return Failed("refused", told, definite=True)


def _invoke(
    builder: SummaryBuilder,
    command: InvokeCommand,
    place: int,
    stamp: Timestamp,
    events: list[str | Entry],
) -> Response | Failed:
    """Run a call that wants an answer. The decision is kept with it where it changed something, or where repeats are owed its answer: a call
    that changed nothing now may change something when it is repeated."""
    if (known := _known(builder, command)) is not None:
        return known
    before, limits = builder.value, builder.context.limits
    try:
        after, response = command.type.run(before, command.invocation)
    except BadClass as error:
        return Failed("refused", str(error), definite=True)
    if (size := result_bytes(response)) > limits.value_bytes_max:
        told = f"{command.invocation.operation}: the result has {size} bytes, of {limits.value_bytes_max} (value_bytes_max) at most"
        return Failed("refused", told, definite=True)
    if after == before and not (command.key and response.condition == OK):
        return response
    result = Value(written(response)) if command.key else None
    if (problem := _unfit(before, after, result, limits)) is not None:
        return Failed("refused", f"{command.invocation.operation}: {problem}", definite=True)
    if not builder.has_room_for(place, command.key, result=result):
        return TOO_MANY_KEYS
    builder.note_keyed(place, command.key, digest=_asked(command), result=result)
    builder.horizon, builder.value = stamp, None if after is None else Value(after)
    if after != before:
        events.append(_event(command.invocation, response))
    return response


def _known(builder: SummaryBuilder, command: InvokeCommand) -> Response | Failed | None:
    """What an earlier attempt with the key was answered."""
    if (earlier := builder.keyed(command.key)) is None:
        return None
    return read(earlier.result or "") if earlier.digest == _asked(command) else KEY_REUSED


def _asked(command: InvokeCommand) -> str:
    return digest(comparable(Value(arguments_text(command.invocation)))) if command.key else ""


def _event(invocation: Invocation, response: Response) -> str:
    """As logs that keep events show it; what is long is cut, for every accept of its decision carries it."""
    args, results = arguments_text(invocation)[1:-1], ", ".join(map(str, response.results))
    shown = [each if len(each) <= EVENT_CHARS_MAX else "…" for each in (args, results)]
    return f"{invocation.operation}({shown[0]});{response.condition}({shown[1]})"


def result_bytes(response: Response) -> int:
    """How large what a call returned is, as text."""
    return sum(text_bytes(str(each)) for each in response.results)


def _unfit(before: str | None, after: str | None, result: str | None, limits: Limits) -> str | None:
    """Why replicas would not take the state, or the result that is remembered with it. Stored calls may have made the state too large: then it
    may not grow."""
    size = 0 if after is None else text_bytes(after)
    if size > STATE_BYTES_MAX and (before is None or size > text_bytes(before)):
        return f"the state would have {size} bytes, of {STATE_BYTES_MAX} at most: keep less in one object, as one object for each key"
    problems = (check_value(each, limits) for each in (after, result) if each is not None)
    return next(filter(None, problems), None)
