"""Operations that ask every replica: to see to it that all come to hold what is done, and to forget what came to nothing; and that quorums of a
new configuration hold it. Pure.

Background tasks ask for them; no caller waits. What a quorum does is done in all cases: these are about the other replicas.
"""

from collections.abc import Generator, Mapping
from typing import Final

from ....adts import cell
from ....adts.log import Seen
from ....adts.specification import Kind
from ....adts.types.catalogue import adt_of, is_overwritten, may_delete
from ....api_specs.messages import Collect, Collected, Commit, Committed, Window
from ....gc.collection import ended_at
from ....timestamps.ballot import NO_BALLOT, term_of
from ....timestamps.timestamp import Timestamp
from ..core.log_cache import LogCache, shown_together
from ..core.rounds import Event, Expired, Gathering, Task
from ..core.values import LONG, YOUNG, Carry, CollectTombstone, Done, ReadRepair
from ..decisions.read_window import CELL_ROWS
from ..decisions.transitions import ConfirmCommand, FoldCommand
from .blind import NOBODY
from .context import Machine, OutcomeSteps, decide, pause
from .observe import collect, is_whole, look_at
from .settling import Settling, put_in_force

ROWS_BESIDE: Final = 100
"""Entries that a replica may have to show of an object that is carried beside others; also what it shows at a time of a longer log."""
REST: Final = 3
"""After some of a long log was shown, so many times as long as that took, for callers share replicas and machines with a carry: a quarter of the time is
spent on it. But no longer than"""
REST_S_MAX: Final = 0.05
"""which is for replicas that are far away: they are not busy meanwhile."""


def read_repair(operation: ReadRepair, task: Task, machine: Machine) -> OutcomeSteps:
    """Finish what a client left that vanished before it told that it is done, so that catch-up may bring it to the replicas that missed it. Entries
    that a final quorum stores, or comes to store now, are marked complete. One that fences keep from it is taken up by a decision: its client was told
    nothing, and others would ask for it for ever. Without entries: what was accepted last is decided, and all are told so."""
    name = operation.object
    cache, votes = machine.cache_of(name), frozenset(machine.choice_of(name).votes)
    if operation.entries:
        settled = yield from put_in_force(name, operation.entries, task, machine)
        return Done(settled.done, "ReadRepair/Ok", NOBODY)
    yield from decide(name, ConfirmCommand(), task, machine)
    # Then another one is being decided, or the object has been forgotten.
    if not cache.is_decided or cache.ballot == NO_BALLOT:
        return Done(0, "ReadRepair/Ok", NOBODY)
    yield from _tell(_decided(cache), task, set(votes), votes)
    return Done(1, "ReadRepair/Ok", votes)


def carry(operation: Carry, task: Task, machine: Machine) -> OutcomeSteps:
    """Have the decided summary accepted by a final quorum of the configuration at hand, and the entries above it stored by one: a summary
    alone where all entries are part of it, as a cell's newest value is. What is not complete is carried as well: it may be. An entry that a fence
    keeps from its quorum becomes part of the summary. Items that were taken before are not carried. Result: of how many dequeues under a key a repeat
    would look for these."""
    name = operation.object
    cache = machine.cache_of(name)
    cache.pins += 1
    try:
        is_cell = is_overwritten(adt_of(name))
        if not is_cell and not (yield from _is_taken_in(operation, cache, task, machine)):
            return Done(0, LONG, NOBODY)
        yield from _look_whole(cache, task, machine)
        # Also where nothing is seen: its term ends those of before, whose accepts a quorum of the new configuration alone need not meet.
        yield from decide(
            name, FoldCommand(carries=True) if is_cell else ConfirmCommand(carries=True), task, machine
        )
        repeatable = _repeatable(cache)
        if not is_cell:
            yield from _carry_entries(cache, task, machine)
        # What was known is thrown away where a replica has forgotten something meanwhile.
        return Done(max(repeatable, _repeatable(cache)), "Carry/Ok", NOBODY)
    finally:
        cache.pins -= 1


def _repeatable(cache: LogCache) -> int:
    """How many dequeues are remembered under their keys."""
    return sum(bool(each.taken) for each in cache.summary.recent)


