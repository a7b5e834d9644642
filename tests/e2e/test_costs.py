"""What operations cost, counted and not timed: rounds, requests, transactions, rows and bytes. A change that makes one of
them dearer must say so here.

Three real replicas run in this process behind a transport that carries the bytes of HTTP. No timer fires: what waits for
one (a lazy message that nothing else takes along, a request sent again) would let a busy machine decide the counts.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.api_specs.messages import Accept, Append, Batch, BatchReply, Commit
from quorate.client_sdk import link, tasks
from quorate.client_sdk.driver import Driver
from quorate.client_sdk.effects import (
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Operation,
    Read,
    Unanswered,
    Write,
)
from quorate.replica.store import Store
from tests.e2e.test_long_queue import DEADLINE_S, WAIT_S, Counting, Replicas

REPLICAS = 3
OPERATIONS = 20
AT_ONCE = 64
ITEM = '"' + 98 * "x" + '"'
NEVER_S = 3600.0

Make = Callable[[int], Operation]

QUEUE, CELL = "queue/q", "register/r"
ENQUEUE: Make = lambda _: Enqueue(QUEUE, (ITEM,))  # type: ignore[arg-type]
DEQUEUE: Make = lambda _: Dequeue(QUEUE)
WRITE: Make = lambda number: Write(CELL, str(number))  # type: ignore[arg-type]
READ: Make = lambda _: Read(CELL)
SET: Make = lambda number: CompareAndSet(CELL, str(number), str(number + 1))  # type: ignore[arg-type]


class Kinds(Counting):
    """Counts the requests by kind, too."""

    kinds: Counter[str]

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        self.kinds.update(type(each).__name__ for each in batch.requests)
        return await super().exchange(replica, batch, timeout_s)


class Bench:
    """One front end and what its operations cost."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self.transport = Kinds(replicas.members)
        self.transport.kinds = Counter()
        self._driver: Driver | None = None

    async def run(self, operations: list[Operation], *, at_once: bool = False) -> Counter[str]:
        """Each kind of request, exchanges, transactions and bytes, all together."""
        if self._driver is None:
            self._driver = self._replicas.front_end(self.transport)
        before = await self._counts()
        if at_once:
            outcomes = list(
                await asyncio.gather(*(self._driver.run(each, DEADLINE_S) for each in operations))
            )
        else:
            outcomes = [await self._driver.run(each, DEADLINE_S) for each in operations]
        assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
        await self._settle()
        return (await self._counts()) - before

    async def _settle(self) -> None:
        """Until the slowest replica has answered what it was sent."""
        assert self._driver is not None
        while any(each._tasks for each in self._driver._links.values()):
            await asyncio.sleep(0.001)

    async def _counts(self) -> Counter[str]:
        def commits(store: Store) -> int:
            return store.commits

        counts = Counter(self.transport.kinds)
        counts["exchanges"] = self.transport.cost.exchanges
        counts["bytes sent"] = self.transport.cost.request_bytes
        counts["commits"] = sum([await each.run(commits) for each in self._replicas.members.values()])
        return counts

    async def aclose(self) -> None:
        """Let go of the front end."""
        if self._driver is not None:
            await self._driver.aclose()


@pytest.fixture
def replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicas]:
    """Three, and no timers."""
    monkeypatch.setattr(link, "LAZY_WAIT_S", NEVER_S)
    monkeypatch.setattr(tasks, "RESEND_S_FIRST", NEVER_S)
    made = Replicas(tmp_path)
    yield made
    made.stop()


def counted(
    replicas: Replicas, prepare: list[Operation], measured: list[Operation], **how: bool
) -> Counter[str]:
    """What `measured` cost after `prepare`."""

    async def run() -> Counter[str]:
        bench = Bench(replicas)
        try:
            await bench.run(prepare)
            return await bench.run(measured, **how)
        finally:
            await bench.aclose()

    return asyncio.run(asyncio.wait_for(run(), WAIT_S))


