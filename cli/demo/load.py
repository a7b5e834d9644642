"""The demo's load: several front ends at work on a cluster, at a steady rate, whatever happens to its replicas.

Owns who does what how often, and what the clients saw. The rate is of operations *begun*: one that waits in vain for a
quorum does not hold up the next, so that the share of answered ones is the availability over time.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import AsyncClient, History, QuorateError, connect_async
from ...measurement.clock import RunClock
from ...measurement.rows import OperationRow
from ...measurement.run.load import observer
from .check import QueueRun, Written, cell_problems, claim_problems, counter_problems

DEADLINE_S: Final = 2.0
DRAIN_DEADLINE_S: Final = 10.0
RATE_MAX: Final = 200
"""Operations begun in a second, all together."""
DURATION_MIN_S: Final = 8.0
IN_FLIGHT_MAX: Final = 500
DRAIN_ITEMS: Final = 500
FRONT_ENDS: Final = 4
POLL_S: Final = 0.05
KEYS: Final = 10
HANDOVERS: Final = 4
"""Front ends that each queue's consumers go to in turn."""
STRETCH: Final = 7
"""Operations that a front end begins before it is the next one's turn."""

QUEUES: Final[Mapping[str, dict[str, tuple[int, int]]]] = {
    "enq1-deq3": {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)},
    "enq2-deq2": {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)},
    "enq3-deq1": {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Deq/Empty": (1, 0)},
}
"""The three choices of the lecture's table for three replicas; each is the name of the queue that is run with it."""

OBJECTS: Final[Mapping[str, str]] = {f"queue/{name}": name for name in QUEUES} | {
    "register/settings": "register",
    "register/counter": "register",
    "dictionary/users": "dictionary",
    "dictionary/seats": "dictionary",
}
"""All objects of the load, and the name of the quorum choice of each."""
FRONT_END_NAMES: Final = tuple(f"front-end-{number}" for number in range(1, FRONT_ENDS + 1))

Step = Callable[[AsyncClient, int], Awaitable[None]]


