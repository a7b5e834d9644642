"""The clock bound: true time is inside it, whatever the network's delays, within the errors that the operator declares."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Append, BatchReply, Collect, Collected, Status
from quorate.client_sdk.protocol.core.clock_bound import DRIFT, SETTLE_S, ClockBound
from quorate.client_sdk.protocol.core.values import Enqueue, Now, Send, Unanswered
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.timestamps.timestamp import ZERO, Timestamp, make, wall_us
from tests.unit.client_sdk.scripted import document_of

START_US = 1_700_000_000_000_000


def now(mono_us: float, wall_us: int = 0) -> Now:
    return Now(mono_us / 1e6, wall_us)


EXCHANGES = st.lists(
    st.tuples(
        st.integers(0, 10_000_000),  # pause before it is sent
        st.integers(0, 200_000),  # way there
        st.integers(0, 200_000),  # way back
        st.sampled_from(["r1", "r2", "r3"]),
        st.floats(-1, 1),  # the replica's error, as a share of what was declared
    ),
    min_size=1,
    max_size=10,
)


@given(EXCHANGES, st.floats(-1, 1), st.integers(0, 50_000), st.integers(0, 60_000_000))
def test_true_time_is_inside_the_bound(
    exchanges: list[tuple[int, int, int, str, float]], rate: float, error_us: int, later_us: int
) -> None:
    """The front end's monotonic clock starts anywhere and runs fast or slow, by DRIFT at most. What is waited for has passed."""
    bound = ClockBound(replica_error_s=error_us / 1e6, front_end_error_s=None)
    true_us = START_US

    def mono(at_us: int) -> Now:
        return now(5_000_000 + (at_us - START_US) / (1 + rate * DRIFT))

    for pause_us, there_us, back_us, replica, share in exchanges:
        sent_us = true_us + pause_us
        read_us = sent_us + there_us
        true_us = read_us + back_us
        bound.measure(replica, read_us + int(share * error_us), mono(sent_us), mono(true_us))
    assert bound.is_known
    for at_us in (true_us, true_us + later_us):
        here = mono(at_us)
        assert bound.lower_us(here) - 1 <= at_us <= bound.upper_us(here) + 1
        waited_us = (bound.reached_s(at_us + later_us, here) - here.mono_s) * 1e6 * (1 + rate * DRIFT)
        assert at_us + waited_us >= at_us + later_us - 1


def test_the_bound_is_as_wide_as_the_fastest_round_trip() -> None:
    bound = ClockBound(replica_error_s=0.0, front_end_error_s=None)
    assert not bound.is_known
    bound.measure("r1", START_US + 50_000, now(0), now(100_000))
    bound.measure("r1", START_US + 101_000, now(100_000), now(102_000))
    width_us = bound.upper_us(now(102_000)) - bound.lower_us(now(102_000))
    assert 2_000 <= width_us <= 2_100


def test_the_bound_widens_with_time_by_the_drift() -> None:
    bound = ClockBound(replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0), now(0))
    ten_s = now(10_000_000)
    assert bound.upper_us(ten_s) - bound.lower_us(ten_s) >= 2 * 10_000_000 * DRIFT


def test_a_step_of_the_wall_clock_changes_nothing_that_was_measured() -> None:
    bound = ClockBound(replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0, 0), now(0, 0))
    assert bound.upper_us(now(0, 0)) == bound.upper_us(now(0, 3_600_000_000))


def test_readings_that_contradict_the_earlier_ones_start_afresh() -> None:
    bound = ClockBound(replica_error_s=0.0, front_end_error_s=None)
    bound.measure("r1", START_US, now(0), now(0))
    bound.measure("r1", START_US + 60_000_000, now(1_000), now(2_000))
    assert bound.lower_us(now(2_000)) == START_US + 60_000_000
    assert bound.upper_us(now(2_000)) == START_US + 60_001_000


def test_one_wrong_clock_among_three_is_outvoted_whenever_it_speaks() -> None:
    """One replica is a minute ahead, or behind; the others are right to within what was declared."""
    for wrong_us in (60_000_000, -60_000_000):
        for order in permutations(("r1", "r2", "wrong")):
            bound = ClockBound(replica_error_s=0.01, front_end_error_s=None)
            for moment_us, replica in enumerate(order * 2):
                error_us = {"r1": 9_000, "r2": -9_000, "wrong": wrong_us}[replica]
                bound.measure(replica, START_US + moment_us + error_us, now(moment_us), now(moment_us))
            here = now(10)
            assert bound.lower_us(here) <= START_US + 10 <= bound.upper_us(here)
            assert bound.upper_us(here) - bound.lower_us(here) <= 40_000


def test_a_declared_error_needs_no_measuring_and_is_kept_to() -> None:
    bound = ClockBound(replica_error_s=9.0, front_end_error_s=0.5)
    assert bound.is_known
    bound.measure("r1", START_US, now(0, 0), now(0, 0))
    assert bound.upper_us(now(0, START_US)) == START_US + 500_000
    assert bound.lower_us(now(0, START_US)) == START_US - 500_000


def test_a_stamp_has_passed_only_when_its_microsecond_is_over() -> None:
    """In the very microsecond another front end may still stamp lower, its counter beginning anew (seed 1007521)."""
    clock = ClockSettings(front_end_error_s=0.0)
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),), clock=clock)
    front = FrontEnd(document, site="a", seed=0)
    front.tick(Now(1.0, 5_000_000))
    assert front.passed_s(make(5_000_000, 0, "a")) > 1.0
    assert front.passed_s(make(4_999_999, 9, "a")) == 1.0


def test_a_bound_is_settled_once_most_replicas_agree_or_nothing_better_came_in_time() -> None:
    bound = ClockBound(replica_error_s=0.01, front_end_error_s=None, replicas=3)
    assert not bound.is_settled(now(10 * SETTLE_S * 1e6)), "nothing was measured"
    bound.measure("wrong", START_US + 60_000_000, now(0), now(0))
    assert not bound.is_settled(now(0))
    bound.measure("r1", START_US, now(0), now(0))
    assert not bound.is_settled(now(0)), "two that contradict each other"
    assert bound.is_settled(now(SETTLE_S * 1e6))
    bound.measure("r2", START_US, now(0), now(0))
    assert bound.is_settled(now(0))
    assert ClockBound(replica_error_s=0.0, front_end_error_s=0.0, replicas=3).is_settled(now(0)), "declared"


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
