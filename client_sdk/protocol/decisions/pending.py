"""What passes between a proposer, its callers and the front end around them. Pure values and a protocol."""

from collections.abc import Generator, Hashable
from itertools import zip_longest
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ....adts.log import NOTHING
from ....adts.types.catalogue import adt_of, is_overwritten
from ....api_specs.cluster import ClusterDocument
from ....api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    SettleCommand,
    SettleResult,
)
from ....api_specs.limits import STATE_BYTES_MAX, Limits
from ....api_specs.messages import Request
from ....api_specs.values import work_bytes
from ....quorums.choices.choice import QuorumChoice
from ....timestamps.timestamp import Timestamp
from ..core.log_cache import LogCache
from ..core.rounds import SOON_S, Event, Task
from ..core.values import Failed
from ..core.work import TURN_BYTES_MAX, Work
from .transitions import WORKS_ON_STATES, Command, ConfirmCommand, InvokeCommand, argument_work

HELD_S_MAX: Final = 0.1
"""So long, after a decision, a look may keep this front end from the next."""
HELD_S_STEP: Final = 0.001
COMMANDS_MAX: Final = 256
"""Decided in one batch."""
RUN_BYTES_MAX: Final = TURN_BYTES_MAX
"""Of states and arguments that one batch works on, together, where it works on all of them."""
ITEMS_AT_A_PLACE: Final = 64
BYTES_AT_A_PLACE: Final = 4 * 1024
"""About a millisecond of work, as is any decision for itself; of nested arrays it is so few bytes."""
CARRIED_BYTES_AT_A_PLACE: Final = 64 * 1024
"""Of what a decision carries, as payloads under leases, which goes through as it is: 1 MiB takes each replica 20 to 30 ms. The first who
asks takes places for that: what others want goes along."""
UNSEEN_CARRIED_BYTES: Final = 512 * 1024
"""What an object counts as carrying before the first look at it."""
UNSEEN_BYTES: Final = STATE_BYTES_MAX // 2
"""What the state of an own type counts for before the first look at the object."""

_MAY_BE_ENDED: Final = (
    "another front end was asked to end the leases, and its answer is lost: repeat the call"
)


class CommandResult(Struct, frozen=True):
    """What a decision tells its caller: a result and the replicas it rests on, or a failure."""

    result: Any = None
    answered: frozenset[str] = frozenset()
    failed: Failed | None = None

    def doubted(self) -> "CommandResult":
        """The same for a command that another front end may have done, or may yet do: a failure says nothing of that. Nor does a
        lost lease: so many others may have ended since that nobody remembers how this one did."""
        if self.failed is not None:
            return replace(self, failed=replace(self.failed, reason="unknown", definite=False))
        if isinstance(self.result, SettleResult) and self.result.lost:
            return CommandResult(failed=Failed("unknown", _MAY_BE_ENDED, definite=False))
        return self


class PendingCommand(Struct, eq=False):
    """A command, whom to tell the result, and until when it is wanted."""

    command: Command
    task: Task
    is_proposed: bool = False
    """Whether something that may grant it was sent: from then on its outcome may be unknown."""
    would_be: Any = None
    """What it is told if that comes into force."""
    is_here: bool = False
    """Whether it must be decided by this front end: another one forwarded it, or would not take it."""
    may_be_done: bool = False
    """Whether another front end, which was asked and not heard of, may do it as well: it may always have taken effect."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether an outcome that says nothing of it would be unknown."""
        return self.is_proposed or self.may_be_done


def places_of(command: Command, cache: LogCache) -> int:
    """How many of `quorate.client_sdk.protocol.core.places` the command takes, by what it may take of the front end's time."""
    items = size = 0
    carried = 0 if cache.asking else cache.summary_work if cache.known else UNSEEN_CARRIED_BYTES
    match command:
        case DequeueCommand() | AcquireCommand():
            items = command.items_max
        case SettleCommand():
            items = len(command.tokens)
        case InvokeCommand() if cache.summary is NOTHING:
            size = argument_work(command) + UNSEEN_BYTES
        case CompareAndSetCommand() | InvokeCommand():
            size = argument_work(command) + work_bytes(cache.summary.value or "")
    return 1 + items // ITEMS_AT_A_PLACE + size // BYTES_AT_A_PLACE + carried // CARRIED_BYTES_AT_A_PLACE


