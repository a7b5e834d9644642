"""The answer "empty" for a queue that nothing has happened to, without a decision: so that a look makes no object. Pure.

Owns the rule and its argument. An initial quorum of decisions meets every final quorum, of enqueues and of decisions. So when
none of its replicas holds an entry or has accepted a summary, no operation that changes the queue had ended when the first of
them looked: each was stored by a final quorum before it ended, and a log drops entries only below a decided summary. All that
had ended found the queue empty; the answer comes after these, and before all others. One look is enough, since there is no
summary that logs could be older than; fences and promises count for nothing, since they change nothing. An item that was seen
is another matter: it may have to be settled, and Peek then decides.
"""

from collections.abc import Generator

from ....adts.specification import Kind
from ....api_specs.messages import Collect, Collected, Window
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum
from ....timestamps.ballot import NO_BALLOT
from ....timestamps.timestamp import INFINITY
from ..core.rounds import Event, Gathering, Task
from .context import Machine


def look(name: str, task: Task, machine: Machine) -> Generator[float, Event, frozenset[str] | None]:
    """The replicas that show that nothing has happened to the queue; None where something has, or may have."""
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
