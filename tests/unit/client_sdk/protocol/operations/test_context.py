"""How an operation asks its proposer, reads clocks and pauses: what ends each wait, and what is certain then."""

from collections.abc import Generator

import pytest

from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Collect, Collected, Status
from quorate.client_sdk.protocol.core.rounds import Event
from quorate.client_sdk.protocol.core.values import Failed
from quorate.client_sdk.protocol.decisions.transitions import ConfirmCommand
from quorate.client_sdk.protocol.operations.context import (
    OperationFailed,
    decide,
    pause,
    read_clocks,
    tell_complete,
)
from quorate.quorums.systems.tally import VoteCount
from quorate.timestamps.clock import Now
from quorate.timestamps.clock_bound import SETTLE_S
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, REPLICAS, START_US, Stage, at, entry, seen

NAME = "queue/q"
VOTES = dict.fromkeys(REPLICAS, 1)
LOOKED = Collected(Status())


def deciding(stage: Stage | None = None) -> Stage:
    stage = stage or Stage()
    stage.play(decide(NAME, ConfirmCommand(), stage.task, stage))
    return stage


def test_what_the_proposer_tells_is_the_result() -> None:
    stage = deciding()
    stage.decide("told")
    assert (stage.result.result, stage.result.answered) == ("told", {"r1", "r2"})
    assert stage.sends == []


def test_what_fails_ends_the_operation_with_that_outcome() -> None:
    refused = Failed("refused", "why", definite=True)
    stage = deciding()
    with pytest.raises(OperationFailed) as caught:
        stage.decide(refused)
    assert caught.value.outcome is refused


@pytest.mark.parametrize(
    ("is_proposed", "reason", "definite"), [(False, "unavailable", True), (True, "unknown", False)]
)
def test_at_the_deadline_the_command_is_withdrawn_and_its_outcome_unknown_only_if_it_was_proposed(
    is_proposed: bool, reason: str, definite: bool
) -> None:
    stage = deciding()
    stage.commands[0].is_proposed = is_proposed
    with pytest.raises(OperationFailed) as caught:
        stage.sleep(DEADLINE_S)
    assert (caught.value.outcome.reason, caught.value.outcome.definite) == (reason, definite)
    assert "r1 was silent" in caught.value.outcome.detail
    assert stage.commands == []


def test_a_caller_that_goes_away_is_waited_for_only_while_the_outcome_is_in_doubt() -> None:
    stage = deciding()
    with pytest.raises(OperationFailed) as caught:
        stage.leave()
    assert caught.value.outcome.definite
    assert stage.commands == []
    stage = deciding()
    stage.commands[0].is_proposed = True
    stage.leave()
    assert not stage.is_over
    stage.decide("told")
    assert stage.result.result == "told"


def measured(stage: Stage, replica: str, clock_us: int = START_US) -> None:
    """Its answer shows the replica's clock, as the front end notes before the task learns of it."""
    stage._time.measure(replica, clock_us, Now(0.0, 0), Now(0.0, 0))
    stage.answer(replica, LOOKED)


def test_nothing_is_decided_by_a_clock_that_one_wrong_replica_may_have_set() -> None:
    """A term that is stamped far ahead would be refused."""
    stage = deciding(Stage(clock=ClockSettings()))
    assert stage.commands == []
    measured(stage, "r1")
    assert stage.commands == []
    measured(stage, "r2")
    assert [asked.command for asked in stage.commands] == [ConfirmCommand()]


def clocks(needed: int) -> Stage:
    stage = Stage(clock=ClockSettings())
    stage.play(read_clocks(NAME, stage.task, stage, VoteCount(VOTES, needed)))
    return stage


def test_clocks_are_read_without_asking_for_anything_else() -> None:
    stage = clocks(1)
    assert stage.open_to("r1") == Collect(NAME, known=stage.cache_of(NAME).ballot)


def test_where_the_others_are_silent_one_clock_must_do_after_a_while() -> None:
    stage = clocks(1)
    measured(stage, "r3")
    stage.sleep(SETTLE_S - 0.01)
    assert not stage.is_over
    stage.sleep(0.01)
    assert stage.is_over


def test_a_known_time_is_not_enough_before_the_quorum_has_answered() -> None:
    stage = clocks(3)
    measured(stage, "r1")
    measured(stage, "r2")
    assert stage.is_time_known()
    stage.sleep(2 * SETTLE_S)
    assert not stage.is_over
    stage.answer("r3", LOOKED)
    assert stage.is_over


def pausing(stage: Stage) -> Generator[float, Event, None]:
    return pause(stage.task, 1.0)


def test_a_pause_lasts_until_its_time_or_until_the_caller_goes_away() -> None:
    stage = Stage()
    stage.play(pausing(stage))
    stage.sleep(0.99)
    assert not stage.is_over
    stage.sleep(0.01)
    assert stage.is_over
    stage = Stage()
    stage.play(pausing(stage))
    stage.leave()
    assert stage.is_over


def test_what_is_complete_is_known_here_and_said_to_the_replicas_and_of_nothing_nothing_is_said() -> None:
    stage = Stage()
    stage.cache_of(NAME).seen = seen(entry(1), entry(2))
    tell_complete(NAME, (at(1),), stage)
    tell_complete(NAME, (), stage)
    assert [found.complete for found in stage.cache_of(NAME).seen.values()] == [True, False]
    assert stage.complete == [(NAME, (at(1),))]