def _is_long(cache: LogCache, task: Task, machine: Machine) -> Generator[float, Event, bool]:
    """Whether a replica has more to show than ROWS_BESIDE. To take in a long log keeps the front end from ending what it has begun with other objects, which
    their callers wait for."""
    choice = machine.choice_of(cache.name)
    needed = choice.initial_of_kind(Kind.DECIDE)
    round_ = Gathering(task, lambda replica: look_at(cache, replica, ROWS_BESIDE), choice.votes)
    yield from round_.wait(lambda: needed.is_met_by(round_.replies.keys()))
    return not all(is_whole(reply) for reply in round_.replies.values() if isinstance(reply, Collected))


def _is_taken_in(
    operation: Carry, cache: LogCache, task: Task, machine: Machine
) -> Generator[float, Event, bool]:
    """Have the log shown: a long one a little at a time, with rests in between, and what half of the time was not enough for afterwards. False where
    it is long, and others are carried beside it."""
    until_s = (task.now.mono_s + task.deadline_s) / 2
    while (begun_s := task.now.mono_s) < until_s and (yield from _is_long(cache, task, machine)):
        if operation.beside_others:
            return False
        now_s = task.now.mono_s
        yield from pause(task, now_s + min(REST * (now_s - begun_s), REST_S_MAX))
    return True


def _look_whole(cache: LogCache, task: Task, machine: Machine) -> Generator[float, Event, frozenset[str]]:
    needed = machine.choice_of(cache.name).initial_of_kind(Kind.DECIDE)
    return (yield from collect(cache.name, task, machine, needed, limit=machine.limits.page_entries_max))


def _carry_entries(cache: LogCache, task: Task, machine: Machine) -> Generator[float, Event, None]:
    """Have those entries stored that no decision has passed. Not what comes later: its own operations have it stored by quorums of now; nor what those
    alone have shown who do not answer any more, or are no members: it is not complete, and nobody may be able to tell its value."""
    answered = yield from _look_whole(cache, task, machine)
    of, settling = frozenset(cache.seen), Settling(cache.name, task, machine)
    while lacking := [
        found
        for found in _not_stored(cache, machine)
        if found.entry.t in of and not answered.isdisjoint(found.holders)
    ]:
        if task.is_late:
            raise Expired("its entries are not stored yet", NOBODY)
        if not (yield from settling.settle(lacking)):
            answered = yield from _look_whole(cache, task, machine)


def _not_stored(cache: LogCache, machine: Machine) -> list[Seen]:
    """The entries that no decision has taken in, and no final quorum is known to store."""
    final = machine.choice_of(cache.name).final_of_kind(Kind.BLIND)
    adopted = {entry.id for entry in cache.summary.adopted}
    return [
        found
        for found in cache.by_id().values()
        if found.entry.id not in adopted and not final.is_met_by(found.holders)
    ]


def collect_tombstone(operation: CollectTombstone, task: Task, machine: Machine) -> OutcomeSteps:
    """Forget what came to nothing everywhere, once every replica of the cluster has held that decision for the retry window (DESIGN,
    "Forgetting"); else see to it that they hold it: then the next try will do, a window later. Collect/Young says that only time is
    missing."""
    name = operation.object
    settling = FoldCommand(forgets=True) if is_overwritten(adt_of(name)) else ConfirmCommand(forgets=True)
    votes = machine.choice_of(name).votes
    everyone = frozenset(votes)
    kept, young = Done(False, "Collect/Kept", everyone), Done(False, YOUNG, everyone)
    replies, cache, ended = yield from _look_everywhere(name, task, machine)
    if not all(map(is_whole, replies.values())):
        # Nobody told what is complete, and the newest is not shown: once it is decided, and known to be, all below is history.
        yield from decide(name, settling, task, machine)
        yield from _tell_what_is_decided(cache, replies, task)
        return kept
    if ended is None:
        return kept
    if ended >= machine.oldest_remembered():
        return young  # Of one that is ahead of time the floor of all objects would be ahead as well.
    if not _is_settled(cache):
        yield from decide(name, settling, task, machine)
        replies, cache, ended = yield from _look_everywhere(name, task, machine)
        if ended is None or not _is_settled(cache):
            return kept
    decided = _decided(cache)
    if lacking := {replica for replica, reply in replies.items() if not _has_decision(reply, decided)}:
        yield from _tell(decided, task, lacking, everyone)
        return kept
    if not all(_has_held(reply, decided, ended) for reply in replies.values()):
        return young
    tombstone = Commit(name, cache.ballot, cache.summary.horizon, tombstone=ended)
    told = yield from _tell(tombstone, task, set(replies), frozenset(replies))
    # Where something came in between, or was promised ahead of time, it is kept.
    is_gone = all(reply.status.accepted == NO_BALLOT for reply in told)
    return Done(True, "Collect/Ok", everyone) if is_gone else kept


