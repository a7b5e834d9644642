"""Which replica is asked for payloads."""

from quorate.client_sdk.protocol.core.payload_source import PayloadSource

REPLICAS = ("r1", "r2", "r3")


def test_the_own_replica_is_asked_while_it_is_well_and_again_when_it_is() -> None:
    source = PayloadSource("r2", REPLICAS)
    source.note("r1", is_well=True)
    assert source.current == "r2"
    source.note("r2", is_well=False)
    source.note("r3", is_well=True)
    assert source.current == "r3"
    source.note("r2", is_well=True)
    assert source.current == "r2"


def test_without_an_own_replica_the_one_that_answers_is_kept() -> None:
    source = PayloadSource(None, REPLICAS)
    source.note("r1", is_well=False)
    assert source.current == "r1", "nobody better is known"
    source.note("r3", is_well=True)
    source.note("r1", is_well=True)
    assert source.current == "r3"


def test_of_several_the_own_one_is_asked_first_and_those_last_that_did_not_answer() -> None:
    source = PayloadSource("r2", ("r1", "r2", "r3"))
    assert source.well_first(["r3", "r1", "r2"]) == ["r2", "r3", "r1"]
    source.note("r2", is_well=False)
    source.note("r3", is_well=False)
    assert source.well_first(["r3", "r1", "r2"]) == ["r1", "r2", "r3"]
    assert PayloadSource(None, ("r1", "r2")).well_first(["r2", "r1"]) == ["r2", "r1"]


def test_who_is_no_member_any_more_is_not_asked() -> None:
    source = PayloadSource(None, REPLICAS)
    source.follow(("r1", "r4"))
    assert source.current == "r1", "it still is one"
    source.follow(("r4", "r5"))
    assert source.current == "r4"
