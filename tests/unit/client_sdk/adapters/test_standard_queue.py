"""The standard queues over a replicated one: CPython's own suite for `queue.Queue`, and what is our own.

Of CPython's queue tests `BaseQueueTestMixin` alone speaks of the public methods; the others reach into a queue's insides.
Its tests of `shutdown` (from Python 3.13 on) are left out, for that is refused. Those of `asyncio.Queue` call `put_nowait`,
which cannot be answered at once here. Where the interpreter ships no `test`
package, only our own run.
"""

import asyncio
import copy
import itertools
import pickle
import queue as standard
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.adts.log import Value
from quorate.client_sdk import Client, connect, connect_async
from quorate.client_sdk.adapters.standard_queue import AsyncQueue, Queue
from quorate.client_sdk.protocol.core.values import Dequeue
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of

FROM_CPYTHON = (
    "test_queue_task_done",
    "test_queue_join",
    "test_basic",
    "test_negative_timeout_raises_exception",
    "test_nowait",
    "test_shrinking_queue",
)
JOIN_S = 30
NUMBERS = itertools.count(1)

New = Callable[..., Queue]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: LoopbackCluster) -> Iterator[Client]:
    with connect(cluster.document) as made:
        yield made


@pytest.fixture(scope="module")
def new(client: Client) -> New:
    """An empty queue, of a name that nobody had."""
    numbers = itertools.count(1)
    return lambda maxsize=0: Queue(client, f"queue-{next(numbers)}", maxsize)


@pytest.mark.parametrize("name", FROM_CPYTHON)
def test_cpythons_own_suite_accepts_it(new: New, name: str) -> None:
    suite = pytest.importorskip("test.test_queue", reason="this interpreter ships no test package")

    class Suite(suite.BaseQueueTestMixin, unittest.TestCase):  # type: ignore[misc, name-defined]
        queue = standard
        type2test = staticmethod(new)

    Suite(name).debug()


def test_no_test_of_the_mixin_is_left_out_in_silence() -> None:
    suite = pytest.importorskip("test.test_queue", reason="this interpreter ships no test package")
    names = {name for name in dir(suite.BaseQueueTestMixin) if name.startswith("test_")}
    assert {name for name in names if "shutdown" not in name} == set(FROM_CPYTHON)


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "get", "qsize", "empty", "full", "done"]), st.integers(0, 9)),
    max_size=30,
)


def did(queue: Any, step: tuple[str, int]) -> Any:
    """What a step gives, or the error it raises."""
    name, value = step
    try:
        match name:
            case "put":
                return queue.put_nowait(value)
            case "get":
                return queue.get_nowait()
            case "done":
                return queue.task_done()
    except (standard.Empty, standard.Full, ValueError) as error:
        return type(error)
    return getattr(queue, name)()


class Model(standard.Queue[int]):
    """The standard queue; but its `task_done` counts what was taken, as ours does."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self.taken = 0

    def get(self, block: bool = True, timeout: float | None = None) -> int:
        """See queue.Queue."""
        item = super().get(block, timeout)
        self.taken += 1
        return item

    def task_done(self) -> None:
        """See queue.Queue."""
        if not self.taken:
            raise ValueError
        self.taken -= 1
        super().task_done()


@settings(max_examples=25, deadline=None)
@given(maxsize=st.integers(0, 3), steps=STEPS)
def test_a_standard_queue_beside_it_gives_the_same(
    new: New, maxsize: int, steps: list[tuple[str, int]]
) -> None:
    ours, model = new(maxsize), Model(maxsize)
    for step in steps:
        assert did(ours, step) == did(model, step), step
    while did(model, ("get", 0)) is not standard.Empty:
        did(ours, ("get", 0))
    for _ in range(model.taken):
        ours.task_done()
    with pytest.raises(ValueError, match="too many times"):
        ours.task_done()


def test_two_objects_of_one_name_are_one_queue(client: Client) -> None:
    one, other = Queue(client, "shared"), Queue(client, "shared")
    one.put(None)
    one.put({"a": 1})
    assert other.get() is None
    assert other.get() == {"a": 1}
    assert one.empty()


def test_join_waits_for_what_others_put_and_this_one_took(client: Client) -> None:
    consumer, producer = Queue(client, "joined"), Queue(client, "joined")
    producer.put(1)
    joined = threading.Thread(target=consumer.join)
    joined.start()
    assert consumer.get() == 1
    joined.join(0.2)
    assert joined.is_alive()
    consumer.task_done()
    joined.join(JOIN_S)
    assert not joined.is_alive()
    with pytest.raises(ValueError, match="too many times"):
        consumer.task_done()


def test_join_waits_for_an_item_on_its_way_to_a_get(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replicas have given it out, so that the queue is empty; but nobody here has it yet, to call it done."""
    queue = Queue(client, "on-its-way")
    dequeue, taken, goes_on = queue._queue.dequeue, threading.Event(), threading.Event()

    def late(items_max: int, wait_s: float) -> Sequence[Any]:
        items: Sequence[Any] = dequeue(items_max, wait_s)
        taken.set()
        goes_on.wait(JOIN_S)
        return items

    monkeypatch.setattr(queue._queue, "dequeue", late)
    queue.put(1)
    getting, joining = threading.Thread(target=queue.get), threading.Thread(target=queue.join)
    getting.start()
    assert taken.wait(JOIN_S)
    joining.start()
    joining.join(0.2)
    assert joining.is_alive()
    goes_on.set()
    getting.join(JOIN_S)
    queue.task_done()
    joining.join(JOIN_S)
    assert not joining.is_alive()


def test_get_takes_no_longer_than_its_timeout_asks(new: New) -> None:
    began_s = time.monotonic()
    with pytest.raises(standard.Empty):
        new().get(timeout=0.3)
    assert time.monotonic() - began_s >= 0.3