def _tell_what_is_decided(
    cache: LogCache, replies: Mapping[str, Collected], task: Task
) -> Generator[float, Event, None]:
    """Tell those who do not know that it is. Who decides tells them, but may have vanished before; then there is nothing to decide any more."""
    lacking = {replica for replica, reply in replies.items() if reply.status.committed < cache.ballot}
    if cache.is_decided and lacking:
        yield from _tell(_decided(cache), task, lacking, frozenset(replies))


def _look_everywhere(
    name: str, task: Task, machine: Machine
) -> Generator[float, Event, tuple[dict[str, Collected], LogCache, Timestamp | None]]:
    """What every replica shows of an object, by itself and together; and when it came to nothing, if it did."""
    choice = machine.choice_of(name)
    looks = Gathering(task, lambda _: Collect(name, window=Window(limit=CELL_ROWS)), choice.votes)
    yield from looks.wait(lambda: looks.replies.keys() == choice.votes.keys())
    cache = shown_together(name, choice.votes, looks.replies)
    cache.check_decided(choice.final_of_kind(Kind.DECIDE))
    return looks.replies, cache, _ended(cache)


def _decided(cache: LogCache) -> Commit:
    """Tells of what is seen last, which is decided."""
    return Commit(cache.name, cache.ballot, cache.summary.horizon, cache.summary)


def _ended(cache: LogCache) -> Timestamp | None:
    """When the object came to nothing, by what is seen of it: of a dictionary's key that may be an entry which deletes it."""
    if not cache.has_entries:
        return ended_at(cache.name, cache.summary, cache.ballot)
    if not may_delete(adt_of(cache.name)):
        return None
    timestamp, value, _ = cell.current(cache.summary, cache.by_id())
    return timestamp if value is None else None


def _is_settled(cache: LogCache) -> bool:
    """Whether what is seen last was decided, and nothing came after it."""
    return cache.is_decided and not cache.has_entries


def _has_decision(reply: Collected, decided: Commit) -> bool:
    """Whether the replica holds the decision, or has forgotten the object for it, and takes no older one."""
    return reply.status.committed >= decided.ballot or _is_forgotten(reply, decided)


def _has_held(reply: Collected, decided: Commit, ended: Timestamp) -> bool:
    """Whether it has held it for the retry window, by its own elapsed time."""
    return reply.aged.ended == ended or _is_forgotten(reply, decided)


def _is_forgotten(reply: Collected, decided: Commit) -> bool:
    """Whether the replica knows nothing of the object, and takes neither an older entry nor an older decision."""
    is_unknown = not reply.rows and reply.status.accepted == NO_BALLOT
    return is_unknown and reply.status.floor >= max(decided.horizon, term_of(decided.ballot))


def _tell(
    request: Commit, task: Task, lacking: set[str], everyone: frozenset[str]
) -> Generator[float, Event, list[Committed]]:
    """Tell these replicas, until all of them have heard; what they say."""
    told = Gathering(task, lambda _: request, lacking)
    try:
        yield from told.wait(lambda: told.replies.keys() == lacking)
        return [reply for reply in told.replies.values() if isinstance(reply, Committed)]
    except Expired as error:  # The others were not asked: only these hold it up.
        answered = error.answered | (everyone - lacking)
        raise Expired(error.detail, answered, is_refused=error.is_refused, limit=error.limit) from None
