"""What a replica takes in: the rule by itself, and the counts of a store through commits, rollbacks and restarts."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Entry, Summary, Value
from quorate.api_specs.limits import DEFAULTS, ENTRY_BYTES, Capacity, Limits
from quorate.api_specs.messages import Accept, Append, Collect, Commit, Proposal, Request, Reserve, Row
from quorate.gc.pruning import ANY_ARRIVAL
from quorate.replica.data_folder.identity import DATABASE_FILE, open_folder
from quorate.replica.protocol.capacity import Use, alarm, refused, refused_call, shares
from quorate.replica.protocol.log import Forget, ObjectState, PutRows, PutState
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.store import usage as use_module
from quorate.replica.store.database import Database
from quorate.replica.store.store import Store
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.unit.replica.conftest import one_replica

CAPACITY = Capacity(objects_max=10, log_entries_max=3, disk_bytes_max=1000, disk_free_min=100)
ROOM = Use(objects=1, disk_bytes=999, disk_free=100, longest=0)

ONE, TWO, LONG = Value("1"), Value("22"), Value("333")


def at(number: int) -> Timestamp:
    return make(number, 0, "site000000000")


def append(name: str, *numbers: int, value: Value | None = ONE) -> Append:
    return Append(name, tuple(Entry(at(number), at(number), value) for number in numbers), "first")


def repair(name: str, *numbers: int) -> Append:
    return replace(append(name, *numbers), attempt="repair")


class Held:
    """A store with one object, `old`, whose log has the entries 1 and 2."""

    def __init__(self, use: Use) -> None:
        self._use = use

    def state(self, name: str) -> ObjectState | None:
        return ObjectState(name, summary=Summary(value=ONE)) if name == "queue/old" else None

    def stored(self, name: str, timestamps: list[Timestamp]) -> set[Timestamp]:
        return {at(1), at(2)} & set(timestamps) if name == "queue/old" else set()

    def length(self, name: str) -> int:
        return 2 if name == "queue/old" else 0

    def above(self, name: str, after: Timestamp) -> tuple[int, int]:
        raise AssertionError("no object of one's own type is asked for")

    def newest(self, name: str, after: Timestamp, limit: int) -> list[Row]:
        assert (after, limit) == (ZERO, 1)
        return [Row(Entry(at(2), at(2), TWO))] if name == "queue/old" else []

    def use(self) -> Use:
        return self._use


OBJECTS = Use(10, 0, 10_000, 0)
BEYOND = Use(11, 0, 10_000, 0)
OVER = Use(13, 0, 10_000, 0)
MANY = Use(15, 0, 10_000, 0)
DISK = Use(0, 1000, 10_000, 0)
FREE = Use(0, 0, 99, 0)
FAR = Use(0, 1100, 10_000, 0)
LITTLE_FREE = Use(0, 0, 89, 0)
FARTHER = Use(0, 1500, 10_000, 0)
HARDLY_FREE = Use(0, 0, 49, 0)


@pytest.mark.parametrize(
    ("request_", "use", "reason"),
    [
        (append("queue/old", 3), ROOM, None),
        (append("queue/old", 3, 4), ROOM, "log-full"),
        (append("queue/old", 3, 3), ROOM, None),
        (append("queue/old", 1, 2), FREE, None),
        (append("queue/new", 1), ROOM, None),
        (append("queue/new", 1), OBJECTS, "too-many-objects"),
        (append("queue/old", 3), OBJECTS, None),
        (append("queue/old", 3), DISK, "disk-full"),
        (append("queue/old", 3), FREE, "disk-full"),
        (Reserve("queue/old", at(1), (Proposal("k", ()),)), DISK, "disk-full"),
        (Collect("queue/new", ballot=make_ballot(at(1), 0)), OBJECTS, None),
        (Collect("queue/new", ballot=make_ballot(at(1), 0)), BEYOND, "too-many-objects"),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="settle"), BEYOND, None),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="forget"), OVER, None),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="forget"), MANY, "too-many-objects"),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="settle"), OVER, "too-many-objects"),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="settle"), FAR, None),
        (Collect("queue/new", ballot=make_ballot(at(1), 0), purpose="settle"), FARTHER, "disk-full"),
        (Collect("queue/new", fence=at(1)), OBJECTS, None),
        (Collect("queue/new", fence=at(1)), BEYOND, "too-many-objects"),
        (Collect("queue/new", fence=at(1)), DISK, None),
        (Collect("queue/new", fence=at(1)), FAR, "disk-full"),
        (append("queue/old", 3, value=None), DISK, None),
        (append("queue/old", 3, value=None), FREE, None),
        (append("queue/old", 3, value=None), FAR, None),
        (append("queue/old", 3, value=None), LITTLE_FREE, None),
        (append("queue/old", 3, value=None), FARTHER, "disk-full"),
        (append("queue/old", 3, value=None), HARDLY_FREE, "disk-full"),
        (append("queue/old", 3, 4, 5, value=None), ROOM, None),
        (append("queue/old", 3, 4, 5, 6, value=None), ROOM, "log-full"),
        (append("queue/new", 3, value=None), DISK, "disk-full"),
        (repair("queue/new", 3), BEYOND, None),
        (repair("queue/new", 3), OVER, "too-many-objects"),
        (repair("queue/old", 3), FAR, None),
        (repair("queue/old", 3), FARTHER, "disk-full"),
        (repair("queue/old", 3, 4), ROOM, None),
        (repair("queue/old", 3, 4, 5), ROOM, "log-full"),
        (Collect("queue/new"), BEYOND, None),
        (Collect("queue/old", ballot=make_ballot(at(1), 0)), FREE, None),
        (Accept("queue/old", make_ballot(at(1), 0), NOTHING), FREE, None),
        (Accept("queue/old", make_ballot(at(1), 0), NOTHING), FAR, None),
        (Accept("queue/old", make_ballot(at(1), 0), Summary(at(1), ONE)), FREE, None),
        (Accept("queue/old", make_ballot(at(1), 0), Summary(at(1), ONE)), FAR, None),
        (Accept("queue/old", make_ballot(at(1), 0), Summary(at(1), TWO)), FAR, None),
        (Accept("queue/old", make_ballot(at(1), 0), Summary(at(1), LONG)), DISK, None),
        (Accept("queue/old", make_ballot(at(1), 0), Summary(at(1), LONG)), FAR, "disk-full"),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), ROOM, None),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), OBJECTS, None),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), BEYOND, None),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), MANY, "too-many-objects"),
        (Accept("queue/new", make_ballot(at(2), 0), Summary(at(1))), BEYOND, "too-many-objects"),
        (Accept("dictionary/d/new", make_ballot(at(2), 0), Summary(at(1))), BEYOND, None),
        (Accept("dictionary/d/new", make_ballot(at(2), 0), Summary(at(1))), MANY, "too-many-objects"),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), FREE, None),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), LITTLE_FREE, None),
        (Accept("queue/new", make_ballot(at(1), 0), NOTHING), HARDLY_FREE, "disk-full"),
        (Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE)), FREE, None),
        (Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE)), BEYOND, "too-many-objects"),
        (Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE)), LITTLE_FREE, "disk-full"),
        (Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE), purpose="settle"), BEYOND, None),
        (
            Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE), purpose="settle"),
            LITTLE_FREE,
            None,
        ),
        (
            Accept("queue/new", make_ballot(at(1), 0), Summary(at(1), ONE), purpose="settle"),
            OVER,
            "too-many-objects",
        ),
        (Accept("dictionary/d/new", make_ballot(at(2), 0), Summary(at(1)), purpose="settle"), OVER, None),
        (Commit("queue/old", make_ballot(at(1), 0), summary=Summary(at(1), LONG)), FAR, "disk-full"),
        (Commit("queue/new", make_ballot(at(1), 0), summary=Summary(at(1), ONE)), FAR, "disk-full"),
        (Commit("queue/new", make_ballot(at(1), 0), summary=NOTHING), FAR, None),
        (Commit("queue/new", make_ballot(at(1), 0), summary=NOTHING), FARTHER, "disk-full"),
        (Commit("queue/old", make_ballot(at(1), 0), summary=NOTHING), DISK, None),
        (Commit("queue/new", make_ballot(at(1), 0), summary=NOTHING), OBJECTS, None),
        (Commit("queue/new", make_ballot(at(1), 0), summary=NOTHING), BEYOND, None),
        (Commit("queue/new", make_ballot(at(1), 0), summary=NOTHING), MANY, "too-many-objects"),
        (Commit("queue/new", make_ballot(at(1), 0), summary=Summary(at(1), ONE)), BEYOND, "too-many-objects"),
        (Commit("queue/new", complete=(at(1),)), OBJECTS, None),
    ],
)
def test_only_what_is_new_is_refused(request_: Request, use: Use, reason: str | None) -> None:
    answer = refused(request_, Held(use), CAPACITY)
    assert (None if answer is None else answer.reason) == reason


def test_the_alarm_names_what_is_nearly_used_up() -> None:
    used = shares(Use(objects=1, disk_bytes=800, disk_free=1000, longest=3), CAPACITY)
    assert used == {"objects-max": 0.1, "log-entries-max": 1.0, "disk-bytes-max": 0.8, "disk-free-min": 0.1}
    assert alarm(used).endswith("log-entries-max (100% used), disk-bytes-max (80% used)")
    assert alarm(shares(Use(0, 0, 10_000, 0), CAPACITY)) == ""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_folder(tmp_path, one_replica(), "r1").database
    assert opened is not None
    return Store(opened)


def puts(store: Store, name: str, *numbers: int) -> None:
    store.apply([PutState(ObjectState(name)), *(PutRows(name, (Entry(at(n), at(n), ONE),)) for n in numbers)])


def counted(store: Store) -> tuple[int, int, int]:
    return store.use().objects, store.length("queue/a"), store.length("queue/b")


def test_a_store_counts_what_it_holds(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_module, "LONG", 3)
    puts(store, "queue/a", 1, 2, 3)
    puts(store, "queue/b", 1)
    assert counted(store) == (2, 3, 1)
    store.commit()
    puts(store, "queue/a", 4)
    puts(store, "queue/c", 1)
    store.apply([Forget("queue/b", at(9)), Forget("queue/never", at(10))])
    assert (store.floor(), *counted(store)) == (at(10), 2, 4, 0)
    store.rollback()
    assert counted(store) == (2, 3, 1)
    assert store.delete_upto("queue/a", at(2), 10, ANY_ARRIVAL) == (2, False)
    assert counted(store) == (2, 1, 1)
    store.commit()
    puts(store, "queue/a", 5, 6)
    store.commit()
    store.close()
    again = Store(Database(tmp_path / DATABASE_FILE))
    assert (again.use().longest, *counted(again)) == (3, 2, 3, 1)
    again.close()


def test_lengths_of_short_logs_are_counted_anew_when_too_many_are_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_module, "LENGTHS_MAX", 1)
    puts(store, "queue/a", 1)
    puts(store, "queue/b", 1, 2)
    store.commit()
    puts(store, "queue/a", 2)
    assert counted(store) == (2, 2, 2)
    store.close()


def test_the_disk_is_looked_at_as_it_fills(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.use()
    assert 0 < before.disk_bytes < 1024 * 1024
    assert before.disk_free > 0
    large = Value('"' + "x" * use_module.LOOK_BYTES + '"')
    store.apply([PutState(ObjectState("queue/a")), PutRows("queue/a", (Entry(at(1), at(1), large),))])
    store.commit()
    assert store.use().disk_bytes >= before.disk_bytes + use_module.LOOK_BYTES
    store.delete_upto("queue/a", at(1), 10, ANY_ARRIVAL)
    store.commit()
    monkeypatch.setattr(use_module, "LOOK_S", 0.0)
    assert store.use().disk_bytes < before.disk_bytes + use_module.LOOK_BYTES, "free pages hold nothing"
    store.close()


CALLS = Bounds(
    offset_max_s=60,
    repeats_s=30,
    page_entries_max=10,
    page_bytes_max=10_000,
    types=("queue", "own"),
    limits=Limits(value_bytes_max=2 * 3 * 1000),
    replicas=3,
)
"""A state of 3,000 bytes at most, and 1,000 bytes of calls that wait at each of three replicas."""
CALL = Value("x" * (400 - ENTRY_BYTES))
"""Of which two have room, beside one of half their size."""
HALF = Value("x" * (200 - ENTRY_BYTES))


def with_calls(*, run_upto: int = 0, state: str = "") -> MemoryStore:
    """A store with the calls 1 and 2, of which those up to `run_upto` are known to have run."""
    store = MemoryStore()
    here = ObjectState(
        "own/x", horizon=at(run_upto) if run_upto else ZERO, summary=Summary(value=Value(state))
    )
    store.apply(PutState(here), PutRows("own/x", tuple(Entry(at(t), at(t), CALL) for t in (1, 2))))
    return store


@pytest.mark.parametrize(
    ("request_", "run_upto", "state", "is_refused"),
    [
        (append("own/x", 3, value=HALF), 0, "", False),
        (append("own/x", 3, value=CALL), 0, "", True),
        (append("own/x", 3, 4, value=HALF), 0, "", True),
        (append("own/x", 3, value=CALL), 1, "", False),
        (append("own/x", 3, 4, value=CALL), 2, "", False),
        (append("own/x", 3, 4, 5, value=CALL), 2, "", True),
        (replace(append("own/x", 3, value=CALL), attempt="again"), 0, "", True),
        (replace(append("own/x", 3, value=CALL), attempt="repair"), 0, "", False),
        (append("own/x", 1, 2, value=CALL), 0, "", False),
        (append("own/x", 2, 3, value=CALL), 0, "", True),
        (append("own/x", 3, value=HALF), 2, "x" * 3000, False),
        (append("own/x", 3, value=HALF), 2, "x" * 3001, True),
        (append("own/x", 3, 4, value=HALF), 2, "[]" * 280, False),
        (append("own/x", 3, 4, value=HALF), 2, "[]" * 300, True),
        (append("own/x", 3, value=HALF), 2, "[]" * 300, False),
        (append("own/x", 1, 2, value=CALL), 0, "[]" * 1500, False),
        (replace(append("own/x", 3, value=CALL), attempt="repair"), 0, "[]" * 1500, False),
        (append("own/x", 3, value=HALF), 2, "é" * 1501, True),
        (append("own/new", 3, 4, value=CALL), 0, "", False),
        (append("own/new", 3, 4, 5, value=CALL), 0, "", True),
        (append("queue/x", 3, 4, 5, 6, 7, value=CALL), 0, "", False),
        (Accept("own/x", make_ballot(at(1), 0), Summary(value=Value("x" * 9000))), 0, "", False),
        (Collect("own/x", fence=at(9)), 0, "", False),
    ],
)
def test_no_more_calls_are_stored_than_a_later_decision_can_run(
    request_: Request, run_upto: int, state: str, is_refused: bool
) -> None:
    found = refused_call(request_, with_calls(run_upto=run_upto, state=state), CALLS)
    assert (found is not None) == is_refused
    if found is not None:
        assert found.reason == "log-full"
        assert "have not run" in found.detail


@pytest.mark.parametrize("replicas", [1, 3, 25])
@pytest.mark.parametrize("limits", [DEFAULTS, Limits(value_bytes_max=65_536), Limits(value_bytes_max=10)])
def test_what_all_replicas_store_makes_no_state_larger_than_a_value_may_be(
    limits: Limits, replicas: int
) -> None:
    most = limits.state_bytes_max + replicas * limits.waiting_bytes_max(replicas)
    assert most <= limits.value_bytes_max
    assert limits.waiting_bytes_max(replicas) > 0 or limits.value_bytes_max < 2 * replicas