async def test_the_queue_of_asyncio(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = AsyncQueue(client, "tasks", maxsize=2)
        done = []

        async def work() -> None:
            while (item := await queue.get()) is not None:
                done.append(item)
                queue.task_done()
            queue.task_done()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(work())
            for number in range(20):
                await queue.put(number)
            await queue.join()
            assert sorted(done) == list(range(20))
            for _ in range(2):
                await queue.put(None)
        assert await queue.size() == 0
        with pytest.raises(ValueError, match="too many times"):
            queue.task_done()


async def test_the_queue_of_asyncio_gives_up_in_time(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = AsyncQueue(client, "full", maxsize=1)
        with pytest.raises(asyncio.QueueEmpty):
            await queue.get(timeout=0.1)
        await queue.put(1)
        with pytest.raises(asyncio.QueueFull):
            await queue.put(2, timeout=0.1)
        taking = asyncio.create_task(queue.get())
        await queue.put(2, timeout=JOIN_S)
        assert await taking == 1
        assert await queue.get(timeout=0) == 2


async def test_join_waits_for_what_a_cancelled_get_took(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue, other = AsyncQueue(client, "cancelled"), client.queue("cancelled")
        for number in range(2):
            await queue.put(number)
        client.undelivered.keep(Dequeue("queue/cancelled"), (Value("-1"),))
        assert await queue.get() == -1
        queue.task_done()
        client.undelivered.keep(Dequeue("queue/cancelled"), (Value("-2"),))
        assert await other.dequeue(2) == [-2]
        assert await other.dequeue(2) == [0, 1]
        client.undelivered.keep(Dequeue("queue/cancelled"), (Value("-3"),))
        joining = asyncio.create_task(queue.join())
        await asyncio.wait([joining], timeout=0.1)
        assert not joining.done()
        assert await queue.get() == -3
        await asyncio.wait([joining], timeout=0.1)
        assert not joining.done()
        queue.task_done()
        await joining


async def test_no_item_is_lost_over_many_cancellations(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue, got = AsyncQueue(client, "often-cancelled"), list[Any]()
        for number in range(60):
            getters = [asyncio.create_task(queue.get()) for _ in range(1 + number % 2)]
            putting = asyncio.create_task(queue.put(number))
            for _ in range(5 * (number % 12)):
                await asyncio.sleep(0)
            if number % 3 == 0:
                await putting
            for getting in getters:
                getting.cancel()
            got += [
                each for each in await asyncio.gather(*getters, return_exceptions=True) if each in range(60)
            ]
            await putting
        while len(got) < 60:
            got.append(await queue.get(timeout=JOIN_S))
        assert sorted(got) == list(range(60))
        assert await queue.size() == 0


@settings(max_examples=10, deadline=None)
@given(maxsize=st.integers(0, 2), steps=STEPS)
def test_a_queue_of_asyncio_beside_it_gives_the_same(
    cluster: LoopbackCluster, maxsize: int, steps: list[tuple[str, int]]
) -> None:
    async def both() -> None:
        async with await connect_async(cluster.document) as client:
            ours, model = AsyncQueue(client, f"asyncio-{next(NUMBERS)}", maxsize), Model(maxsize)
            for name, value in steps:
                expected = did(model, (name, value))
                match name:
                    case "put" if expected is standard.Full:
                        with pytest.raises(asyncio.QueueFull):
                            await ours.put(value, timeout=0)
                    case "put":
                        await ours.put(value, timeout=0)
                    case "get" if expected is standard.Empty:
                        with pytest.raises(asyncio.QueueEmpty):
                            await ours.get(timeout=0)
                    case "get":
                        assert await ours.get(timeout=0) == expected
                    case "done" if expected is ValueError:
                        with pytest.raises(ValueError, match="too many times"):
                            ours.task_done()
                    case "done":
                        ours.task_done()
                    case _:
                        assert await ours.size() == model.qsize()

    asyncio.run(both())


@pytest.mark.parametrize("method", [Queue.shutdown, AsyncQueue.shutdown])
def test_nobody_can_end_the_queue_of_all(method: Callable[..., None]) -> None:
    with pytest.raises(NotImplementedError, match="that other processes use"):
        method(None)


@pytest.mark.parametrize("name", ["qsize", "empty", "full", "put_nowait", "get_nowait"])
async def test_what_cannot_be_answered_at_once_is_refused_with_advice(
    cluster: LoopbackCluster, name: str
) -> None:
    async with await connect_async(cluster.document) as client:
        queue = AsyncQueue(client, "refusing")
        with pytest.raises(NotImplementedError, match="use await queue"):
            getattr(queue, name)(*(("item",) if name == "put_nowait" else ()))


@pytest.mark.parametrize("maxsize", [None, "3", 2.5])
@pytest.mark.parametrize("kind", [Queue, AsyncQueue])
def test_a_maxsize_that_is_no_number_is_refused_at_once(client: Client, kind: Any, maxsize: Any) -> None:
    with pytest.raises(TypeError, match=r"maxsize is .* use a whole number, or 0 for no bound"):
        kind(client, "x", maxsize)


@pytest.mark.parametrize(("kind", "maker"), [(Queue, "what connect"), (AsyncQueue, "await connect_async")])
def test_what_is_no_client_is_named(kind: Any, maker: str) -> None:
    with pytest.raises(TypeError, match=f"'cluster.toml', of type str: give .*{maker}"):
        kind("cluster.toml", "x")


@pytest.mark.parametrize("act", [pickle.dumps, copy.deepcopy])
def test_it_is_neither_pickled_nor_copied(new: New, act: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="a Queue is neither pickled nor copied"):
        act(new())
