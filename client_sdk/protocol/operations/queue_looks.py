"""Looks at a whole queue: how many items wait, which are first, what is delivered. Pure.

A size is what two looks agree on (docs/internals/verification.md, "Size looks twice"). A consumer that never rests decides between any two,
so after some in vain decisions are held off for a moment: only for speed, what counts as agreed stays the same.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from heapq import nsmallest
from itertools import count
from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ....adts.log import Seen, Value
from ....adts.specification import Kind
from ....adts.types import queue
from ....api_specs.messages import Collect, Collected, Window
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum
from ....timestamps.ballot import NO_BALLOT, Ballot
from ....timestamps.timestamp import INFINITY, Timestamp
from ..core.log_cache import LogCache
from ..core.rounds import SOON_S, Event, Expired, Gathering, Task
from ..core.values import Done, LeaseBook, QueueInfo, QueueSize, ReadLeases
from ..decisions.payloads import Gone, Withheld, fetch_payloads
from ..decisions.transitions import ConfirmCommand
from . import observe
from .context import Machine, OutcomeSteps, decide, pause
from .observe import Looks
from .settling import Settling

LOOKS_FREE: Final = 4
"""Looks that leave decisions alone: two are enough where none is made meanwhile."""
PAGE_ENTRIES: Final = 2000
ENTRIES_AT_ONCE: Final = 10_000
"""Of a queue with more waiting entries some are gone through in each turn, which takes 2 ms."""
TURN_S: Final = 0.02
"""How often who waits to go through many looks whether it may."""


def queue_size(operation: QueueSize, task: Task, machine: Machine) -> OutcomeSteps:
    """The number of waiting items: two looks between which no decision was made.

    What the first look shows, over a summary that was decided before it began and still stands in the second, is the
    size at some moment of the first: enqueues only add while no dequeue is decided. It counts items, and promises
    nothing about the order of enqueues that run at the same time (docs/internals/verification.md). The first items are listed on
    the same terms.
    """
    is_weak = machine.choice_of(operation.object).is_weak
    return (yield from _listed(operation, partial(_seen, "Size") if is_weak else _agreed, task, machine))


def peek(name: str, task: Task, machine: Machine) -> OutcomeSteps:
    """The first item that waits, as far as one look shows: only for a queue of eventual consistency."""
    counted = yield from _listed(QueueSize(name, items_max=1), partial(_seen, "Peek"), task, machine)
    values = counted.result.first
    return replace(counted, result=values, event_class="Peek/Ok" if values else "Peek/Empty")


def _listed(
    operation: QueueSize, look: "_Look", task: Task, machine: Machine
) -> Generator[float, Event, Done]:
    """The number of waiting items, and the first of them, by looks of this kind."""
    cache = machine.cache_of(operation.object)
    cache.pins += 1
    try:
        while True:
            counted, answered = yield from look(operation, cache, task, machine)
            horizon = cache.summary.horizon
            first = yield from _values(counted.front, task, cache, machine)
            if first is not None:
                info = QueueInfo(counted.size, horizon, first)
                return Done(info, "Size/Ok", answered, machine.choice_of(operation.object).is_weak)
    finally:
        cache.pins -= 1


def leases(operation: ReadLeases, task: Task, machine: Machine) -> OutcomeSteps:
    """The leases and dead letters of the newest decision: of the summary that an initial quorum shows, once it is decided."""
    name = operation.object
    cache = machine.cache_of(name)
    while True:
        choice = machine.choice_of(name)
        needed = choice.initial_of_kind(Kind.DECIDE)
        known, lives = cache.ballot, cache.lives
        round_ = Gathering(task, lambda _: Collect(name, known=known), choice.votes)  # noqa: B023 - one round at a time
        yield from round_.wait(lambda: needed.is_met_by(round_.replies))  # noqa: B023
        if cache.lives != lives:
            continue
        cache.check_decided(choice.final_of_kind(Kind.DECIDE))
        summary = cache.summary
        if cache.is_decided:
            return Done(LeaseBook(summary.leases, summary.dead), "Leases/Ok", frozenset(round_.replies))
        yield from decide(name, ConfirmCommand(), task, machine)


def _front(waiting: list[Seen], items_max: int, task: Task) -> Generator[float, Event, list[Seen]]:
    """The oldest of them, in order."""
    if items_max >= len(waiting):
        return sorted(waiting, key=_timestamp)
    front: list[Seen] = []
    for some in _parts(waiting) if items_max else ():
        if front:
            yield from pause(task, task.now.mono_s + SOON_S)
        front = nsmallest(items_max, [*front, *some], key=_timestamp)
    return front


def _timestamp(found: Seen) -> Timestamp:
    return found.entry.t


def _values(
    waiting: list[Seen], task: Task, cache: LogCache, machine: Machine
) -> Generator[float, Event, tuple[Value, ...] | None]:
    """What these entries hold; None when one of them is gone meanwhile, or only silent replicas showed it."""
    missing = {found.entry.t for found in waiting if found.entry.value is UNSET}
    try:
        payloads = (yield from fetch_payloads(task, cache, missing, machine.limits)) if missing else {}
    except (Withheld, Gone):
        return None
    held = (payloads.get(found.entry.t, found.entry.value) for found in waiting)
    return tuple(value for value in held if isinstance(value, str))


class Counted(Struct):
    """What a look shows: how many entries wait, which of them are first, and which may not be in force."""

    size: int
    front: list[Seen]
    doubtful: list[Seen]


_Look = Callable[
    [QueueSize, LogCache, Task, Machine], Generator[float, Event, tuple[Counted, frozenset[str]]]
]
"""What is counted, and who answered."""


def _seen(
    word: str, operation: QueueSize, cache: LogCache, task: Task, machine: Machine
) -> Generator[float, Event, tuple[Counted, frozenset[str]]]:
    """What one look at an initial quorum of the operation `word` shows, whatever else is decided or on its way; who answered."""
    while True:
        needed = machine.choice_of(operation.object).initial_of(word)
        answered = yield from observe.collect(
            operation.object, task, machine, needed, limit=PAGE_ENTRIES, payload=False
        )
        lives = cache.lives
        found = yield from _counted(operation, cache, task, machine)
        if cache.lives == lives:
            return found, answered


def _agreed(
    operation: QueueSize, cache: LogCache, task: Task, machine: Machine
) -> Generator[float, Event, tuple[Counted, frozenset[str]]]:
    """What two looks agree on; who answered."""
    name = operation.object
    counted: tuple[Ballot, Counted] | None = None
    looks, settling = Looks(name, task), Settling(name, task, machine)
    held_until_s = 0.0
    for number in count():
        if counted is None and number >= LOOKS_FREE:
            _let_go(cache, held_until_s)
            machine.count("decisions held off for a look")
            yield from decide(name, ConfirmCommand(holds=True), task, machine)
            held_until_s = cache.held_until_s
        before = cache.decided if cache.is_decided else None
        needed = machine.choice_of(name).initial_of("Size")
        with looks.under_way():
            answered = yield from observe.collect(
                name, task, machine, needed, limit=PAGE_ENTRIES, payload=False
            )
        if not cache.is_decided:
            _let_go(cache, held_until_s)
            yield from decide(name, ConfirmCommand(), task, machine)
            continue
        if counted is not None and counted[0] == cache.ballot:
            cache.held_until_s = 0.0
            return counted[1], answered
        counted = None
        machine.count("collected again")
        if before is None or cache.ballot != before:
            continue
        lives = cache.lives
        found = yield from _counted(operation, cache, task, machine)
        if cache.lives != lives:  # While it waited for its turn, what replicas had shown was dropped.
            continue
        if (yield from settling.settle(found.doubtful)):
            counted = (cache.ballot, found) if cache.ballot == before else None
    raise AssertionError("it looks until the deadline")


def _let_go(cache: LogCache, held_until_s: float) -> None:
    """A look came to nothing: the next decision need not wait, unless it is held off until another time, for another look."""
    if cache.held_until_s == held_until_s:
        cache.held_until_s = 0.0


def _counted(
    operation: QueueSize, cache: LogCache, task: Task, machine: Machine
) -> Generator[float, Event, Counted]:
    """What is known now. Many entries are gone through for one operation at a time: each takes a turn of all others, and memory."""
    is_long = len(cache.seen) > ENTRIES_AT_ONCE
    if is_long:
        machine.walks.append(task)
    try:
        while is_long and machine.walks[0] is not task:
            if task.is_late:
                raise Expired("no time was left to count a long queue after those who asked before")
            yield from pause(task, task.now.mono_s + TURN_S)
        waiting = yield from _view(cache, task)
        front = yield from _front(waiting, operation.items_max, task)
        doubtful = yield from _doubtful(waiting, cache, machine.choice_of(operation.object), task)
        return Counted(len(waiting), front, doubtful)
    finally:
        if task in machine.walks:  # Not where the front end has started over meanwhile.
            machine.walks.remove(task)


def _view(cache: LogCache, task: Task) -> Generator[float, Event, list[Seen]]:
    """The entries that wait, in no order, by what is known now: what comes meanwhile is not looked at."""
    over = queue.Over(cache.summary)
    by_id = {found.entry.id: found for found in over.adopted({})}
    for number, some in enumerate(_parts(list(cache.seen.values()))):
        if number:
            yield from pause(task, task.now.mono_s + SOON_S)
        by_id.update((found.entry.id, found) for found in over.waiting(some))
    return list(by_id.values())


def _parts(entries: list[Seen]) -> Iterator[list[Seen]]:
    """What is gone through in one turn: of many, all others would wait for long."""
    return (entries[start : start + ENTRIES_AT_ONCE] for start in range(0, len(entries), ENTRIES_AT_ONCE))


def _doubtful(
    waiting: list[Seen], cache: LogCache, choice: QuorumChoice, task: Task
) -> Generator[float, Event, list[Seen]]:
    """Those of them that may not be in force."""
    adopted = {entry.id for entry in cache.summary.adopted}
    final = choice.final_of_kind(Kind.BLIND)
    doubtful: list[Seen] = []
    for number, some in enumerate(_parts(waiting)):
        if number:
            yield from pause(task, task.now.mono_s + SOON_S)
        doubtful += (
            found for found in some if found.entry.id not in adopted and not cache.is_complete(found, final)
        )
    return doubtful


def untouched(name: str, task: Task, machine: Machine) -> Generator[float, Event, frozenset[str] | None]:
    """The replicas that show that nothing has happened to the queue, which then is empty without a decision, so that a look makes no object; None
    where something has, or may have.

    An initial quorum of decisions meets every final quorum, of enqueues and of decisions. So when none of its replicas holds an entry or has
    accepted a summary, no operation that changes the queue had ended when the first of them looked: each was stored by a final quorum before it
    ended, and a log drops entries only below a decided summary. All that had ended found the queue empty; the answer comes after these, and before
    all others. One look is enough, since there is no summary that logs could be older than; fences and promises count for nothing, since they
    change nothing. An item that was seen is another matter: it may have to be settled, and Peek then decides.
    """
    cache, choice = machine.cache_of(name), machine.choice_of(name)
    if cache.ballot != NO_BALLOT or cache.seen:
        return None
    needed = needed_of(choice)
    round_ = Gathering(task, lambda _: Collect(name, window=Window(limit=1, payload=False)), choice.votes)
    shows: dict[str, bool] = {}

    def is_enough() -> bool:
        shows.update((replica, shows_nothing(reply)) for replica, reply in round_.replies.items())
        return needed.is_met_by(shows) or not all(shows.values())

    yield from round_.wait(is_enough)
    return frozenset(shows) if all(shows.values()) else None


def needed_of(choice: QuorumChoice) -> Quorum:
    """A quorum that meets all that change the queue, leases included."""
    return choice.initial_of_kind(Kind.DECIDE)


def shows_nothing(reply: Collected) -> bool:
    """Whether the replica holds no entry, and has accepted no summary nor heard of one."""
    is_undecided = reply.status.accepted == reply.status.committed == NO_BALLOT
    return is_undecided and not reply.rows and not reply.more and reply.upto == INFINITY
