"""What a client counts of its own front end, over three replicas behind real loopback servers."""

import asyncio
from collections.abc import Iterator

import pytest

from quorate.client_sdk import Client, connect, connect_async
from quorate.client_sdk.protocol.core.counters import Histogram
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


@pytest.fixture
def client(cluster: LoopbackCluster) -> Iterator[Client]:
    with connect(cluster.document) as made:
        yield made


def test_a_figure_falls_into_the_first_class_whose_bound_it_does_not_exceed() -> None:
    histogram = Histogram((1, 2))
    for figure in (0.5, 1, 1.5, 2, 3):
        histogram.add(figure)
    assert histogram.taken().counts == (2, 2, 1)
    assert (histogram.taken().count, histogram.taken().sum) == (5, 8)


def test_a_client_counts_its_operations_rounds_and_events(client: Client) -> None:
    client.queue("jobs").enqueue_many([1, 2])
    for _ in range(3):
        client.queue("jobs").dequeue()
    client.register("leader").write("ann")
    client.register("leader").compare_and_set("bob", "eve")
    client.dictionary("users").delete("ann")
    client.dictionary("users").get("ann")
    counted = client.counters()
    assert {
        (kind.type, kind.operation, kind.outcome): each.count for kind, each in counted.operations.items()
    } == {
        ("queue", "Enq", "Ok"): 1,
        ("queue", "Deq", "Ok"): 2,
        ("queue", "Deq", "Empty"): 1,
        ("register", "Write", "Ok"): 1,
        ("register", "Cas", "Fail"): 1,
        ("dictionary", "Delete", "Ok"): 1,
        ("dictionary", "Get", "Ok"): 1,
    }
    assert all(0 < each.sum < 60 for each in counted.operations.values())
    assert counted.rounds["Append"].count == 3
    assert counted.rounds["Accept"].count >= 2
    assert counted.events.get("terms lost", 0) == 0


async def test_an_operation_that_its_caller_leaves_is_counted_as_cancelled(cluster: LoopbackCluster) -> None:
    async with connect_async(cluster.document) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.queue("jobs").dequeue(wait_s=5)
        counted = client.counters().operations
    assert [(kind.outcome, each.count) for kind, each in counted.items()] == [("cancelled", 1)]
