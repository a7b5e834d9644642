"""Enqueues on a queue with outboxes: done when one replica keeps them in its outbox, which relays them to the queue. Pure.

Owns which outbox is tried when, and when all of them are empty. An enqueue of unknown outcome goes on at another replica. Both outboxes relay it
under one idempotency key (`quorate.api_specs.outboxes`), so that it is one item as long as that is remembered.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

from msgspec.structs import replace

from ....adts.log import Value
from ....adts.types.catalogue import is_object_name
from ....api_specs.limits import NAME_CHARS_MAX
from ....api_specs.messages import Collect, Window
from ....api_specs.outboxes import Outbox, Record, outbox_named
from ....api_specs.values import check_value
from ....timestamps.ballot import Ballot
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.log_cache import LogCache, shown_together
from ..core.rounds import Event, Gathering, Reconfigured, Task
from ..core.values import AT_ONCE, Enqueue, Failed
from ..decisions.pending import CommandResult
from ..decisions.read_window import CELL_ROWS
from .blind import Blind
from .context import Machine, OperationFailed, OutcomeSteps, looking, pause
from .observe import is_whole

NOT_SENT: Final = Failed("unavailable", "the deadline passed before anything was sent", definite=True)
QUICK_LOOKS: Final = 2
"""Looks without a pause between them, where items only pass through outboxes."""
SILENT: Final = "no answer"
PATIENCE_S: Final = 0.5
"""How long a replica is waited for before another one is asked as well."""


def store(operation: Enqueue, outboxes: Sequence[str], task: Task, machine: Machine) -> OutcomeSteps:
    """Keep the values in one outbox, in order."""
    if operation.spans != AT_ONCE:
        yield from ask_all_clocks(operation.object, task, machine)
    records = records_of(operation, machine)
    return (yield from keep(records, outboxes, task, machine))


def keep(records: Sequence[Value], outboxes: Sequence[str], task: Task, machine: Machine) -> OutcomeSteps:
    """Keep these records in one of the outboxes. The next one is tried when one has failed, or has had its time: all of them soon, and once more with
    all the time that is left."""
    until_s, failures = task.deadline_s, list[Failed]()
    for place, outbox in enumerate((*outboxes, *outboxes)):
        task.deadline_s = until_s
        # As after this process stood still: what was stored may have been relayed, and forgotten, since.
        if task.is_late:
            break
        if place:
            machine.count("outboxes tried in vain")
        left_s = until_s - task.now.mono_s
        is_first, is_last = place < len(outboxes), place == 2 * len(outboxes) - 1
        task.deadline_s = (
            until_s if is_last else task.now.mono_s + min(left_s / 2, PATIENCE_S if is_first else left_s)
        )
        outcome = yield from Blind(outbox, task, machine).kept(records, "Enq/Ok")
        if not isinstance(outcome, Failed):
            return outcome
        failures.append(outcome)
    return _all(failures) if failures else NOT_SENT


def refuse_outbox(name: str) -> Failed:
    """How an operation ends that is not on the queue but on this one of its outboxes, which its relay alone takes from."""
    outbox = outbox_named(name)
    assert outbox is not None
    detail = f"{outbox.name} is the outbox of {outbox.queue} at {outbox.replica}: use {outbox.queue}"
    return Failed("refused", detail, definite=True)


def records_of(operation: Enqueue, machine: Machine) -> list[Value]:
    """What an outbox is to keep of it. Raises OperationFailed where none can."""
    longest = max(machine.outboxes_of(operation.object), key=len)
    if not is_object_name(longest):
        most = NAME_CHARS_MAX - len(longest) + len(operation.object)
        detail = f"the name of a queue with outboxes has at most {most} characters: these have its name and a replica's"
        raise OperationFailed(Failed("refused", detail, definite=True))
    spans = operation.spans
    since_us = 0 if spans == AT_ONCE else machine.latest_us()
    key = operation.key or machine.stamp_for(machine.cache_of(operation.object))
    records = [
        Record(f"{key}/{place}", value, since_us, spans.delay_s, spans.expires_s).text()
        for place, value in enumerate(operation.values)
    ]
    for record in records:
        if (wrong := check_value(record, machine.limits)) is not None:
            raise OperationFailed(
                Failed("refused", f"with what an outbox keeps beside the value: {wrong}", definite=True)
            )
    return records


def ask_all_clocks(queue: str, task: Task, machine: Machine) -> Generator[float, Event, None]:
    """By these it is told when items are due: who enqueues through one outbox hears of one clock, which may be wrong. Nothing was sent before: where
    the configuration changes meanwhile, it begins again."""
    until_s = min(task.now.mono_s + PATIENCE_S, (task.now.mono_s + task.deadline_s) / 2)
    while True:
        try:
            yield from _ask_clocks(queue, task, machine, until_s)
            return
        except Reconfigured:
            task.begin_anew()


def _ask_clocks(queue: str, task: Task, machine: Machine, until_s: float) -> Generator[float, Event, None]:
    round_ = looking(queue, task, machine)
    everyone = machine.choice_of(queue).votes.keys()
    yield from round_.wait(lambda: round_.replies.keys() | round_.troubles.keys() >= everyone, until_s)


class _Looked(NamedTuple):
    """What a look at all outboxes showed, by replica: of each empty one what changes whenever an item passes through it; why others are not known to
    be empty; and up to where each has been relayed."""

    empty: Mapping[str, tuple[Ballot, Timestamp]] = {}
    others: Mapping[str, str] = {}
    horizons: Mapping[str, Timestamp] = {}


def certainly_empty(
    queue: str, again: Callable[[], Generator[float, Event, CommandResult]], task: Task, machine: Machine
) -> Generator[float, Event, CommandResult]:
    """The verdict that finds nothing, at a moment at which nothing waits in any outbox either; or one of these that finds some items `again`.

    An item is in the queue before its outbox lets go of it. Between two looks that find all outboxes empty, and as they were, no item passed
    through one. So where the queue is empty in between, it is so together with all outboxes (a double collect, as for `items`).
    """
    before = yield from _look(queue, _Looked(), task, machine)
    for looked in count(1):
        began_s = task.now.mono_s
        try:
            verdict = yield from again()
        except OperationFailed as failure:
            if not (before.others and failure.outcome.definite and failure.outcome.reason == "unavailable"):
                raise
            told = f"{_not_known(queue, before, before).detail}; {failure.outcome.detail}"
            raise OperationFailed(replace(failure.outcome, detail=told)) from None
        if verdict.result:
            return verdict
        after = yield from _look(queue, before, task, machine)
        if _agree(before, after):
            return replace(verdict, answered=verdict.answered | after.empty.keys())
        machine.count("outboxes looked at again")
        is_quick = looked <= QUICK_LOOKS and not after.others
        until_s = task.now.mono_s + (0.0 if is_quick else machine.pacing.pause_s(looked, task.turn))
        # What took so long is not begun again where it would be cut off: a decision that was may take effect.
        if until_s + (task.now.mono_s - began_s) >= task.deadline_s or machine.pacing.is_hurried:
            raise OperationFailed(_not_known(queue, before, after))
        yield from pause(task, until_s)
        before = after
    raise AssertionError("there is no last look")


def _agree(before: _Looked, after: _Looked) -> bool:
    """Whether all outboxes were empty from one look to the other."""
    return not after.others and after.empty == before.empty


def _look(queue: str, before: _Looked, task: Task, machine: Machine) -> Generator[float, Event, _Looked]:
    """Ask each replica for its outbox, above what it had relayed by the look before: nobody may have told it that this is decided."""
    votes = machine.choice_of(queue).votes

    def request_to(replica: str) -> Collect:
        window = Window(before.horizons.get(replica, ZERO), limit=CELL_ROWS, payload=False)
        return Collect(Outbox(queue, replica).name, window=window)

    round_ = Gathering(task, request_to, votes)
    until_s = min(task.now.mono_s + PATIENCE_S, (task.now.mono_s + task.deadline_s) / 2)
    yield from round_.wait(lambda: round_.replies.keys() | round_.troubles.keys() >= votes.keys(), until_s)
    others = {each: _trouble(each, round_) for each in votes if each not in round_.replies}
    empty, horizons = dict[str, tuple[Ballot, Timestamp]](), dict[str, Timestamp]()
    for replica, reply in round_.replies.items():
        shown = shown_together(Outbox(queue, replica).name, {replica: 1}, {replica: reply})
        horizons[replica] = shown.summary.horizon
        if (
            is_whole(reply)
            and _is_empty(shown)
            and shown.summary.horizon >= before.horizons.get(replica, ZERO)
        ):
            empty[replica] = reply.status.accepted, reply.status.floor
        else:
            others[replica] = "items wait in its outbox"
    return _Looked(empty, others, horizons)


def _trouble(replica: str, round_: Gathering) -> str:
    return round_.troubles.get(replica, SILENT).rpartition(f"{replica}: ")[2]


def _is_empty(outbox: LogCache) -> bool:
    """Whether nothing waits in it, nor is being relayed. Its replica alone is a quorum."""
    return not (outbox.has_entries or outbox.summary.adopted or outbox.summary.leases)


def _not_known(queue: str, before: _Looked, after: _Looked) -> Failed:
    """How it ends where nothing was found in the queue, and perhaps something is in its outboxes. The deadline may have cut the last look off."""
    others = dict(after.others)
    for replica, why in after.others.items():
        if why == SILENT:
            last = f"{SILENT} to the last look" if replica in before.empty else SILENT
            others[replica] = before.others.get(replica, last)
    whys = "; ".join(f"{replica} ({why})" for replica, why in sorted(others.items()))
    detail = f"nothing was found in {queue}, but items may wait in outboxes: {whys or 'no two looks found them empty and unchanged'}"
    return Failed(
        "unavailable", detail, definite=True, answered=frozenset(before.horizons.keys() | after.horizons)
    )


def _all(failures: Sequence[Failed]) -> Failed:
    """How it ended where no outbox is known to keep it."""
    detail = "; ".join(dict.fromkeys(each.detail for each in failures))
    answered = frozenset[str]().union(*(each.answered for each in failures))
    is_definite = all(each.definite for each in failures)
    telling = next((each for each in failures if each.reason != "unavailable"), failures[-1])
    return Failed(telling.reason if is_definite else "unknown", detail, is_definite, answered)
