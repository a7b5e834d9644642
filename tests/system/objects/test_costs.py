"""What operations cost, counted and not timed: rounds, requests, transactions, syncs, rows and bytes. A change that makes one
of them dearer must say so here.

Three real replicas run in this process behind a transport that carries the bytes of HTTP; an exchange is one HTTP request
(`tests/unit/client_sdk/transport/test_http_transport.py`). No timer fires: what waits for one (a lazy message that nothing else takes along,
a request sent again or to further replicas) would let a busy machine decide the counts. Nor does it matter how quick a replica answers.
"""

import asyncio
import os
import select
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.api_specs.messages import Accept, Append, Batch, BatchReply, Collect, Commit, Scan, Scanned
from quorate.client_sdk.protocol import completion_notices
from quorate.client_sdk.protocol.core import preference
from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Operation,
    Read,
    Unanswered,
    Write,
)
from quorate.client_sdk.protocol.decisions import pending
from quorate.client_sdk.protocol.decisions.read_window import WINDOW_MIN
from quorate.client_sdk.protocol.operations import reservation
from quorate.client_sdk.protocol.operations.cell_parts import READS_TOGETHER_MAX
from quorate.client_sdk.transport import link
from quorate.client_sdk.transport.driver import Driver
from quorate.replica.service import reply_budget
from quorate.replica.store import group_commit
from quorate.replica.store.store import Store
from tests.support.asking import answer_of
from tests.system.objects.test_long_queue import DEADLINE_S, WAIT_S, Counting, Replicas

REPLICAS = 3
QUORUM = 2
"""So many are asked, where that is enough. The other one hears of it with later messages."""
OPERATIONS = 20
AT_ONCE = 64
HUNDRED = 100
ITEM = '"' + 98 * "x" + '"'
BESIDE = 4
"""Rows that a transaction writes besides those of its entries: the replica's counters, the object's state."""
NEVER_S = 3600.0

Make = Callable[[int], Operation]

QUEUE, CELL = "queue/q", "register/r"
ENQUEUE: Make = lambda _: Enqueue(QUEUE, (ITEM,))  # type: ignore[arg-type]
KEYED: Make = lambda number: Enqueue(QUEUE, (ITEM,), key=f"key-{number}")  # type: ignore[arg-type]
DEQUEUE: Make = lambda _: Dequeue(QUEUE)
WRITE: Make = lambda number: Write(CELL, str(number))  # type: ignore[arg-type]
WRITE_OWN: Make = lambda number: Write(f"{CELL}{number}", str(number))  # type: ignore[arg-type]
READ: Make = lambda _: Read(CELL)
READ_OWN: Make = lambda number: Read(f"{CELL}{number}")
SET: Make = lambda number: CompareAndSet(CELL, str(number), str(number + 1))  # type: ignore[arg-type]


DEQUEUES: list[Operation] = [*(ENQUEUE(0) for _ in range(OPERATIONS + 2)), DEQUEUE(0)]


class Most(NamedTuple):
    """What one operation costs at all replicas together: exchanges and transactions; and at most rows written, bytes sent and answered."""

    exchanges: int
    commits: int
    rows: int
    sent: int
    answered: int