class Batches:
    """Takes from the commands that wait for a decision, in turns of their callers, the oldest first."""

    def __init__(self, waiting: list[PendingCommand], cache: LogCache) -> None:
        self._waiting: Final = waiting
        self._cache: Final = cache
        self.latest: list[PendingCommand] = []
        """The batch that was taken last."""
        self.first: list[PendingCommand] = []
        """Those that are to be the next one, as far as they still wait."""

    def next(self, task: Task) -> Generator[float, Event, list[PendingCommand]]:
        """The next batch; empty when nobody asks any more.

        The callers of a batch of several were just told, and most of them ask again. They may do so first: else two halves
        of all callers would take terms, and each decision serve one of them.
        """
        first, self.first = [each for each in self.first if each in self._waiting], []
        if first:
            self.latest = first[:COMMANDS_MAX]
            return self.latest
        if len(self.latest) > 1:
            until_s = task.now.mono_s + SOON_S
            while task.now.mono_s < until_s:
                yield until_s
        while self._waiting and task.now.mono_s < self._cache.held_until_s:
            yield min(self._cache.held_until_s, task.now.mono_s + HELD_S_STEP)
        self.latest = self._together(_in_turns(self._waiting)[:COMMANDS_MAX])
        return self.latest

    def _together(self, asked: list[PendingCommand]) -> list[PendingCommand]:
        """As many of these as are done in one turn of the event loop, but at least one."""
        if not any(isinstance(each.command, WORKS_ON_STATES) for each in asked):
            return asked
        done_bytes, state_bytes = 0, _state_work(self._cache)
        for place, each in enumerate(asked):
            if isinstance(each.command, WORKS_ON_STATES):
                done_bytes += state_bytes + argument_work(each.command)
            if done_bytes > RUN_BYTES_MAX and place:
                return asked[:place]
        return asked

    def work(self) -> int:
        """What the latest batch takes at most, with the calls that lie in the log; at least one of them runs, however large the state."""
        looking = [each.command for each in self.latest if isinstance(each.command, WORKS_ON_STATES)]
        stored = 0 if is_overwritten(adt_of(self._cache.name)) else len(self._cache.seen) + 1
        state_bytes = _state_work(self._cache)
        of_all = state_bytes * (len(looking) + stored) + sum(map(argument_work, looking))
        return min(of_all, max(state_bytes, RUN_BYTES_MAX))

    def hold_for(self, granted: list[tuple[PendingCommand, Any]], now_s: float) -> None:
        """Where a caller is about to look whether a decision is made, the next batch is left for a moment."""
        if any(isinstance(asked.command, ConfirmCommand) and asked.command.holds for asked, _ in granted):
            self._cache.held_until_s = now_s + HELD_S_MAX

    def numbers(self) -> list[int]:
        """Of the operations that asked for the latest."""
        return [asked.task.number for asked in self.latest]


def _state_work(cache: LogCache) -> int:
    """What the state of a cell takes at most, as far as it is known: that of the summary, or of an entry."""
    values = (cache.summary.value, *(found.entry.value for found in cache.seen.values()))
    return max((work_bytes(value) for value in values if isinstance(value, str)), default=0)


def _in_turns(waiting: list[PendingCommand]) -> list[PendingCommand]:
    """The oldest of each caller, then the next one of each, and so on: one with many commands does not hold up others."""
    lines: dict[Hashable, list[PendingCommand]] = {}
    for asked in waiting:
        lines.setdefault(asked.task.turn, []).append(asked)
    if len(lines) < 2:
        return waiting
    return [asked for each in zip_longest(*lines.values()) for asked in each if asked is not None]


class Machine(Protocol):
    """What a proposer needs of the front end around it."""

    @property
    def document(self) -> ClusterDocument:
        """The cluster file."""

    @property
    def limits(self) -> Limits:
        """The cluster file's limits."""

    @property
    def epoch(self) -> int:
        """Which configuration it goes by."""

    @property
    def holder(self) -> str:
        """Whose front end it is."""

    def choice_of(self, name: str) -> QuorumChoice:
        """The object's quorum choice."""

    @property
    def work(self) -> Work:
        """What decisions do in this turn of the event loop."""

    def stamp_for(self, cache: LogCache) -> Timestamp:
        """A new timestamp for the object, above all that is known of it."""

    def random(self) -> float:
        """A number in [0, 1) from the front end's seed."""

    def oldest_remembered(self) -> Timestamp:
        """What has a lower timestamp is beyond all retries, and may be forgotten."""

    def oldest_term(self) -> Timestamp:
        """A term with a lower timestamp is ended, lest summaries forget it."""

    def earliest_us(self) -> int:
        """True time is not before this, in microseconds since 1970."""

    def latest_us(self) -> int:
        """True time is not after this."""

    def payload_source(self, name: str) -> str:
        """The replica to ask for payloads; the others send ids and timestamps."""

    def resolve(self, asked: PendingCommand, verdict: CommandResult) -> None:
        """Tell the caller."""

    def send_lazily(self, replica: str, *requests: Request) -> None:
        """Send along with the next message to that replica."""

    def count(self, what: str) -> None:
        """Add one to a counter."""
