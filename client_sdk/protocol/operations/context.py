"""Asking an object's proposer, and what operations need of the front end around them. Pure."""

from collections.abc import Generator, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from ....api_specs.limits import Limits
from ....api_specs.messages import Collect
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum, VoteCount
from ....timestamps.clock_bound import SETTLE_S
from ....timestamps.timestamp import Timestamp
from ..core.log_cache import LogCache
from ..core.pacing import Pacing
from ..core.places import Places
from ..core.rounds import Event, Expired, Gathering, Reconfigured, Resolved, Task
from ..core.values import Failed, Outcome
from ..core.work import Work
from ..decisions.pending import CommandResult, PendingCommand, places_of
from ..decisions.transitions import Command, RepairCommand

OutcomeSteps = Generator[float, Event, Outcome]


NO_TURN: Final = Failed("unavailable", "it waited for its turn, and nothing was done", definite=True)


class OperationFailed(Exception):
    """The operation ends with this outcome."""

    def __init__(self, outcome: Failed) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Machine(Protocol):
    """What operations need of the front end around them."""

    @property
    def walks(self) -> list[Task]:
        """Operations that go through many entries, or wait to: the first of them has its turn."""

    @property
    def changing(self) -> set[tuple[str, str]]:
        """Operations of one's own types that were seen to change something, each with its type."""

    @property
    def places(self) -> Places:
        """For the decisions that callers wait for."""

    @property
    def work(self) -> Work:
        """For what works on states of objects."""

    @property
    def pacing(self) -> Pacing:
        """How often who waits for items looks again."""

    @property
    def holder(self) -> str:
        """Who holds the leases that this front end acquires, if it acquires them for itself."""

    @property
    def limits(self) -> Limits:
        """The cluster file's limits."""

    def cache_of(self, name: str) -> LogCache:
        """What is known of the object."""

    def choice_of(self, name: str) -> QuorumChoice:
        """The object's quorum choice."""

    def outboxes_of(self, name: str) -> Sequence[str]:
        """The outboxes of a queue, that one first whose replica is likely to answer; none where its rule gives it none."""

    def is_outbox(self, name: str) -> bool:
        """Whether the object is an outbox."""

    def has_exact_empty(self, name: str) -> bool:
        """Whether the object is a queue with outboxes that is empty only if these are."""

    def ask(self, name: str, command: Command, task: Task, *, is_here: bool = False) -> PendingCommand:
        """Ask the object's proposer; the verdict comes to the task as a Resolved. `is_here`: it must not forward it."""

    def give_up(self, name: str, asked: PendingCommand) -> str:
        """Withdraw the command; how far the proposer has come, in words."""

    def wake(self, task: Task) -> None:
        """Let the task look whether what it waits for has come."""

    @property
    def now_s(self) -> float:
        """The monotonic time."""

    def stamp_for(self, cache: LogCache) -> Timestamp:
        """A new timestamp for the object, above all that is known of it."""

    def was_right(self, stamp: Timestamp, given_s: float, replica: str) -> bool:
        """Whether this replica would have taken the stamp for a new one when it was given, as its clock shows that it has told of since."""

    def is_any_ahead(self) -> bool:
        """Whether some replica's store holds timestamps so far ahead of time that clocks must have been wrong."""

    def oldest_remembered(self) -> Timestamp:
        """What has a lower timestamp is beyond all retries, and may be forgotten."""

    def latest_us(self) -> int:
        """True time is not after this, in microseconds since 1970."""

    def is_time_known(self) -> bool:
        """Whether this front end's clock has a bound that one wrong replica cannot have made."""

    def is_far_behind(self, stamp: Timestamp) -> bool:
        """Whether it is so far behind the time that is known now that replicas may refuse it for that."""

    def passed_s(self, stamp: Timestamp) -> float:
        """The monotonic time from which true time is certainly after the stamp (commit wait)."""

    def say_complete(self, name: str, timestamps: tuple[Timestamp, ...]) -> None:
        """Tell all replicas, with the next messages or later, that a final quorum stores these entries."""

    def random(self) -> float:
        """A number in [0, 1) from the seed."""

    def count(self, what: str) -> None:
        """Add one to a counter."""


def decide(
    name: str, command: Command, task: Task, machine: Machine, *, is_here: bool = False
) -> Generator[float, Event, CommandResult]:
    """The proposer's verdict on the command; OperationFailed when it fails or the task's deadline passes."""
    while not machine.is_time_known():  # A term stamped by a wall clock that is far ahead would be refused.
        try:
            yield from read_clocks(name, task, machine, VoteCount(machine.choice_of(name).votes, 1))
            break
        except Reconfigured:
            task.renew()
    places, cache = machine.places, machine.cache_of(name)
    size = places_of(command, cache)
    if not (yield from places.take(task, size)):
        raise OperationFailed(NO_TURN)
    cache.asking += 1
    try:
        return (yield from _verdict(name, command, task, machine, is_here=is_here))
    finally:
        cache.asking -= 1
        places.give(task, size)


