"""Loops over queues on three replicas in memory behind HTTP: what they hold, tell, renew, give back and raise."""

import asyncio
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest

from quorate.client_sdk import (
    AsyncClient,
    AsyncQueue,
    BadInput,
    Client,
    Closed,
    LeaseCounts,
    LeaseLost,
    Queue,
    Unavailable,
    connect,
    connect_async,
)
from quorate.client_sdk.api.calls import Call
from quorate.client_sdk.api.consuming import Left
from quorate.client_sdk.api.leases import Delivery
from quorate.client_sdk.protocol.core.values import Acquire, Settle
from tests.support.patience import PATIENT_S
from tests.system.harness import until, until_now
from tests.unit.client_sdk.api.test_undelivered import asked, gated
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of

ITEMS = 200
LONG_S = 600.0
"""A lease that no test waits for."""
WAIT_S = 60.0


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


class Calls:
    """What a client has asked of queues: how often, and with how many leases each."""

    def __init__(self, client: AsyncClient | Client) -> None:
        self.counts: Counter[str] = Counter()
        self.sizes: dict[str, list[int]] = {}
        client.on_finished(self._finished)

    def _finished(self, operation: Any, *_: object) -> None:
        if isinstance(operation, Settle):
            self.counts[operation.how] += 1
            self.sizes.setdefault(operation.how, []).append(len(operation.tokens))
        elif isinstance(operation, Acquire):
            self.counts["acquire"] += 1


async def gone(queue: AsyncQueue) -> bool:
    """Whether nothing is left of the queue's items."""
    return (await queue.size(), await queue.leases()) == (0, LeaseCounts(0, 0, 0))


