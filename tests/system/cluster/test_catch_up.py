"""What a replica missed reaches it: an entry that one replica alone has acknowledged does not stay there alone.

Enq (0, 1): two of three replicas are down, the third acknowledges. They come back, and hold the entries within seconds, though
nobody reads the queue; then the first one's disk is lost.
"""

import asyncio
import re
import shutil
import time

import httpx
import pytest

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import (
    Append,
    Appended,
    Batch,
    BatchReply,
    Collect,
    Collected,
    Reply,
    Request,
    Scan,
    Scanned,
)
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.status import ask_all
from quorate.client_sdk import connect
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.timestamp import make, wall_us
from tests.system.harness import WAIT_S, Clusters, until_now
from tests.unit.cli.conftest import quorate

ITEMS = list(range(250))
BACK = ("r2", "r3")


def ask(cluster: LocalCluster, replica: str, request: Request) -> Reply | None:
    """What a replica answers to one request; None where it does not."""

    async def exchange() -> BatchReply | Unanswered:
        document = cluster.document
        transport = HttpTransport(document.urls, body_bytes_max=document.limits.body_bytes_max)
        try:
            return await transport.exchange(replica, Batch(document.hash, (request,)), WAIT_S)
        finally:
            await transport.aclose()

    answer = asyncio.run(exchange())
    return answer.replies[0] if isinstance(answer, BatchReply) else None


def held(cluster: LocalCluster, replica: str) -> int:
    """How many entries a replica's own log of the queue holds; -1 where it does not answer."""
    told = ask(cluster, replica, Scan("queue/jobs", newest=2000, payload=False))
    if told is None:
        return -1
    assert isinstance(told, Scanned)
    return sum(len(found.rows) for _, found in told.objects)


def are_level(cluster: LocalCluster) -> bool:
    """Whether each replica says that it has all that the others had."""
    return all(lag.lag == 0 for each in ask_all(cluster.document) for lag in each.catch_up.values())


def metric(cluster: LocalCluster, replica: str, name: str) -> float:
    """What a replica says of catching up with r1."""
    told = httpx.get(cluster.urls[replica] + "/metrics", timeout=WAIT_S, trust_env=False).text
    found = re.search(rf'^quorate_catch_up_{name}{{replica="r1"}} (\S+)$', told, re.MULTILINE)
    assert found, told
    return float(found[1])


@pytest.mark.slow
def test_entry_that_one_replica_acknowledged_reaches_the_others(clusters: Clusters) -> None:
    cluster = clusters.start(rules=[ChoiceRule("queue/*", {"Enq/Ok": (0, 1)})])
    for replica in BACK:
        cluster.kill(replica)
    with connect(cluster.document, deadline_s=20) as client:
        client.queue("jobs").enqueue_many(ITEMS)
    cluster.start()
    cluster.ready()
    until_now(lambda: [held(cluster, each) for each in BACK] == [len(ITEMS)] * 2, "both hold all entries")
    told = {each.id: each for each in ask_all(cluster.document)}
    assert {each.id for each in told.values() if each.is_ready} == set(cluster.urls)
    until_now(lambda: are_level(cluster), "all say that they are level")
    told_by_metrics = {name: metric(cluster, "r2", name) for name in ("lag", "entries_total", "bytes_total")}
    assert told_by_metrics == {
        "lag": 0,
        "entries_total": len(ITEMS),
        "bytes_total": len("".join(map(str, ITEMS))),
    }
    assert 0 <= metric(cluster, "r2", "age_seconds") < WAIT_S
    assert "all are level" in quorate("doctor", "--cluster", str(cluster.document_path)).stdout

    cluster.kill("r2")
    cluster.restart("r2")  # How far it had looked is kept.
    cluster.kill("r1")
    shutil.rmtree(cluster.data_folder("r1"))
    assert [held(cluster, each) for each in BACK] == [len(ITEMS)] * 2


@pytest.mark.slow
def test_entry_that_fences_keep_from_its_quorum_is_decided_though_nobody_calls(clusters: Clusters) -> None:
    """Whoever stored it vanished. All others asked for it for ever, and a learner got no vote."""
    cluster = clusters.start()
    stamp = make(time.time_ns() // 1000, 0, "left")
    above = make(wall_us(stamp) + 1, 0, "left")
    names = ("register/left", "queue/left")
    for name in names:
        assert isinstance(ask(cluster, "r1", Append(name, (Entry(stamp, stamp, Value("7")),))), Appended)
        for replica in cluster.urls:
            assert isinstance(ask(cluster, replica, Collect(name, fence=above)), Collected)

    def is_decided(replica: str) -> bool:
        told = [ask(cluster, replica, Collect(name)) for name in names]
        return all(isinstance(each, Collected) and each.status.committed != NO_BALLOT for each in told)

    until_now(lambda: all(map(is_decided, cluster.urls)), "all know of decisions")
    until_now(lambda: are_level(cluster), "all say that they are level")
    with connect(cluster.document, deadline_s=20) as client:
        assert client.register("left").read() == 7
        assert client.queue("left").dequeue() == 7
