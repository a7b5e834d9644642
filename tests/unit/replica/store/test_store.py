"""The store against its simulated twin: whatever is written, both answer the same; and what a transaction means."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.values import BRACKET_BYTES
from quorate.gc.pruning import ANY_ARRIVAL
from quorate.replica.data_folder.identity import DATABASE_FILE, open_folder
from quorate.replica.protocol.log import (
    Effect,
    Forget,
    MarkComplete,
    ObjectState,
    PutEvent,
    PutReservation,
    PutRows,
    PutState,
    Reservation,
)
from quorate.replica.store import cached_object
from quorate.replica.store.database import VACUUM_PAGES, Database, StorageFailed
from quorate.replica.store.store import Store
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make
from tests.unit.replica.conftest import one_replica

NAMES = ("queue/a", "dictionary/d/k", "dictionary/d/K")
TIMES = [make(us, counter, site) for us in (1, 2, 3, 9) for counter in (0, 1) for site in ("a", "ab")]

names = st.sampled_from(NAMES)
times = st.sampled_from(TIMES)
bounds = st.sampled_from([ZERO, *TIMES, INFINITY])
values = st.sampled_from([Value("1"), Value('"é\U0001f600"'), Value("null"), Value('["é[",{"a":[{}]}]')])


def entries(name: str) -> st.SearchStrategy[Entry]:
    with_none = values if name.startswith("queue") else st.none() | values
    return st.builds(Entry, times, times, with_none)


def several(name: str) -> st.SearchStrategy[tuple[Entry, ...]]:
    return st.lists(entries(name), min_size=1, max_size=3, unique_by=lambda entry: entry.t).map(tuple)


def states(name: str) -> st.SearchStrategy[ObjectState]:
    ballots = st.builds(make_ballot, times, st.integers(0, 2))
    return st.builds(
        ObjectState,
        st.just(name),
        fence=times | st.just(INFINITY),
        promised=times,
        accepted=ballots,
        committed=ballots,
        summary=st.builds(Summary, horizon=times, value=st.none() | values),
        collected=times,
    )


unfilled = st.lists(st.builds(Entry, times, times), min_size=1, max_size=2).map(tuple)
held = st.builds(Reservation, times, times, unfilled)

effects = names.flatmap(
    lambda name: st.one_of(
        # The machine never puts a row without a state.
        st.tuples(st.builds(PutRows, st.just(name), several(name)), st.builds(PutState, states(name))),
        st.tuples(st.builds(PutState, states(name))),
        st.tuples(st.builds(MarkComplete, st.just(name), st.lists(times, max_size=4).map(tuple))),
        st.tuples(
            st.builds(PutState, states(name)),
            st.builds(PutEvent, st.just(name), times, st.sampled_from(["Deq", "Enq"])),
        ),
        st.tuples(st.builds(Forget, st.just(name), times)),
        st.tuples(st.builds(PutReservation, st.just(name), st.sampled_from("kK"), held)),
    )
)
reads = st.tuples(names, bounds, bounds, st.integers(0, 8), st.integers(1, 4), st.lists(times, max_size=5))
steps = st.lists(
    st.one_of(
        effects,
        effects,
        effects,
        reads,
        st.sampled_from(["commit", "rollback", "restart"]),
        st.integers(0, 40),
    ),
    max_size=40,
)


def seen(log: Any, read: tuple[Any, ...]) -> list[Any]:
    """The answers to every kind of read."""
    name, after, upto, since, limit, listed = read
    by_time = sorted(log.wanted(name, listed), key=lambda row: row.entry.t)
    return [
        log.state(name),
        log.floor(),
        log.stored(name, listed),
        log.arrivals(name, after, upto, since, limit),
        log.rows(name, after, limit),
        log.above(name, after),
        log.nth(name, after, limit),
        log.below(name, upto),
        by_time[: len(set(listed))],
        log.arrival(),
        log.events(name),
        log.events(name, limit),
        log.newest(name, after, limit),
        log.names(name[:3], "", limit),
        log.reservations(),
        [log.reservation(name, key) for key in "kK"],
    ]


def open_store(path: Path) -> Store:
    return Store(Database(path / DATABASE_FILE))


@pytest.mark.parametrize(
    ("bound", "most"),
    [("OBJECTS_CACHED_MAX", 20_000), ("OBJECTS_CACHED_MAX", 1), ("BYTES_CACHED_MAX", 1)],
    ids=["cached", "uncached", "too-large"],
)
@settings(max_examples=25, deadline=None)
@given(steps=steps)
def test_store_answers_as_its_simulated_twin(bound: str, most: int, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_object, bound, most)
        patch.setattr(cached_object, "RECENT_MAX", 3)
        opened = open_folder(Path(folder), one_replica(), "r1")
        assert opened.database is not None
        real, model = Store(opened.database), MemoryStore()
        for step in steps:
            if step == "commit":
                real.commit()
                model.commit()
            elif step == "rollback":
                real.rollback()
                model.crash()
                model._arrival = (
                    real.arrival()
                )  # Numbers given in a transaction that failed were told to nobody.
            elif step == "restart":
                real.commit()
                model.commit()
                real.close()
                real = open_store(Path(folder))
            elif isinstance(step, int):
                assert real.forget_reservations(step, 2) == model.forget_reservations(step, 2)
            elif isinstance(step[0], str):
                assert seen(real, step) == seen(model, (*step[:5], sorted(set(step[5])))), step
            else:
                apply_to_both(real, model, step)
        real.close()
        opened.close()


def apply_to_both(real: Store, model: MemoryStore, step: tuple[Effect, ...]) -> None:
    first = step[0]
    if isinstance(first, PutRows) and model.stored(first.name, [entry.t for entry in first.entries]):
        return  # The machine asks before it puts.
    real.apply(step)
    model.apply(*step)
    assert real.clock == model.clock


def test_the_clock_rises_with_each_promise_also_below_it(tmp_path: Path) -> None:
    """By the clock others tell an older copy: after clocks were ahead, none of what was stored since was in it."""
    opened = open_folder(tmp_path, one_replica(), "r1").database
    assert opened is not None
    store = Store(opened)
    put(store, make(3600 * 10**6, 0, "a"))
    promises: tuple[list[Effect], ...] = (
        [PutRows("queue/a", (Entry(make(1, 0, "a"), make(1, 0, "a"), Value("1")),))],
        [PutState(ObjectState("queue/a", fence=make(2, 0, "a")))],
        [PutReservation("queue/q", "Enq k", Reservation(promised=make(2, 0, "a")))],
    )
    for number, effects in enumerate(promises, 1):
        before = store.clock
        store.apply(effects)
        assert store.clock == make(3600 * 10**6, number, "a") > before
        store.commit()
    store.apply([MarkComplete("queue/a", (make(1, 0, "a"),))])
    assert store.clock == make(3600 * 10**6, 3, "a"), "that is no promise"
    put(store, make(7200 * 10**6, 0, "a"))
    assert store.clock == make(7200 * 10**6, 0, "a"), "it has risen"
    store.close()


def test_each_part_of_a_decision_is_noted_where_it_alone_changes(store: Store) -> None:
    name, ballot = "dictionary/d/k", make_ballot(TIMES[2], 1)
    state = ObjectState(name, accepted=ballot)
    store.apply([PutState(state)])
    assert store.clock == TIMES[2]
    state = replace(state, summary=Summary(TIMES[3]))
    store.apply([PutState(state)])
    store.commit()
    assert (store.clock, list(store.ended)) == (TIMES[3], [name])
    store.ended.clear()
    before, state = store.arrival(), replace(state, committed=ballot)
    store.apply([PutState(state)])
    assert store.changed(before, 0, 9) == [(1, name)]
    state = replace(state, horizon=TIMES[5])
    store.apply([PutState(state)])
    store.commit()
    assert (store.clock, list(store.ended)) == (TIMES[5], [])
    store.apply([PutState(replace(state, decided_by=store.arrival()))])
    store.commit()
    assert list(store.ended) == [name], "it came to nothing anew"


def put(store: Store, t: Timestamp, name: str = "queue/a", value: str = "1") -> None:
    state = store.state(name) or ObjectState(name)
    store.apply([PutRows(name, (Entry(t, t, Value(value)),)), PutState(state)])


def test_arrival_numbers_do_not_repeat_after_deletes_and_restarts(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, one_replica(), "r1")
    assert folder.database is not None
    first = Store(folder.database)
    for t in TIMES[:3]:
        put(first, t)
    first.commit()
    first.apply([Forget("queue/a", TIMES[0])])
    first.commit()
    first.close()
    second = open_store(tmp_path)
    put(second, TIMES[4])
    assert second.arrivals("queue/a", ZERO, INFINITY, 0, 10)[0][0] == 4
    assert second.floor() == TIMES[0]
    second.close()
    folder.close()


def test_a_mark_says_nothing_about_a_row_that_came_after_it(store: Store) -> None:
    put(store, TIMES[0])
    two = tuple(Entry(t, t, Value("1")) for t in TIMES[1:3])
    store.apply([MarkComplete("queue/a", (TIMES[0], TIMES[2])), PutRows("queue/a", two)])
    store.commit()
    assert [row.complete for row in store.rows("queue/a", ZERO, 9)] == [True, False, False]


def test_transaction_that_fails_leaves_nothing_behind_and_the_next_one_works(store: Store) -> None:
    put(store, TIMES[0])
    store.commit()
    assert store.length("queue/a") == 1
    store.commit()
    store.apply([PutState(ObjectState("queue/a", collected=TIMES[5]))])
    put(store, TIMES[1])
    put(store, TIMES[1])  # The same row twice: the database refuses.
    with pytest.raises(StorageFailed):
        store.commit()
    store.rollback()
    assert [row.entry.t for row in store.rows("queue/a", ZERO, 9)] == [TIMES[0]]
    assert store.length("queue/a") == 1, "what was counted on the way is not kept"
    put(store, TIMES[1])
    store.commit()
    assert store.arrival() == 2
    assert not store.collected


def test_nothing_is_held_of_a_transaction_that_is_undone_though_the_disk_fails_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The committer goes on where the error passes; what it held in memory must be what is on disk."""
    store.apply([PutReservation("queue/a", "k", Reservation())])
    with monkeypatch.context() as patch:
        patch.setattr(
            store, "_load_counters", lambda: (_ for _ in ()).throw(StorageFailed("full", passing=True))
        )
        with pytest.raises(StorageFailed):
            store.rollback()
    assert store.reservations() == 0


