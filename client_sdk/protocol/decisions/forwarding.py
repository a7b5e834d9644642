"""Forwards commands on one object to its coordinator, whose front end decides those of many at once. Pure.

Owns when that is done, and what an answer, or none, means for the commands:

* A front end decides for itself until it meets another one: a replica refuses it for a higher term. From then on it
  forwards, for ROUTED_S, and for SHARED_S more whenever the coordinator says that others ask, too. When none did for LOOK_S (those
  that it met only settled what became of their enqueues), it decides for itself again, and for ALONE_S in any case.
* A command that may not be forwarded waits for those that came before it, and for no other: once it is the oldest, all that
  wait are decided here.
* A command is forwarded once. It must not carry a key, nor may an accept that grants it be in doubt, nor may it have come
  from another front end: so no command goes in circles.
* A coordinator that certainly did nothing leaves the command to its own front end. Where the answer is lost, a peek or a settling is
  decided here (nobody could tell whether that was done twice); all others have an unknown outcome.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol

from ....adts.log import Entry, Leased
from ....api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    ForwardableCommand,
    PeekCommand,
    SettleCommand,
    SettleResult,
)
from ....api_specs.limits import FORWARD_S_MAX
from ....api_specs.messages import ForwardedReply, Granted
from ..core.rounds import Answered, Event, Task
from ..core.values import Failed, Unanswered
from .pending import CommandResult, PendingCommand
from .transitions import Command

ROUTED_S: Final = 1.0
SHARED_S: Final = 5.0
LOOK_S: Final = 0.5
ALONE_S: Final = 3.0
LEFT_S_MIN: Final = 0.02
"""With less time left, a command is not worth the way."""
COORDINATORS_SHARE: Final = 0.7
"""Of the least time that a caller has left, the coordinator gets so much: when it can do nothing, for want of a quorum, its word
that it certainly did nothing must be back in time, or the caller would be told that the outcome is unknown."""
GRACE_S: Final = 0.5
"""How long an answer may travel, besides the time that the coordinator may take."""

ForwardingSteps = Generator[float, Event, None]
Finish = Callable[[PendingCommand, CommandResult], None]


class Machine(Protocol):
    """What forwarding needs of the front end around it."""

    def coordinator_of(self, name: str) -> str | None:
        """The replica, known to be live, whose front end should decide on the object; None: this one."""

    def send_forwarded(
        self,
        task: Task,
        coordinator: str,
        name: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask the coordinator; its answer comes to the task as an Answered with the returned token."""

    def pause_coordinator(self, coordinator: str) -> None:
        """Do not ask this one for a while."""

    def is_reconfigured(self, answer: Unanswered) -> bool:
        """Whether it refuses for a later configuration: the replica itself is well."""

    def count(self, what: str) -> None:
        """Add one to a counter."""


