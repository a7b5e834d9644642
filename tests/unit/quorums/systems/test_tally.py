"""Which sets of replicas are a quorum: by votes, and by meeting all quorums of another kind."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.systems.tally import Meeting, VoteCount

REPLICAS = ["r1", "r2", "r3", "r4"]
SETS = [frozenset(some) for size in range(5) for some in combinations(REPLICAS, size)]
WEIGHTS = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@given(WEIGHTS, st.integers(0, 9))
def test_a_quorum_has_at_least_the_votes(weights: list[int], needed: int) -> None:
    votes = dict(zip(REPLICAS, weights, strict=True))
    quorum = VoteCount(votes, needed)
    for some in SETS:
        assert quorum.is_met_by(some) == (sum(votes[each] for each in some) >= needed)


def test_an_empty_quorum_needs_nobody_and_a_replica_without_votes_brings_none() -> None:
    assert VoteCount({"r1": 1}, 0).is_met_by(())
    one_vote = VoteCount({"r1": 1, "r2": 0}, 1)
    assert one_vote.is_met_by({"r1", "r2"})
    assert not one_vote.is_met_by({"r2"})


@given(WEIGHTS, st.integers(0, 9))
def test_those_that_meet_all_quorums_are_found(weights: list[int], needed: int) -> None:
    quorum = VoteCount(dict(zip(REPLICAS, weights, strict=True)), needed)
    meeting = Meeting(quorum, frozenset(REPLICAS))
    quorums = [some for some in SETS if quorum.is_met_by(some)]
    for some in SETS:
        assert meeting.is_met_by(some) == all(some & other for other in quorums)