def test_full_disk_fails_the_transaction_as_passing_and_later_ones_succeed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own page limit stands in for a full disk: the error is the same."""
    del monkeypatch
    database = store._database
    pages = database.one("PRAGMA page_count")[0]
    database.all(f"PRAGMA max_page_count = {pages}")
    big = Value('"' + "x" * 100_000 + '"')
    store.apply([PutRows("queue/a", (Entry("e", TIMES[0], big),)), PutState(ObjectState("queue/a"))])
    with pytest.raises(StorageFailed) as caught:
        store.commit()
    assert caught.value.passing
    store.rollback()
    assert store.state("queue/a") is None
    database.all("PRAGMA max_page_count = 1000000")
    put(store, TIMES[0])
    store.commit()
    assert store.stored("queue/a", [TIMES[0]]) == {TIMES[0]}


def test_deleting_goes_up_to_the_limit_and_says_whether_rows_are_left(store: Store) -> None:
    for t in sorted(TIMES):
        put(store, t)
    store.commit()
    fifth = sorted(TIMES)[4]
    assert store.delete_upto("queue/a", fifth, 3, ANY_ARRIVAL) == (3, True)
    assert store.delete_upto("queue/a", fifth, 3, ANY_ARRIVAL) == (2, False)
    assert store.delete_upto("queue/a", fifth, 3, ANY_ARRIVAL) == (0, False)
    assert [row.entry.t for row in store.rows("queue/a", ZERO, 99)] == sorted(TIMES)[5:]
    assert store.stored("queue/a", TIMES) == set(sorted(TIMES)[5:])


def test_what_lies_above_a_timestamp_is_counted_on_through_puts_deletes_and_what_is_undone(
    store: Store,
) -> None:
    times = sorted(TIMES)
    call = '["é",[{}]]'
    for t in times[:4]:
        put(store, t, value=call)
    one = 11 + 3 * BRACKET_BYTES
    assert store.above("queue/a", times[0]) == (3, 3 * one)
    put(store, times[4], value=call)
    put(store, times[5], value=call)
    assert store.above("queue/a", times[0]) == (5, 5 * one)
    store.commit()
    put(store, times[6], value=call)
    assert store.above("queue/a", times[0]) == (6, 6 * one)
    store.rollback()
    assert store.above("queue/a", times[0]) == (5, 5 * one)
    assert store.above("queue/a", times[2]) == (3, 3 * one)
    store.delete_upto("queue/a", times[3], 99, ANY_ARRIVAL)
    assert store.above("queue/a", times[2]) == (2, 2 * one)
    assert store.above("queue/b", ZERO) == (0, 0)


def test_deleted_values_are_in_no_file_once_the_store_is_closed(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, one_replica(), "r1")
    assert folder.database is not None
    store, secret = Store(folder.database), "cardholder-4711"
    times = [make(us, 0, "a") for us in range(1, 200)]
    for t in times:
        store.apply(
            [PutState(ObjectState("queue/a")), PutRows("queue/a", (Entry(t, t, Value(f'"{secret}"')),))]
        )
    store.commit()
    assert any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    store.delete_upto("queue/a", times[-1], len(times), ANY_ARRIVAL)
    store.commit()
    store.close()
    folder.close()
    assert not [
        file for file in tmp_path.iterdir() if file.is_file() and secret.encode() in file.read_bytes()
    ]


def test_free_pages_go_back_to_the_file_system(store: Store) -> None:
    big = Value('"' + "x" * 3000 + '"')
    for number in range(1, 2001):
        t = make(number, 0, "a")
        store.apply([PutRows("queue/a", (Entry(t, t, big),)), PutState(ObjectState("queue/a"))])
    store.commit()
    pages = store._database.one("PRAGMA page_count")[0]
    assert pages > 2000
    store.delete_upto("queue/a", INFINITY, 10_000, ANY_ARRIVAL)
    store.commit()
    for _ in range(2):
        store.give_back_space()
        store.commit()
    assert store._database.one("PRAGMA page_count")[0] <= pages - 2 * VACUUM_PAGES
    for _ in range(9):
        store.give_back_space()
    store.commit()
    assert store._database.one("PRAGMA freelist_count")[0] <= VACUUM_PAGES
    assert store._database.check() is None


def test_of_large_states_only_so_many_bytes_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many objects there are, after each commit and after a start."""
    monkeypatch.setattr(cached_object, "BYTES_CACHED_MAX", 10_000)
    opened = open_folder(tmp_path, one_replica(), "r1")
    assert opened.database is not None
    store, large = Store(opened.database), Value(f'"{"x" * 3000}"')
    for number in range(30):
        name = f"register/{number}"
        store.apply(
            [PutState(ObjectState(name, summary=Summary(horizon=make(number + 1, 0, "a"), value=large)))]
        )
        store.commit()
        assert held_bytes(store) <= 10_000
    store.close()
    again = open_store(tmp_path)
    for number in range(30):
        state = again.state(f"register/{number}")
        assert state is not None
        assert state.summary.value == large
        assert held_bytes(again) <= 10_000 + 3100, "and the one that was asked for last"
    again.close()


def held_bytes(store: Store) -> int:
    states = [each.state for each in store._objects._objects.values() if each.state is not None]
    found = sum(len(each.summary.value) for each in states if each.summary.value is not None)
    assert store._objects._bytes >= found, "what is held is counted"
    return found
