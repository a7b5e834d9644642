"""The storage for huey, on three replicas: the suite that huey ships, and what is our own.

Of huey's suite only `test_priority` does not apply: it is skipped by huey itself where a storage has no priorities.
"""

import datetime
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from huey.constants import EmptyData
from huey.exceptions import ConfigurationError
from huey.tests.base import BaseTestCase
from huey.tests.test_storage import StorageTests

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import BadInput, Dictionary, OutcomeUnknown, Queue, Unavailable
from quorate.integrations.huey_storage import QuorateHuey, QuorateStorage
from tests.unit.client_sdk.loopback import cluster_of
from tests.unit.client_sdk.scripted import document_of

DEADLINE_S = 20.0
"""For a machine that is busy with other tests."""
NOON = datetime.datetime(2026, 1, 1, 12)  # noqa: DTZ001 # huey's own times carry no zone
SECOND = datetime.timedelta(seconds=1)


class TestHueysOwnSuite(StorageTests, BaseTestCase):  # type: ignore[misc]  # huey ships no types
    """The class that huey ships for whoever writes a storage, run as it is."""

    wait_s = 1.0

    @pytest.fixture(autouse=True)
    def _on(self, shared_cluster: LocalCluster) -> None:
        self.cluster = shared_cluster

    def get_huey(self) -> QuorateHuey:
        """What the suite works on."""
        return QuorateHuey(
            "suite", cluster=self.cluster.document, deadline_s=DEADLINE_S, wait_s=self.wait_s, utc=False
        )

    def tearDown(self) -> None:
        """As the suite does, and close."""
        super().tearDown()
        self.s.close()


class TestHueysOwnSuitePolling(TestHueysOwnSuite):
    """The same where huey polls, instead of waiting at the queue."""

    wait_s = 0.0


@pytest.fixture(scope="module")
def memory_cluster() -> Iterator[Any]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


@pytest.fixture
def storage(memory_cluster: Any, request: pytest.FixtureRequest) -> Iterator[QuorateStorage]:
    """A storage of a name that no other test has."""
    made = QuorateStorage(
        request.node.name.replace("[", "-").rstrip("]"),
        memory_cluster.document,
        deadline_s=DEADLINE_S,
        wait_s=0,
    )
    yield made
    made.close()


def another(storage: QuorateStorage) -> QuorateStorage:
    """The same storage as another process would have it."""
    return QuorateStorage(storage.name, storage._cluster, deadline_s=DEADLINE_S, wait_s=0)


def test_priorities_are_refused_by_name(storage: QuorateStorage) -> None:
    with pytest.raises(NotImplementedError, match="priority 5: a Quorate queue is first in, first out"):
        storage.enqueue(b"x", 5)
    storage.enqueue(b"x", 0)
    assert storage.enqueued_items() == [b"x"]


def test_a_missing_cluster_and_a_bad_name_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError, match="needs cluster="):
        QuorateHuey("app")
    with pytest.raises(BadInput, match="my app"):
        QuorateHuey("my app", cluster="cluster.toml")


@pytest.mark.parametrize(
    "name", ["queue/huey.app.tasks", "dictionary/huey.app.*", "dictionary/huey.app.results"]
)
def test_objects_of_eventual_consistency_are_refused(name: str) -> None:
    """What it takes from the schedule, and which tasks are revoked, it decides by what it reads."""
    weak = ChoiceRule(name, consistency="eventual")
    with cluster_of(document_of("r1", "r2", "r3", choices=(weak,))) as cluster:
        storage = QuorateStorage("app", cluster.document, deadline_s=DEADLINE_S)
        with pytest.raises(BadInput, match="is of eventual consistency, and this interface"):
            storage.enqueue(b"x")


def test_any_bytes_come_back(storage: QuorateStorage) -> None:
    data = bytes(range(256))
    storage.enqueue(data)
    storage.add_to_schedule(data, NOON)
    storage.put_data("ключ / 1", data)
    assert storage.dequeue() == data
    assert storage.scheduled_items() == storage.read_schedule(NOON) == [data]
    assert storage.result_items() == {"ключ / 1": data}
    assert storage.pop_data("ключ / 1".encode()) == data


def test_schedulers_that_read_at_once_get_each_task_once(storage: QuorateStorage) -> None:
    due = {b"%d" % number for number in range(40)}
    for data in due:
        storage.add_to_schedule(data, NOON - SECOND)
    storage.add_to_schedule(b"later", NOON + SECOND)
    schedulers = [another(storage) for _ in range(4)]
    together = threading.Barrier(len(schedulers))

    def read(scheduler: QuorateStorage) -> list[bytes]:
        together.wait(30)
        taken = []
        while found := scheduler.read_schedule(NOON):
            taken += found
        return taken

    with ThreadPoolExecutor(len(schedulers)) as pool:
        taken = [data for each in pool.map(read, schedulers) for data in each]
    assert sorted(taken) == sorted(due)
    assert storage.scheduled_items() == [b"later"]
    for scheduler in schedulers:
        scheduler.close()


def test_tasks_of_one_moment_are_all_kept(storage: QuorateStorage) -> None:
    for _ in range(3):
        storage.add_to_schedule(b"same", NOON)
    assert storage.read_schedule(NOON) == [b"same"] * 3


