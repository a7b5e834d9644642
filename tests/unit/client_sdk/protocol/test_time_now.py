"""What a front end stamps with, and when a stamp has passed, by what the replicas' clocks showed."""

from collections.abc import Sequence
from itertools import permutations

import pytest

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Append, BatchReply, Collect, Collected, Refused, Status
from quorate.client_sdk.protocol.core.values import Enqueue, Send, Unanswered
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.timestamps.clock import Now
from quorate.timestamps.clock_bound import SETTLE_S
from quorate.timestamps.timestamp import ZERO, Timestamp, make, wall_us
from tests.unit.client_sdk.scripted import document_of

START_US = 1_700_000_000_000_000


def now(mono_us: float, wall_us: int = 0) -> Now:
    return Now(mono_us / 1e6, wall_us)


def test_a_stamp_has_passed_only_when_its_microsecond_is_over() -> None:
    """In the very microsecond another front end may still stamp lower, its counter beginning anew (seed 1007521)."""
    clock = ClockSettings(front_end_error_s=0.0)
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),), clock=clock)
    front = FrontEnd(document, site="a", seed=0)
    front.tick(Now(1.0, 5_000_000))
    assert front.passed_s(make(5_000_000, 0, "a")) > 1.0
    assert front.passed_s(make(4_999_999, 9, "a")) == 1.0


@pytest.mark.parametrize(
    ("declared_s", "own", "expected_s"), [(0.0, None, 0.0), (0.0, "r1", 0.05), (0.2, "r1", 0.2)]
)
def test_a_replicas_own_front_end_trusts_its_clock_no_more_than_a_replicas(
    declared_s: float, own: str | None, expected_s: float
) -> None:
    """It went by what is declared of callers' clocks: an enqueue by REST at a replica 2 ms ahead came behind a later one (seed 3990001821)."""
    clock = ClockSettings(replica_error_s=0.05, front_end_error_s=declared_s)
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),), clock=clock)
    front = FrontEnd(document, site="a", seed=0, own=own)
    front.tick(now(1, START_US))
    assert front.latest_us() - START_US == pytest.approx(expected_s * 1e6, abs=2)
    assert START_US - front.earliest_us() == pytest.approx(expected_s * 1e6, abs=2)


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (
            Refused(
                "clock-ahead", "ahead by the offset, the errors of two replicas and the margin", 2_200_000
            ),
            True,
        ),
        (Refused("clock-ahead", "further ahead: a clock is wrong", 2_200_001), False),
        (Refused("clock-ahead", "by an older replica, which does not say how far"), False),
        (Refused("clock-behind", "stamped three seconds ago, on its way since", -5_000_000), True),
        (Refused("clock-behind", "further behind: a clock is wrong", -5_000_001), False),
        (Refused("too-old", "its outcome is unknown", -5_000_000), False),
    ],
    ids=lambda value: value.detail if isinstance(value, Refused) else "",
)
def test_a_stamp_that_right_clocks_may_give_is_refused_for_a_while_at_most(
    refused: Refused, expected: bool
) -> None:
    clock = ClockSettings(offset_max_s=2.0, replica_error_s=0.05)
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),), clock=clock)
    front = FrontEnd(document, site="a", seed=0)
    front.tick(now(4e6, START_US))
    assert front.may_be_taken(refused, since_s=1.0) is expected


WRONG_US = START_US + 60_000_000


class Starting:
    """A front end that measures its clock, and begins with an enqueue on a quorum of one among three replicas."""

    def __init__(self) -> None:
        self.front = FrontEnd(document_of("r1", "r2", "r3"), site="a", seed=0)
        _, effects = self.front.start(Enqueue("queue/q", (Value("1"),)), now(0), 10.0)
        self.looks = {send.replica: send.token for send in effects.sends}
        assert all(isinstance(send.request, Collect) for send in effects.sends)

    def answer(
        self, replica: str, at_us: int, clock_us: int, stored: Timestamp = ZERO, *, is_here: bool = True
    ) -> Sequence[Send]:
        """What is sent after the replica has shown its clock (`clock_us` at time 0), and the highest timestamp that it stores,
        of this object or another."""
        looked = Collected(Status(), latest=stored if is_here else ZERO)
        reply = BatchReply(replica, "i", stored, clock_us + at_us, (looked,))
        return self.front.deliver(replica, [self.looks[replica]], reply, now(at_us), now(at_us)).sends

    def reply(self, send: Send, at_us: int, latest: Timestamp) -> Sequence[Send]:
        """What is sent after one more look is answered."""
        answer = BatchReply(
            send.replica, "i", latest, START_US + at_us, (Collected(Status(), latest=latest),)
        )
        return self.front.deliver(send.replica, [send.token], answer, now(at_us), now(at_us)).sends

    def refuse(self, replica: str, at_us: int) -> Sequence[Send]:
        """What is sent after nobody listened at the replica's address."""
        answer = Unanswered("refused connection", definite=True)
        return self.front.deliver(replica, [self.looks[replica]], answer, now(at_us), now(at_us)).sends


def stamps_of(sends: Sequence[Send]) -> set[int]:
    return {wall_us(send.request.entries[0].t) for send in sends if isinstance(send.request, Append)}


@pytest.mark.parametrize("order", list(permutations(("r1", "r2", "r3"))))
def test_nothing_is_stamped_by_a_wrong_clock_while_the_others_may_still_speak(order: Sequence[str]) -> None:
    starting = Starting()
    stamps = [
        stamps_of(starting.answer(replica, 1000 * place, WRONG_US if replica == "r3" else START_US))
        for place, replica in enumerate(order)
    ]
    assert not stamps[0]
    last = 2 if "r3" in order[:2] else 1
    (stamp,) = stamps[last]
    assert abs(stamp - START_US) < 1_000_000


def test_the_only_replica_that_answers_is_gone_by_at_once_when_the_others_refuse_and_soon_when_they_are_silent() -> (
    None
):
    starting = Starting()
    assert not stamps_of(starting.refuse("r1", 1000))
    assert not stamps_of(starting.answer("r3", 2000, WRONG_US))
    assert stamps_of(starting.refuse("r2", 3000))
    starting = Starting()
    assert not stamps_of(starting.answer("r3", 2000, WRONG_US))
    assert not stamps_of(starting.front.tick(now(SETTLE_S * 1e6)).sends)
    assert stamps_of(starting.front.tick(now(SETTLE_S * 1e6 + 2000)).sends)


@pytest.mark.parametrize("ahead_us", [1_900_000, 60_000_000])
@pytest.mark.parametrize("is_here", [True, False], ids=["this object's", "another's"])
def test_stamps_are_above_what_the_object_shows_and_no_others_move(ahead_us: int, is_here: bool) -> None:
    """However far ahead that is: correctness may rest on it. What is stored of other objects may be somebody's mischief."""
    stored = make(START_US + ahead_us, 0, "b")
    starting = Starting()
    starting.answer("r3", 0, START_US, stored, is_here=is_here)
    sends = [*starting.answer("r1", 1000, START_US), *starting.answer("r2", 2000, START_US)]
    while not stamps_of(
        sends
    ):  # Where timestamps are far ahead, it looks once more, at replicas that meet all writes.
        looks = [send for send in sends if isinstance(send.request, Collect)]
        sends = [sent for send in looks for sent in starting.reply(send, 3000, stored if is_here else ZERO)]
    (stamp,) = stamps_of(sends)
    assert (stamp >= wall_us(stored)) == is_here
    assert is_here or stamp < START_US + 1_000_000
