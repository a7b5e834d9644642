"""The consensus under an idempotency key: what may be taken for agreed, what must be proposed, and when another try is due."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry
from quorate.adts.types.catalogue import kept_type
from quorate.api_specs.messages import Held, Proposal, Reserve, Reserved
from quorate.client_sdk.protocol.core.rounds import Expired
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.protocol.operations.reservation import (
    BACKOFF_S,
    HEDGE_S_MIN,
    agree,
    agreed_in,
    is_refused,
    may_be_agreed,
    proposal_from,
)
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.joint_choice import JointChoice
from quorate.timestamps.timestamp import ZERO, Timestamp
from tests.unit.client_sdk.protocol.stage import REPLICAS, Stage, at

NAME, KEY = "queue/q", "Enq k"
OURS, OTHERS, LATEST = ((Entry(at(us), at(us)),) for us in (1, 2, 3))
CHOICE = Stage().choice_of(NAME)


def held(
    entries: Sequence[Entry], under: Timestamp = ZERO, promised: int = 9, *, refused: bool = False
) -> Held:
    return Held(KEY, under, tuple(entries), at(promised), refused)


def by(*holds: Held) -> dict[str, Held]:
    """These replicas answered, r1 first."""
    return dict(zip(REPLICAS, holds, strict=False))


FIRST, FIRST_OTHER = held(OURS), held(OTHERS)
UNDER_4, UNDER_5 = held(OTHERS, at(4)), held(LATEST, at(5))


@pytest.mark.parametrize(
    ("shown", "agreed"),
    [
        (by(FIRST, FIRST, FIRST), OURS),
        (by(FIRST, FIRST), None),
        (by(FIRST, FIRST, FIRST_OTHER), None),
        (by(UNDER_4, UNDER_4), OTHERS),
        (by(UNDER_4, FIRST, UNDER_4), OTHERS),
        (by(UNDER_4, UNDER_5, FIRST), None),
        (by(UNDER_4, held(OTHERS, at(5)), FIRST), None),
    ],
    ids=[
        "first at all",
        "first at a quorum, and who knows at the third",
        "two first ones",
        "a quorum under one ballot",
        "a quorum beside a first one",
        "two ballots",
        "the same under two ballots",
    ],
)
def test_agreed_is_what_all_hold_as_the_first_or_a_final_quorum_under_one_ballot(
    shown: dict[str, Held], agreed: tuple[Entry, ...] | None
) -> None:
    assert agreed_in(shown, CHOICE) == agreed


@pytest.mark.parametrize(
    ("shown", "proposed"),
    [
        (by(UNDER_4, UNDER_5), LATEST),
        (by(UNDER_4, FIRST), OTHERS),
        (by(FIRST_OTHER, FIRST_OTHER), OTHERS),
        (by(FIRST, FIRST_OTHER), OURS),
    ],
    ids=[
        "the highest ballot",
        "any ballot before a first one",
        "one first one may be agreed",
        "two cannot be",
    ],
)
def test_proposed_is_what_may_have_been_agreed_already(
    shown: dict[str, Held], proposed: tuple[Entry, ...]
) -> None:
    assert proposal_from(shown, OURS, CHOICE) == proposed


def test_one_refusal_refuses_the_ballot() -> None:
    assert is_refused(by(FIRST, replace(FIRST, refused=True)))
    assert not is_refused(by(FIRST, UNDER_4))


def agreeing() -> Stage:
    stage = Stage()
    stage.play(agree(NAME, KEY, OURS, stage.task, stage))
    return stage


def test_where_all_hold_it_as_the_first_one_round_is_enough() -> None:
    stage = agreeing()
    stage.answer_all(Reserved(), *REPLICAS)
    assert stage.result == OURS
    assert len(stage.sends) == len(REPLICAS)


def test_where_a_quorum_alone_answers_it_is_accepted_in_a_second_round_under_the_same_ballot() -> None:
    stage = agreeing()
    asked = stage.open_to("r1")
    stage.answer_all(Reserved(), "r1", "r2")
    assert not stage.is_over, "the third has its time"
    stage.sleep(HEDGE_S_MIN)
    assert stage.open_to("r2") == replace(asked, accept=True)
    stage.answer_all(Reserved(), "r1", "r2")
    assert stage.result == OURS


def test_what_another_front_end_may_have_agreed_on_is_accepted_and_returned() -> None:
    stage = agreeing()
    stage.answer("r1", Reserved((held(OTHERS, at(4), 4),)))
    stage.answer_all(Reserved(), "r2", "r3")
    assert stage.open_to("r1").proposals == (Proposal(KEY, OTHERS),)
    stage.answer_all(Reserved(), "r1", "r2")
    assert stage.result == OTHERS


@pytest.mark.parametrize("is_accept", [False, True])
def test_after_a_refusal_in_either_round_it_tries_again_above_all_that_was_promised(is_accept: bool) -> None:
    stage = agreeing()
    if is_accept:
        stage.answer_all(Reserved(), "r1", "r2")
        stage.answer("r3", Unanswered("off", refused=True))
    promised = at(60_000_000)
    refusal = Held(KEY, ZERO, OURS, promised, refused=True)
    stage.answer("r1", Reserved((refusal,)))
    stage.answer_all(Reserved(), *sorted(stage.waiting - {"r3"} if is_accept else stage.waiting))
    assert stage.counted["keys contended"] == 1
    before = len(stage.sends)
    stage.sleep(BACKOFF_S)
    again: list[Reserve] = [send.request for send in stage.sends[before:]]  # type: ignore[misc]
    assert [(each.accept, each.ballot > promised, each.proposals) for each in again] == [
        (False, True, (Proposal(KEY, OURS),))
    ] * len(REPLICAS)


def of(members: int, first: int = 1, **classes: tuple[int, int]) -> QuorumChoice:
    votes = {f"r{number}": 1 for number in range(first, first + members)}
    return QuorumChoice(kept_type("queue"), votes, {f"{name}/Ok": sizes for name, sizes in classes.items()})


EAGER = of(5, Enq=(0, 1), Deq=(5, 1))


@pytest.mark.parametrize(
    ("choice", "reached", "expected"),
    [
        (of(2, Enq=(0, 1), Deq=(2, 1)), {"r1"}, True),
        (of(3), {"r1"}, False),
        (of(3), {"r1", "r2"}, True),
        (of(5, Deq=(2, 4)), {"r1", "r2"}, True),
        (EAGER, {"r1", "r2"}, False),
        (EAGER, {"r1", "r2", "r3"}, True),
        (JointChoice(of(3), of(3, first=4)), {"r1", "r4"}, False),
        (JointChoice(of(3), of(3, first=4)), {"r1", "r2"}, True),
        (JointChoice(of(3), of(3, first=4)), {"r5", "r6"}, True),
    ],
    ids=[
        "all but one, in whose place a new store comes",
        "a minority",
        "a majority",
        "an initial quorum",
        "too few to stand in for others",
        "a majority, where the others may be declared dead",
        "a minority of either side",
        "a majority of the old members, by whom a repeat goes",
        "a majority of the new ones, by whom it goes later",
    ],
)
def test_whoever_may_be_all_that_a_repeat_asks_may_have_agreed(
    choice: QuorumChoice, reached: set[str], expected: bool
) -> None:
    assert may_be_agreed(Expired("no answer in time", {}, reached=reached), choice) is expected
