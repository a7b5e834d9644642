"""The tally is three-valued: reached, impossible, or still open, against listing all that may yet be said."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.systems.tally import Tally, Verdict, VoteCount

REPLICAS = ["r1", "r2", "r3", "r4"]
WORDS = st.lists(st.tuples(st.sampled_from(REPLICAS), st.booleans()), max_size=8)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(0, 9), WORDS)
def test_the_verdict_is_what_all_completions_say(
    weights: list[int], needed: int, words: list[tuple[str, bool]]
) -> None:
    votes = dict(zip(REPLICAS, weights, strict=True))
    tally = Tally(votes, VoteCount(votes, needed))
    said: dict[str, bool] = {}
    for replica, agrees in words:
        tally.say(replica, agrees)
        said[replica] = agrees
    silent = [replica for replica in REPLICAS if replica not in said]
    ends = set()
    for rest in product([True, False], repeat=len(silent)):
        final = said | dict(zip(silent, rest, strict=True))
        ends.add(sum(votes[replica] for replica, agrees in final.items() if agrees) >= needed)
    expected = {
        frozenset({True}): Verdict.REACHED,
        frozenset({False}): Verdict.IMPOSSIBLE,
        frozenset({True, False}): Verdict.PENDING,
    }[frozenset(ends)]
    assert tally.verdict is expected


def test_an_empty_quorum_is_reached_before_anyone_speaks() -> None:
    assert Tally({"r1"}, VoteCount({"r1": 1}, 0)).verdict is Verdict.REACHED


def test_a_later_word_replaces_the_earlier_one() -> None:
    tally = Tally({"r1", "r2"}, VoteCount({"r1": 1, "r2": 1}, 2))
    verdicts = []
    for replica, agrees in [("r1", False), ("r1", True), ("r2", True)]:
        tally.say(replica, agrees)
        verdicts.append(tally.verdict)
    assert verdicts == [Verdict.IMPOSSIBLE, Verdict.PENDING, Verdict.REACHED]


def test_a_replica_without_votes_brings_none() -> None:
    one_vote = VoteCount({"r1": 1, "r2": 0}, 1)
    assert one_vote.is_met_by({"r1", "r2"})
    tally = Tally({"r1", "r2"}, one_vote)
    tally.say("r2", True)
    assert tally.verdict is Verdict.PENDING