@contextmanager
def syncs_noted(trace: Path) -> Iterator[None]:
    """Have strace write the syncs of this process, all threads, to a file; the test is skipped where it cannot."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("no strace")
    words = ["-f", "-e", "trace=fsync,fdatasync", "-o", str(trace), "-p", str(os.getpid())]
    with subprocess.Popen([program, *words], stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        assert select.select([tracer.stderr], [], [], WAIT_S)[0], "strace says nothing"
        said = tracer.stderr.readline().decode()
        if "attached" not in said:
            pytest.skip(f"strace may not look at this process: {said}")
        try:
            yield
        finally:
            tracer.terminate()


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
        """Until the slowest replica has answered what it was sent, and what is about to be."""
        assert self._driver is not None
        while any(each._under_way or each._flush_soon for each in self._driver._links.values()):
            await asyncio.sleep(0.001)

    async def _counts(self) -> Counter[str]:
        def commits(store: Store) -> int:
            return store.commits

        counts = Counter(self.transport.kinds)
        counts["exchanges"] = self.transport.cost.exchanges
        assert self._driver is not None
        counts["rounds"] = sum(each.count for each in self._driver.counts.taken().rounds.values())
        counts["rows answered"] = self.transport.cost.rows
        counts["bytes sent"] = self.transport.cost.request_bytes
        counts["bytes answered"] = self.transport.cost.reply_bytes
        for id, member in self._replicas.members.items():
            counts["commits"] += await member.run(commits)
            counts["rows written"] += await member.run(lambda _, id=id: self._replicas.steps.rows_written(id))  # type: ignore[misc]
        return counts

    async def aclose(self) -> None:
        """Let go of the front end."""
        if self._driver is not None:
            await self._driver.aclose()


@pytest.fixture
def replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicas]:
    """Three, and no timers."""
    monkeypatch.setattr(link, "LAZY_WAIT_S", NEVER_S)
    monkeypatch.setattr(link, "EXCHANGE_TIMEOUT_S", NEVER_S)
    monkeypatch.setattr(completion_notices, "CELL_WAIT_S", NEVER_S)
    monkeypatch.setattr(AnswerTimes, "resend_s", lambda *_: NEVER_S)
    monkeypatch.setattr(AnswerTimes, "hedge_s", lambda *_: NEVER_S)
    monkeypatch.setattr(AnswerTimes, "least_s", lambda *_: 0.0)
    monkeypatch.setattr(preference, "AGAIN_S", NEVER_S)
    monkeypatch.setattr(reservation, "HEDGE_S_MIN", NEVER_S)
    monkeypatch.setattr(reply_budget, "BATCH_READS_S_MAX", NEVER_S)
    monkeypatch.setattr(group_commit, "GROUP_S_MAX", NEVER_S)
    made = Replicas(tmp_path)
    yield made
    made.stop()


def counted(
    replicas: Replicas,
    prepare: list[Operation],
    measured: list[Operation],
    *,
    at_once: bool = False,
    prepares_at_once: bool = False,
) -> Counter[str]:
    """What `measured` cost after `prepare`. What is prepared at once, and is much, leaves nothing to be told later."""

    async def run() -> Counter[str]:
        bench = Bench(replicas)
        try:
            await bench.run(prepare, at_once=prepares_at_once)
            return await bench.run(measured, at_once=at_once)
        finally:
            await bench.aclose()

    return asyncio.run(asyncio.wait_for(run(), WAIT_S))


@pytest.mark.parametrize(
    ("prepare", "make", "most"),
    [
        ([ENQUEUE(0)], ENQUEUE, Most(exchanges=2, commits=2, rows=6, sent=800, answered=800)),
        ([ENQUEUE(0)], KEYED, Most(exchanges=5, commits=5, rows=14, sent=2000, answered=1500)),
        (DEQUEUES, DEQUEUE, Most(exchanges=2, commits=2, rows=4, sent=1300, answered=2200)),
        ([WRITE(0)], WRITE, Most(exchanges=2, commits=2, rows=4, sent=500, answered=600)),
        ([WRITE(0), READ(0)], READ, Most(exchanges=2, commits=0, rows=0, sent=500, answered=700)),
        ([WRITE(0)], SET, Most(exchanges=4, commits=4, rows=8, sent=1650, answered=2500)),
    ],
    ids=["enqueue", "keyed enqueue", "dequeue", "write", "read", "compare-and-set"],
)
def test_one_at_a_time(replicas: Replicas, prepare: list[Operation], make: Make, most: Most) -> None:
    """A quorum hears of each round once, and all three of a key; marks of completeness and of decisions go along with the next."""
    cost = counted(replicas, prepare, [make(number) for number in range(OPERATIONS)])
    assert cost["exchanges"] == OPERATIONS * most.exchanges
    assert cost["commits"] == OPERATIONS * most.commits
    assert cost["rows written"] <= OPERATIONS * most.rows
    assert cost["bytes sent"] <= OPERATIONS * most.sent
    assert cost["bytes answered"] <= OPERATIONS * most.answered


def test_who_is_not_asked_stores_what_the_others_do_from_one_exchange(replicas: Replicas) -> None:
    """Which carries many, once it is sent; here when the front end ends."""

    async def run() -> tuple[Counter[str], Counter[str], list[int]]:
        bench = Bench(replicas)
        try:
            await bench.run([ENQUEUE(0)])
            before = Counter(bench.transport.kinds)
            cost = await bench.run([ENQUEUE(number) for number in range(OPERATIONS)])
        finally:
            await bench.aclose()
        held = []
        for member in replicas.members.values():
            (scanned,) = (await answer_of(member, [Scan(QUEUE, newest=HUNDRED)])).replies
            assert isinstance(scanned, Scanned)
            held += [len(shown.rows) for _, shown in scanned.objects]
        return cost, bench.transport.kinds - before, held

    cost, in_all, held = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert cost["exchanges"] == cost[Append.__name__] == QUORUM * OPERATIONS
    assert in_all[Append.__name__] == REPLICAS * OPERATIONS
    assert held == [OPERATIONS + 1] * REPLICAS


@pytest.mark.parametrize(
    ("prepare", "make"),
    [([ENQUEUE(0)], ENQUEUE), (DEQUEUES, DEQUEUE), ([WRITE(0)], SET), ([WRITE(0), READ(0)], READ)],
    ids=["enqueue", "dequeue", "compare-and-set", "read"],
)
def test_each_transaction_is_one_sync(
    replicas: Replicas, tmp_path: Path, prepare: list[Operation], make: Make
) -> None:
    """No more, or it would be slow, and no fewer, or it would not be on disk. A read makes none."""
    trace = tmp_path / "trace"

    async def run() -> Counter[str]:
        bench = Bench(replicas)
        try:
            await bench.run(prepare)
            with syncs_noted(trace):
                return await bench.run([make(number) for number in range(OPERATIONS)])
        finally:
            await bench.aclose()

    cost = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    syncs = sum("sync(" in line for line in trace.read_text().splitlines())
    assert syncs == cost["commits"]
    assert (syncs == 0) == (make is READ)


def test_enqueues_at_once_go_together(replicas: Replicas) -> None:
    """One message to each replica of a quorum carries all."""
    cost = counted(replicas, [ENQUEUE(0)], [ENQUEUE(0) for _ in range(AT_ONCE)], at_once=True)
    assert cost["exchanges"] == QUORUM
    assert cost["commits"] == QUORUM
    assert cost[Append.__name__] == QUORUM
    assert cost["rows written"] <= QUORUM * (AT_ONCE + BESIDE)
    assert cost["bytes sent"] <= QUORUM * AT_ONCE * 200
    assert cost["bytes answered"] <= QUORUM * AT_ONCE * 10


def test_keyed_enqueues_at_once_go_together(replicas: Replicas) -> None:
    """In twice the rounds of those without keys: in one all replicas agree on all, in another one a quorum stores all."""
    cost = counted(replicas, [ENQUEUE(0)], [KEYED(number) for number in range(AT_ONCE)], at_once=True)
    assert cost["exchanges"] == REPLICAS + QUORUM
    assert cost["commits"] == REPLICAS + QUORUM
    assert cost["rows written"] <= REPLICAS * (2 * AT_ONCE + 2 * BESIDE)
    assert cost["bytes sent"] <= REPLICAS * AT_ONCE * 450
    assert cost["bytes answered"] <= REPLICAS * AT_ONCE * 500


def test_keys_do_not_add_up(replicas: Replicas) -> None:
    """Beside a consumer that dequeues at another front end, the fourth hundred of keyed enqueues costs what the first did."""

    async def run() -> list[Counter[str]]:
        producer, consumer = Bench(replicas), Bench(replicas)
        try:
            await producer.run([ENQUEUE(0) for _ in range(HUNDRED)])
            await consumer.run([DEQUEUE(0)] * 2)
            return [await _beside(producer, consumer, number) for number in range(4)]
        finally:
            await producer.aclose()
            await consumer.aclose()

    first, *others = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    for cost in others:
        for what in ("rounds", "exchanges", "rows written", "bytes sent", "bytes answered"):
            assert cost[what] <= first[what] * 1.1, (what, first, cost)


async def _beside(producer: Bench, consumer: Bench, hundred: int) -> Counter[str]:
    """What a hundred keyed enqueues and as many dequeues cost both front ends, one after the other."""
    cost: Counter[str] = Counter()
    for number in range(hundred * HUNDRED, (hundred + 1) * HUNDRED):
        cost += await producer.run([KEYED(number)])
        cost += await consumer.run([DEQUEUE(0)])
    return cost


@pytest.mark.parametrize("make", [WRITE, WRITE_OWN], ids=["one object", "as many objects"])
def test_writes_at_once_go_together(replicas: Replicas, make: Make) -> None:
    """Each has an outcome of its own, but one round serves all: one exchange with each replica, and one transaction."""
    prepare = [make(number) for number in range(AT_ONCE)]
    cost = counted(replicas, prepare, prepare, at_once=True, prepares_at_once=True)
    assert cost["rounds"] == 1
    assert cost["exchanges"] == REPLICAS
    assert cost["commits"] == REPLICAS
    assert cost[Append.__name__] == REPLICAS * AT_ONCE
    assert cost["rows written"] <= REPLICAS * (AT_ONCE + BESIDE)
    assert cost["bytes sent"] <= REPLICAS * AT_ONCE * 250
    assert cost["bytes answered"] <= REPLICAS * AT_ONCE * 150


def test_reads_at_once_write_nothing_and_share_rounds_and_one_exchange(replicas: Replicas) -> None:
    prepare = [WRITE_OWN(number) for number in range(AT_ONCE)]
    reads = [READ_OWN(number) for number in range(AT_ONCE)]
    cost = counted(replicas, prepare, reads, at_once=True, prepares_at_once=True)
    assert cost["rounds"] == ceil(AT_ONCE / READS_TOGETHER_MAX)
    assert cost["exchanges"] == REPLICAS
    assert cost[Collect.__name__] == REPLICAS * AT_ONCE
    assert cost["commits"] == cost["rows written"] == 0
    assert cost["bytes sent"] <= REPLICAS * AT_ONCE * 200
    assert cost["bytes answered"] <= REPLICAS * AT_ONCE * 250


def test_reads_of_one_cell_at_once_are_one_look(replicas: Replicas) -> None:
    cost = counted(replicas, [WRITE(0), READ(0)], [READ(0)] * AT_ONCE, at_once=True)
    assert cost["rounds"] == 1
    assert cost[Collect.__name__] == QUORUM


def test_a_cell_that_is_written_often_is_marked_once(replicas: Replicas) -> None:
    """When the front end ends, if not before: what is older is history by the newest mark."""

    async def run() -> tuple[Counter[str], Counter[str]]:
        bench = Bench(replicas)
        try:
            await bench.run([WRITE(0)])
            writing = await bench.run([WRITE(number) for number in range(OPERATIONS)])
        finally:
            await bench.aclose()
        return writing, bench.transport.kinds

    writing, in_all = asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert writing[Commit.__name__] == 0
    assert in_all[Commit.__name__] == REPLICAS


def test_callers_that_ask_again_and_again_share_each_decision(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And do not split into two halves that take turns, which would take twice as many decisions.

    The next decision gives those just answered so much time as they need on a busy machine, too.
    """
    monkeypatch.setattr(pending, "SOON_S", 0.2)
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
    assert kinds[Accept.__name__] <= QUORUM * each * 1.6