@pytest.mark.parametrize(
    ("prepare", "make", "rounds", "commits", "sent"),
    [
        ([ENQUEUE(0)], ENQUEUE, 1, 1, 400),
        ([ENQUEUE(0) for _ in range(OPERATIONS + 2)] + [DEQUEUE(0)], DEQUEUE, 1, 1, 800),
        ([WRITE(0)], WRITE, 1, 1, 400),
        ([WRITE(0), READ(0)], READ, 1, 0, 400),
        ([WRITE(0)], SET, 2, 2, 900),
    ],
    ids=["enqueue", "dequeue", "write", "read", "compare-and-set"],
)
def test_one_at_a_time(
    replicas: Replicas, prepare: list[Operation], make: Make, rounds: int, commits: int, sent: int
) -> None:
    """Each replica hears of each round once; marks of completeness and of decisions go along with the next."""
    cost = counted(replicas, prepare, [make(number) for number in range(OPERATIONS)])
    asked = OPERATIONS * REPLICAS
    # Less, when a replica that lags behind is sent two rounds in one exchange.
    assert asked * rounds / 2 < cost["exchanges"] <= asked * rounds
    assert cost["commits"] <= (asked + REPLICAS) * commits
    assert cost["bytes sent"] <= asked * sent


def test_enqueues_at_once_go_together(replicas: Replicas) -> None:
    """One message to each replica carries all."""
    cost = counted(replicas, [ENQUEUE(0)], [ENQUEUE(0) for _ in range(AT_ONCE)], at_once=True)
    assert cost["exchanges"] == REPLICAS
    assert cost["commits"] == REPLICAS
    assert cost[Append.__name__] == REPLICAS
    assert cost["bytes sent"] <= REPLICAS * AT_ONCE * 200


def test_writes_at_once_go_together(replicas: Replicas) -> None:
    """Each is an operation of its own, but one exchange with each replica carries all."""
    cost = counted(replicas, [WRITE(0)], [WRITE(number) for number in range(AT_ONCE)], at_once=True)
    assert cost["exchanges"] == REPLICAS
    assert cost["commits"] == REPLICAS
    assert cost[Append.__name__] == REPLICAS * AT_ONCE


def test_marks_of_what_one_answer_completes_are_one(replicas: Replicas) -> None:
    async def run() -> Counter[str]:
        bench = Bench(replicas)
        try:
            await bench.run([WRITE(0)])
            await bench.run([WRITE(0)] * AT_ONCE, at_once=True)
            return await bench.run([WRITE(0)])
        finally:
            await bench.aclose()

    cost = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert cost[Commit.__name__] <= REPLICAS


def test_callers_that_ask_again_and_again_share_each_decision(replicas: Replicas) -> None:
    """And do not split into two halves that take turns, which would take twice as many decisions."""
    each = 20

    async def run() -> Counter[str]:
        bench = Bench(replicas)
        try:
            await bench.run([ENQUEUE(0) for _ in range(AT_ONCE * (each + 1))], at_once=True)
            await bench.run([DEQUEUE(0)])
            before = Counter(bench.transport.kinds)
            await asyncio.gather(*(bench.run([DEQUEUE(0)] * each) for _ in range(AT_ONCE)))
            return bench.transport.kinds - before
        finally:
            await bench.aclose()

    kinds = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert kinds[Accept.__name__] <= REPLICAS * each * 1.6


def test_dequeues_at_once_are_one_decision(replicas: Replicas) -> None:
    """In a few rounds, for the first caller's wish goes ahead alone, and what it looked at was little."""
    prepare = [ENQUEUE(0) for _ in range(AT_ONCE + 2)] + [DEQUEUE(0)]
    cost = counted(replicas, prepare, [DEQUEUE(0)] * AT_ONCE, at_once=True)
    assert cost["exchanges"] <= 4 * REPLICAS
    assert cost["commits"] <= 4 * REPLICAS