class ForwardingPolicy:
    """The way of one object's commands to its coordinator."""

    def __init__(self, name: str, machine: Machine, commands_max: int) -> None:
        self._name: Final = name
        self._machine: Final = machine
        self._commands_max: Final = commands_max
        self._since_s = self._until_s = self._alone_until_s = float("-inf")
        self._is_shared = False

    def meet(self, now_s: float) -> None:
        """Another front end decides on the object, too."""
        if now_s < self._alone_until_s:
            return
        if now_s >= self._until_s:
            self._since_s, self._is_shared = now_s, False
        self._until_s = max(self._until_s, now_s + ROUTED_S)

    def _hear(self, now_s: float, *, is_shared: bool) -> None:
        """The coordinator says whether others ask, too."""
        if is_shared:
            self._until_s, self._is_shared = now_s + SHARED_S, True
        elif not self._is_shared and now_s >= self._since_s + LOOK_S:
            self._until_s, self._alone_until_s = now_s, now_s + ALONE_S

    def choose(
        self, batch: Sequence[PendingCommand], now_s: float
    ) -> tuple[str, list[PendingCommand]] | None:
        """Whom to ask, and for which of the batch; None when it is to be decided here."""
        if now_s >= self._until_s or any(asked.is_here or asked.is_proposed for asked in batch):
            return None
        if not _may_be_forwarded(
            batch[0].command
        ):  # The oldest: others that keep coming must not hold it up.
            return None
        ready = [asked for asked in batch if self._may_go(asked, now_s)][: self._commands_max]
        coordinator = self._machine.coordinator_of(self._name) if ready else None
        return None if coordinator is None else (coordinator, ready)

    def _may_go(self, asked: PendingCommand, now_s: float) -> bool:
        return _may_be_forwarded(asked.command) and asked.task.deadline_s - now_s > LEFT_S_MIN

    def forward(
        self, task: Task, coordinator: str, batch: list[PendingCommand], finish: Finish
    ) -> ForwardingSteps:
        """Ask the coordinator, and finish what it decided; what it certainly did not is left, to be decided here."""
        commands: list[ForwardableCommand] = []
        for asked in batch:
            assert isinstance(asked.command, ForwardableCommand), "_may_go lets no other one through"
            commands.append(asked.command)
            asked.is_proposed = True
            self._machine.count("commands forwarded")
        left_s = min(asked.task.deadline_s for asked in batch) - task.now.mono_s
        limit_s = min(FORWARD_S_MAX, COORDINATORS_SHARE * max(left_s, LEFT_S_MIN))
        answer = yield from self._exchange(task, coordinator, tuple(commands), limit_s, limit_s + GRACE_S)
        if isinstance(answer, ForwardedReply) and len(answer.results) == len(batch):
            self._take_in(task, coordinator, answer, batch, finish)
            return
        if not (isinstance(answer, Unanswered) and self._machine.is_reconfigured(answer)):
            self._machine.pause_coordinator(coordinator)
        definite = isinstance(answer, Unanswered) and answer.definite
        detail = (
            answer.detail if isinstance(answer, Unanswered) else "its answer does not fit what it was asked"
        )
        for asked in batch:
            self._leave(asked, f"{coordinator} was asked to decide: {detail}", finish, definite=definite)

    def _exchange(
        self,
        task: Task,
        coordinator: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> Generator[float, Event, ForwardedReply | Unanswered]:
        token = self._machine.send_forwarded(task, coordinator, self._name, commands, deadline_s, timeout_s)
        until_s = task.now.mono_s + timeout_s
        while task.now.mono_s < until_s:
            event = yield until_s
            if isinstance(event, Answered) and event.token == token:
                assert isinstance(event.answer, ForwardedReply | Unanswered)
                return event.answer
        return Unanswered("no answer in time")

    def _take_in(
        self,
        task: Task,
        coordinator: str,
        served: ForwardedReply,
        batch: list[PendingCommand],
        finish: Finish,
    ) -> None:
        self._hear(task.now.mono_s, is_shared=served.is_shared)
        if not any(isinstance(result, Granted) for result in served.results):
            self._machine.pause_coordinator(coordinator)
        for asked, result in zip(batch, served.results, strict=True):
            if isinstance(result, Granted):
                finish(asked, CommandResult(_given(asked.command, result), frozenset(result.answered)))
            else:
                detail = f"{coordinator} was asked to decide: {result.detail}"
                self._leave(asked, detail, finish, definite=result.definite)

    def _leave(self, asked: PendingCommand, detail: str, finish: Finish, *, definite: bool) -> None:
        """The coordinator did not decide the command, or its answer is lost."""
        if definite or isinstance(asked.command, PeekCommand | SettleCommand):
            self._machine.count(f"commands {'refused' if definite else 'lost'} elsewhere decided here")
            asked.is_here, asked.is_proposed = True, False
            asked.may_be_done = not definite and isinstance(asked.command, SettleCommand)
            return
        self._machine.count("commands lost elsewhere unknown")
        finish(asked, CommandResult(failed=Failed("unknown", detail, definite=False)))


def _may_be_forwarded(command: Command) -> bool:
    """Whether another front end may decide it: neither one with a key nor one of the protocol itself."""
    return isinstance(command, PeekCommand | AcquireCommand | SettleCommand) or (
        isinstance(command, DequeueCommand | CompareAndSetCommand) and not command.key
    )


Given = tuple[Entry | Leased, ...] | SettleResult | bool
"""What a command that was forwarded results in."""


def _given(command: Command, result: Granted) -> Given:
    match command:
        case CompareAndSetCommand():
            return result.swapped
        case AcquireCommand():
            return result.leases
        case SettleCommand():
            return result.settled
    return result.entries


def granted(result: Given, answered: frozenset[str]) -> Granted:
    """A command's result as it goes back to the front end that asked."""
    by = tuple(sorted(answered))
    if isinstance(result, bool):
        return Granted(swapped=result, answered=by)
    if isinstance(result, SettleResult):
        return Granted(settled=result, answered=by)
    entries = tuple(part for part in result if isinstance(part, Entry))
    return Granted(entries, tuple(part for part in result if isinstance(part, Leased)), answered=by)