async def test_each_item_comes_once_in_order_and_acknowledgements_go_together(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        await queue.enqueue_many(range(ITEMS))
        got = []
        async for lease in queue.consume(50, LONG_S, wait_s=0):
            got.append(lease.value)
            lease.ack()
        assert got == list(range(ITEMS))
        assert await gone(queue)
        assert sum(calls.sizes["ack"]) == ITEMS
        assert calls.counts["ack"] <= ITEMS / 10
        assert calls.counts["release"] == calls.counts["renew"] == 0


def test_a_blocking_loop_does_the_same(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        queue.enqueue_many(range(ITEMS))
        got = []
        for lease in queue.consume(50, LONG_S, wait_s=0):
            got.append(lease.value)
            lease.ack()
        assert got == list(range(ITEMS))
        assert (queue.size(), queue.leases()) == (0, LeaseCounts(0, 0, 0))
        assert sum(calls.sizes["ack"]) == ITEMS
        assert calls.counts["acquire"] <= ITEMS / 4


async def test_a_loop_waits_for_items_that_come_later(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = client.queue("q")
        async with aclosing(queue.consume(lease_s=LONG_S)) as leases:
            coming = asyncio.create_task(anext(leases))
            for number in range(3):
                await queue.enqueue(number)
                async with asyncio.timeout(WAIT_S):
                    lease = await coming
                assert (lease.value, lease.deliveries, lease.redelivered) == (number, 1, False)
                lease.ack()
                coming = asyncio.create_task(anext(leases))
            coming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await coming
        assert await gone(queue)


async def test_what_becomes_of_items_is_told_in_all_ways(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = client.queue("q")
        await queue.enqueue_many(["ack", "release", "reject", "drop", "later"])
        seen: list[tuple[Any, int]] = []
        async for lease in queue.consume(lease_s=LONG_S, wait_s=0):
            seen.append((lease.value, lease.deliveries))
            match lease.value, lease.redelivered:
                case "release", False:
                    lease.release()
                case "later", False:
                    lease.release(delay_s=3600)
                case "reject", _:
                    lease.reject()
                case "drop", _:
                    lease.reject(dead_letter=False)
                case _:
                    lease.ack()
        assert seen == [
            *((value, 1) for value in ("ack", "release", "reject", "drop", "later")),
            ("release", 2),
        ]
        assert [letter.value for letter in await queue.dead_letters()] == ["reject"]
        assert await queue.leases() == LeaseCounts(held=0, waiting=1, dead=1)


async def test_no_more_is_held_than_asked_for_and_the_next_comes_when_one_is_done(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        queue = client.queue("q")
        await queue.enqueue_many(range(10))
        async with aclosing(queue.consume(3, LONG_S)) as leases:
            first = [await anext(leases) for _ in range(3)]
            coming = asyncio.create_task(anext(leases))
            assert await queue.leases() == LeaseCounts(held=3, waiting=0, dead=0)
            assert not coming.done()
            first[1].ack()
            async with asyncio.timeout(WAIT_S):
                assert (await coming).value == 3
            assert (await queue.leases()).held == 3
            first[0].ack()
        assert await queue.leases() == LeaseCounts(held=0, waiting=2, dead=0)


async def test_a_loop_that_ends_by_itself_waits_for_what_others_work_on(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue, worked_on = client.queue("q"), list[Delivery]()
        await queue.enqueue_many(range(3))

        async def loop() -> None:
            async for lease in queue.consume(lease_s=LONG_S, wait_s=0):
                worked_on.append(lease)

        looping = asyncio.create_task(loop())
        await until(lambda: len(worked_on) == 3, "all are worked on")
        worked_on[0].ack()
        worked_on[2].ack()
        assert not (await asyncio.wait([looping], timeout=0.5))[0]
        await asyncio.to_thread(worked_on[1].ack)
        async with asyncio.timeout(WAIT_S):
            await looping
        assert await gone(queue)


async def to_its_end(leases: AsyncIterator[Delivery], got: list[Delivery]) -> None:
    """Take all that comes."""
    async with asyncio.timeout(WAIT_S):
        async for lease in leases:
            got.append(lease)  # noqa: PERF401 - what came before an error counts


async def broken_off(queue: AsyncQueue, how: str) -> None:
    """Take a first item, acknowledge it, take a second one, and leave in this way."""
    if how == "aclose":
        leases = queue.consume(lease_s=LONG_S)
        (await anext(leases)).ack()
        await anext(leases)
        await leases.aclose()
        return
    async for lease in queue.consume(lease_s=LONG_S):
        if lease.value == 0:
            lease.ack()
        elif how == "break":
            break
        elif how == "exception":
            raise ZeroDivisionError
        else:
            await asyncio.Event().wait()


@pytest.mark.parametrize("how", ["break", "exception", "cancellation", "aclose"])
async def test_what_waits_goes_back_in_one_call_however_a_loop_is_left(
    cluster: LoopbackCluster, how: str
) -> None:
    async with await connect_async(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        await queue.enqueue_many(range(8))
        looping = asyncio.create_task(broken_off(queue, how))
        if how == "cancellation":
            # Nothing is certain before the item that it waits for is acknowledged: all others are held then.
            await until(lambda: calls.counts["ack"] == 1, "the first item is acknowledged")
            looping.cancel()
        ends = await asyncio.gather(looping, return_exceptions=True)
        kinds = {"exception": ZeroDivisionError, "cancellation": asyncio.CancelledError}
        assert type(ends[0]) is kinds.get(how, type(None))
        del looping, ends
        await until(lambda: calls.counts["release"] == 1, "what waits goes back")
        assert calls.sizes["release"] == [7]
        assert await queue.leases() == LeaseCounts(held=0, waiting=7, dead=0)
        assert [lease.value for lease in await queue.acquire(10)] == list(range(1, 8))


@pytest.mark.parametrize("how", ["break", "exception", "close"])
def test_a_blocking_loop_gives_back_before_the_next_line(cluster: LoopbackCluster, how: str) -> None:
    with connect(cluster.document) as client:
        queue = client.queue("q")
        queue.enqueue_many(range(8))
        leave(queue, how)
        assert queue.leases() == LeaseCounts(held=0, waiting=7, dead=0)


def leave(queue: Queue, how: str) -> None:
    """As `broken_off`."""
    try:
        with closing(queue.consume(lease_s=LONG_S)) as leases:
            for lease in leases:
                if lease.value == 0:
                    lease.ack()
                elif how == "break":
                    break
                elif how == "exception":
                    raise ZeroDivisionError
                else:
                    leases.close()
    except ZeroDivisionError:
        pass


def test_a_blocking_loop_that_is_left_by_break_alone_gives_back_at_once(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        queue = client.queue("q")
        queue.enqueue_many(range(8))
        for lease in queue.consume(lease_s=LONG_S):
            lease.ack()
            break
        assert queue.leases() == LeaseCounts(held=0, waiting=7, dead=0)


async def test_a_client_that_is_closed_ends_its_loops_in_order(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as other:
        async with await connect_async(cluster.document) as client:
            await client.queue("q").enqueue_many(range(8))
            leases = client.queue("q").consume(lease_s=LONG_S)
            (await anext(leases)).ack()
            kept = await anext(leases)
        assert await other.queue("q").leases() == LeaseCounts(held=0, waiting=7, dead=0)
        with pytest.raises(LeaseLost):
            kept.ack()
        with pytest.raises(Closed, match="connect again"):
            async with asyncio.timeout(WAIT_S):
                await anext(leases)


async def test_an_acquire_that_is_under_way_when_the_loop_is_left_gives_its_items_back(
    cluster: LoopbackCluster,
) -> None:
    """The decision is made, and no replica's answer is here yet."""
    async with (
        await connect_async(cluster.document) as other,
        await connect_async(cluster.document) as client,
    ):
        await other.queue("q").enqueue_many(range(3))
        with gated(cluster) as gate:
            looping = asyncio.create_task(anext(client.queue("q").consume(lease_s=LONG_S)))
            await gate.wait()
            looping.cancel()
            await asyncio.sleep(0)
            gate.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await looping
        counts = await other.queue("q").leases()
        assert (counts.held, counts.waiting + await other.queue("q").size()) == (0, 3)


async def test_no_item_is_held_after_many_loops_that_were_left_at_any_moment(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        queue, got, count = client.queue("q"), list[int](), 60

        async def loop() -> None:
            async with aclosing(queue.consume(lease_s=LONG_S)) as leases:
                async for lease in leases:
                    got.append(lease.value)
                    lease.ack()

        for number in range(count):
            looping = asyncio.create_task(loop())
            putting = asyncio.create_task(queue.enqueue(number))
            for _ in range(5 * (number % 12)):
                await asyncio.sleep(0)
            looping.cancel()
            await asyncio.gather(looping, putting, return_exceptions=True)
            assert (await queue.leases()).held == 0
        async for lease in queue.consume(lease_s=LONG_S, wait_s=0):
            got.append(lease.value)
            lease.ack()
        assert sorted(got) == list(range(count))


async def test_leases_are_renewed_together_for_as_long_as_items_wait_or_are_worked_on(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        await queue.enqueue_many(range(5))
        async with aclosing(queue.consume(5, lease_s=1.5)) as leases:
            first = await anext(leases)
            await until(lambda: calls.counts["renew"] >= 4, "more time has passed than a lease lasts")
            together = set(calls.sizes["renew"])
            first.ack()
            rest = [await anext(leases) for _ in range(4)]
            for lease in rest:
                lease.ack()
        assert together == {5}
        assert await gone(queue)


async def test_a_lease_that_was_lost_is_told_at_the_next_step(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = client.queue("q")
        await queue.enqueue_many(range(4))
        async with aclosing(queue.consume(lease_s=LONG_S)) as leases:
            lost, kept = await anext(leases), await anext(leases)
            await queue.release(lost)
            lost.ack()
            kept.ack()
            with pytest.raises(LeaseLost) as raised:
                await to_its_end(leases, [])
            assert raised.value.lost == (lost.token,)
        assert await queue.leases() == LeaseCounts(held=0, waiting=3, dead=0), "the other one is acknowledged"


async def test_a_lease_that_was_lost_at_a_renewal_is_told_to_who_acknowledges_it(
    cluster: LoopbackCluster,
) -> None:
    async with await connect_async(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        await queue.enqueue_many(range(4))
        async with aclosing(queue.consume(4, lease_s=1.5)) as leases:
            lost = await anext(leases)
            await queue.release(lost)
            enough = calls.counts["renew"] + 2  # The first one may be under way already.
            await until(lambda: calls.counts["renew"] >= enough, "leases are renewed")
            with pytest.raises(LeaseLost) as raised:
                lost.ack()
            assert raised.value.lost == (lost.token,)
            assert (await anext(leases)).value == 1, "the loop goes on"


async def test_an_outage_that_ends_in_time_is_not_noticed(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document, deadline_s=0.3) as client:
        queue, got = client.queue("q"), list[int]()
        await queue.enqueue_many(range(ITEMS), deadline_s=PATIENT_S)
        failed, starting = list[object](), list[asyncio.Task[None]]()
        client.on_finished(
            lambda _op, _at, _took, end: failed.append(end) if hasattr(end, "reason") else None
        )
        async for lease in queue.consume(20, LONG_S, wait_s=1):
            got.append(lease.value)
            lease.ack()
            if len(got) == 50:
                for id in ("r1", "r2"):
                    await asyncio.to_thread(cluster.servers[id].stop)
                starting.append(asyncio.create_task(started_again(cluster, failed)))
        await starting[0]
        assert len(set(got)) == len(got)
        assert len(got) > ITEMS / 2, "the loop went on"
        # Of an acquire whose answer was lost the items stay under a lease that nobody knows of, until it is over.
        counts = await queue.leases(deadline_s=PATIENT_S)
        assert (counts.held, await queue.size(deadline_s=PATIENT_S)) == (ITEMS - len(got), 0)


async def started_again(cluster: LoopbackCluster, failed: list[object]) -> None:
    """Once two calls have come to nothing."""
    await until(lambda: len(failed) >= 2, "calls fail")
    for id in ("r1", "r2"):
        await asyncio.to_thread(cluster.servers[id].start)


class Failing:
    """Calls of a client's loops, of which some come to nothing: those of one kind, for as long as `fails`."""

    def __init__(self, client: AsyncClient, kind: type[Acquire] | type[Settle]) -> None:
        self._perform = client.loops._perform
        self._kind = kind
        self.fails = True
        self.failed = 0
        client.loops._perform = self.perform

    async def twice(self) -> None:
        """Wait until two more have come to nothing."""
        enough = self.failed + 2
        await until(lambda: self.failed >= enough, "calls fail")

    async def perform(self, call: Call[Any], deadline_s: float | None, left: Left | None) -> Any:
        """Run a call, or not."""
        if self.fails and isinstance(call.operation, self._kind):
            self.failed += 1
            raise Unavailable("for a while", definite=True)
        return await self._perform(call, deadline_s, left)


async def test_a_loop_does_not_end_before_its_acknowledgements_are_heard(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue, failing, got = client.queue("q"), Failing(client, Settle), list[Delivery]()
        await queue.enqueue(0)

        async def loop() -> None:
            async for lease in queue.consume(lease_s=LONG_S, wait_s=0):
                got.append(lease)
                lease.ack()

        looping = asyncio.create_task(loop())
        await failing.twice()
        assert not (await asyncio.wait([looping], timeout=0.5))[0]
        await queue.release(got[0], delay_s=3600)
        failing.fails = False
        with pytest.raises(LeaseLost):
            async with asyncio.timeout(WAIT_S):
                await looping


async def test_patience_begins_anew_with_each_outage(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        ahead_s = 0.0
        client.loops._now_s = lambda: time.monotonic() + ahead_s
        queue, failing = client.queue("q"), Failing(client, Acquire)
        async with aclosing(queue.consume(lease_s=LONG_S)) as leases:
            failing.fails = False
            await queue.enqueue(0)
            (await anext(leases)).ack()
            for number in (1, 3, 5):
                failing.fails = True
                await queue.enqueue(
                    number
                )  # An acquire that is under way takes this one; those after it fail.
                await failing.twice()
                failing.fails = False
                await queue.enqueue(number + 1)
                async with asyncio.timeout(WAIT_S):
                    for _ in range(2):
                        (await anext(leases)).ack()
                ahead_s += LONG_S / 3
        assert await gone(queue)


async def test_an_outage_that_lasts_is_raised_after_what_was_there(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        queue = client.queue("q")
        await queue.enqueue_many(range(4))
        leases = queue.consume(4, lease_s=LONG_S, patience_s=0.5)  # So that no acquire is under way.
        got = list[Delivery]()
        first = await anext(leases)
        for server in cluster.servers.values():
            await asyncio.to_thread(server.stop)
        for loop in client.loops._open:
            loop._call_s = 0.2  # type: ignore[misc]
        first.ack()
        with pytest.raises(Unavailable):
            await to_its_end(leases, got)
        assert [lease.value for lease in got] == [1, 2, 3][: len(got)]
        for server in cluster.servers.values():
            await asyncio.to_thread(server.start)
        async with await connect_async(cluster.document) as other:
            counts = await other.queue("q").leases()
            assert counts.held + counts.waiting + await other.queue("q").size() in (3, 4), "none is lost"


async def test_what_no_repeat_can_mend_is_raised_at_once(cluster: LoopbackCluster) -> None:
    async with await connect_async(cluster.document) as client:
        leases = client.queue("q").consume(max_deliveries=1)
        waiting = asyncio.create_task(anext(leases))
        await client.queue("q").enqueue(0)
        (await waiting).ack()
        await client._driver.aclose()
        with pytest.raises(Closed):
            async with asyncio.timeout(WAIT_S):
                await anext(leases)


def test_a_blocking_loop_hands_items_to_threads(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        queue, done = client.queue("q"), list[threading.Thread]()
        queue.enqueue_many(range(ITEMS))
        for lease in queue.consume(20, LONG_S, wait_s=0):
            done.append(threading.Thread(target=lease.ack))
            done[-1].start()
        for thread in done:
            thread.join(WAIT_S)
        assert len(done) == ITEMS
        assert (queue.size(), queue.leases()) == (0, LeaseCounts(0, 0, 0))


def work_in_child(leases: Generator[Delivery, None, None], lease: Delivery, pipe: Any) -> None:
    """What a forked child may try with its parent's loop."""
    told = []
    for attempt in (lease.ack, lambda: next(leases)):
        try:
            attempt()
        except BadInput as error:
            told.append(str(error))
    leases.close()
    pipe.send(told)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_its_parents_loop_alone(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        queue = client.queue("q")
        queue.enqueue_many(range(4))
        leases = queue.consume(lease_s=LONG_S)
        first = next(leases)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=work_in_child, args=(leases, first, there))
        child.start()
        assert here.poll(WAIT_S)
        told = here.recv()
        child.join(WAIT_S)
        assert child.exitcode == 0
        assert len(told) == 2
        assert all("belongs to another process" in each for each in told)
        assert queue.leases().held == 4
        first.ack()
        assert next(leases).value == 1
        leases.close()
        assert queue.leases() == LeaseCounts(held=0, waiting=3, dead=0)
        here.close()
        there.close()


def test_a_delivery_may_outlive_its_client(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        client.queue("q").enqueue_many(range(2))
        leases = client.queue("q").consume(lease_s=LONG_S)
        done, kept = next(leases), next(leases)
        done.ack()
    done.ack()
    kept.release()  # That is what has become of it.
    with pytest.raises(LeaseLost):
        kept.ack()


def test_a_loop_that_nobody_steps_asks_for_nothing(cluster: LoopbackCluster) -> None:
    with connect(cluster.document) as client:
        calls, queue = Calls(client), client.queue("q")
        queue.enqueue(0)
        leases = queue.consume(lease_s=LONG_S)
        leases.close()
        del leases
        assert queue.dequeue() == 0
        assert calls.counts["acquire"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prefetch": 0}, "prefetch is 0: use 1 to"),
        ({"prefetch": 10**6}, "prefetch is 1000000: use 1 to"),
        ({"prefetch": "5"}, "prefetch is of type str"),
        ({"lease_s": 0}, "lease_s is 0"),
        ({"wait_s": -1}, "wait_s is -1: use 0 seconds or more"),
        ({"wait_s": "1"}, "wait_s is of type str"),
        ({"patience_s": float("nan")}, "patience_s is nan"),
        ({"patience_s": None}, "patience_s is of type NoneType"),
        ({"max_deliveries": 0}, "max_deliveries is 0"),
    ],
)
def test_a_wrong_option_is_named_before_the_first_step(
    cluster: LoopbackCluster, options: dict[str, Any], words: str
) -> None:
    with connect(cluster.document) as client, pytest.raises(BadInput, match=words):
        client.queue("q").consume(**options)


def test_a_blocking_loop_that_waits_ends_when_another_thread_closes_the_client(
    cluster: LoopbackCluster,
) -> None:
    client = connect(cluster.document)
    ended: list[BaseException] = []

    def loop() -> None:
        try:
            for lease in client.queue("q").consume(lease_s=LONG_S):
                lease.ack()
        except Closed as error:
            ended.append(error)

    thread, before = threading.Thread(target=loop), asked(cluster)
    thread.start()
    until_now(lambda: asked(cluster) > before, "it looks for items")
    client.close()
    thread.join(WAIT_S)
    assert len(ended) == 1