class Seen(Struct):
    """What the clients saw, as the verdict needs it."""

    queues: dict[str, QueueRun] = field(default_factory=lambda: {name: QueueRun() for name in QUEUES})
    writes: dict[str, list[Written]] = field(default_factory=lambda: defaultdict(list))
    raised: int = 0
    maybe_raised: int = 0
    claims: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    maybe_claims: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class Load:
    """`operations` operations on the cluster; `begun` hears of each that begins; `history` is a file to record them in.

    `record` gets the row of each that has ended, with times of `clock`.
    """

    def __init__(
        self,
        document: ClusterDocument,
        operations: int,
        begun: Callable[[], None],
        history: Path,
        record: Callable[[OperationRow], None],
        clock: RunClock,
    ) -> None:
        self.operations: Final = operations
        self._duration_s: Final = max(DURATION_MIN_S, operations / RATE_MAX)
        self.seen: Final = Seen()
        self._record: Final = record
        self._clock: Final = clock
        self._document: Final = document
        self._begun: Final = begun
        self._history: Final = history
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def reached(self, share: float) -> None:
        """Wait until this share of the operations has begun."""
        while self._count < share * self.operations:
            await asyncio.sleep(POLL_S)

    async def run(self) -> None:
        """Begin all operations at a steady rate, and wait until each has its outcome."""
        async with AsyncExitStack() as stack:
            clients = []
            for name in FRONT_END_NAMES:
                history = History(self._history, process=name)
                connecting = connect_async(self._document, deadline_s=DEADLINE_S, history=history)
                client = await stack.enter_async_context(connecting)
                client.on_finished(observer(name, client.document, OBJECTS, self._record, self._clock))
                clients.append(client)
            await self._begin_all(clients)

    async def _begin_all(self, clients: list[AsyncClient]) -> None:
        steps = itertools.cycle(list(self._round()))
        start_s = time.monotonic()
        for number in range(self.operations):
            await asyncio.sleep(start_s + number * self._duration_s / self.operations - time.monotonic())
            if len(self._tasks) >= IN_FLIGHT_MAX:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            step, consumer = next(steps)
            turn = number // STRETCH if consumer is None else consumer + HANDOVERS * number // self.operations
            client = clients[turn % len(clients)]
            task = asyncio.ensure_future(step(client, number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._count = number + 1
            self._begun()
        await asyncio.gather(*self._tasks)

    def _round(self) -> Iterator[tuple[Step, int | None]]:
        """The work in a fixed mixed order: three operations in four go to queues.

        With each step comes the front end that takes it, None for one after another. Consumers of a queue go to one
        front end, which can then take many items with one decision; once in a round they go to another, which has to
        take over.
        """
        for other in (self._write, self._put, self._read, self._get, self._raise, self._claim):
            for consumer, queue in enumerate(QUEUES):
                yield self._enqueue_to(queue), None
                yield self._dequeue_from(queue), consumer
            yield other, None
            yield (self._delete if other == self._claim else self._put), None

    def _enqueue_to(self, queue: str) -> Step:
        async def enqueue(client: AsyncClient, number: int) -> None:
            item, run = f"item-{number}", self.seen.queues[queue]
            try:
                await client.queue(queue).enqueue(item)
                run.added.add(item)
            except QuorateError as error:
                if not error.definite:
                    run.maybe_added.add(item)

        return enqueue

    def _dequeue_from(self, queue: str) -> Step:
        async def dequeue(client: AsyncClient, _: int) -> None:
            run = self.seen.queues[queue]
            try:
                run.delivered.update(await client.queue(queue).dequeue(max_items=1))
            except QuorateError as error:
                run.maybe_taken += 0 if error.definite else 1

        return dequeue

    async def _write(self, client: AsyncClient, number: int) -> None:
        await self._written("register/settings", number, client.register("settings").write(number))

    async def _put(self, client: AsyncClient, number: int) -> None:
        key = f"user-{number % KEYS}"
        await self._written(key, number, client.dictionary("users").put(key, number))

    async def _delete(self, client: AsyncClient, number: int) -> None:
        key = f"user-{number % KEYS}"
        await self._written(key, None, client.dictionary("users").delete(key))

    async def _written(self, cell: str, value: Any, writing: Awaitable[None]) -> None:
        began_s = time.monotonic()
        try:
            await writing
            self.seen.writes[cell].append(Written(value, began_s, time.monotonic()))
        except QuorateError as error:
            if not error.definite:
                self.seen.writes[cell].append(Written(value, began_s))

    async def _read(self, client: AsyncClient, _: int) -> None:
        await _answered(client.register("settings").read())

    async def _get(self, client: AsyncClient, number: int) -> None:
        await _answered(client.dictionary("users").get(f"user-{number % KEYS}"))

    async def _raise(self, client: AsyncClient, _: int) -> None:
        """Raise a counter by one: read it, then compare and set."""
        counter = client.register("counter")
        count = await _answered(counter.read(), otherwise=0)
        try:
            # Not `raised += await …`: that adds to what was there before others ran.
            was_raised = await counter.compare_and_set(count, (count or 0) + 1)
            self.seen.raised += was_raised
        except QuorateError as error:
            self.seen.maybe_raised += 0 if error.definite else 1

    async def _claim(self, client: AsyncClient, number: int) -> None:
        """Claim a key for this operation; the next one of another front end tries for the same."""
        key, claimant = f"seat-{number // 100}", f"operation-{number}"
        try:
            if await client.dictionary("seats").put_if_absent(key, claimant):
                self.seen.claims[key].append(claimant)
        except QuorateError as error:
            if not error.definite:
                self.seen.maybe_claims[key].append(claimant)


async def _answered(reading: Awaitable[Any], otherwise: Any = None) -> Any:
    """What a read gives; a failed one changes nothing, and its failure is recorded already."""
    try:
        return await reading
    except QuorateError:
        return otherwise


async def problems_at_rest(document: ClusterDocument, seen: Seen, history: Path) -> list[str]:
    """Drain the queues, read the rest, and hold it against what the clients saw; empty when all is right."""
    found: list[str] = []
    last = History(history, process="drain")
    async with connect_async(document, deadline_s=DRAIN_DEADLINE_S, history=last) as client:
        for name, run in seen.queues.items():
            while items := await client.queue(name).dequeue(max_items=DRAIN_ITEMS):
                run.delivered.update(items)
            found += [f"queue/{name}: {problem}" for problem in run.problems()]
        settings = await client.register("settings").read()
        found += cell_problems("register/settings", seen.writes["register/settings"], settings)
        count = await client.register("counter").read() or 0
        found += counter_problems("register/counter", seen.raised, seen.maybe_raised, count)
        users = await client.dictionary("users").items()
        for key in (f"user-{number}" for number in range(KEYS)):
            found += cell_problems(f"dictionary/users/{key}", seen.writes[key], users.get(key))
        seats = await client.dictionary("seats").items()
        found += claim_problems(seen.claims, seen.maybe_claims, seats)
    return found