def _verdict(
    name: str, command: Command, task: Task, machine: Machine, *, is_here: bool
) -> Generator[float, Event, CommandResult]:
    asked = machine.ask(name, command, task, is_here=is_here)
    while not task.is_late and (asked.is_in_doubt or not task.is_left):
        try:
            event = yield task.deadline_s
        except GeneratorExit:  # Its caller has gone.
            machine.give_up(name, asked)
            raise
        if isinstance(event, Resolved):
            verdict: CommandResult = event.result
            if verdict.failed is not None:
                raise OperationFailed(_with_changes(asked, verdict.failed))
            return verdict
    detail = machine.give_up(name, asked)
    if task.is_left and not asked.is_in_doubt:
        raise OperationFailed(
            Failed("unavailable", "its caller went away before anything was done", definite=True)
        )
    late = Expired(f"no decision before the deadline ({detail})").outcome(asked.is_in_doubt)
    raise OperationFailed(_with_changes(asked, late))


def _with_changes(asked: PendingCommand, failed: Failed) -> Failed:
    """A repair of unknown outcome tells what it changes if it does: nobody can tell that later, and what it takes out is lost."""
    changes = asked.would_be if isinstance(asked.command, RepairCommand) else ()
    if failed.definite or not changes or not isinstance(changes, tuple):  # No tuple: it would have failed.
        return failed
    return replace(failed, detail=f"{failed.detail}. If it was done, this was:\n" + "\n".join(changes))


def read_clocks(name: str, task: Task, machine: Machine, needed: Quorum) -> Generator[float, Event, None]:
    """Meet the clocks of so many replicas, and of enough to know the time, if those that answer are enough.

    (Weaker replies than a Collect would do; this one asks for nothing.)
    """
    round_ = looking(name, task, machine)
    yield from round_.wait(lambda: needed.is_met_by(round_.replies))
    until_s = min(task.now.mono_s + SETTLE_S, (task.now.mono_s + task.deadline_s) / 2)
    everyone = machine.choice_of(name).votes.keys()
    yield from round_.wait(
        lambda: machine.is_time_known() or round_.replies.keys() | round_.troubles.keys() == everyone, until_s
    )


def look_for_what_is_ahead(
    name: str, task: Task, machine: Machine, needed: Quorum
) -> Generator[float, Event, None]:
    """Meet what so many replicas hold of the object, while some store holds timestamps that are far ahead of time."""
    round_ = looking(name, task, machine)
    yield from round_.wait(lambda: not machine.is_any_ahead() or needed.is_met_by(round_.replies))


def looking(name: str, task: Task, machine: Machine) -> Gathering:
    """A round that asks for what is accepted of the object, and promises nothing."""
    known = machine.cache_of(name).ballot
    return Gathering(task, lambda _: Collect(name, known=known), machine.choice_of(name).votes)


def is_better_known(expired: Expired, refused: Timestamp, cache: LogCache, machine: Machine) -> bool:
    """Whether the round came to nothing since replicas found that stamp too far from their clocks, and their answers have shown since that it was: what is
    stamped now is another time. So it is where clocks that were wrong have just been set right."""
    if not (expired.is_refused and expired.is_by_clock):
        return False
    return machine.stamp_for(cache) < refused or machine.is_far_behind(refused)


def pause(task: Task, until_s: float) -> Generator[float, Event, None]:
    while task.now.mono_s < until_s and not task.is_left:
        yield until_s


def wait_until_passed(
    timestamp: Timestamp, task: Task, machine: Machine, answered: frozenset[str]
) -> Generator[float, Event, None]:
    """Wait until true time is certainly after the timestamp of what is read or was stored. Raises Expired where the deadline comes first."""
    until_s = machine.passed_s(timestamp)
    if until_s > task.deadline_s:
        raise Expired(
            "its timestamp is ahead of time for longer than the deadline leaves: check the clocks", answered
        )
    yield from pause(task, until_s)


def tell_complete(name: str, timestamps: tuple[Timestamp, ...], machine: Machine) -> None:
    """Let it be known, with the next messages, that a final quorum stores these entries."""
    if not timestamps:
        return
    machine.cache_of(name).mark_complete(timestamps)
    machine.say_complete(name, timestamps)
