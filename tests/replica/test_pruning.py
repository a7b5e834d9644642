"""History goes once it was collected for the lag and is older than the retry window; live rows are not looked at."""

from collections.abc import Callable

import pytest

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import Limits
from quorate.replica import pruning as pruning_module
from quorate.replica.ports import ObjectState, PutRow, PutState
from quorate.replica.pruning import Pruning
from quorate.replica.store import Store
from quorate.timestamps.timestamp import ZERO, Timestamp, make

# Rows are remembered for 30 s: the window, and twice what an accepted clock may be off.
DOCUMENT = ClusterDocument(
    "test",
    (ReplicaInfo("r1", "http://127.0.0.1:7001"),),
    clock=ClockSettings(offset_max_s=1.0),
    limits=Limits(retry_window_s=28.0, consumed_lag_s=10.0),
)
ONE = Value("1")
START_US = 1_000_000_000


def at(second: float) -> Timestamp:
    return make(START_US + int(second * 1e6), 0, "a")


def put(store: Store, second: float, name: str = "queue/q", value: Value | None = ONE) -> None:
    store.apply([PutRow(name, Entry(at(second), at(second), value)), PutState(ObjectState(name))])


def collect(store: Store, second: float, name: str = "queue/q") -> None:
    store.apply([PutState(ObjectState(name, collected=at(second)))])
    store.commit()


@pytest.fixture
def run(store: Store) -> Callable[[Pruning, float], bool]:
    def one_round(pruning: Pruning, second: float) -> bool:
        is_more = pruning.round(store, second, START_US + int(second * 1e6))
        store.commit()
        return is_more

    return one_round


def times(store: Store, name: str = "queue/q") -> list[Timestamp]:
    return [row.entry.t for row in store.rows(name, ZERO, 10_000)]


def test_rows_stay_for_the_lag_and_for_the_retry_window(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    pruning = Pruning(DOCUMENT)
    run(pruning, 0)
    put(store, 0)
    put(store, 25)
    put(store, 26)
    collect(store, 25)
    run(pruning, 28)
    run(pruning, 37)
    assert len(times(store)) == 3, "the first is old enough, but not collected for the lag"
    run(pruning, 39)
    assert times(store) == [at(25), at(26)], "the second is not old enough"
    run(pruning, 56)
    assert times(store) == [at(26)], "what is not collected stays"


def test_history_of_an_earlier_run_is_found_again(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    put(store, 0)
    collect(store, 0)
    store.collected = {}  # As after a restart.
    pruning = Pruning(DOCUMENT)
    run(pruning, 100)
    run(pruning, 111)
    assert times(store) == []


def test_round_is_bounded_and_says_that_more_is_due(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_module, "ROWS_MAX", 10)
    pruning = Pruning(DOCUMENT)
    run(pruning, 0)
    for number in range(25):
        put(store, number / 100)
    collect(store, 1)
    run(pruning, 1)
    assert run(pruning, 100)
    assert len(times(store)) == 15
    assert run(pruning, 100)
    assert not run(pruning, 100)
    assert times(store) == []


def test_round_without_history_asks_the_database_nothing(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        put(store, number)
    store.commit()
    pruning = Pruning(DOCUMENT)
    run(pruning, 0)

    def asked(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(store._database, "all", asked)
    monkeypatch.setattr(store._database, "one", asked)
    assert not pruning.round(store, 1000, START_US)


def test_list_that_overflows_is_filled_again_by_walking(
    store: Store, run: Callable[[Pruning, float], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    pruning = Pruning(DOCUMENT)
    run(pruning, 0)
    monkeypatch.setattr(pruning_module, "WAITING_MAX", 4)
    for number in range(10):
        put(store, 0, f"queue/q{number}")
        collect(store, 0, f"queue/q{number}")
    for second in range(1, 200, 11):
        run(pruning, second)
    assert [times(store, f"queue/q{number}") for number in range(10)] == [[]] * 10


def test_deletions_are_given_out_after_the_retry_window_unless_overwritten(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    pruning = Pruning(DOCUMENT)
    run(pruning, 0)
    put(store, 0, "dictionary/d/gone", None)
    put(store, 0, "dictionary/d/back", None)
    put(store, 1, "dictionary/d/back")
    store.commit()
    run(pruning, 2)
    assert pruning.deleted(store, 31, 10) == []
    assert pruning.deleted(store, 33, 10) == ["dictionary/d/gone"]
    assert pruning.deleted(store, 99, 10) == []


def test_a_row_exactly_at_the_cutoff_is_not_due_again_at_once(
    store: Store, run: Callable[[Pruning, float], bool]
) -> None:
    """The cutoff is the first timestamp of its microsecond, and so not yet above the row."""
    pruning = Pruning(DOCUMENT)
    put(store, 1)
    collect(store, 1)
    run(pruning, 1)
    assert run(pruning, 1 + DOCUMENT.memory_s) is False
    assert times(store) == [at(1)]
    assert run(pruning, 1 + DOCUMENT.memory_s + 0.001) is False
    assert times(store) == []
