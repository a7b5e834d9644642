"""Dequeues whose callers go away, observers that raise, histories that cannot be written: no item is lost by them."""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from quorate.api_specs.messages import Accept, Batch
from quorate.client_sdk import AsyncClient, History, Unavailable, connect, connect_async
from quorate.client_sdk.protocol.front_end import FrontEnd
from tests.unit.client_sdk.loopback import LoopbackCluster, PendingCommand, cluster_of
from tests.unit.client_sdk.scripted import document_of

WAIT_S = 30.0


class Gate:
    """Where answers to accepts wait, at every replica: the decision is made, and its caller does not know yet."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        for server in cluster.servers.values():
            server.handler = self._behind(server.handler)

    def _behind(
        self, handler: Callable[[PendingCommand], Awaitable[bytes]]
    ) -> Callable[[PendingCommand], Awaitable[bytes]]:
        async def handle(asked: PendingCommand) -> bytes:
            answer = await handler(asked)
            if asked.line.startswith("POST") and _accepts(asked):
                self.reached.set()
                await asyncio.to_thread(self.opened.wait, WAIT_S)
            return answer

        return handle

    async def wait(self) -> None:
        """Until an answer waits."""
        assert await asyncio.to_thread(self.reached.wait, WAIT_S)


def _accepts(asked: PendingCommand) -> bool:
    return any(isinstance(each, Accept) for each in msgpack.decode(asked.body, type=Batch).requests)


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


@contextmanager
def gated(cluster: LoopbackCluster) -> Iterator[Gate]:
    gate = Gate(cluster)
    try:
        yield gate
    finally:
        gate.opened.set()


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def asked(cluster: LoopbackCluster) -> int:
    """How often replicas were asked."""
    return sum(len(server.messages) for server in cluster.servers.values())


async def filled(client: AsyncClient, name: str, count: int) -> None:
    await client.queue(name).enqueue_many(range(count))


@pytest.mark.parametrize(
    ("max_items", "rest"), [(None, [[0], [1], [2]]), (2, [[0], [1], [2]]), (3, [[0], [1], [2]])]
)
async def test_what_a_cancelled_dequeue_took_is_given_to_the_next_in_order(
    cluster: LoopbackCluster, max_items: int | None, rest: list[list[int]]
) -> None:
    async with await connect_async(cluster.document) as client:
        await filled(client, "q", 3)
        queue = client.queue("q")
        with gated(cluster) as gate:
            taking = asyncio.create_task(queue.dequeue(max_items))
            await gate.wait()
            await cancelled(taking)
            nexts = [asyncio.create_task(client.queue("q").dequeue(1)) for _ in range(3)]
            await asyncio.sleep(0)
            gate.opened.set()
            assert [await each for each in nexts] == rest
        assert await queue.dequeue() is None


@pytest.mark.parametrize("is_first", [False, True])
async def test_an_item_whose_answer_was_there_when_its_caller_was_cancelled_is_kept(
    cluster: LoopbackCluster, is_first: bool
) -> None:
    """The narrowest moments: the future is done, or cancelled just before, and the task that waits for it has not run yet."""
    async with await connect_async(cluster.document) as client:
        await filled(client, "q", 2)
        taking = asyncio.create_task(client.queue("q").dequeue())
        step = client._driver._apply

        def apply(effects: Any, **how: Any) -> None:
            if is_first and effects.finished:
                taking.cancel()
            step(effects, **how)
            if effects.finished:
                taking.cancel()

        client._driver._apply = apply  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await taking
        client._driver._apply = step  # type: ignore[method-assign]
        assert [await client.queue("q").dequeue() for _ in range(3)] == [0, 1, None]


async def test_no_item_is_lost_over_many_cancellations_of_dequeues(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue, got, count = client.queue("often"), list[int](), 60
        for number in range(count):
            takers = [asyncio.create_task(queue.dequeue(wait_s=1)) for _ in range(1 + number % 2)]
            putting = asyncio.create_task(queue.enqueue(number))
            for _ in range(5 * (number % 12)):
                await asyncio.sleep(0)
            if number % 3 == 0:
                await putting
            for taking in takers:
                taking.cancel()
            ends = await asyncio.gather(*takers, return_exceptions=True)
            got += [each for each in ends if isinstance(each, int)]
            await putting
        while len(got) < count and (item := await queue.dequeue(wait_s=1)) is not None:
            got.append(item)
        assert sorted(got) == list(range(count))
        assert await queue.size() == 0


async def test_a_cancelled_dequeue_that_waits_takes_nothing_any_more(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as one, await connect_async(cluster.document) as other:
        assert await one.queue("q").dequeue() is None
        in_one_look = asked(cluster)
        waiting = asyncio.create_task(one.queue("q").dequeue(wait_s=20, deadline_s=20))
        async with asyncio.timeout(15):
            while asked(cluster) <= 2 * in_one_look:
                await asyncio.sleep(0.01)
        await cancelled(waiting)
        front_end = one._driver._machine
        assert isinstance(front_end, FrontEnd)
        async with asyncio.timeout(15):
            while front_end._tasks or not one.undelivered.is_empty("queue/q"):
                await asyncio.sleep(0.01)
        await other.queue("q").enqueue("later")
        assert await other.queue("q").dequeue() == "later"


async def test_one_that_is_repeated_by_its_key_is_not_kept(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        await filled(client, "q", 2)
        with gated(cluster) as gate:
            taking = asyncio.create_task(client.queue("q").dequeue(idempotency_key="k"))
            await gate.wait()
            await cancelled(taking)
        assert await client.queue("q").dequeue() == 1
        assert await client.queue("q").dequeue(idempotency_key="k") == 0


async def test_a_dequeue_waits_for_the_cancelled_one_no_longer_than_its_deadline(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        await filled(client, "q", 2)
        with gated(cluster) as gate:
            taking = asyncio.create_task(client.queue("q").dequeue())
            await gate.wait()
            await cancelled(taking)
            with pytest.raises(
                Unavailable, match="cancelled dequeue of this queue has no outcome yet"
            ) as caught:
                await client.queue("q").dequeue(deadline_s=0.2)
            assert caught.value.definite
        assert [await client.queue("q").dequeue() for _ in range(2)] == [0, 1]


async def test_what_is_kept_when_the_client_is_closed_is_told(
    cluster: LoopbackCluster, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect_async(cluster.document)
    await filled(client, "q", 1)
    with gated(cluster) as gate:
        taking = asyncio.create_task(client.queue("q").dequeue())
        await gate.wait()
        await cancelled(taking)
        gate.opened.set()
        async with asyncio.timeout(WAIT_S):
            while client.undelivered._coming:
                await asyncio.sleep(0.01)
    with caplog.at_level(logging.WARNING):
        await client.aclose()
    assert "1 items of queue/q that cancelled dequeues took were not asked for again" in caplog.text


async def test_the_history_of_a_cancelled_dequeue_ends_with_what_it_took(
    cluster: LoopbackCluster, tmp_path: Path
) -> None:
    heard = []
    async with await connect_async(cluster.document, history=History(tmp_path / "h.jsonl")) as client:
        client.on_finished(lambda operation, *_: heard.append(type(operation).__name__))
        await filled(client, "q", 1)
        with gated(cluster) as gate:
            taking = asyncio.create_task(client.queue("q").dequeue())
            await gate.wait()
            await cancelled(taking)
        assert await client.queue("q").dequeue() == 0
    lines = [json.loads(line) for line in (tmp_path / "h.jsonl").read_text().splitlines()]
    ends = [(line["type"], line["result"]) for line in lines if line["f"] == "dequeue"]
    assert ends == [("invoke", None), ("ok", 0)]
    assert heard == ["Enqueue", "Dequeue"]


def test_an_observer_that_raises_changes_nothing_but_the_log(
    cluster: LoopbackCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard = list[object]()

    def raises(*_: object) -> None:
        raise ZeroDivisionError

    with connect(cluster.document, history=History(tmp_path / "h.jsonl")) as client:
        for observer in (raises, lambda *each: heard.append(each[3])):
            client.on_finished(observer)
        client.queue("q").enqueue("kept")
        assert client.queue("q").dequeue() == "kept"
    types = [json.loads(line)["type"] for line in (tmp_path / "h.jsonl").read_text().splitlines()]
    assert types == ["invoke", "ok", "invoke", "ok"]
    assert len(heard) == 2, "the other observer hears nevertheless"
    assert "an observer of queue/q raised" in caplog.text


async def test_an_item_survives_a_history_that_cannot_be_written(
    cluster: LoopbackCluster, tmp_path: Path
) -> None:
    history = History(tmp_path / "h.jsonl")
    async with await connect_async(cluster.document, history=history) as client:
        await filled(client, "q", 1)
        with gated(cluster) as gate:
            taking = asyncio.create_task(client.queue("q").dequeue())
            await gate.wait()
            history.close()
            gate.opened.set()
            with pytest.raises(OSError, match="Bad file descriptor"):
                await taking
        assert await client.queue("q").dequeue() == 0
