"""The mixed work of tests that break things under it: queues, a register and a dictionary, used by several front ends.

Owns which operations are tried; what came of them is in the history. Must not know what is being broken.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from quorate.api_specs.cluster import ClusterDocument
from quorate.client_sdk import AsyncClient, QuorateError, connect_async
from quorate.client_sdk.api.history import History
from tests.system.harness import drained, until

MAJORITIES: Final = ("queue/jobs", "register/leader", "dictionary/users")
PACE_S: Final = 0.1
DEADLINE_S: Final = 20.0
"""Of operations of which a majority is up: none needs a hundredth of it, but other work shares this machine."""
IN_VAIN_S: Final = 1.0
"""The deadline of operations on other queues, which may need all replicas: while one is down, they wait in vain."""
STEP: Final = 8
"""Operations that must end well on each object before the load counts as going on."""
USERS: Final = 3

Operation = Callable[[AsyncClient, int], Awaitable[object]]


class Load:
    """Workers, each on one object with one front end, one operation after another; and what came of it."""

    def __init__(self, queues: Sequence[str] = ("jobs",), deadline_s: float = DEADLINE_S) -> None:
        self.queues: Final = queues
        self._deadline_s: Final = deadline_s
        self.done: dict[str, int] = dict.fromkeys([*MAJORITIES, *(f"queue/{queue}" for queue in queues)], 0)
        self.is_over = False
        self._numbers = itertools.count(1)

    async def work(self, client: AsyncClient, name: str, operations: Iterator[Operation]) -> None:
        """Run `operations` until the load is over."""
        while not self.is_over:
            try:
                await next(operations)(client, next(self._numbers))
                self.done[name] += 1
            except QuorateError:
                pass  # The history says which, and whether it is certain that nothing happened.
            await asyncio.sleep(PACE_S)

    def workers(self, client: AsyncClient) -> Iterator[Coroutine[object, object, None]]:
        """All workers of one front end."""
        for queue in self.queues:
            # More dequeues than enqueues: with few items waiting, the search for an order is short.
            deadline_s = self._deadline_s if queue == "jobs" else IN_VAIN_S
            dequeue = _dequeue(queue, deadline_s)
            work = [_enqueue(queue, deadline_s), dequeue, _look(queue, deadline_s), dequeue]
            yield self.work(client, f"queue/{queue}", itertools.cycle(work))
        yield self.work(client, "register/leader", itertools.cycle([_write, _read, _elect, _read]))
        yield self.work(
            client, "dictionary/users", itertools.cycle([_put, _get, _claim, _get, _delete, _get])
        )


def _enqueue(queue: str, deadline_s: float) -> Operation:
    return lambda client, number: client.queue(queue).enqueue(number, deadline_s=deadline_s)


def _dequeue(queue: str, deadline_s: float) -> Operation:
    return lambda client, _: client.queue(queue).dequeue(deadline_s=deadline_s)


def _look(queue: str, deadline_s: float) -> Operation:
    def look(client: AsyncClient, number: int) -> Awaitable[object]:
        handle = client.queue(queue)
        return handle.peek(deadline_s=deadline_s) if number % 2 else handle.size(deadline_s=deadline_s)

    return look


async def _write(client: AsyncClient, number: int) -> None:
    await client.register("leader").write(number)


async def _read(client: AsyncClient, _: int) -> None:
    await client.register("leader").read()


async def _elect(client: AsyncClient, number: int) -> None:
    register = client.register("leader")
    await register.compare_and_set(await register.read(), number)


async def _put(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").put(f"user-{number % USERS}", number)


async def _get(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").get(f"user-{number % USERS}")


async def _claim(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").put_if_absent(f"user-{number % USERS}", number)


async def _delete(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").delete(f"user-{number % USERS}")


async def goes_on(load: Load, names: tuple[str, ...], when: str) -> None:
    """Wait until a step of further operations has ended well on each of the objects."""
    goal = {name: load.done[name] + STEP for name in names}
    await until(lambda: all(load.done[name] >= goal[name] for name in names), f"operations go on {when}")


async def last_look(client: AsyncClient, queues: Sequence[str] = ("jobs",)) -> None:
    """Take all that is left in the queues, and read everything else, so that a loss shows in the history."""
    for queue in queues:
        await drained(client.queue(queue), max_items=1)
    await client.register("leader").read()
    for user in range(USERS):
        await client.dictionary("users").get(f"user-{user}")


@asynccontextmanager
async def front_ends(
    document: ClusterDocument,
    history: Path,
    *,
    count: int,
    deadline_s: float,
    queues: Sequence[str] = ("jobs",),
    are_first_members_left: bool = True,
) -> AsyncIterator[list[AsyncClient]]:
    """So many clients that record; they are closed at the end, and a last one takes and reads all that is left. It has the same cluster file, unless
    no replica is left that this names."""
    connected = [
        await connect_async(document, deadline_s=deadline_s, history=History(history)) for _ in range(count)
    ]
    try:
        yield connected
    finally:
        for client in connected:
            await client.aclose()
    known = document if are_first_members_left else connected[0].document
    async with connect_async(known, history=history) as last:
        await last_look(last, queues)
