"""Gathering replies: each replica is asked until it answers, with growing waits, and no wait outlives the deadline."""

from collections.abc import Callable, Collection, Generator
from typing import Final

import pytest

from quorate.api_specs.messages import Appended, Collect, Collected, Refused, Reply, Request, Status
from quorate.client_sdk.protocol.core.answer_times import RESEND_S_FIRST, RESEND_S_MAX
from quorate.client_sdk.protocol.core.preference import IsEnough
from quorate.client_sdk.protocol.core.rounds import (
    BEHIND_S,
    Answered,
    Event,
    Expired,
    FirstAsked,
    Gathering,
    Reconfigured,
    Requests,
    Task,
)
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.quorums.systems.tally import VoteCount
from quorate.timestamps.clock import Now

REPLICAS = ("r1", "r2", "r3")
OK = Collected(Status())
DEADLINE_S = 10.0
HEDGE_S = 0.03
TWO = VoteCount(dict.fromkeys(REPLICAS, 1), 2)
FIRST_TWO = FirstAsked(frozenset({"r1", "r2"}), frozenset(), HEDGE_S)


class Post:
    """Notes what a task sends."""

    epoch = 0

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.rounds: list[tuple[str, float]] = []
        self.waits: dict[str, float] = {}
        self.repeats: list[int] = []
        self.first = FirstAsked(frozenset(REPLICAS), frozenset(), HEDGE_S)
        self.failing: list[tuple[str, bool]] = []

    def send_for(self, task: Task, replica: str, requests: Requests, repeats: int = 0) -> int:
        self.sent.append((replica, len(self.sent) + 1))
        self.repeats.append(repeats)
        return len(self.sent)

    def send_lazily(self, replica: str, *requests: Request) -> None:
        raise AssertionError(f"{replica} is told {requests} by whoever began the round")

    def first_asked(self, name: str, replicas: Collection[str], is_enough: IsEnough) -> FirstAsked:
        assert (name, *replicas) == ("queue/q", *REPLICAS)
        return self.first

    def note_failing(self, replica: str, *, is_silent: bool) -> None:
        self.failing.append((replica, is_silent))

    def resend_s(self, replica: str) -> float:
        return self.waits.get(replica, RESEND_S_FIRST)

    def count_round(self, kind: str, seconds: float) -> None:
        self.rounds.append((kind, seconds))

    def may_be_taken(self, refused: Refused, since_s: float) -> bool:
        return refused.detail == f"it waited since {since_s}"


