"""One round of messages for several operations: who of it ends when, and what a failure of the round means for each."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from quorate.api_specs.messages import Append, Collect, Collected, Refused, Reply, Request, Status
from quorate.client_sdk.protocol.core.answer_times import RESEND_S_FIRST
from quorate.client_sdk.protocol.core.rounds import Expired, Task
from quorate.client_sdk.protocol.core.values import Done, Failed, Operation, Outcome, Read, Send, Unanswered
from quorate.client_sdk.protocol.operations.blind import HEDGE_S
from quorate.client_sdk.protocol.operations.context import OutcomeSteps
from quorate.client_sdk.protocol.operations.shared_round import QUORUM_FIRST_MAX, Alone, SideBySide
from quorate.quorums.systems.tally import VoteCount
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, REPLICAS, Stage, entry

OK = Collected(Status())
FULL = Refused("log-full", "no room")
WAITED = Refused("clock-behind", "it waited", clock_offset_us=-1_000_000)
"""That the replica will take as it is when it is asked again."""
GONE = Unanswered("connection reset")
NOBODY_THERE = Unanswered("no connection", definite=True)


def alone(task: Task) -> OutcomeSteps:
    """Steps that no test runs."""
    raise AssertionError(task.number)


class NotingPart:
    """An operation's share that ends when `needed` replicas have answered, or goes on alone once the silent had their time."""

    def __init__(self, name: str, needed: int = 2, *, is_patient: bool = False) -> None:
        self.operation: Operation = Read(name)
        self.refused: dict[str, Refused] = {}
        self.taken: list[str] = []
        self.repeats: list[str] = []
        self.failures: list[tuple[Expired, bool]] = []
        self.needed = VoteCount(dict.fromkeys(REPLICAS, 1), needed)
        self.to_tell: Request | None = None
        self._is_patient = is_patient

    @property
    def refusals(self) -> Mapping[str, Refused]:
        """See Part."""
        return self.refused

    @property
    def placeholder(self) -> Request:
        """See Part."""
        return Append(self.operation.object, ())

    def request_to(self, replica: str, *, is_repeat: bool) -> Request:
        """See Part."""
        if is_repeat:
            self.repeats.append(replica)
        return Collect(self.operation.object)

    def take(self, replica: str, reply: Reply) -> None:
        """See Part."""
        if isinstance(reply, Refused):
            self.refused[replica] = reply
        else:
            self.taken.append(replica)

    def end(
        self, now_s: float, *, is_hedged: bool, is_at_large: bool, is_heard_out: bool
    ) -> Outcome | Alone | None:
        """See Part."""
        if self.needed.is_met_by(self.taken):
            return Done(self.operation.object, "Read/Ok", frozenset(self.taken))
        return Alone(alone) if is_hedged and not self._is_patient else None

    def renewed(self) -> Alone:
        """See Part."""
        return Alone(alone)

    def failed(self, expired: Expired, *, is_at_large: bool) -> Outcome | Alone:
        """See Part."""
        self.failures.append((expired, is_at_large))
        return expired.outcome(is_at_large)


class Sharing(Stage):
    """A round of parts, each with the numbers of its operations; what becomes of those."""

    def __init__(self, *parts: tuple[NotingPart, list[int]], asked_first: Sequence[str] = ()) -> None:
        super().__init__()
        self.asked_first = asked_first
        self.ended: dict[int, Outcome] = {}
        self.alone: dict[int, tuple[Operation, float]] = {}
        self.round = SideBySide(parts, REPLICAS, self.task, self)
        self.play(self.round.run())

    def finish(self, number: int, outcome: Outcome) -> None:
        """See Host."""
        self.ended[number] = outcome

    def go_alone(self, number: int, operation: Operation, shared: Task, alone: Alone) -> None:
        """See Host."""
        self.alone[number] = operation, shared.deadline_s


@pytest.fixture
def first() -> NotingPart:
    return NotingPart("register/a", 1)


@pytest.fixture
def second() -> NotingPart:
    return NotingPart("register/b", 2)


def test_each_replica_is_asked_once_for_all_and_each_operation_ends_as_soon_as_it_can(
    first: NotingPart, second: NotingPart
) -> None:
    sharing = Sharing((first, [1]), (second, [2]))
    assert [[each.object for each in send.requests] for send in sharing.sends] == [  # type: ignore[union-attr]
        ["register/a", "register/b"]
    ] * len(REPLICAS)
    sharing.answer("r1", OK, OK)
    assert sharing.ended.keys() == {1}
    sharing.answer("r3", OK, OK)
    assert sharing.ended.keys() == {1, 2}
    assert sharing.is_over


