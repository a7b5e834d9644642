"""Payloads on demand: who is asked for them, how long anybody is waited for, and what comes of those that are gone."""

import pytest
from msgspec import UNSET

from quorate.adts.log import NOTHING, Dead, Entry, Leased, Summary, Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Collect, Row
from quorate.client_sdk.protocol.core.rounds import Expired
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.protocol.decisions.payloads import (
    PATIENCE_S,
    Gone,
    Withheld,
    fetch_payloads,
    filled,
    missing_in,
)
from quorate.client_sdk.protocol.decisions.transitions import Plan
from tests.unit.client_sdk.protocol.stage import Stage, at, ballot, entry, seen, shown

NAME = "queue/q"
LOST = Unanswered("connection reset")


def bare(us: int) -> Entry:
    """An entry without its payload."""
    return Entry(at(us), at(us))


def rows(*times: int) -> tuple[Row, ...]:
    return tuple(Row(entry(us)) for us in times)


def fetching(*times: int, page: int = 100) -> Stage:
    """What fetches the payloads of these entries, with so many to a page."""
    stage = Stage(limits=Limits(page_entries_max=page))
    cache = stage.cache_of(NAME)
    cache.seen = seen(*map(bare, times))
    stage.play(fetch_payloads(stage.task, cache, {at(us) for us in times}, stage.limits))
    return stage


def test_the_first_replica_that_holds_them_is_enough() -> None:
    stage = fetching(1, 2)
    assert stage.open_to("r3") == Collect(NAME, wanted=(at(1), at(2)), known=stage.cache_of(NAME).ballot)
    stage.answer("r3", shown(*rows(1, 2)))
    assert stage.result == {at(1): "1", at(2): "2"}


def test_a_page_is_asked_for_at_once_and_what_a_reply_had_no_room_for_once_more() -> None:
    stage = fetching(3, 1, 2, page=2)
    assert stage.open_to("r1").wanted == (at(1), at(2))
    stage.answer("r1", shown(*rows(1)))
    assert stage.open_to("r1").wanted == (at(2), at(3))
    stage.answer("r2", shown(*rows(2, 3)))
    assert stage.result == {at(us): str(us) for us in (1, 2, 3)}


def test_an_entry_without_its_payload_is_no_answer() -> None:
    stage = fetching(1)
    stage.answer("r1", shown(Row(bare(1))))
    assert not stage.is_over
    stage.answer("r2", shown(*rows(1)))
    assert stage.result == {at(1): "1"}


def test_what_none_of_all_replicas_holds_is_gone_and_tells_which_results_lack_it() -> None:
    stage = fetching(1)
    stage.answer_all(shown(), "r1", "r2")
    with pytest.raises(Gone) as caught:
        stage.answer("r3", shown())
    gone = caught.value
    assert gone.lacks((entry(1),))
    assert gone.lacks((Leased(entry(1)),))
    assert not gone.lacks((entry(2),))
    assert not gone.lacks(True)


def test_silence_is_no_proof_that_it_is_gone() -> None:
    stage = fetching(1)
    stage.answer_all(shown(), "r2", "r3")
    stage.answer("r1", LOST)
    with pytest.raises(Expired):
        stage.sleep(20.0)


def test_an_entry_that_only_silent_replicas_showed_is_dropped_after_some_patience() -> None:
    stage = fetching(1)
    cache = stage.cache_of(NAME)
    cache.seen = seen(bare(1), holders=["r3"])
    stage.answer_all(shown(), "r1", "r2")
    stage.sleep(PATIENCE_S - 0.01)
    assert not stage.is_over
    with pytest.raises(Withheld):
        stage.sleep(0.01)
    assert cache.seen == {}


def test_while_a_replica_that_answered_showed_it_the_others_are_waited_for() -> None:
    stage = fetching(1)
    stage.answer_all(shown(), "r1", "r2")
    stage.sleep(2 * PATIENCE_S)
    assert not stage.is_over
    stage.answer("r3", shown(*rows(1)))
    assert stage.result == {at(1): "1"}


ALL = Summary(
    at(9),
    adopted=(bare(1), entry(2)),
    leases=(Leased(bare(3), deliveries=1),),
    dead=(Dead(bare(4), "rejected"),),
)
HANDED: dict[int, tuple[Entry | Leased, ...]] = {0: (bare(5),), 2: (Leased(bare(6)), entry(7))}


def test_payloads_are_needed_of_what_is_delivered_adopted_or_kept() -> None:
    assert missing_in(ALL, HANDED) == {at(us) for us in (1, 3, 4, 5, 6)}
    assert missing_in(NOTHING, {}) == set()


def test_each_place_of_a_plan_gets_its_payload() -> None:
    payloads = {at(us): Value(str(us)) for us in (1, 3, 4, 5, 6)}
    plan = Plan(ALL, {0: HANDED[0], 1: True, 2: HANDED[2]}, [bare(5), "Acquire();Ok(6)"])
    full = filled(plan, HANDED, payloads, NOTHING, 0)
    assert not missing_in(full.summary, {0: full.results[0], 2: full.results[2]})
    assert full.summary.leases == (Leased(entry(3), deliveries=1),)
    assert full.results == {0: (entry(5),), 1: True, 2: (Leased(entry(6)), entry(7))}
    assert full.events == [entry(5), "Acquire();Ok(6)"]


def test_a_summary_that_is_not_changed_stays_what_it_is() -> None:
    """It is at replicas under its ballot already, and two summaries of one ballot would be two decisions."""
    summary = Summary(at(9), adopted=(bare(1),), ambiguous=((at(2), ballot(3)),))
    plan = Plan(summary, {0: (bare(1),)}, [])
    full = filled(plan, {0: (bare(1),)}, {at(1): Value("1")}, summary, 0)
    assert full.summary is summary
    assert full.results == {0: (entry(1),)}
    assert full.summary.adopted[0].value is UNSET
