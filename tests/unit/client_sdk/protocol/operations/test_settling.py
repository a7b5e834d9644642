"""What a look shows is put in force; and where neither logs nor one decision have room for it, others are left time to take items."""

import pytest

from quorate.adts.log import Seen, Summary
from quorate.api_specs.messages import Append, Appended, Collect, Refused, Status
from quorate.client_sdk.protocol.core.rounds import Expired
from quorate.client_sdk.protocol.decisions.transitions import Fate, RecoverCommand
from quorate.client_sdk.protocol.operations.settling import REST_S, REST_S_MAX, Settling
from tests.unit.client_sdk.protocol.stage import Stage, ballot, entry, shown

NAME = "queue/q"
ONE, TWO = entry(1), entry(2)
FULL = Refused("log-full", "the log of queue/q has 13 entries at this replica")


def settle(stage: Stage, settling: Settling) -> None:
    """Both are at r1 alone, and the others have no room for them."""
    stage.play(settling.settle([Seen(ONE), Seen(TWO)]))
    assert stage.open_to("r2") == Append(NAME, (ONE, TWO), "repair")
    stage.answer("r1", Appended(Status(), (True, True)))
    stage.answer_all(FULL, "r2", "r3")
    assert [asked.command for asked in stage.commands] == [RecoverCommand(ONE, may_be_complete=True)]


def test_where_nothing_has_room_it_rests_longer_and_longer_and_then_says_what_is_full() -> None:
    """It asked again at once, with all payloads, until its deadline: gigabytes."""
    stage = Stage(deadline_s=4 * REST_S)
    settling, sent = Settling(NAME, stage.task, stage), 0
    for rest_s in (REST_S, 2 * REST_S):
        settle(stage, settling)
        stage.decide(Fate.UNKNOWN)
        sent += 3
        stage.sleep(0.9 * rest_s)
        assert not stage.is_over
        assert not stage.commands, "what has no room is one of them, and the rest is not decided either"
        assert len(stage.sends) == sent
        stage.sleep(0.1 * rest_s)
        assert stage.result is False
    settle(stage, settling)
    with pytest.raises(Expired, match=f"take items out.*{FULL.detail}") as caught:
        stage.decide(Fate.UNKNOWN)
    assert caught.value.answered == {"r1", "r2"}


def test_it_rests_no_longer_than_others_may_need() -> None:
    stage = Stage(deadline_s=100.0)
    settling = Settling(NAME, stage.task, stage)
    for _ in range(8):
        settle(stage, settling)
        stage.decide(Fate.UNKNOWN)
        stage.sleep(REST_S_MAX)
        assert stage.result is False


def test_what_a_decision_has_passed_is_looked_at_again_at_once_and_the_rest_is_decided() -> None:
    stage = Stage()
    settle(stage, Settling(NAME, stage.task, stage))
    passed = shown(decided=ballot(9), horizon=ONE.t, summary=Summary(ONE.t))
    stage.cache_of(NAME).absorb("r1", "i", Collect(NAME), passed)
    stage.decide(Fate.UNKNOWN)
    assert [asked.command for asked in stage.commands] == [RecoverCommand(TWO, may_be_complete=True)]
    stage.decide(Fate.IN_FORCE)
    assert stage.result is False
