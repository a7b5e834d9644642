"""One term of an owner: who promised it, and how far their logs are frozen."""

import pytest

from quorate.api_specs.messages import Collected, Status
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.decisions.term import Term, TermLost
from quorate.quorums.systems.tally import VoteCount
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, make

STAMP = make(5, 0, "a")
VOTES = {"r1": 1, "r2": 1, "r3": 1}


def term() -> Term:
    return Term(STAMP, LogCache("queue/q", VOTES), VoteCount(VOTES, 2))


def test_an_initial_quorum_must_promise() -> None:
    ours = term()
    ours.grant("r1", Collected(Status(fence=make(9, 0, "b"))))
    assert not ours.has_promises
    ours.grant("r2", Collected(Status(fence=make(9, 0, "b"))))
    assert ours.has_promises
    assert ours.granted_by == {"r1", "r2"}


def test_a_refusal_ends_the_turn() -> None:
    with pytest.raises(TermLost):
        term().grant("r1", Collected(Status(), refused=True))


def test_nothing_is_fenced_of_logs_that_the_cache_lacks() -> None:
    ours = term()
    for replica in VOTES:
        ours.grant(replica, Collected(Status(fence=make(9, 0, "b"))))
    assert ours.bound == ZERO
    assert not ours.is_whole


def test_the_ballot_is_of_the_latest_step_unless_one_is_named() -> None:
    ours = term()
    ours.step = 3
    assert ours.ballot() == make_ballot(STAMP, 3)
    assert ours.ballot(0) == make_ballot(STAMP, 0)


def test_a_quorum_takes_nothing_new_up_to_the_fences_that_its_replicas_have_told() -> None:
    """Whatever of their logs is at hand."""
    ours = term()
    ours.grant("r1", Collected(Status(fence=make(9, 0, "b"))))
    ours.grant("r2", Collected(Status(fence=make(5, 0, "b"))))
    assert ours.keeps_out(make(5, 0, "b"))
    assert not ours.keeps_out(make(6, 0, "b"))
    ours.grant("r3", Collected(Status(fence=make(7, 0, "b"))))
    assert ours.keeps_out(make(7, 0, "b"))
