"""Mistakes about eventual consistency: who may miss changes, and what a weak answer shows."""

from collections.abc import Iterator
from contextlib import contextmanager

from quorate.adts.specification import Kind
from quorate.api_specs import cluster
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Task
from quorate.client_sdk.protocol.core.values import Done, Invoke, ReadRepair
from quorate.client_sdk.protocol.operations import everywhere, observe, runs, weak_calls
from quorate.client_sdk.protocol.operations.context import Machine, OutcomeSteps
from quorate.quorums.choices import choice
from quorate.quorums.choices.choice import Consistency
from quorate.replica.protocol.catch_up import Progress
from quorate.replica.protocol.undecided import Undecided
from tests.sim.planted.plant import Planting, patched


@contextmanager
def drop_what_decisions_depend_on() -> Iterator[None]:
    """With eventual consistency decisions, too, read any one replica."""

    def is_dropped(kind: Kind, consistency: Consistency) -> bool:
        return consistency == "eventual" and kind is not Kind.BLIND

    forget = cluster._cached_choice.cache_clear
    forget()
    try:
        with patched(choice, is_dropped=is_dropped):
            yield
    finally:
        forget()


def answer_what_nobody_gave() -> Planting:
    """A weak read answers with the timestamp where there is a value."""

    def weakly_read(cache: LogCache, word: str, answered: frozenset[str]) -> Done:
        return Done(max(cache.seen, default=None), f"{word}/Ok", answered, is_weak=True)

    return patched(observe, weakly_read=weakly_read)


def answer_as_at_first() -> Planting:
    """A front end answers weak reads of a cell as it did at first."""
    told: dict[LogCache, Done] = {}
    right = observe.weakly_read

    def weakly_read(cache: LogCache, word: str, answered: frozenset[str]) -> Done:
        return told.setdefault(cache, right(cache, word, answered))

    return patched(observe, weakly_read=weakly_read)


def answer_keyed_calls_weakly() -> Planting:
    """A call under an idempotency key is answered by a look at one replica: nobody remembers that answer for its repeat."""

    def is_weak(operation: Invoke, machine: Machine) -> bool:
        is_named = operation.invocation.operation in operation.type.observing
        return is_named and machine.choice_of(operation.object).is_weak

    return patched(weak_calls, is_weak=is_weak)


def repair_no_entries() -> Planting:
    """Nobody finds out whether entries are complete whose clients vanished."""
    return patched(Progress, overdue=lambda *_: {})


def repair_no_decisions() -> Planting:
    """Nobody finishes decisions whose clients vanished."""
    return patched(Undecided, due=lambda *_: [])


def tell_what_one_accepted() -> Planting:
    """A read repair tells all that what some replica accepted is decided."""

    right = runs._RUNS[ReadRepair]

    def repair(operation: ReadRepair, task: Task, machine: Machine) -> OutcomeSteps:
        if operation.entries:
            return (yield from right(operation, task, machine))
        cache = machine.cache_of(operation.object)
        yield from observe.collect(
            operation.object, task, machine, machine.choice_of(operation.object).anyone
        )
        everyone = frozenset(machine.choice_of(operation.object).votes)
        yield from everywhere._tell(everywhere._decided(cache), task, set(everyone), everyone)
        return Done(None, "ReadRepair/Ok", everyone)

    return patched(runs, _RUNS={**runs._RUNS, ReadRepair: repair})