def test_a_task_whose_taking_had_an_unknown_outcome_is_taken_once(
    storage: QuorateStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is lost after the decision; the next read asks again with the same key, and gets the task."""
    right = Dictionary.compare_and_delete
    lost = iter([False, True])

    def answer_lost(self: Dictionary, *args: Any, **named: Any) -> bool:
        done = right(self, *args, **named)
        if next(lost, False):
            raise OutcomeUnknown("the answer was lost")
        return done

    for number in range(3):
        storage.add_to_schedule(b"%d" % number, NOON + number * SECOND)
    monkeypatch.setattr(Dictionary, "compare_and_delete", answer_lost)
    assert storage.read_schedule(NOON + 5 * SECOND) == [b"0"], (
        "what was taken before is not lost with the error"
    )
    with closing(another(storage)) as other:
        assert other.scheduled_items() == [b"2"]
    assert storage.read_schedule(NOON + 5 * SECOND) == [b"1", b"2"]
    assert storage.read_schedule(NOON + 5 * SECOND) == []


def _unavailable(*_: Any, **__: Any) -> None:
    raise Unavailable("no quorum", definite=True)


def test_what_was_taken_of_the_schedule_and_certainly_not_added_is_read_again(
    storage: QuorateStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """huey writes to its log that it could not add a task, and forgets it."""
    storage.add_to_schedule(b"a", NOON)

    def unknown(*_: Any, **__: Any) -> None:
        raise OutcomeUnknown("no quorum")

    for _ in range(2):
        assert storage.read_schedule(NOON) == [b"a"]
        with monkeypatch.context() as patch:
            patch.setattr(Queue, "enqueue", _unavailable)
            with pytest.raises(Unavailable):
                storage.enqueue(b"a")
    assert storage.read_schedule(NOON) == [b"a"]
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "enqueue", unknown)
        with pytest.raises(OutcomeUnknown):
            storage.enqueue(b"a")
    assert storage.read_schedule(NOON) == [], "it may be in the queue, and huey runs a task at most once"


def test_of_what_was_never_in_the_schedule_nothing_is_read_again(
    storage: QuorateStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """huey's scheduler adds its periodic tasks after those that it read: kept while replicas are away, each minute's would run then."""
    storage.add_to_schedule(b"a", NOON)
    assert storage.read_schedule(NOON) == [b"a"]
    storage.enqueue(b"a")
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "enqueue", _unavailable)
        with pytest.raises(Unavailable):
            storage.enqueue(b"periodic")
    assert storage.read_schedule(NOON) == []


def test_an_error_before_anything_was_taken_comes_through(
    storage: QuorateStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.add_to_schedule(b"x", NOON)

    def unavailable(*_: Any, **__: Any) -> bool:
        raise Unavailable("no quorum", definite=True)

    with monkeypatch.context() as patch:
        patch.setattr(Dictionary, "compare_and_delete", unavailable)
        with pytest.raises(Unavailable):
            storage.read_schedule(NOON)
    assert storage.read_schedule(NOON) == [b"x"]


def test_one_of_many_pops_a_result_and_one_of_many_gets_a_lock(storage: QuorateStorage) -> None:
    storage.put_data("r", b"v")
    with ThreadPoolExecutor(8) as pool:
        popped = list(pool.map(lambda _: storage.pop_data("r"), range(8)))
        locked = list(pool.map(lambda _: storage.put_if_empty("lock", b"1"), range(8)))
    assert sorted(popped, key=repr) == sorted([b"v"] + [EmptyData] * 7, key=repr)
    assert locked.count(True) == 1


def test_one_of_many_takes_over_a_lock_that_has_ended(storage: QuorateStorage) -> None:
    assert storage.put_if_empty("lock", b"old", ttl=-1)
    assert storage.pop_data("lock") is EmptyData
    assert storage.result_store_size() == 0
    with ThreadPoolExecutor(8) as pool:
        locked = list(pool.map(lambda number: storage.put_if_empty("lock", b"%d" % number, ttl=60), range(8)))
    assert locked.count(True) == 1
    assert storage.peek_data("lock") == b"%d" % locked.index(True)


def test_a_counter_counts_every_one_of_many(storage: QuorateStorage) -> None:
    others = [another(storage) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        seen = [
            n for found in pool.map(lambda each: [each.incr("c") for _ in range(20)], others) for n in found
        ]
    assert sorted(seen) == list(range(1, 61))
    for other in others:
        other.close()


def test_nothing_is_forwarded_to_a_replica(storage: QuorateStorage) -> None:
    """These replicas know no asks: what is forwarded would have an unknown outcome, as when the replica dies."""
    other = another(storage)
    for number in range(5):
        assert storage.dequeue() is other.dequeue() is None
        storage.enqueue(b"%d" % number)
        assert other.dequeue() == b"%d" % number
    other.close()


def test_what_changes_all_the_time_is_given_up_at_the_deadline(
    storage: QuorateStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline of the attempts alone is short here, so that a busy machine has time for each of them."""
    storage.incr("c")
    monkeypatch.setattr(storage, "_deadline_s", 0.05)
    monkeypatch.setattr(Dictionary, "compare_and_set", lambda *_: False)
    with pytest.raises(Unavailable, match="counters: c was changed by others") as busy:
        storage.incr("c")
    assert busy.value.definite


def test_without_a_quorum_everything_ends_at_its_deadline() -> None:
    storage = QuorateStorage("nobody", document_of("r1", "r2", "r3"), deadline_s=0.3)
    for ask in (
        lambda: storage.enqueue(b"x"),
        storage.dequeue,
        storage.queue_size,
        lambda: storage.read_schedule(NOON),
        lambda: storage.put_if_empty("k", b"v"),
        lambda: storage.incr("c"),
        storage.flush_all,
    ):
        with pytest.raises(Unavailable) as unavailable:
            ask()
        assert unavailable.value.definite
    storage.close()


def test_a_closed_storage_connects_again(storage: QuorateStorage) -> None:
    storage.enqueue(b"x")
    assert storage.close()
    assert not storage.close()
    assert storage.dequeue() == b"x"