def test_a_part_that_has_ended_is_told_no_more_and_each_reply_goes_to_its_own(
    first: NotingPart, second: NotingPart
) -> None:
    sharing = Sharing((first, [1]), (second, [2]))
    sharing.answer("r1", OK, FULL)
    sharing.answer("r2", OK, OK)
    assert first.taken == ["r1"]
    assert (second.taken, second.refused) == (["r2"], {"r1": FULL})


def test_who_was_not_asked_is_told_what_is_stored_with_later_messages(
    first: NotingPart, second: NotingPart
) -> None:
    first.to_tell = Append("register/a", ())
    sharing = Sharing((first, [1]), (second, [2]), asked_first=("r1", "r2"))
    sharing.answer("r1", OK, OK)
    assert not sharing.lazies
    sharing.answer("r2", OK, OK)
    assert [(send.replica, send.requests) for send in sharing.lazies] == [("r3", (first.to_tell,))]


def test_who_is_asked_after_a_part_has_ended_is_told_what_is_stored(
    first: NotingPart, second: NotingPart
) -> None:
    first.to_tell = Append("register/a", (), "first")
    sharing = Sharing((first, [1]), (second, [2]), asked_first=("r1", "r2"))
    sharing.answer("r1", OK, OK)
    sharing.answer("r2", OK, FULL)
    asked = [(send.replica, send.requests) for send in sharing.sends[2:]]
    assert asked == [("r3", (first.to_tell, Collect("register/b")))]
    sharing.answer("r3", OK, OK)
    assert sharing.ended.keys() == {1, 2}
    assert not sharing.lazies


def test_all_operations_that_a_part_stands_for_end_with_it(first: NotingPart) -> None:
    sharing = Sharing((first, [1, 5]))
    assert sharing.round.numbers() == [1, 5]
    sharing.answer("r2", OK)
    assert sharing.ended.keys() == {1, 5}
    assert sharing.round.numbers() == []


def test_who_cannot_end_with_the_round_goes_on_alone_until_the_same_deadline(
    first: NotingPart, second: NotingPart
) -> None:
    sharing = Sharing((first, [1]), (second, [2, 3]))
    sharing.answer("r1", OK, OK)
    sharing.sleep(HEDGE_S)
    assert sharing.alone == dict.fromkeys((2, 3), (second.operation, DEADLINE_S))
    assert sharing.ended.keys() == {1}


def test_nobody_goes_on_alone_before_any_replica_has_answered(second: NotingPart) -> None:
    sharing = Sharing((second, [2]))
    sharing.sleep(2 * HEDGE_S)
    assert not sharing.alone


def test_who_is_dropped_ends_no_more_and_the_last_one_says_so(first: NotingPart, second: NotingPart) -> None:
    sharing = Sharing((first, [1, 4]), (second, [2]))
    assert sharing.round.drop(1)
    assert sharing.round.numbers() == [4, 2]
    assert sharing.round.drop(4)
    sharing.answer("r1", OK, OK)
    assert not sharing.ended
    assert not sharing.round.drop(2)


def test_a_repeat_has_the_same_places_so_that_a_late_answer_fits_and_nothing_of_what_has_ended(
    first: NotingPart,
) -> None:
    patient = NotingPart("register/b", 2, is_patient=True)
    sharing = Sharing((first, [1]), (patient, [2]))
    sharing.answer("r1", OK, OK)
    assert sharing.ended.keys() == {1}
    sharing.sleep(RESEND_S_FIRST)
    assert (first.repeats, patient.repeats) == ([], ["r2", "r3"])
    assert [send.requests for send in sharing.sends[3:]] == [
        (Append("register/a", ()), Collect("register/b"))
    ] * 2
    sharing.answer("r3", OK, OK)
    assert sharing.ended.keys() == {1, 2}


@pytest.mark.parametrize(("answer", "is_at_large"), [(NOBODY_THERE, False), (GONE, True)])
def test_when_the_round_fails_each_part_hears_whether_its_request_may_have_arrived(
    first: NotingPart, second: NotingPart, answer: Unanswered, is_at_large: bool
) -> None:
    sharing = Sharing((first, [1]), (second, [2]))
    sharing.task.deadline_s = RESEND_S_FIRST / 2
    for replica in REPLICAS:
        sharing.answer(replica, answer)
    sharing.sleep(DEADLINE_S)
    assert [is_large for part in (first, second) for _, is_large in part.failures] == [is_at_large] * 2
    assert all(isinstance(outcome, Failed) for outcome in sharing.ended.values())
    assert sharing.ended.keys() == {1, 2}


