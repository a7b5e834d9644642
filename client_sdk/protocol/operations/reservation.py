"""Which entries the operation under an idempotency key has: front ends agree before any of them appends one. Pure.

A consensus of its own for each object and key (Paxos; DESIGN section 2, "Keys"): whoever repeats the operation, wherever,
appends the same entries. It takes one round where all replicas answer and nobody else tries, else two. No decision on
the object is needed, and nothing of it is in the object's summary. Must not know what becomes of the entries.
"""

from collections.abc import Callable, Collection, Generator, Mapping
from typing import Final

from ....adts.log import Entry
from ....adts.specification import Kind
from ....api_specs.messages import Reserve, Reserved
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.log_cache import LogCache
from ..core.rounds import Event, Gathering, Task
from .context import Machine, pause

HEDGE_S_MIN: Final = 0.001
"""How long to wait, at least, for replicas that are slower than a quorum: as long again as the quorum took."""
BACKOFF_S: Final = 0.004
"""Times a random number below 1, and doubled with each try: how long who met another one's higher ballot waits."""
BACKOFF_S_MAX: Final = 0.5

Entries = tuple[Entry, ...]
Shown = Mapping[str, Reserved]


def agree(
    name: str, key: str, entries: Entries, task: Task, machine: Machine
) -> Generator[float, Event, Entries]:
    """The entries (without values) of the operation under the key: these, or those that were agreed before.

    Raises Expired when too few replicas answer in time.
    """
    choice, cache = machine.choice_of(name), machine.cache_of(name)
    backoff_s = BACKOFF_S
    while True:
        ballot = machine.stamp_for(cache)
        shown = yield from _ask(Reserve(name, key, ballot, entries), choice, task, cache)
        if shown is not None:
            if (agreed := agreed_in(shown, choice)) is not None:
                return agreed
            machine.count("keys agreed in two rounds")
            proposal = proposal_from(shown, entries)
            if (yield from _accept(Reserve(name, key, ballot, proposal, accept=True), choice, task, cache)):
                return proposal
        machine.count("keys contended")
        yield from pause(task, task.now.mono_s + machine.random() * backoff_s)
        backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)


def _ask(
    request: Reserve, choice: QuorumChoice, task: Task, cache: LogCache
) -> Generator[float, Event, Shown | None]:
    """What an initial quorum of decisions holds, and what else answered soon; None when one has promised a higher ballot."""
    begun_s = task.now.mono_s
    round_ = Gathering(task, lambda _: request, choice.votes)
    yield from round_.wait(_is_enough(choice.initial_of_kind(Kind.DECIDE), round_))
    hedge_s = max(HEDGE_S_MIN, task.now.mono_s - begun_s)
    everyone = choice.votes.keys()
    yield from round_.wait(
        lambda: round_.replies.keys() | round_.troubles.keys() == everyone or _is_refused(round_),
        task.now.mono_s + hedge_s,
    )
    _learn(cache, round_)
    return None if _is_refused(round_) else dict(round_.replies)


def _accept(
    request: Reserve, choice: QuorumChoice, task: Task, cache: LogCache
) -> Generator[float, Event, bool]:
    """Whether a final quorum of decisions holds the entries under the ballot."""
    round_ = Gathering(task, lambda _: request, choice.votes)
    yield from round_.wait(_is_enough(choice.final_of_kind(Kind.DECIDE), round_))
    _learn(cache, round_)
    return not _is_refused(round_)


def _learn(cache: LogCache, round_: Gathering) -> None:
    """The next ballot is to be above all that were promised, whatever clocks say."""
    cache.latest = max(cache.latest, *(reply.promised for reply in round_.replies.values()))


def _is_enough(quorum: Quorum, round_: Gathering) -> Callable[[], bool]:
    return lambda: _is_refused(round_) or quorum.is_met_by(round_.replies)


def _is_refused(round_: Gathering) -> bool:
    return any(reply.refused for reply in round_.replies.values())


def agreed_in(shown: Shown, choice: QuorumChoice) -> Entries | None:
    """What is agreed for good, as far as it shows: held by all replicas as the first to come, or by a final quorum under one
    ballot."""
    holders: dict[tuple[Timestamp, Entries], set[str]] = {}
    for replica, held in shown.items():
        holders.setdefault((held.ballot, held.entries), set()).add(replica)
    for (ballot, entries), where in holders.items():
        if _is_agreed(ballot, where, choice):
            return entries
    return None


def _is_agreed(ballot: Timestamp, where: Collection[str], choice: QuorumChoice) -> bool:
    if ballot == ZERO:
        return where == choice.votes.keys()
    return choice.final_of_kind(Kind.DECIDE).is_met_by(where)


def proposal_from(shown: Shown, entries: Entries) -> Entries:
    """What may have been agreed already, by what an initial quorum holds that has promised; else anything will do.

    What came first is agreed only where all replicas hold it: then all of these do.
    """
    latest = max(shown.values(), key=lambda held: held.ballot)
    if latest.ballot > ZERO or all(held.entries == latest.entries for held in shown.values()):
        return latest.entries
    return entries
