"""Replicas that have as much as they may: what is new is refused, what makes room goes on, and then they take in again."""

import asyncio
import time
from collections.abc import Callable

import httpx
import pytest

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import Append, Batch, BatchReply, Commit, Refused, Request
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import LimitReached, OutcomeUnknown, Queue, Unavailable, connect
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.replica.store.usage import LOOK_BYTES
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import Timestamp, make
from tests.system.harness import QUICK, Clusters, until_now
from tests.system.in_vain import failure_of
from tests.unit.cli.conftest import quorate

DEADLINE_S = 20.0
LARGE = "x" * 20_000


def bounded(clusters: Clusters, option: str, bound: int) -> LocalCluster:
    cluster = clusters.make(settings=QUICK)
    cluster.serve_options.update((replica, [option, str(bound)]) for replica in cluster.urls)
    cluster.start()
    cluster.ready()
    return cluster


def used(cluster: LocalCluster, bound: str, replica: str = "r1") -> float:
    """The share of the bound that the replica tells as a metric."""
    lines = httpx.get(f"{cluster.urls[replica]}/metrics", timeout=DEADLINE_S).text.splitlines()
    name = f'quorate_capacity_used_ratio{{bound="{bound}"}} '
    return float(next(line for line in lines if line.startswith(name)).rpartition(" ")[2])


def told(command: str, cluster: LocalCluster) -> str:
    done = quorate(command, "--cluster", str(cluster.document_path), timeout_s=60)
    return " ".join((done.stdout + done.stderr).split())


def fill(enqueue: Callable[[], object], times_max: int) -> tuple[int, LimitReached]:
    """How often it went well, and what refused it. While only some replicas are full, an outcome may be unknown."""
    times = 0
    for _ in range(times_max):
        try:
            enqueue()
            times += 1
        except (OutcomeUnknown, Unavailable):
            pass
        except LimitReached as reached:
            return times, reached
    raise AssertionError(f"nothing was refused in {times_max} times")


def taken_out(queue: Queue) -> list[object]:
    """All items that wait: an answer holds no more than a page of them."""
    items: list[object] = []
    while some := queue.dequeue(max_items=100):
        items += some
    return items


def is_taken_in(write: Callable[[], object]) -> bool:
    try:
        write()
    except (LimitReached, OutcomeUnknown, Unavailable):
        return False
    return True


def test_a_log_has_no_more_entries_than_it_may(clusters: Clusters) -> None:
    cluster = bounded(clusters, "--log-entries-max", 5)
    with connect(cluster.document, deadline_s=1.5) as client:
        queue = client.queue("jobs")
        fill(lambda: queue.enqueue(0), 60)  # How many there are is seen below.
        words = "queue/jobs has 5 entries at this replica, of 5"
        reached = failure_of(lambda: queue.enqueue_many([1, 2]), LimitReached, words=words)
        assert isinstance(reached, LimitReached)
        assert (reached.limit, reached.definite) == ("log-full", True)
        url = f"{cluster.urls['r2']}/v1/queues/jobs/items"
        answer = httpx.post(url, json={"item": 6}, timeout=DEADLINE_S)
        assert (answer.status_code, answer.json()["type"]) == (429, "/problems/log-full")
        assert int(answer.headers["Retry-After"]) >= 1
        until_now(lambda: used(cluster, "log-entries-max") == 1, "the metric tells: it is a moment old")
        assert "r1 has used 100% of --log-entries-max" in told("status", cluster)
        assert "r1 has used 100% of --log-entries-max" in told("doctor", cluster)
        until_now(lambda: "log-entries-max (100% used)" in cluster.log_file("r1").read_text(), "it is logged")
        client.queue("others").enqueue(1)
        cluster.stop()
        cluster.start()
        cluster.ready()
        assert not is_taken_in(lambda: queue.enqueue(0)), "it is counted at the start, too"
        assert queue.dequeue(max_items=9) == [0] * 5
        until_now(lambda: is_taken_in(lambda: queue.enqueue(7)), "history is deleted, and there is room")
        assert queue.dequeue() == 7


def test_a_replica_has_no_more_objects_than_it_may(clusters: Clusters) -> None:
    cluster = bounded(clusters, "--objects-max", 3)
    with connect(cluster.document, deadline_s=1.5) as client:
        shop = client.dictionary("shop")
        taken, reached = fill(lambda: shop.put(f"k{len(shop.items())}", 1), 4)
        assert (taken, reached.limit) == (3, "too-many-objects")
        failure_of(lambda: client.queue("jobs").enqueue(1), LimitReached, words="it makes no queue/jobs")
        answer = httpx.put(f"{cluster.urls['r3']}/v1/registers/leader", json={"value": 1}, timeout=DEADLINE_S)
        assert (answer.status_code, answer.json()["type"]) == (507, "/problems/too-many-objects")
        shop.put("k0", 2)
        assert shop.items() == {"k0": 2, "k1": 1, "k2": 1}
        shop.delete("k1")
        until_now(lambda: is_taken_in(lambda: client.register("leader").write("ann")), "a key was forgotten")
        assert client.register("leader").read() == "ann"


