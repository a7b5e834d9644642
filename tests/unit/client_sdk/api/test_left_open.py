"""Clients that nobody closes: they warn, and close themselves. And how clients and handles are shown."""

import asyncio
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from quorate.adts.collector import COLLECTOR
from quorate.client_sdk import connect, connect_async
from tests.system.harness import until_now
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "quorate-client"]


def leave(left: list[Any]) -> None:
    """Nobody holds these any more."""
    left.clear()
    COLLECTOR.collect()


def test_a_client_that_was_left_open_warns_and_ends_its_thread(cluster: LoopbackCluster) -> None:
    left = [connect(cluster.document)]
    left[0].queue("q").enqueue(1)
    assert len(threads()) == 1
    with pytest.warns(
        ResourceWarning, match="<Client of 'scripted': r1, r2, r3> was left open: close it, or make it by"
    ):
        leave(left)
    until_now(lambda: not threads(), "the thread has ended")


def test_a_client_that_was_closed_does_not_warn(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        left = [client.queue("q")]
    del client
    leave(left)


def test_a_handle_keeps_its_client_open(cluster: LoopbackCluster) -> None:
    left = [connect(cluster.document).queue("q")]
    COLLECTOR.collect()
    left[0].enqueue(1)
    assert repr(left) == "[<Queue 'q' of 'scripted'>]"
    with pytest.warns(ResourceWarning, match="left open"):
        leave(left)


async def test_an_asyncio_client_that_was_left_open_warns_and_closes_itself(cluster: LoopbackCluster) -> None:
    left = [await connect_async(cluster.document)]
    await left[0].queue("q").enqueue(1)
    before = asyncio.all_tasks()
    assert repr(left[0].queue("q")) == "<AsyncQueue 'q' of 'scripted'>"
    with pytest.warns(ResourceWarning, match="<AsyncClient of 'scripted': r1, r2, r3> was left open: await"):
        leave(left)
    while not (ending := asyncio.all_tasks() - before):
        await asyncio.sleep(0)
    await asyncio.gather(*ending)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_forked_child_leaves_its_parents_asyncio_client_alone(
    cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect_async(cluster.document) as client:
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: 0)
            client.__del__()
        await client.queue("q").enqueue(1)


def test_after_its_event_loop_an_asyncio_client_warns_only(cluster: LoopbackCluster) -> None:
    async def use() -> None:
        await (await connect_async(cluster.document)).queue("q").enqueue(1)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(use())
        COLLECTOR.collect()
    assert any("AsyncClient of 'scripted'" in str(each.message) for each in warned), (
        "its sockets warn as well"
    )
