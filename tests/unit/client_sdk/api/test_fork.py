"""A forked child uses its parent's client: it gets a thread, connections and a site id of its own."""

import multiprocessing
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from quorate.api_specs.messages import Append, Batch
from quorate.client_sdk import Client, connect
from quorate.client_sdk.adapters.standard_queue import Queue
from quorate.timestamps.timestamp import site
from tests.system.harness import until_now
from tests.unit.client_sdk.api.test_history import lines_of
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


def work_in_child(client: Client, pipe: Any) -> None:
    """What a forked child does with its parent's client."""
    queue = client.queue("q")
    queue.enqueue("of the child")
    pipe.send((os.getpid(), client.queue("q").size(), threading.active_count()))
    client.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_front_end_of_its_own(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The child inherits no thread, yet its client works; entries of parent and child are stamped by different sites."""
    path = tmp_path / "history.jsonl"
    client = connect(cluster.document, history=path)
    client.queue("q").enqueue("before")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=work_in_child, args=(client, there))
    child.start()
    assert here.poll(60)
    pid, size, threads = here.recv()
    assert (pid, size, threads) == (child.pid, 2, 2)
    client.queue("q").enqueue("after")
    child.join(60)
    assert child.exitcode == 0
    assert client.queue("q").dequeue(max_items=10) == ["before", "of the child", "after"]
    client.close()
    enqueues = [line for line in lines_of(path) if line["f"] == "enqueue"]
    by_value = {line["value"]: line["process"] for line in enqueues}
    assert by_value["before"] == by_value["after"] != by_value["of the child"]
    assert len({line["id"] for line in enqueues}) == 3
    assert sites_of(cluster) == 2
    here.close()
    there.close()


def put_and_join_in_child(client: Client, shared: Queue) -> None:
    """What a forked child does with its parent's standard queue."""
    shared.put("of the child")
    shared.join()
    client.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_waits_for_nobody_who_uses_its_parents_standard_queue(
    cluster: LoopbackCluster,
) -> None:
    """At the fork the parent puts an item, gets another one, and works on a third."""
    client = connect(cluster.document)
    shared = Queue(client, "shared", maxsize=5)
    shared.put("at work")
    assert shared.get() == "at work"
    getting = threading.Thread(target=shared.get)
    getting.start()
    until_now(lambda: bool(shared._open.looks), "it looks for an item", deadline_s=60)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=put_and_join_in_child, args=(client, shared))
    with shared._putting:
        child.start()
    child.join(20)
    if child.is_alive():
        child.kill()
        child.join(20)
        shared.put("instead")
    getting.join(60)
    client.close()
    assert child.exitcode == 0


def sites_of(cluster: LoopbackCluster) -> int:
    """How many site ids stamped the entries that were sent."""
    batches = [msgpack.decode(asked.body, type=Batch) for asked in cluster.servers["r1"].messages]
    appends = [request for batch in batches for request in batch.requests if isinstance(request, Append)]
    return len({site(entry.t) for append in appends for entry in append.entries})