def test_a_replica_leaves_room_on_its_disk(clusters: Clusters) -> None:
    bound = 600_000
    cluster = bounded(clusters, "--disk-bytes-max", bound)
    with connect(cluster.document, deadline_s=1.5) as client:
        queue = client.queue("jobs")
        taken, reached = fill(lambda: queue.enqueue(LARGE), 100)
        assert reached.limit == "disk-full"
        assert 10 < taken <= (bound + LOOK_BYTES) // len(LARGE), (
            "it looks again after so many bytes at the latest"
        )
        failure_of(lambda: queue.enqueue(1, idempotency_key="k"), LimitReached, words="database holds")
        until_now(lambda: used(cluster, "disk-bytes-max") >= 1, "the metric tells")
        assert taken <= len(taken_out(queue)) <= 100
        until_now(
            lambda: is_taken_in(lambda: queue.enqueue("again")), "history is deleted, and there is room"
        )
        # Enqueues whose outcome is unknown may take effect late, before "again" or, as one of its own tries, behind it.
        assert "again" in (left := taken_out(queue))
        assert set(left) <= {LARGE, "again"}


def test_one_full_replica_holds_up_nobody(clusters: Clusters) -> None:
    cluster = clusters.make(settings=QUICK)
    cluster.serve_options["r2"] = ["--disk-free-min", str(1 << 60)]
    cluster.start()
    cluster.ready()
    with connect(cluster.document, deadline_s=1.5) as client:
        client.queue("jobs").enqueue_many([1, 2, 3])
        client.register("leader").write("ann")
        assert client.queue("jobs").dequeue(max_items=3) == [1, 2, 3]
    assert "r2 has used" in told("doctor", cluster)


def test_a_replica_that_is_full_helps_to_take_out_what_others_hold(clusters: Clusters) -> None:
    """Enq at one replica, Deq at all: the full one has never heard of the queue, and is needed."""
    eager = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
    cluster = clusters.make(settings=QUICK, rules=[eager])
    cluster.start()
    cluster.ready()
    held = round(used(cluster, "disk-bytes-max", "r2") * Capacity().disk_bytes_max)
    cluster.kill("r2")
    cluster.serve_options["r2"] = ["--disk-bytes-max", str(held)]
    cluster.restart("r2")
    assert used(cluster, "disk-bytes-max", "r2") >= 1
    with connect(cluster.document, deadline_s=1.5) as client:
        client.queue("jobs").enqueue_many([1, 2])
        assert client.queue("jobs").dequeue(max_items=2) == [1, 2]


def tell_each(cluster: LocalCluster, request_of: Callable[[str, Timestamp], Request], number: int) -> None:
    """Each replica is sent so many requests about objects of its own, by their names and a timestamp, and does all of them."""

    async def tell() -> None:
        document = cluster.document
        transport = HttpTransport(document.urls, body_bytes_max=document.limits.body_bytes_max)
        for replica in document.urls:
            times = [make(time.time_ns() // 1000, count, "raw") for count in range(number)]
            requests = [request_of(f"dictionary/d/{replica}-{count}", t) for count, t in enumerate(times)]
            reply = await transport.exchange(replica, Batch(document.hash, tuple(requests)), DEADLINE_S)
            assert isinstance(reply, BatchReply)
            assert not [each for each in reply.replies if isinstance(each, Refused)]
        await transport.aclose()

    asyncio.run(tell())


def nothing_decided(name: str, t: Timestamp) -> Commit:
    """As a failed operation under an idempotency key decides of an absent key."""
    return Commit(name, make_ballot(t, 1), summary=NOTHING)


def put(name: str, t: Timestamp) -> Append:
    return Append(name, (Entry(t, t, Value("1")),), "first")


def test_what_only_some_took_of_a_burst_is_read_though_others_are_full(clusters: Clusters) -> None:
    """Who reads writes back what too few have; while it was refused, nobody could list the keys to see what to delete."""
    cluster = bounded(clusters, "--objects-max", 10)
    with connect(cluster.document, deadline_s=1.5) as client:
        shop = client.dictionary("d")
        for number in range(9):
            shop.put(f"all-{number}", 1)
        tell_each(cluster, put, 1)
        words = "objects, of 10 that it may have"
        failure_of(lambda: client.register("new").write(1), LimitReached, words=words)
        keys = {f"all-{number}" for number in range(9)} | {"r1-0", "r2-0", "r3-0"}
        # Each look has its answer; it may lack what was acknowledged to nobody, until catch-ups have brought it.
        until_now(lambda: set(shop.items()) == keys, "all are listed")
        for key in shop.items():
            shop.delete(key)
        until_now(lambda: is_taken_in(lambda: client.register("new").write(1)), "keys were forgotten")


@pytest.mark.slow
def test_replicas_that_are_full_of_different_tombstones_collect_them(clusters: Clusters) -> None:
    """Each is to be told of those of the others, and has no room for them."""
    cluster = bounded(clusters, "--objects-max", 10)
    tell_each(cluster, nothing_decided, 11)
    with connect(cluster.document) as client:
        failure_of(lambda: client.register("new").write(1), LimitReached, words="has 11 objects, of 10")
        until_now(lambda: is_taken_in(lambda: client.register("new").write(1)), "there is room")
        until_now(lambda: used(cluster, "objects-max") < 0.5, "they are forgotten", deadline_s=120)
