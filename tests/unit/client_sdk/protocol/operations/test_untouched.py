"""A queue that nothing has happened to is empty without a decision: by one look, and only if nothing shows."""

import pytest

from quorate.adts.log import Summary
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Collect, Collected, Row, Status, Window
from quorate.client_sdk.protocol.operations.queue_looks import needed_of, shows_nothing, untouched
from tests.unit.client_sdk.protocol.stage import Stage, at, ballot, entry, seen, shown

NAME = "queue/q"
NOTHING_SHOWN = shown()
FENCED = shown(fence=at(5))
PROMISED = Collected(Status(promised=at(5)))


def looking(stage: Stage | None = None) -> Stage:
    stage = stage or Stage()
    stage.play(untouched(NAME, stage.task, stage))
    return stage


def test_an_initial_quorum_of_decisions_that_shows_nothing_is_enough() -> None:
    stage = looking()
    assert stage.open_to("r1") == Collect(NAME, window=Window(limit=1, payload=False))
    stage.answer("r1", NOTHING_SHOWN)
    assert not stage.is_over
    stage.answer("r3", NOTHING_SHOWN)
    assert stage.result == {"r1", "r3"}
    assert stage.commands == []


def test_the_quorum_is_that_of_decisions_even_where_a_peek_would_read_fewer() -> None:
    choice = Stage(ChoiceRule("queue/*", {"Deq/Ok": (3, 2), "Peek/Ok": (2, 0)})).choice_of(NAME)
    assert choice.initial_of("Peek").is_met_by({"r1", "r2"})
    assert not needed_of(choice).is_met_by({"r1", "r2"})
    assert needed_of(choice).is_met_by({"r1", "r2", "r3"})


@pytest.mark.parametrize(
    "reply",
    [
        shown(Row(entry(1))),
        Collected(Status(accepted=ballot(1)), summary=Summary(at(1))),
        Collected(Status(committed=ballot(1))),
        Collected(Status(), more=True),
        Collected(Status(), upto=at(3)),
    ],
    ids=[
        "an entry",
        "an accepted summary",
        "a decision it has heard of",
        "arrivals cut off",
        "a log cut off",
    ],
)
def test_a_single_replica_that_shows_something_ends_the_look_at_once(reply: Collected) -> None:
    assert not shows_nothing(reply)
    stage = looking()
    stage.answer("r2", reply)
    assert stage.is_over
    assert stage.result is None


@pytest.mark.parametrize("reply", [FENCED, PROMISED])
def test_fences_and_promises_change_nothing(reply: Collected) -> None:
    assert shows_nothing(reply)


def test_where_something_is_known_already_nobody_is_asked() -> None:
    stage = Stage()
    stage.cache_of(NAME).seen = seen(entry(1))
    assert looking(stage).is_over
    assert stage.result is None
    stage = Stage()
    stage.cache_of(NAME).ballot = ballot(1)
    assert looking(stage).is_over
    assert stage.sends == []
