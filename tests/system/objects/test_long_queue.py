"""Shows that a dequeue from 100,000 waiting items costs no more than from 100. Counted, not timed.

Three real replicas (folder, SQLite file, writer thread) run in this process behind a transport that carries the very
bytes of HTTP and counts them: exchanges, bytes, rows in replies. SQLite's progress handler counts the steps of its
virtual machine in all three databases. Compared are the same dequeues from a short and from a long queue: by one front
end that goes on (warm), by a new one each time (cold), and with replicas just started.
"""

import asyncio
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from quorate.api_specs.cluster import ClusterDocument, parse
from quorate.api_specs.messages import Accepted, Batch, BatchReply, Collected
from quorate.cli.cluster.document import new_document
from quorate.client_sdk.protocol.core.values import Dequeue, Done, Enqueue, Unanswered
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from tests.support.exchanging import Exchanging

SHORT: Final = 100
LONG: Final = 100_000
DEQUEUES: Final = 20
WAIT_S: Final = 300.0
DEADLINE_S: Final = 20.0
SLACK: Final = 2.0
"""Three replicas answer in any order, so a round or a page more or less happens; a cost that grows with the queue would
be hundreds of times as high."""
LEAST_ROWS: Final = 400
"""As few as a busy machine may add: a dozen looks at 32 entries."""


class Cost(Struct):
    """What some dequeues cost, over all replicas."""

    exchanges: int = 0
    request_bytes: int = 0
    reply_bytes: int = 0
    rows: int = 0
    steps: int = 0


class Counting(Exchanging):
    """A transport to members in this process, by way of the bytes that HTTP would carry."""

    def __init__(self, members: dict[str, Member]) -> None:
        self.members: Final = members
        self.cost = Cost()

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        sent = msgspec.msgpack.encode(batch)
        async with asyncio.timeout(timeout_s):
            received = msgspec.msgpack.decode(sent, type=Batch)
            answered = msgspec.msgpack.encode(await self.members[replica].answer(received))
        reply = msgspec.msgpack.decode(answered, type=BatchReply)
        self.cost.exchanges += 1
        self.cost.request_bytes += len(sent)
        self.cost.reply_bytes += len(answered)
        self.cost.rows += sum(_rows(each) for each in reply.replies)
        return reply

    async def aclose(self) -> None:
        """See Transport."""


def _rows(reply: Any) -> int:
    if isinstance(reply, Accepted):
        reply = reply.then
    return len(reply.rows) if isinstance(reply, Collected) else 0


class Steps:
    """Counts the steps of the members' databases, while it is switched on."""

    def __init__(self) -> None:
        self.count = 0
        self._connections: dict[str, sqlite3.Connection] = {}

    @contextmanager
    def opening(self, replica: str) -> Iterator[None]:
        """The connection made meanwhile is the replica's."""

        connect = sqlite3.connect

        def noted(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*arguments, **options)
            self._connections[replica] = connection
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", noted)
            yield

    def rows_written(self, replica: str) -> int:
        """All that the replica's open file was told to insert, change or delete. To be asked in the thread that uses it."""
        return self._connections[replica].total_changes

    async def switch(self, members: dict[str, Member], *, on: bool) -> None:
        """Count from here on, or no longer. Each connection is told in the thread that uses it."""
        step = self._step if on else None
        for replica, member in members.items():
            connection = self._connections[replica]
            await member.run(partial(_count_with, connection, step))

    def _step(self) -> int:
        self.count += 1
        return 0


def _count_with(connection: sqlite3.Connection, step: Callable[[], int] | None, _: object) -> None:
    connection.set_progress_handler(step, 1)