@pytest.mark.parametrize(("reply", "is_at_large"), [(OK, True), (WAITED, False)])
def test_who_is_asked_again_may_have_done_what_it_did_not_refuse(reply: Reply, *, is_at_large: bool) -> None:
    """Its answer is none where it refused some that it will take; and then nobody reaches it any more."""
    first, second = (NotingPart(f"register/{name}", 3, is_patient=True) for name in "ab")
    sharing = Sharing((first, [1]), (second, [2]))
    sharing.task.deadline_s = 2 * RESEND_S_FIRST
    sharing.answer("r1", reply, WAITED)
    for replica in ("r2", "r3"):
        sharing.answer(replica, FULL, FULL)
    sharing.sleep(RESEND_S_FIRST)
    assert [send.replica for send in sharing.sends] == [*REPLICAS, "r1"]
    sharing.answer("r1", NOBODY_THERE)
    sharing.sleep(RESEND_S_FIRST)
    assert [is_large for part in (first, second) for _, is_large in part.failures] == [is_at_large] * 2


def test_a_part_that_all_refused_fails_for_that_reason_and_for_certain() -> None:
    refused, other = NotingPart("register/a", 1), NotingPart("register/b", 4)
    sharing = Sharing((refused, [1]), (other, [2]))
    for replica in REPLICAS:
        sharing.answer(replica, FULL, OK)
    ((expired, is_at_large),) = refused.failures
    assert (expired.limit, expired.is_refused, is_at_large) == ("log-full", True, False)
    assert expired.detail == "gave a useful answer in time: no replica; did not: r1, r2, r3 (no room)"
    assert expired.answered == set()
    ((expired, is_at_large),) = other.failures
    assert (expired.limit, is_at_large) == (None, True)
    assert expired.answered == set(REPLICAS)


def test_in_a_new_configuration_each_goes_on_alone_whatever_was_answered(
    first: NotingPart, second: NotingPart
) -> None:
    sharing = Sharing((first, [1]), (second, [2, 3]))
    sharing.follow(replace(sharing.document, epoch=1))
    sharing.answer("r1", OK, OK)
    assert sharing.alone.keys() == {1, 2, 3}
    assert not sharing.ended
    assert sharing.is_over


def test_who_was_not_asked_is_told_what_is_known_to_be_stored_and_nothing_else(
    first: NotingPart, second: NotingPart
) -> None:
    """What was refused, and may be said to be certainly not done, would else be found there later."""
    first.to_tell = Append("register/a", (entry(1),))
    sharing = Sharing((first, [1]), (second, [2]), asked_first=("r1", "r2"))
    assert [send.replica for send in sharing.sends] == ["r1", "r2"]
    sharing.answer("r1", OK, OK)
    assert not sharing.lazies, "another part may be stored yet"
    sharing.answer("r2", OK, OK)
    assert sharing.is_over
    assert sharing.lazies == [Send("r3", (first.to_tell,), 0, lazy=True)]


def test_nobody_is_told_in_a_new_configuration_what_was_stored_in_the_one_before(
    first: NotingPart, second: NotingPart
) -> None:
    """Who was not asked may be no member any more, or have no fence where a decision has passed it."""
    first.to_tell = Append("register/a", (entry(1),))
    sharing = Sharing((first, [1]), (second, [2]), asked_first=("r1", "r2"))
    sharing.answer("r1", OK, OK)
    sharing.follow(replace(sharing.document, epoch=1))
    sharing.answer("r2", OK, OK)
    assert set(sharing.ended) == {1}
    assert set(sharing.alone) == {2}
    assert not sharing.lazies


def test_who_was_asked_after_all_is_told_nothing(first: NotingPart, second: NotingPart) -> None:
    first.to_tell = Append("register/a", (entry(1),))
    sharing = Sharing((first, [1]), (second, [2]), asked_first=("r1", "r2"))
    sharing.answer("r1", OK, OK)
    sharing.answer("r2", FULL, FULL)
    assert [send.replica for send in sharing.sends] == ["r1", "r2", "r3"]
    sharing.answer("r3", OK, OK)
    assert sharing.ended.keys() == {1, 2}
    assert not sharing.lazies


@pytest.mark.parametrize("count", [QUORUM_FIRST_MAX, QUORUM_FIRST_MAX + 1])
def test_of_many_operations_all_are_asked_at_once(count: int) -> None:
    parts = [(NotingPart(f"register/{number}"), [number]) for number in range(count)]
    sharing = Sharing(*parts, asked_first=("r1", "r2"))
    assert len(sharing.sends) == (2 if count <= QUORUM_FIRST_MAX else len(REPLICAS))
