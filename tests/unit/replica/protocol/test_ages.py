"""A replica calls old what it has held for the window, by its own monotonic clock, in bounded memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import NOTHING, Decision, Settled, Summary
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import NOT_AGED, Accept, Aged, Collect, Collected, Commit, Status
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol.ages import OBJECTS_MAX, SAMPLES, Ages
from quorate.replica.service.member import Member
from quorate.timestamps.ballot import Ballot, make_ballot, term_of
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.support.asking import answer_of
from tests.unit.replica.protocol.test_acceptor import CELL, NAME, Replica, at

WINDOW_S = 32.0


def ballot(number: int) -> Ballot:
    return make_ballot(make(number, 0, "f"), 1)


def with_keys(*numbers: int) -> Summary:
    return Summary(recent=tuple(Decision(f"k{number}", ballot(number)) for number in numbers))


def test_what_lists_end_with_is_old_a_window_after_it_was_met() -> None:
    ages = Ages(WINDOW_S)
    both = Summary(
        recent=with_keys(1, 2).recent,
        ambiguous=(("a", ballot(1)), ("b", ballot(3))),
        settled=(Settled(ballot(4), "accept", ("t",)),),
    )
    ages.meet("queue/q", both, 100.0)
    assert ages.aged("queue/q", 131.9) == NOT_AGED
    assert ages.aged("queue/q", 132.0) == Aged(ballot(2), ballot(3), ballot(4))
    ages.meet("queue/q", with_keys(1, 2, 9), 140.0)
    assert ages.aged("queue/q", 171.9) == Aged(ballot(2), ballot(3), ballot(4))
    assert ages.aged("queue/q", 172.0) == Aged(ballot(9))


@given(st.lists(st.floats(0.001, 5.0), min_size=1, max_size=300))
def test_nothing_is_called_old_early_and_little_is_kept(pauses: list[float]) -> None:
    ages, now_s, met = Ages(WINDOW_S), 0.0, {}
    for number, pause_s in enumerate(pauses, 1):
        now_s += pause_s
        met[ballot(number)] = now_s
        ages.meet("queue/q", with_keys(number), now_s)
        old = ages.aged("queue/q", now_s).recent
        assert old not in met or met[old] + WINDOW_S <= now_s
        assert len(ages._met["queue/q"]) <= 2 * SAMPLES + 2
    assert ages.aged("queue/q", now_s + WINDOW_S).recent == ballot(len(pauses))


def test_objects_followed_are_bounded_and_one_without_lists_is_not_followed() -> None:
    ages = Ages(WINDOW_S)
    for number in range(OBJECTS_MAX + 5):
        ages.meet(f"queue/{number}", with_keys(1), 0.0)
    assert ages.aged("queue/0", 100.0) == NOT_AGED
    assert ages.aged(f"queue/{OBJECTS_MAX}", 100.0) == Aged(ballot(1))
    ages.meet(f"queue/{OBJECTS_MAX}", NOTHING, 101.0)
    assert ages.aged(f"queue/{OBJECTS_MAX}", 200.0) == NOT_AGED
    assert len(ages._met) == OBJECTS_MAX - 1


@pytest.mark.parametrize(
    ("name", "summary", "when"), [(CELL, Summary(at(1)), at(1)), (NAME, NOTHING, term_of(ballot(1)))]
)
def test_that_an_object_came_to_nothing_is_old_a_window_after_it_was_decided(
    name: str, summary: Summary, when: Timestamp
) -> None:
    """A key that was deleted, and an object of which nothing was decided."""
    ages, replica = Ages(WINDOW_S), Replica()

    def ended(mono_s: float) -> Timestamp:
        ages.look(replica.store, mono_s)
        told = ages.told(Collect(name), Collected(Status(), summary=None), replica.store, mono_s)
        assert isinstance(told, Collected)
        return told.aged.ended

    replica.ask(Accept(name, ballot(1), summary))
    assert {ended(now_s) for now_s in range(100)} == {ZERO}
    replica.ask(Commit(name, ballot(1), summary.horizon))
    assert {ended(now_s) for now_s in range(100, 132)} == {ZERO}
    assert ended(136) == when
    replica.ask(Accept(name, ballot(2), summary))
    assert ended(137) == ZERO, "another ballot may be decided, for something else"
    replica.ask(Commit(name, ballot(2), summary.horizon))
    assert {ended(now_s) for now_s in range(137, 169)} == {ZERO}, (
        "its term ends what was accepted below, and some may have been told of that"
    )
    assert ended(173) == (summary.horizon if summary.horizon > ZERO else term_of(ballot(2)))


async def test_no_step_of_a_running_replicas_clock_makes_anything_old(tmp_path: Path) -> None:
    document = ClusterDocument("test", (ReplicaInfo("r1", "http://127.0.0.1:1"),))
    now_us = 1_700_000_000_000_000
    member = Member(open_folder(tmp_path, document, "r1"), wall_us=lambda: now_us)
    try:
        decided = make_ballot(make(now_us, 0, "f"), 1)
        summary = Summary(recent=(Decision("key", decided),))
        await answer_of(member, [Accept("queue/q", decided, summary)])
        for step_us in (90_000_000, -200_000_000, 300 * 86_400_000_000):
            now_us += step_us
            (told,) = (await answer_of(member, [Collect("queue/q")])).replies
            assert isinstance(told, Collected)
            assert told.summary == summary
            assert told.aged == NOT_AGED
    finally:
        member.close()