def test_dequeues_at_once_are_one_decision(replicas: Replicas) -> None:
    """In a few rounds, for the first caller's command goes ahead alone, and what it looked at was little."""
    prepare = [ENQUEUE(0) for _ in range(AT_ONCE + 2)] + [DEQUEUE(0)]
    cost = counted(replicas, prepare, [DEQUEUE(0)] * AT_ONCE, at_once=True)
    assert cost["exchanges"] <= 4 * QUORUM
    assert cost["commits"] <= 4 * QUORUM
    assert cost["rows written"] <= 4 * QUORUM * BESIDE
    assert cost["bytes sent"] <= QUORUM * AT_ONCE * 60
    assert cost["bytes answered"] <= QUORUM * AT_ONCE * 350


def test_a_queue_that_was_empty_is_not_read_whole(replicas: Replicas) -> None:
    """Who took the last item knows all logs to their ends; what comes in afterwards must not all come at once."""
    many = Enqueue(QUEUE, (ITEM,) * 1000)  # type: ignore[arg-type]
    cost = counted(replicas, [ENQUEUE(0), DEQUEUE(0)] * 2 + [many] * 5, [DEQUEUE(0)])
    assert cost["rows answered"] <= QUORUM * 3 * WINDOW_MIN
    assert cost["exchanges"] <= 2 * QUORUM


@pytest.mark.parametrize(("waiting", "looks"), [(0, 1), (1, 0), (2, 0)])
def test_an_own_item_is_fenced_at_once(replicas: Replicas, waiting: int, looks: int) -> None:
    """Of a queue that is nearly empty: who enqueued an item names it as the fence, and does not look for it first."""
    pair = [ENQUEUE(0), DEQUEUE(0)]
    cost = counted(replicas, [ENQUEUE(0)] * waiting + pair * 3, pair * 2 * OPERATIONS)
    assert cost[Collect.__name__] <= QUORUM * (2 * OPERATIONS * looks + 1)
    assert cost[Accept.__name__] <= QUORUM * 2 * OPERATIONS