class Round:
    """A gathering of one reply from each replica, moved by hand."""

    def __init__(
        self,
        is_enough: Callable[[Gathering], bool],
        until_s: float = float("inf"),
        *,
        first: FirstAsked | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.post = Post()
        self.task = Task(1, self.post, Now(0.0, 0), deadline_s)
        quorum = None
        if first is not None:
            self.post.first, quorum = first, TWO.is_met_by
        self.gathering = Gathering(self.task, lambda _: Collect("queue/q"), REPLICAS, "queue/q", quorum)
        self.result: bool | None = None
        self._steps = self._run(is_enough, until_s)
        self.wake_s = next(self._steps)

    def _run(self, is_enough: Callable[[Gathering], bool], until_s: float) -> Generator[float, Event, None]:
        self.result = yield from self.gathering.wait(lambda: is_enough(self.gathering), until_s)
        yield -1.0

    @property
    def asked(self) -> list[str]:
        """Whom requests went to, in order."""
        return [to for to, _ in self.post.sent]

    def answer(self, replica: str, answer: Reply | tuple[Reply, ...] | Unanswered, token: int = 0) -> None:
        """An answer arrives, to the latest request unless a token is given."""
        latest = max(number for to, number in self.post.sent if to == replica)
        self.wake_s = self._steps.send(Answered(replica, token or latest, answer))

    def sleep_until(self, mono_s: float) -> None:
        """Time passes."""
        self.task.now = Now(mono_s, 0)
        self.wake_s = self._steps.send(None)


def two(gathering: Gathering) -> bool:
    return len(gathering.replies) >= 2


def test_a_round_ends_with_enough_replies_and_waits_for_no_more() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    assert round_.result is None
    round_.answer("r3", OK)
    assert round_.result is True
    assert round_.gathering.replies.keys() == {"r1", "r3"}


def test_an_unanswered_request_is_sent_again_after_growing_waits() -> None:
    round_ = Round(two)
    assert [to for to, _ in round_.post.sent] == list(REPLICAS)
    times = []
    while round_.wake_s < DEADLINE_S:
        times.append(round_.wake_s)
        round_.sleep_until(round_.wake_s)
    waits = [round(after - before, 6) for before, after in zip([0.0, *times], times, strict=False)]
    assert waits[:4] == [RESEND_S_FIRST, 2 * RESEND_S_FIRST, 4 * RESEND_S_FIRST, RESEND_S_MAX]
    assert set(waits[3:]) == {RESEND_S_MAX}


def test_a_quorum_is_asked_first_and_nobody_else_where_it_answers() -> None:
    round_ = Round(two, first=FIRST_TWO)
    assert round_.asked == ["r1", "r2"]
    assert round_.gathering.unasked == ["r3"]
    assert round_.wake_s == HEDGE_S
    round_.answer("r2", OK)
    round_.answer("r1", OK)
    assert (round_.result, round_.asked, round_.post.failing) == (True, ["r1", "r2"], [])
    assert round_.gathering.unasked == ["r3"], "whoever has something to tell it may"
    assert round_.gathering.reached == {"r1", "r2"}


def test_others_are_asked_when_one_of_the_quorum_is_silent_for_longer_than_usual() -> None:
    round_ = Round(two, first=FIRST_TWO)
    round_.answer("r1", OK)
    round_.sleep_until(HEDGE_S)
    assert (round_.asked, round_.post.failing) == (["r1", "r2", "r3"], [("r2", True)])
    assert not round_.gathering.unasked
    assert round_.wake_s == RESEND_S_FIRST, "then as ever"
    round_.answer("r3", OK)
    assert round_.result is True


@pytest.mark.parametrize(
    "answer",
    [
        Unanswered("no connection", definite=True),
        Unanswered("no answer in time"),
        Refused("log-full", "no room"),
    ],
    ids=["unreachable", "lost", "refused"],
)
def test_others_are_asked_at_once_when_one_of_the_quorum_fails(answer: Reply | Unanswered) -> None:
    round_ = Round(two, first=FIRST_TWO)
    round_.answer("r1", answer)
    assert (round_.asked, round_.post.failing) == (["r1", "r2", "r3"], [("r1", False)])


def test_others_are_asked_at_once_when_the_answers_of_the_quorum_are_not_enough() -> None:
    round_ = Round(lambda each: len(each.replies) >= 3, first=FIRST_TWO)
    round_.answer("r1", OK)
    assert round_.asked == ["r1", "r2"]
    round_.answer("r2", OK)
    assert (round_.asked, round_.post.failing) == (["r1", "r2", "r3"], [])


def test_who_has_more_to_say_than_goes_before_others_are_asked_does_not_fail() -> None:
    round_ = Round(two, first=FIRST_TWO)
    round_.answer("r1", OK)
    round_.gathering.again("r1")
    round_.sleep_until(HEDGE_S)
    assert (round_.asked, round_.post.failing) == (["r1", "r2", "r1", "r3"], [("r2", True)])


def test_who_is_asked_beside_the_quorum_may_fail_and_nobody_else_is_asked_for_that() -> None:
    round_ = Round(two, first=FirstAsked(frozenset({"r2"}), frozenset({"r1"}), HEDGE_S))
    round_.answer("r1", Unanswered("no connection", definite=True))
    assert round_.asked == ["r1", "r2"]


def test_others_are_asked_at_once_when_the_fence_of_one_refuses_an_entry() -> None:
    round_ = Round(two, first=FIRST_TWO)
    round_.answer("r1", (Appended(Status(), (True,)), Appended(Status(), (True, False))))
    assert round_.asked == ["r1", "r2", "r3"]


def test_all_are_heard_out_once_each_has_answered_or_cannot_be_reached() -> None:
    round_ = Round(lambda _: False, first=FIRST_TWO)
    round_.answer("r1", OK)
    assert not round_.gathering.is_heard_out
    round_.answer("r2", OK)
    assert not round_.gathering.is_heard_out, "the third one is asked now"
    round_.answer("r3", Unanswered("no connection", definite=True))
    assert round_.gathering.is_heard_out


def test_half_of_the_time_is_left_to_the_others() -> None:
    round_ = Round(two, first=FIRST_TWO, deadline_s=0.01)
    round_.sleep_until(0.005)
    assert round_.asked == ["r1", "r2", "r3"]


def test_a_repeat_says_what_it_repeats() -> None:
    round_ = Round(two)
    assert round_.post.repeats == [0, 0, 0]
    round_.sleep_until(RESEND_S_FIRST)
    assert round_.post.repeats[3:] == [1, 2, 3]
    round_.answer("r1", Unanswered("r1: still waits to be sent", definite=True))
    round_.sleep_until(10 * RESEND_S_FIRST)
    again = [
        repeats for (to, _), repeats in zip(round_.post.sent, round_.post.repeats, strict=True) if to == "r1"
    ]
    assert again == [0, 1, 1], "of two, that which may still be answered"


def test_a_replica_whose_answers_take_longer_is_asked_again_later_and_no_sooner_the_next_time() -> None:
    round_ = Round(two)
    round_.post.waits["r1"] = 2 * RESEND_S_MAX
    round_.gathering.again("r1")
    before = len(round_.post.sent)
    for _ in range(100):
        if round_.wake_s >= 7 * RESEND_S_MAX:
            break
        round_.sleep_until(round_.wake_s)
    assert [to for to, _ in round_.post.sent[before:]].count("r1") == 3


def test_a_replica_that_answered_is_not_asked_again() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    round_.sleep_until(RESEND_S_FIRST)
    assert sorted(to for to, _ in round_.post.sent[3:]) == ["r2", "r3"]


def test_a_late_reply_to_an_earlier_request_is_not_taken_for_the_present_one() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    round_.gathering.again("r1")
    round_.answer("r1", OK, token=1)
    round_.answer("r2", OK)
    assert round_.result is None
    round_.answer("r1", OK)
    assert round_.result is True


def test_no_wait_outlives_the_deadline() -> None:
    round_ = Round(two)
    round_.answer("r2", OK)
    with pytest.raises(Expired) as caught:
        round_.sleep_until(DEADLINE_S)
    assert caught.value.answered == {"r2"}
    assert not caught.value.is_refused
    assert "gave a useful answer in time: r2; did not: r1, r3 (no answer)" in caught.value.detail


def test_a_round_that_all_answered_without_enough_ends_at_once() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    round_.answer("r2", Refused("clock-behind", "set the clock"))
    with pytest.raises(Expired) as caught:
        round_.answer("r3", Unanswered("other cluster", refused=True))
    assert caught.value.is_refused
    assert caught.value.is_by_clock
    assert "set the clock" in caught.value.detail


AHEAD: Final = Refused("clock-ahead", "60 s ahead")


def test_what_some_took_and_others_find_too_far_ahead_these_are_asked_again_until_they_hear_of_it() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    round_.answer("r2", AHEAD)
    round_.answer("r3", Refused("clock-behind", "3 s behind"))
    for number in range(1, 4):
        round_.sleep_until(number * RESEND_S_FIRST)
        assert [to for to, _ in round_.post.sent[2 + number :]] == ["r2"], "what is behind is not"
        round_.answer("r2", AHEAD)
    round_.sleep_until(4 * RESEND_S_FIRST)
    round_.answer("r2", OK)
    assert round_.result is True


def test_what_all_find_too_far_ahead_is_refused_at_once() -> None:
    round_ = Round(two)
    round_.answer("r1", AHEAD)
    round_.answer("r2", AHEAD)
    with pytest.raises(Expired) as caught:
        round_.answer("r3", AHEAD)
    assert caught.value.is_refused
    assert caught.value.is_by_clock
    assert round_.gathering.at_large == 0


def test_replicas_that_refuse_are_not_said_to_be_silent() -> None:
    round_ = Round(two)
    for replica in ("r1", "r2"):
        round_.answer(replica, Unanswered("this replica asks for a token", refused=True))
    with pytest.raises(Expired) as caught:
        round_.answer("r3", Unanswered("this replica asks for a token", refused=True))
    words = "gave a useful answer in time: no replica; did not: r1, r2, r3 (this replica asks for a token)"
    assert caught.value.detail == words


def test_a_broken_connection_is_tried_again_later_and_a_refusal_is_not() -> None:
    round_ = Round(two)
    round_.answer("r1", Unanswered("connection reset"))
    round_.answer("r2", Unanswered("no token", refused=True))
    round_.sleep_until(RESEND_S_FIRST)
    assert sorted(to for to, _ in round_.post.sent[3:]) == ["r1", "r3"]


def test_a_replica_in_an_earlier_configuration_is_asked_again_soon() -> None:
    """All hear of a later one at about the same time: who waits as for one that is silent takes 0.2 s."""
    round_ = Round(two)
    round_.answer("r1", Unanswered("it is in configuration 3", definite=True, epoch=3))
    round_.answer("r2", Unanswered("connection reset"))
    round_.sleep_until(BEHIND_S)
    assert [to for to, _ in round_.post.sent[3:]] == ["r1"]
    round_.answer("r1", Unanswered("it is in configuration 3", definite=True, epoch=3))
    round_.sleep_until(2 * BEHIND_S)
    assert len(round_.post.sent) == 4, "it waits for twice as long"
    round_.sleep_until(3 * BEHIND_S)
    assert [to for to, _ in round_.post.sent[4:]] == ["r1"]
    round_.sleep_until(RESEND_S_FIRST)
    assert sorted(to for to, _ in round_.post.sent[5:]) == ["r2", "r3"]


@pytest.mark.parametrize("is_together", [False, True])
def test_what_was_refused_because_it_waited_is_sent_again_as_though_it_had_not_arrived(
    is_together: bool,
) -> None:
    round_ = Round(two)
    waited = Refused("clock-behind", "it waited since 0.0")
    round_.answer("r1", (waited, waited) if is_together else waited)
    assert round_.gathering.at_large == 2, "it is certain that this one stores nothing"
    round_.answer("r2", Refused("clock-behind", "a clock is wrong"))
    round_.sleep_until(RESEND_S_FIRST)
    assert sorted(to for to, _ in round_.post.sent[3:]) == ["r1", "r3"]
    assert "r1 (it waited since 0.0)" in round_.gathering.explain()


def test_a_pause_ends_without_a_result_and_the_round_goes_on() -> None:
    round_ = Round(two, until_s=0.05)
    assert round_.wake_s == 0.05
    round_.sleep_until(0.05)
    assert round_.result is False


@pytest.mark.parametrize(
    ("is_unknown", "is_refused", "reason", "definite"),
    [
        (True, False, "unknown", False),
        (True, True, "unknown", False),
        (False, False, "unavailable", True),
        (False, True, "refused", True),
    ],
)
def test_what_was_sent_and_may_take_effect_is_never_definite(
    is_unknown: bool, is_refused: bool, reason: str, definite: bool
) -> None:
    outcome = Expired("why", {"r1"}, is_refused=is_refused).outcome(is_unknown)
    assert (outcome.reason, outcome.definite, outcome.answered) == (
        reason,
        definite,
        frozenset({"r1"}),
    )


def test_a_replica_slower_than_every_resend_counts() -> None:
    """Each answer comes after the request was sent again; it is an answer all the same."""
    round_ = Round(two)
    first = dict(round_.post.sent)
    for wait_s in (0.2, 0.6, 1.4):
        round_.sleep_until(wait_s)
    round_.answer("r1", OK, token=first["r1"])
    round_.answer("r2", OK, token=first["r2"])
    assert round_.result is True


def test_a_round_ends_where_the_configuration_changes_whatever_was_answered() -> None:
    round_ = Round(two)
    round_.answer("r1", OK)
    round_.post.epoch = 1
    with pytest.raises(Reconfigured):
        round_.answer("r2", OK)


def test_who_was_not_asked_is_not_said_to_be_silent() -> None:
    """As where a process stood still until after its deadline."""
    round_ = Round(two, first=FIRST_TWO)
    round_.answer("r1", OK)
    round_.task.now = Now(DEADLINE_S, 0)
    with pytest.raises(Expired) as expired:
        round_.answer("r1", OK)
    told = "gave a useful answer in time: r1; did not: r2 (no answer); r3 (not asked yet)"
    assert (expired.value.detail, expired.value.reached) == (told, frozenset({"r1", "r2"}))


@pytest.mark.parametrize("first", [None, FIRST_TWO])
def test_nothing_of_a_round_is_sent_in_another_configuration_though_it_is_due(
    first: FirstAsked | None,
) -> None:
    """It would go as a message of that one: an accept under a term whose promises are of other quorums, say."""
    round_ = Round(two, first=first)
    before = list(round_.asked)
    round_.post.epoch = 1
    with pytest.raises(Reconfigured):
        round_.sleep_until(RESEND_S_MAX)
    assert round_.asked == before


def test_no_round_begins_for_an_operation_of_the_configuration_before_and_one_does_once_it_goes_on() -> None:
    post = Post()
    task = Task(1, post, Now(0.0, 0), DEADLINE_S)
    post.epoch = 1
    with pytest.raises(Reconfigured):
        Gathering(task, lambda _: Collect("queue/q"), REPLICAS)
    assert not post.sent
    task.renew()
    Gathering(task, lambda _: Collect("queue/q"), REPLICAS)
    assert len(post.sent) == len(REPLICAS)
    assert task.is_renewed


def test_who_goes_on_for_another_was_begun_when_that_was() -> None:
    post = Post()
    before = Task(1, post, Now(0.0, 0), DEADLINE_S)
    post.epoch = 1
    after = Task(2, post, Now(0.0, 0), DEADLINE_S)
    assert not after.is_renewed
    after.succeed(before)
    assert after.is_renewed
