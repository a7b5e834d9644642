"""Which entries the operation under an idempotency key has: front ends agree before any of them appends one. Pure.

A consensus of its own for each object and key (Paxos; DESIGN section 2, "Keys"): whoever repeats the operation, wherever,
appends the same entries. It takes one round where all replicas answer and nobody else tries, else two. No decision on
the object is needed, and nothing of it is in the object's summary. Must not know what becomes of the entries.
"""

from collections.abc import Collection, Generator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from ....adts.log import Entry
from ....adts.specification import Kind
from ....api_specs.messages import Held, Proposal, Reserve
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import VoteCount
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.log_cache import LogCache
from ..core.rounds import Event, Expired, Gathering, Reconfigured, Task
from .context import Machine, pause

HEDGE_S_MIN: Final = 0.001
"""How long to wait, at least, for replicas that are slower than a quorum: as long again as the quorum took."""
BACKOFF_S: Final = 0.004
"""Times a random number below 1, and doubled with each try: how long who met another one's higher ballot waits."""
BACKOFF_S_MAX: Final = 0.5

Entries = tuple[Entry, ...]
Shown = Mapping[str, Held]
"""What replicas hold under one key."""


def agree(
    name: str, key: str, entries: Entries, task: Task, machine: Machine
) -> Generator[float, Event, Entries]:
    """The entries (without values) of the operation under the key: these, or those that were agreed before.

    Raises Expired when too few replicas answer in time.
    """
    cache = machine.cache_of(name)
    backoff_s, is_held = BACKOFF_S, False
    while True:
        choice = machine.choice_of(name)
        ballot = machine.stamp_for(cache)
        try:
            (shown,) = yield from ask(Reserve(name, ballot, (Proposal(key, entries),)), choice, task, cache)
            is_held = True
            if not is_refused(shown):
                if (agreed := agreed_in(shown, choice)) is not None:
                    return agreed
                machine.count("keys agreed in two rounds")
                proposed = proposal_from(shown, entries, choice)
                accepting = Reserve(name, ballot, (Proposal(key, proposed),), accept=True)
                (is_accepted,) = yield from accept(accepting, choice, task, cache)
                if is_accepted:
                    return proposed
        except Expired as expired:
            if is_held:
                expired.reached = frozenset(choice.votes)
            raise
        except Reconfigured:
            task.renew()
            continue
        machine.count("keys contended")
        yield from pause(task, task.now.mono_s + machine.random() * backoff_s)
        backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)


def may_be_agreed(expired: Expired, choice: QuorumChoice) -> bool:
    """Whether all whom a repeat asks may hold the entries of an operation that has come no further. Then the repeat may be done at their timestamps,
    before all that was done meanwhile: it is not certain that the operation took no effect. While the cluster changes, a repeat goes by what the old
    members hold, and after it by the new."""
    return any(_may_be_all(side, expired.reached & side.votes.keys()) for side in choice.sides)


def _may_be_all(side: QuorumChoice, reached: AbstractSet[str]) -> bool:
    """Whether these may be all that a repeat asks: an initial quorum; a majority, which stands in for one where others are declared dead; or all but one, in
    whose place a new store takes what all of them hold."""
    is_all_but_one = len(reached) + 1 >= len(side.votes) > 1
    majority = VoteCount(side.votes, side.total // 2 + 1)
    return (
        is_all_but_one or majority.is_met_by(reached) or side.initial_of_kind(Kind.DECIDE).is_met_by(reached)
    )


def ask(
    request: Reserve, choice: QuorumChoice, task: Task, cache: LogCache
) -> Generator[float, Event, list[Shown]]:
    """What an initial quorum of decisions holds under each key, and what else answered soon."""
    begun_s = task.now.mono_s
    round_ = Gathering(task, lambda _: request, choice.votes)
    needed, everyone = choice.initial_of_kind(Kind.DECIDE), choice.votes.keys()
    yield from round_.wait(lambda: needed.is_met_by(round_.replies))
    hedge_s = task.now.mono_s + max(HEDGE_S_MIN, task.now.mono_s - begun_s)
    yield from round_.wait(lambda: round_.replies.keys() | round_.troubles.keys() == everyone, hedge_s)
    return _shown(request, round_, cache)


def accept(
    request: Reserve, choice: QuorumChoice, task: Task, cache: LogCache
) -> Generator[float, Event, list[bool]]:
    """Of each key, whether a final quorum of decisions holds the entries under the ballot."""
    final = choice.final_of_kind(Kind.DECIDE)
    round_ = Gathering(task, lambda _: request, choice.votes)
    yield from round_.wait(lambda: final.is_met_by(round_.replies))
    return [not is_refused(shown) for shown in _shown(request, round_, cache)]


def _shown(request: Reserve, round_: Gathering, cache: LogCache) -> list[Shown]:
    """What each replica holds under each key. The next ballot is to be above all that were promised, whatever clocks say."""
    other = {replica: {held.key: held for held in reply.other} for replica, reply in round_.replies.items()}
    promised = [held.promised for named in other.values() for held in named.values()]
    cache.latest = max([cache.latest, *promised])
    ballot, taken = request.ballot, request.ballot if request.accept else ZERO
    shown: list[Shown] = []
    for each in request.proposals:
        asked_for = Held(each.key, taken, each.entries, ballot)
        shown.append({replica: named.get(each.key, asked_for) for replica, named in other.items()})
    return shown


def is_refused(shown: Shown) -> bool:
    """Whether a replica has promised a higher ballot."""
    return any(held.refused for held in shown.values())


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


def proposal_from(shown: Shown, entries: Entries, choice: QuorumChoice) -> Entries:
    """What may have been agreed already, by what an initial quorum holds that has promised; else anything will do.

    What came first is agreed only where all replicas hold it: then all of these do. While the cluster changes, all that were members before may
    have held it then, and new ones took something else since; the new configuration has agreed on nothing while these answer for this one.
    """
    latest = max(shown.values(), key=lambda held: held.ballot)
    if latest.ballot > ZERO:
        return latest.entries
    first, *others = (held.entries for replica, held in shown.items() if replica in choice.sides[0].votes)
    return first if all(each == first for each in others) else entries
