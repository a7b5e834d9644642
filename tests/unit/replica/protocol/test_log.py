"""What the replica machine reads of its store and has it write: an object that nobody touched, and the effects, one by one."""

from typing import get_args

import msgspec
import pytest

from quorate.adts.log import NOTHING, Summary
from quorate.api_specs.messages import Row
from quorate.replica.protocol.log import (
    NOT_RESERVED,
    Claim,
    Effect,
    Forget,
    Log,
    MarkComplete,
    ObjectState,
    PutEvent,
    PutReservation,
    PutRows,
    PutState,
    Reservation,
)
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.unit.replica.protocol.test_acceptor import CELL, NAME, at, ballot, entry

HELD = Reservation(at(4), at(3), (entry(2),))


def store_with(*effects: Effect) -> MemoryStore:
    store = MemoryStore()
    for effect in effects:
        store.apply(effect)
    return store


def test_of_an_object_that_nobody_touched_nothing_is_promised() -> None:
    state = ObjectState(NAME)
    promised = (state.fence, state.promised, state.horizon, state.collected, state.floor)
    assert promised == (ZERO,) * 5
    assert (state.accepted, state.committed, state.summary) == (NO_BALLOT, NO_BALLOT, NOTHING)


def test_nothing_is_held_under_a_key_that_nobody_used() -> None:
    assert (NOT_RESERVED.promised, NOT_RESERVED.ballot, NOT_RESERVED.entries) == (ZERO, ZERO, ())
    assert store_with().reservation(NAME, "k") is NOT_RESERVED
    assert store_with(PutReservation(NAME, "k", HELD)).reservation(CELL, "k") is NOT_RESERVED


@pytest.mark.parametrize(
    "value", [ObjectState(NAME), ObjectState(NAME, fence=at(1), summary=Summary(at(1))), NOT_RESERVED, HELD]
)
def test_on_disk_only_what_was_promised_takes_room_and_comes_back_as_it_was(
    value: ObjectState | Reservation,
) -> None:
    packed = msgspec.msgpack.encode(value)
    assert msgspec.msgpack.decode(packed, type=type(value)) == value
    untouched = {key for key, each in msgspec.structs.asdict(value).items() if each in (ZERO, NO_BALLOT, ())}
    assert not untouched & msgspec.msgpack.decode(packed).keys()


@pytest.mark.parametrize("effect", get_args(Effect))
def test_effects_are_values_that_cannot_be_changed(effect: type[msgspec.Struct]) -> None:
    assert effect.__struct_config__.frozen


STATE = ObjectState(NAME, fence=at(5), committed=ballot(1), accepted=ballot(1))


def test_a_row_is_read_back_by_time_by_arrival_and_by_name() -> None:
    log: Log = store_with(PutRows(NAME, (entry(3),)), PutRows(NAME, (entry(1),)), PutRows(NAME, (entry(2),)))
    assert [row.entry.t for row in log.rows(NAME, at(1), 9)] == [at(2), at(3)]
    assert [row.entry.t for row in log.newest(NAME, ZERO, 2)] == [at(2), at(3)]
    assert [(n, row.entry.t) for n, row in log.arrivals(NAME, ZERO, INFINITY, 1, 9)] == [
        (2, at(1)),
        (3, at(2)),
    ]
    assert log.arrived(NAME, 0, 2, 9) == [(2, at(1)), (1, at(3))]
    assert log.wanted(NAME, [at(3), at(9), at(1)]) == [Row(entry(3)), Row(entry(1))]
    assert log.stored(NAME, [at(1), at(9)]) == {at(1)}
    assert log.stored(CELL, [at(1)]) == set()


def test_the_nth_row_is_the_last_where_there_are_fewer_and_none_without_any() -> None:
    log: Log = store_with(PutRows(NAME, (entry(1),)), PutRows(NAME, (entry(2),)))
    assert [log.nth(NAME, ZERO, n) for n in (1, 2, 9)] == [at(1), at(2), at(2)]
    assert log.nth(NAME, at(2), 1) is None
    assert (log.below(NAME, at(2)), log.below(NAME, at(1))) == (at(1), None)


def test_the_arrival_number_rises_with_every_row_and_every_decision_over_all_objects() -> None:
    numbers = []
    store = store_with()
    for effect in (
        PutRows(NAME, (entry(1),)),
        PutRows(CELL, (entry(1),)),
        PutState(ObjectState(NAME, fence=at(5))),
        PutState(STATE),
        MarkComplete(NAME, (at(1),)),
    ):
        store.apply(effect)
        numbers.append(store.arrival())
    assert numbers == [1, 2, 2, 3, 3]


def test_a_mark_is_for_rows_that_exist_and_a_forgotten_object_leaves_its_floor() -> None:
    store = store_with(PutRows(NAME, (entry(1),)), MarkComplete(NAME, (at(1), at(2))), PutState(STATE))
    assert store.rows(NAME, ZERO, 9) == [Row(entry(1), complete=True)]
    store.apply(Forget(NAME, at(7)))
    assert (store.state(NAME), store.rows(NAME, ZERO, 9), store.floor()) == (None, [], at(7))


@pytest.mark.parametrize(
    "effect",
    [
        PutRows(NAME, (entry(8),)),
        PutState(ObjectState(NAME, promised=at(8))),
        PutEvent(NAME, at(8), "Deq();Ok(1)"),
        Forget(NAME, at(8)),
        Claim(at(8)),
        PutReservation(NAME, "k", Reservation(at(8))),
    ],
    ids=lambda effect: type(effect).__name__,
)
def test_the_stores_clock_is_at_or_above_every_timestamp_that_is_put_and_never_falls(effect: Effect) -> None:
    store = store_with(effect)
    assert store.highest == at(8)
    store.apply(Claim(at(3)))
    assert store.highest == at(8)


def test_events_are_the_newest_ones_by_time() -> None:
    log: Log = store_with(*(PutEvent(NAME, at(us), str(us)) for us in (3, 1, 2)))
    assert log.events(NAME) == [(at(1), "1"), (at(2), "2"), (at(3), "3")]
    assert log.events(NAME, 2) == [(at(2), "2"), (at(3), "3")]
