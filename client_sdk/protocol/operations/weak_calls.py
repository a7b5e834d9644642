"""Calls of one's own types that only observe, where objects are of eventual consistency: answered from what one replica shows, with the stored
calls that nobody has run yet. Pure.

What is run for a look is kept for the next ones, also where it ends by its deadline: until a decision runs the calls, all looks need them.
"""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Final

from ....adts.log import Seen
from ....adts.plain_class import BadClass, PlainClass
from ....adts.types import queue
from ....api_specs.values import work_bytes
from ..core.line import Line
from ..core.log_cache import LogCache, Ran
from ..core.rounds import Event, Expired, Task
from ..core.values import Done, Invoke
from ..decisions.own_transitions import result_bytes, step_stored
from . import observe
from .context import Machine

ENTRY_WORK: Final = 16
"""What it costs to go through an entry, as bytes of a state do: 0.2 us."""
CALL_WORK: Final = 512
"""What it costs to run a call, on a small state: 12 us."""


def is_weak(operation: Invoke, machine: Machine) -> bool:
    """Whether its answer may miss changes. Not under an idempotency key: what is repeated has the answer of the first attempt, and only a
    decision remembers that."""
    is_named = operation.invocation.operation in operation.type.observing
    return is_named and not operation.key and machine.choice_of(operation.object).is_weak


def look(operation: Invoke, task: Task, machine: Machine) -> Generator[float, Event, Done | None]:
    """The response from what this front end knows of the object, once a replica has shown what it knows. None where the operation changes
    something all the same, where a call cannot be run, or where the response is too large: a decision says so then."""
    name = operation.object
    cache = machine.cache_of(name)  # Held: the front end forgets what is idle and nobody holds.
    lives, answered = -1, frozenset[str]()
    while lives != cache.lives:
        answered = yield from observe.collect(name, task, machine, machine.choice_of(name).anyone)
        lives = cache.lives
        yield from _turn(ENTRY_WORK * len(cache.seen), answered, task, machine)
    try:
        before = yield from _state(operation, cache, answered, task, machine)
        yield from _turn(CALL_WORK + work_bytes(before or ""), answered, task, machine)
        after, response = operation.type.run(before, operation.invocation)
    except BadClass:
        return None
    if after != before or result_bytes(response) > machine.limits.value_bytes_max:
        return None
    condition = f"{operation.invocation.operation}/{response.condition}"
    return Done(response, condition, answered, is_weak=True)


def _state(
    operation: Invoke, cache: LogCache, answered: frozenset[str], task: Task, machine: Machine
) -> Generator[float, Event, str | None]:
    """The state after all calls that are known now."""
    while True:
        waiting = queue.view(cache.summary, cache.by_id())
        ran = cache.ran
        is_of_now = ran is not None and (ran.ballot, ran.lives) == (cache.ballot, cache.lives)
        if ran is None or not is_of_now or not _goes_on(ran, waiting):
            ran = cache.ran = Ran(cache.ballot, cache.lives, [], cache.summary.value, Line())
        while not _is_covered(ran, waiting) and _goes_on(ran, waiting):
            if ran.line.is_over:
                ran.line = Line()
            run = partial(_run, operation.type, waiting, ran, cache, answered, task, machine)
            try:
                yield from ran.line.learn(task, run, machine.wake)
            except Expired:
                raise _late(answered) from None
        if _is_covered(ran, waiting):
            return ran.state
        # Another look has run a call meanwhile that this one did not know: it begins again, with all that is known by now.


def _run(
    found: PlainClass,
    waiting: Sequence[Seen],
    ran: Ran,
    cache: LogCache,
    answered: frozenset[str],
    task: Task,
    machine: Machine,
) -> Generator[float, Event, None]:
    """Run those of these calls that were not, if those that were come first among them: while this look waited for its turn, others may have run
    calls that it does not know."""
    if not _goes_on(ran, waiting):
        return
    for each in waiting[len(ran.timestamps) :]:
        text = str(each.entry.value)
        yield from _turn(CALL_WORK + work_bytes(ran.state or "") + work_bytes(text), answered, task, machine)
        before = ran.state
        ran.state, _, _ = step_stored(found, before, text, machine.limits)
        ran.timestamps.append(each.entry.t)
        cache.taken += max(0, len(ran.state or "") - len(before or ""))


def _goes_on(ran: Ran, waiting: Sequence[Seen]) -> bool:
    """Whether what was run comes first among these calls; or is all of them, and later ones."""
    return all(t == each.entry.t for t, each in zip(ran.timestamps, waiting, strict=False))


def _is_covered(ran: Ran, waiting: Sequence[Seen]) -> bool:
    """Whether all these calls were run."""
    return len(ran.timestamps) >= len(waiting) and _goes_on(ran, waiting)


def _turn(work: int, answered: frozenset[str], task: Task, machine: Machine) -> Generator[float, Event, None]:
    """Looks of many callers begin in one turn of the event loop: so much work is done in this one, or in one that comes."""
    if not (yield from machine.work.wait(task, work)):
        raise _late(answered)


def _late(answered: frozenset[str]) -> Expired:
    return Expired("no time was left to run the calls that are stored", answered)
