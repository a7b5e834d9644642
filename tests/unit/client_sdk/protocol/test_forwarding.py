"""When wishes are handed over, and what an answer, or none, means for each of them."""

from typing import Any

import pytest

from quorate.adts.log import Entry, Leased, Value
from quorate.api_specs.messages import Denied, Granted, Served
from quorate.api_specs.wishes import Front, Lend, Swap, Take, Tend, Tended, WishOver
from quorate.client_sdk.protocol.core.rounds import Answered, Task
from quorate.client_sdk.protocol.core.values import Failed, Unanswered
from quorate.client_sdk.protocol.decisions.forwarding import (
    ALONE_S,
    LOOK_S,
    ROUTED_S,
    SHARED_S,
    Handing,
    HandSteps,
)
from quorate.client_sdk.protocol.decisions.pending import Asked, Verdict
from quorate.client_sdk.protocol.decisions.transitions import Settle, Wish
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import make

AT = make(1, 0, "c")
ENTRY = Entry(AT, AT, Value("1"))
MAX = 3


class Machine:
    """Notes what is asked of whom."""

    def __init__(self) -> None:
        self.host: str | None = "r1"
        self.asks: list[tuple[str, tuple[WishOver, ...], float]] = []
        self.paused: list[str] = []

    def host_of(self, name: str) -> str | None:
        """See handing.Machine."""
        return self.host

    def send_ask(
        self,
        task: Task,
        host: str,
        name: str,
        wishes: tuple[WishOver, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """See handing.Machine."""
        self.asks.append((host, wishes, deadline_s))
        return len(self.asks)

    def pause_host(self, host: str) -> None:
        """See handing.Machine."""
        self.paused.append(host)

    def count(self, what: str) -> None:
        """See handing.Machine."""


def task(deadline_s: float = 10.0) -> Task:
    return Task(1, None, Now(0.0, 0), deadline_s)  # type: ignore[arg-type]


class Rig:
    """One object's handing over, at time 0 just after another front end was met."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.handing = Handing("queue/q", self.machine, MAX)
        self.handing.meet(0.0)
        self.verdicts: list[tuple[Asked, Verdict]] = []
        self.task = task()

    def chosen(self, now_s: float = 0.0, *asked: Asked) -> list[Asked] | None:
        found = self.handing.choose(asked or (Asked(Take(1), task()),), now_s)
        return None if found is None else found[1]

    def hand(self, *answers: Served | Unanswered, wishes: tuple[Wish, ...]) -> list[Asked]:
        """Hand over, with these answers to what is asked; the wishes."""
        batch = [Asked(wish, task()) for wish in wishes]
        steps = self.handing.hand_over(self.task, "r1", batch, lambda *told: self.verdicts.append(told))
        next(steps)
        *before, last = answers
        for answer in before:
            self._answer(steps, answer)
        with pytest.raises(StopIteration):
            self._answer(steps, last)
        return batch

    def _answer(self, steps: HandSteps, answer: Served | Unanswered) -> None:
        steps.send(Answered("r1", len(self.machine.asks), answer))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_front_end_that_met_nobody_decides_for_itself() -> None:
    assert Handing("queue/q", Machine(), MAX).choose([Asked(Take(1), task())], 0.0) is None


def test_after_meeting_another_wishes_go_to_the_host_for_a_while(rig: Rig) -> None:
    assert rig.chosen(0.0)
    assert rig.chosen(ROUTED_S - 0.01)
    assert rig.chosen(ROUTED_S) is None
    rig.machine.host = None
    assert rig.chosen(0.0) is None, "the host is here, or nobody is live"


def test_a_host_that_hears_of_others_prolongs_it(rig: Rig) -> None:
    rig.hand(Served("r1", "i", (Granted(),), is_shared=True), wishes=(Take(1),))
    assert rig.chosen(SHARED_S - 0.01)
    assert rig.chosen(SHARED_S) is None


def test_a_host_that_hears_of_nobody_else_ends_it_and_what_is_met_soon_after_does_not_count(rig: Rig) -> None:
    alone = Served("r1", "i", (Granted(),))
    rig.hand(alone, wishes=(Take(1),))
    assert rig.chosen(LOOK_S / 2), "the other one may not have asked yet"
    rig.task.now = Now(LOOK_S, 0)
    rig.hand(alone, wishes=(Take(1),))
    assert rig.chosen(LOOK_S) is None
    rig.handing.meet(LOOK_S + ALONE_S / 2)
    assert rig.chosen(LOOK_S + ALONE_S / 2) is None
    rig.handing.meet(LOOK_S + ALONE_S)
    assert rig.chosen(LOOK_S + ALONE_S)


@pytest.mark.parametrize("wish", [Take(1, "Deq k"), Swap(None, None, key="Cas k"), Settle()], ids=str)
def test_keyed_wishes_and_those_of_the_protocol_itself_are_decided_here(rig: Rig, wish: Wish) -> None:
    assert rig.chosen(0.0, Asked(wish, task())) is None
    over = Asked(Take(1), task())
    assert rig.chosen(0.0, over, Asked(wish, task())) == [over]
    assert rig.chosen(0.0, Asked(wish, task()), over) is None, "others must not hold it up"


def test_no_wish_goes_while_an_accept_is_in_doubt_or_on_when_it_was_handed_over(rig: Rig) -> None:
    assert rig.chosen(0.0, Asked(Take(1), task()), Asked(Take(1), task(), is_proposed=True)) is None
    assert rig.chosen(0.0, Asked(Take(1), task()), Asked(Take(1), task(), is_here=True)) is None


def test_at_most_so_many_go_at_once_and_none_whose_time_is_nearly_over(rig: Rig) -> None:
    batch = [Asked(Take(1), task()) for _ in range(MAX + 1)]
    assert rig.chosen(0.0, *batch) == batch[:MAX]
    assert rig.chosen(0.0, Asked(Take(1), task(0.01))) is None


def test_granted_wishes_get_their_results(rig: Rig) -> None:
    answer = Served("r1", "i", (Granted((ENTRY,), answered=("r1", "r2")), Granted()))
    batch = rig.hand(answer, wishes=(Take(1), Front()))
    assert rig.verdicts == [
        (batch[0], Verdict((ENTRY,), frozenset({"r1", "r2"}))),
        (batch[1], Verdict(())),
    ]
    rig.verdicts.clear()
    batch = rig.hand(Served("r1", "i", (Granted(swapped=True),)), wishes=(Swap(None, None),))
    assert rig.verdicts == [(batch[0], Verdict(True))]
    assert not rig.machine.paused


CERTAIN = [
    Served("r1", "i", (Denied("no", definite=True),) * 2),
    Unanswered("r1: refused connection", definite=True),
]
LOST = [
    Served("r1", "i", (Denied("met before"),) * 2),
    Unanswered("r1: no answer in time"),
    Served("r1", "i", (Granted(),)),
]


@pytest.mark.parametrize("answer", CERTAIN, ids=["denied", "no way"])
def test_what_the_host_certainly_did_not_do_is_decided_here(rig: Rig, answer: Any) -> None:
    batch = rig.hand(answer, wishes=(Take(1), Front()))
    assert not rig.verdicts
    assert [(asked.is_here, asked.is_proposed) for asked in batch] == [(True, False)] * 2
    assert rig.machine.paused == ["r1"]


@pytest.mark.parametrize("answer", LOST, ids=["copy", "silence", "does not fit"])
def test_without_an_answer_a_take_is_unknown_and_a_front_is_decided_here(rig: Rig, answer: Any) -> None:
    take, front = rig.hand(answer, wishes=(Take(1), Front()))
    [(asked, verdict)] = rig.verdicts
    assert asked is take
    assert isinstance(verdict.failed, Failed)
    assert (verdict.failed.reason, verdict.failed.definite) == ("unknown", False)
    assert (front.is_here, front.is_proposed) == (True, False)
    assert rig.machine.paused == ["r1"]


def test_the_host_is_given_less_time_than_any_caller_has_and_a_second_at_most(rig: Rig) -> None:
    rig.hand(Unanswered("no"), wishes=(Take(1),))
    assert rig.machine.asks[-1][2] == 1.0
    rig.task.now = Now(9.7, 0)
    rig.hand(Unanswered("no"), wishes=(Take(1),))
    assert rig.machine.asks[-1][2] == pytest.approx(0.7 * 0.3)
    batch = [Asked(Take(1), task(deadline_s)) for deadline_s in (19.7, 9.9)]
    next(rig.handing.hand_over(rig.task, "r1", batch, lambda *_: None))
    assert rig.machine.asks[-1][2] == pytest.approx(0.7 * 0.2)


def test_leases_are_handed_out_and_settled_by_the_host(rig: Rig) -> None:
    record = Leased(Entry("e", make(1, 0, "c"), Value("1")), 5, 1, is_held=True)
    tended = Tended(("1/x",), 7)
    answer = Served("r1", "i", (Granted(leases=(record,)), Granted(tended=tended)))
    rig.hand(answer, wishes=(Lend(1, 5), Tend("renew", ("1/x", "1/e"), 5)))
    assert [verdict.result for _, verdict in rig.verdicts] == [(record,), tended]


def test_settling_whose_answer_is_lost_is_done_here_and_may_always_have_been_done_there(rig: Rig) -> None:
    """A repeat changes nothing; but that nothing was done here says nothing of the host (seed 1916 of the leased worlds)."""
    lend, tend = rig.hand(Unanswered("cut"), wishes=(Lend(1, 5), Tend("accept", ("1/e",))))
    assert [asked for asked, _ in rig.verdicts] == [lend]
    assert rig.verdicts[0][1].failed == Failed("unknown", "r1 was asked to decide: cut", definite=False)
    assert (tend.is_here, tend.is_in_doubt) == (True, True)
    refused = Verdict(failed=Failed("refused", "no room", definite=True))
    assert refused.doubted().failed == Failed("unknown", "no room", definite=False)
    assert Verdict(Tended()).doubted() == Verdict(Tended())
    lost = Verdict(Tended(("1/e",))).doubted().failed
    assert lost is not None, "how it ended there may be forgotten already"
    assert (lost.reason, lost.definite) == ("unknown", False)


def test_settling_that_the_host_certainly_did_not_do_is_in_no_doubt(rig: Rig) -> None:
    (tend,) = rig.hand(Unanswered("refused", definite=True), wishes=(Tend("accept", ("1/e",)),))
    assert (tend.is_here, tend.is_in_doubt) == (True, False)
