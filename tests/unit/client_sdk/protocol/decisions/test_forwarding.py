"""When commands are forwarded, and what an answer, or none, means for each of them."""

from typing import Any

import pytest

from quorate.adts.log import Entry, Leased, Value
from quorate.api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    ForwardableCommand,
    PeekCommand,
    SettleCommand,
    SettleResult,
)
from quorate.api_specs.messages import Denied, ForwardedReply, Granted
from quorate.client_sdk.protocol.core.rounds import Answered, Task
from quorate.client_sdk.protocol.core.values import Failed, Unanswered
from quorate.client_sdk.protocol.decisions.forwarding import (
    ALONE_S,
    LOOK_S,
    ROUTED_S,
    SHARED_S,
    ForwardingPolicy,
    ForwardingSteps,
)
from quorate.client_sdk.protocol.decisions.pending import CommandResult, PendingCommand
from quorate.client_sdk.protocol.decisions.transitions import Command, ConfirmCommand
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.protocol.core.test_rounds import Post

AT = make(1, 0, "c")
ENTRY = Entry(AT, AT, Value("1"))
MAX = 3


class Machine:
    """Notes what is asked of whom."""

    def __init__(self) -> None:
        self.coordinator: str | None = "r1"
        self.asks: list[tuple[str, tuple[ForwardableCommand, ...], float]] = []
        self.paused: list[str] = []

    def coordinator_of(self, name: str) -> str | None:
        """See handing.Machine."""
        return self.coordinator

    def send_forwarded(
        self,
        task: Task,
        coordinator: str,
        name: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """See handing.Machine."""
        self.asks.append((coordinator, commands, deadline_s))
        return len(self.asks)

    def pause_coordinator(self, coordinator: str) -> None:
        """See handing.Machine."""
        self.paused.append(coordinator)

    def is_reconfigured(self, answer: Unanswered) -> bool:
        """See handing.Machine."""
        return answer.epoch is not None

    def count(self, what: str) -> None:
        """See handing.Machine."""


def task(deadline_s: float = 10.0) -> Task:
    return Task(1, Post(), Now(0.0, 0), deadline_s)


class Rig:
    """One object's forwarding, at time 0 just after another front end was met."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.forwarding = ForwardingPolicy("queue/q", self.machine, MAX)
        self.forwarding.meet(0.0)
        self.verdicts: list[tuple[PendingCommand, CommandResult]] = []
        self.task = task()

    def chosen(self, now_s: float = 0.0, *asked: PendingCommand) -> list[PendingCommand] | None:
        found = self.forwarding.choose(asked or (PendingCommand(DequeueCommand(1), task()),), now_s)
        return None if found is None else found[1]

    def hand(
        self, *answers: ForwardedReply | Unanswered, commands: tuple[Command, ...]
    ) -> list[PendingCommand]:
        """Forward, with these answers to what is asked; the commands."""
        batch = [PendingCommand(command, task()) for command in commands]
        steps = self.forwarding.forward(self.task, "r1", batch, lambda *told: self.verdicts.append(told))
        next(steps)
        *before, last = answers
        for answer in before:
            self._answer(steps, answer)
        with pytest.raises(StopIteration):
            self._answer(steps, last)
        return batch

    def _answer(self, steps: ForwardingSteps, answer: ForwardedReply | Unanswered) -> None:
        steps.send(Answered("r1", len(self.machine.asks), answer))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_front_end_that_met_nobody_decides_for_itself() -> None:
    assert (
        ForwardingPolicy("queue/q", Machine(), MAX).choose([PendingCommand(DequeueCommand(1), task())], 0.0)
        is None
    )


def test_after_meeting_another_commands_go_to_the_host_for_a_while(rig: Rig) -> None:
    assert rig.chosen(0.0)
    assert rig.chosen(ROUTED_S - 0.01)
    assert rig.chosen(ROUTED_S) is None
    rig.machine.coordinator = None
    assert rig.chosen(0.0) is None, "the host is here, or nobody is live"


def test_a_host_that_hears_of_others_prolongs_it(rig: Rig) -> None:
    rig.hand(ForwardedReply("r1", "i", (Granted(),), is_shared=True), commands=(DequeueCommand(1),))
    assert rig.chosen(SHARED_S - 0.01)
    assert rig.chosen(SHARED_S) is None


def test_a_host_that_hears_of_nobody_else_ends_it_and_what_is_met_soon_after_does_not_count(rig: Rig) -> None:
    alone = ForwardedReply("r1", "i", (Granted(),))
    rig.hand(alone, commands=(DequeueCommand(1),))
    assert rig.chosen(LOOK_S / 2), "the other one may not have asked yet"
    rig.task.now = Now(LOOK_S, 0)
    rig.hand(alone, commands=(DequeueCommand(1),))
    assert rig.chosen(LOOK_S) is None
    rig.forwarding.meet(LOOK_S + ALONE_S / 2)
    assert rig.chosen(LOOK_S + ALONE_S / 2) is None
    rig.forwarding.meet(LOOK_S + ALONE_S)
    assert rig.chosen(LOOK_S + ALONE_S)


@pytest.mark.parametrize(
    "command",
    [DequeueCommand(1, "Deq k"), CompareAndSetCommand(None, None, key="Cas k"), ConfirmCommand()],
    ids=str,
)
def test_keyed_commands_and_those_of_the_protocol_itself_are_decided_here(rig: Rig, command: Command) -> None:
    assert rig.chosen(0.0, PendingCommand(command, task())) is None
    over = PendingCommand(DequeueCommand(1), task())
    assert rig.chosen(0.0, over, PendingCommand(command, task())) == [over]
    assert rig.chosen(0.0, PendingCommand(command, task()), over) is None, "others must not hold it up"


def test_no_command_goes_while_an_accept_is_in_doubt_or_on_when_it_was_forwarded(rig: Rig) -> None:
    assert (
        rig.chosen(
            0.0,
            PendingCommand(DequeueCommand(1), task()),
            PendingCommand(DequeueCommand(1), task(), is_proposed=True),
        )
        is None
    )
    assert (
        rig.chosen(
            0.0,
            PendingCommand(DequeueCommand(1), task()),
            PendingCommand(DequeueCommand(1), task(), is_here=True),
        )
        is None
    )


def test_at_most_so_many_go_at_once_and_none_whose_time_is_nearly_over(rig: Rig) -> None:
    batch = [PendingCommand(DequeueCommand(1), task()) for _ in range(MAX + 1)]
    assert rig.chosen(0.0, *batch) == batch[:MAX]
    assert rig.chosen(0.0, PendingCommand(DequeueCommand(1), task(0.01))) is None


def test_granted_commands_get_their_results(rig: Rig) -> None:
    answer = ForwardedReply("r1", "i", (Granted((ENTRY,), answered=("r1", "r2")), Granted()))
    batch = rig.hand(answer, commands=(DequeueCommand(1), PeekCommand()))
    assert rig.verdicts == [
        (batch[0], CommandResult((ENTRY,), frozenset({"r1", "r2"}))),
        (batch[1], CommandResult(())),
    ]
    rig.verdicts.clear()
    batch = rig.hand(
        ForwardedReply("r1", "i", (Granted(swapped=True),)), commands=(CompareAndSetCommand(None, None),)
    )
    assert rig.verdicts == [(batch[0], CommandResult(True))]
    assert not rig.machine.paused


def test_a_host_that_did_some_of_it_is_asked_again(rig: Rig) -> None:
    answer = ForwardedReply("r1", "i", (Denied("no room", definite=True), Granted((ENTRY,))))
    rig.hand(answer, commands=(DequeueCommand(1), DequeueCommand(1)))
    assert not rig.machine.paused


CERTAIN = [
    ForwardedReply("r1", "i", (Denied("no", definite=True),) * 2),
    Unanswered("r1: refused connection", definite=True),
]
LOST = [
    ForwardedReply("r1", "i", (Denied("met before"),) * 2),
    Unanswered("r1: no answer in time"),
    ForwardedReply("r1", "i", (Granted(),)),
]


@pytest.mark.parametrize("answer", CERTAIN, ids=["denied", "no way"])
def test_what_the_host_certainly_did_not_do_is_decided_here(rig: Rig, answer: Any) -> None:
    batch = rig.hand(answer, commands=(DequeueCommand(1), PeekCommand()))
    assert not rig.verdicts
    assert [(asked.is_here, asked.is_proposed) for asked in batch] == [(True, False)] * 2
    assert rig.machine.paused == ["r1"]


def test_a_host_that_refuses_for_a_later_configuration_is_asked_again(rig: Rig) -> None:
    """Else every caller would decide for itself after each change, against all others."""
    refused = Unanswered("another configuration", refused=True, definite=True, epoch=1)
    (asked,) = rig.hand(refused, commands=(DequeueCommand(1),))
    assert (asked.is_here, asked.is_proposed) == (True, False)
    assert not rig.machine.paused


@pytest.mark.parametrize("answer", LOST, ids=["copy", "silence", "does not fit"])
def test_without_an_answer_a_take_is_unknown_and_a_front_is_decided_here(rig: Rig, answer: Any) -> None:
    take, front = rig.hand(answer, commands=(DequeueCommand(1), PeekCommand()))
    [(asked, verdict)] = rig.verdicts
    assert asked is take
    assert isinstance(verdict.failed, Failed)
    assert (verdict.failed.reason, verdict.failed.definite) == ("unknown", False)
    assert (front.is_here, front.is_proposed) == (True, False)
    assert rig.machine.paused == ["r1"]


def test_the_host_is_given_less_time_than_any_caller_has_and_a_second_at_most(rig: Rig) -> None:
    rig.hand(Unanswered("no"), commands=(DequeueCommand(1),))
    assert rig.machine.asks[-1][2] == 1.0
    rig.task.now = Now(9.7, 0)
    rig.hand(Unanswered("no"), commands=(DequeueCommand(1),))
    assert rig.machine.asks[-1][2] == pytest.approx(0.7 * 0.3)
    batch = [PendingCommand(DequeueCommand(1), task(deadline_s)) for deadline_s in (19.7, 9.9)]
    next(rig.forwarding.forward(rig.task, "r1", batch, lambda *_: None))
    assert rig.machine.asks[-1][2] == pytest.approx(0.7 * 0.2)


def test_leases_are_delivered_and_settled_by_the_host(rig: Rig) -> None:
    record = Leased(Entry("e", make(1, 0, "c"), Value("1")), 5, 1, is_held=True)
    settled = SettleResult(("1/x",), 7)
    answer = ForwardedReply("r1", "i", (Granted(leases=(record,)), Granted(settled=settled)))
    rig.hand(answer, commands=(AcquireCommand(1, 5), SettleCommand("renew", ("1/x", "1/e"), 5)))
    assert [verdict.result for _, verdict in rig.verdicts] == [(record,), settled]


def test_settling_whose_answer_is_lost_is_done_here_and_may_always_have_been_done_there(rig: Rig) -> None:
    """A repeat changes nothing; but that nothing was done here says nothing of the host (seed 1916 of the leased worlds)."""
    lend, tend = rig.hand(
        Unanswered("cut"), commands=(AcquireCommand(1, 5), SettleCommand("accept", ("1/e",)))
    )
    assert [asked for asked, _ in rig.verdicts] == [lend]
    assert rig.verdicts[0][1].failed == Failed("unknown", "r1 was asked to decide: cut", definite=False)
    assert (tend.is_here, tend.is_in_doubt) == (True, True)
    refused = CommandResult(failed=Failed("refused", "no room", definite=True))
    assert refused.doubted().failed == Failed("unknown", "no room", definite=False)
    assert CommandResult(SettleResult()).doubted() == CommandResult(SettleResult())
    lost = CommandResult(SettleResult(("1/e",))).doubted().failed
    assert lost is not None, "how it ended there may be forgotten already"
    assert (lost.reason, lost.definite) == ("unknown", False)


def test_settling_that_the_host_certainly_did_not_do_is_in_no_doubt(rig: Rig) -> None:
    (tend,) = rig.hand(Unanswered("refused", definite=True), commands=(SettleCommand("accept", ("1/e",)),))
    assert (tend.is_here, tend.is_in_doubt) == (True, False)
