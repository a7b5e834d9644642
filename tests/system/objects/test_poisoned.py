"""A decided state from which no decision can go on: it is refused where it is sent, and where it is there, an operator repairs it.

A count of deliveries at the end of what messages carry had every later decision refused by every replica (but not by the front
end inside one, whose own replica did not look). It is written into the stores of stopped replicas here, for no message brings
it there any more.
"""

from collections.abc import Callable

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.api_specs.checking import COUNT_MAX
from quorate.api_specs.limits import DELIVERIES_MAX, STOP_S_MAX
from quorate.api_specs.messages import Batch, Commit
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import scan_all
from quorate.client_sdk import QuorateError, connect
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol.log import PutState
from quorate.replica.store.store import Store
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make
from tests.system.harness import Clusters, until_now
from tests.system.in_vain import failure_of
from tests.unit.cli.conftest import quorate

QUEUE = "queue/jobs"


def poison(cluster: LocalCluster, name: str, poisoned: Callable[[Summary], Summary]) -> None:
    """Change the decided state of an object in all stores."""
    for id in cluster.urls:
        folder = open_folder(cluster.data_folder(id), cluster.document, id)
        assert folder.database is not None
        store = Store(folder.database)
        state = store.state(name)
        assert state is not None
        store.apply([PutState(replace(state, summary=poisoned(state.summary)))])
        store.commit()
        folder.abandon()


def all_hold(cluster: LocalCluster, name: str, held: Callable[[Summary], object]) -> None:
    """Wait until each replica has what was decided of the object: a quorum of them answered, and the last one may be stopped before it hears."""

    def is_everywhere() -> bool:
        found = scan_all(cluster.document, name, None)
        shown = [each[name].summary for each in found.values() if isinstance(each, dict) and name in each]
        return len(shown) == len(cluster.urls) and all(summary and held(summary) for summary in shown)

    until_now(is_everywhere, f"all replicas have what was decided of {name}")


def delivered_for_ever(summary: Summary) -> Summary:
    """The count of deliveries of each leased item is as high as a message carries."""
    assert summary.leases
    return replace(summary, leases=tuple(replace(each, deliveries=COUNT_MAX) for each in summary.leases))


def remembered_too_long(summary: Summary) -> Summary:
    """Each decision under a key is remembered by a name that is too long."""
    assert summary.recent
    return replace(summary, recent=tuple(replace(each, id="x" * 5000) for each in summary.recent))


@pytest.mark.slow
def test_a_queue_that_no_decision_goes_on_from_is_repaired_and_loses_nothing(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue_many(["a", "b", "c"])
        assert [lease.value for lease in client.queue("jobs").acquire(lease_s=0.001)] == ["a"]
        all_hold(cluster, QUEUE, lambda summary: summary.leases)
    cluster.stop()
    poison(cluster, QUEUE, delivered_for_ever)
    cluster.start()
    cluster.ready()
    with connect(cluster.document) as client:
        failure_of(
            lambda: client.queue("jobs").acquire(3, deadline_s=1.0),
            QuorateError,
            words=f"quorate repair {QUEUE}",
        )
        asked = httpx.post(
            cluster.urls["r1"] + "/v1/queues/jobs/dequeue?deadline_s=1", json={}, timeout=STOP_S_MAX
        )
        assert not asked.is_success, "the front end in a replica does not go on alone"
        told = quorate("repair", QUEUE, "--cluster", str(cluster.document_path))
        assert told.returncode == 0, told.stderr
        assert f"were {COUNT_MAX}, and are {DELIVERIES_MAX}" in told.stdout
        again = quorate("repair", QUEUE, "--cluster", str(cluster.document_path))
        assert again.stdout.strip() == "nothing was wrong"
        assert [lease.value for lease in client.queue("jobs").acquire(3)] == ["b", "c"]
        letters = client.queue("jobs").dead_letters()
    assert [(each.value, each.reason, each.deliveries) for each in letters] == [
        ("a", "deliveries", DELIVERIES_MAX)
    ]


@pytest.mark.slow
def test_a_register_and_a_key_that_no_decision_goes_on_from_are_repaired(clusters: Clusters) -> None:
    """A remembered decision under a key that is too long is taken out; the value stays, and the object goes on."""
    cluster = clusters.start()
    names = ("register/leader", "dictionary/users/ada")
    with connect(cluster.document) as client:
        assert client.register("leader").compare_and_set(None, "r1", idempotency_key="k")
        assert client.dictionary("users").put_if_absent("ada", "r1", idempotency_key="k")
        for name in names:
            all_hold(cluster, name, lambda summary: summary.recent)
    cluster.stop()
    for name in names:
        poison(cluster, name, remembered_too_long)
    cluster.start()
    cluster.ready()
    with connect(cluster.document) as client:
        leader, users = client.register("leader"), client.dictionary("users")
        for name, swap in (
            (names[0], lambda: leader.compare_and_set("r1", "r2", deadline_s=1.0)),
            (names[1], lambda: users.compare_and_set("ada", "r1", "r2", deadline_s=1.0)),
        ):
            failure_of(swap, QuorateError, words=f"quorate repair {name}")
        for name in names:
            told = quorate("repair", name, "--cluster", str(cluster.document_path))
            assert told.returncode == 0, told.stderr
            assert "taken out of recent: " in told.stdout
        assert client.register("leader").compare_and_set("r1", "r3")
        assert client.dictionary("users").compare_and_set("ada", "r1", "r3")
        assert (client.register("leader").read(), client.dictionary("users").get("ada")) == ("r3", "r3")


def test_what_nobody_could_go_on_from_is_refused_by_every_replica(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue("a")
        (lease,) = client.queue("jobs").acquire(lease_s=0.001)
        stamp = make(now_us_of(cluster), 0, "f")
        record = Leased(Entry(lease.id, stamp, Value('"a"')), deliveries=COUNT_MAX, is_held=True)
        ballot = make_ballot(stamp, 1)
        commit = Commit(QUEUE, ballot, stamp, Summary(stamp, leases=(record,)))
        for url in cluster.urls.values():
            body = msgspec.json.encode(Batch(cluster.document.hash, (commit,)))
            answer = httpx.post(
                url + "/replica/v1/batch", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 400, answer.text
            assert "deliveries: must be 0 to" in answer.json()["detail"]
        assert [lease.value for lease in client.queue("jobs").acquire()] == ["a"]


def now_us_of(cluster: LocalCluster) -> int:
    """The clock of a replica."""
    now_us: int = httpx.get(cluster.urls["r1"] + "/v1/status").json()["now_us"]
    return now_us