class Replicas:
    """Three members in this process."""

    def __init__(self, folder: Path) -> None:
        urls = {f"r{number}": f"http://127.0.0.1:{number}" for number in (1, 2, 3)}
        self.steps: Final = Steps()
        made = parse(_without_stores(new_document(urls)))
        # One process may stand still between a stamp and its replicas, on a machine that is busy: that is no wrong clock.
        self.document: Final[ClusterDocument] = replace(made, clock=replace(made.clock, offset_max_s=60.0))
        self._folder: Final = folder
        self.members: Final[dict[str, Member]] = {}
        self.start()

    def start(self) -> None:
        """Open every folder."""
        for replica in self.document.votes:
            with self.steps.opening(replica):
                opened = open_folder(self._folder / replica, self.document, replica)
            self.members[replica] = member = Member(opened)
            member.is_vouched_for = True  # Nobody asks the others here.

    def stop(self) -> None:
        """Close every folder."""
        for member in self.members.values():
            member.close()
        self.members.clear()

    def front_end(self, transport: Counting) -> Driver:
        """A new front end."""
        return Driver(self.document, transport=transport, site=new_site(), seed=secrets.randbits(64))


def _without_stores(text: str) -> str:
    """A document whose replicas have never voted, so that their folders are formatted at their first start."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("store = "))


async def _fill(replicas: Replicas, name: str, items: int) -> None:
    driver = replicas.front_end(Counting(replicas.members))
    size = min(items, replicas.document.limits.batch_items_max)
    for first in range(0, items, size):
        values = tuple(f'"item-{number:06}"' for number in range(first, first + size))
        assert isinstance(await driver.run(Enqueue(name, values), DEADLINE_S), Done)  # type: ignore[arg-type]
    await driver.aclose()


async def _cost(replicas: Replicas, name: str, *, is_warm: bool) -> Cost:
    """What the dequeues cost; a warm front end has taken an item before."""
    transport = Counting(replicas.members)
    driver = replicas.front_end(transport)
    if is_warm:
        await _take(driver, name)
    transport.cost, replicas.steps.count = Cost(), 0
    await replicas.steps.switch(replicas.members, on=True)
    for _ in range(DEQUEUES):
        await _take(driver, name)
        if not is_warm:
            await driver.aclose()
            driver = replicas.front_end(transport)
    await replicas.steps.switch(replicas.members, on=False)
    await driver.aclose()
    transport.cost.steps = replicas.steps.count
    return transport.cost


async def _take(driver: Driver, name: str) -> None:
    outcome = await driver.run(Dequeue(name), DEADLINE_S)
    assert isinstance(outcome, Done), outcome
    assert len(outcome.result) == 1


async def _compare(replicas: Replicas) -> dict[str, tuple[Cost, Cost]]:
    """The cost from a short and from a long queue, which have the same history and are as long as that each time."""
    lengths = {"queue/short": SHORT, "queue/long": LONG}
    for name, length in lengths.items():
        await _fill(replicas, name, length)
    found = {}
    for what, is_warm in {"warm": True, "cold": False, "just started": True}.items():
        if what == "just started":
            await asyncio.to_thread(replicas.stop)
            await asyncio.to_thread(replicas.start)
        short, long = [await _cost(replicas, name, is_warm=is_warm) for name in lengths]
        found[what] = short, long
        for name in lengths:
            await _fill(replicas, name, DEQUEUES + is_warm)
    return found


@pytest.mark.slow
def test_a_dequeue_from_a_long_queue_costs_no_more(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    try:
        found = asyncio.run(asyncio.wait_for(_compare(replicas), WAIT_S))
    finally:
        replicas.stop()
    for what, (short, long) in found.items():
        print(f"{what}: {SHORT} items {short}, {LONG} items {long}")
    for what, (short, long) in found.items():
        assert short.steps > DEQUEUES, "steps were counted"
        for word in Cost.__struct_fields__:
            least, most = getattr(short, word), getattr(long, word)
            if word == "rows":
                least = max(least, LEAST_ROWS)
            assert most <= SLACK * least, f"{what}: {word} {least} at {SHORT} items, {most} at {LONG}"
