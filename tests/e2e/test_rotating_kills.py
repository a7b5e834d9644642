"""Shows that killing one replica after another, each brought back before the next, loses and doubles nothing.

Three front ends work on three queues (majorities; Enq at one replica and Deq at all; Enq at all and Deq from one), a
register and a dictionary, while every replica in turn is ended with SIGKILL under load and started again. Afterwards the
queues are drained and the whole history is held against the serial specifications, object by object: linearizable,
nothing acknowledged lost, nothing delivered twice, nothing invented. Operations with unknown outcome are counted apart:
each may have taken effect once or never. While a replica is down, majorities go on; the other two queues show that they
do exactly what their quorums allow.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Final

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, QuorateError, connect_async
from quorate.client_sdk.history import History
from tests.e2e.harness import Clusters, drained, until
from tests.e2e.histories import Told

EAGER: Final[dict[str, tuple[int, int]]] = {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}
THRIFTY: Final[dict[str, tuple[int, int]]] = {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Deq/Empty": (1, 0)}
RULES: Final = (ChoiceRule("queue/eager", EAGER), ChoiceRule("queue/thrifty", THRIFTY))
QUEUES: Final = ("jobs", "eager", "thrifty")
MAJORITIES: Final = ("queue/jobs", "register/leader", "dictionary/users")
FRONT_ENDS: Final = 3
PACE_S: Final = 0.04
DEADLINE_S: Final = 4.0
IN_VAIN_S: Final = 1.0
"""The deadline of operations that need all replicas: while one is down, they wait in vain."""
STEP: Final = 8
"""Operations that must end well on each object while a replica is down, and again when it is back."""

Operation = Callable[[AsyncClient, int], Awaitable[object]]


class Load:
    """Workers, each on one object with one front end, one operation after another; and what came of it."""

    def __init__(self) -> None:
        self.done: dict[str, int] = dict.fromkeys([*MAJORITIES, "queue/eager", "queue/thrifty"], 0)
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
        for queue in QUEUES:
            # More dequeues than enqueues: with few items waiting, the search for an order is short.
            work = [_enqueue(queue), _dequeue(queue), _look(queue), _dequeue(queue)]
            yield self.work(client, f"queue/{queue}", itertools.cycle(work))
        yield self.work(client, "register/leader", itertools.cycle([_write, _read, _elect, _read]))
        yield self.work(
            client, "dictionary/users", itertools.cycle([_put, _get, _claim, _get, _delete, _get])
        )


def _deadline_s(queue: str) -> float:
    return DEADLINE_S if queue == "jobs" else IN_VAIN_S


def _enqueue(queue: str) -> Operation:
    return lambda client, number: client.queue(queue).enqueue(number, deadline_s=_deadline_s(queue))


def _dequeue(queue: str) -> Operation:
    return lambda client, _: client.queue(queue).dequeue(deadline_s=_deadline_s(queue))


def _look(queue: str) -> Operation:
    def look(client: AsyncClient, number: int) -> Awaitable[object]:
        handle, deadline_s = client.queue(queue), _deadline_s(queue)
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
    await client.dictionary("users").put(f"user-{number % 3}", number)


async def _get(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").get(f"user-{number % 3}")


async def _claim(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").put_if_absent(f"user-{number % 3}", number)


async def _delete(client: AsyncClient, number: int) -> None:
    await client.dictionary("users").delete(f"user-{number % 3}")


async def _goes_on(load: Load, names: tuple[str, ...], when: str) -> None:
    """Wait until a step of further operations has ended well on each of the objects."""
    goal = {name: load.done[name] + STEP for name in names}
    await until(lambda: all(load.done[name] >= goal[name] for name in names), f"operations go on {when}")


async def _kill_in_turn(cluster: LocalCluster, load: Load) -> None:
    await _goes_on(load, tuple(load.done), "before the first kill")
    for replica in cluster.urls:
        await asyncio.to_thread(cluster.kill, replica)
        await _goes_on(load, MAJORITIES, f"while {replica} is down")
        await asyncio.to_thread(cluster.restart, replica)
        await _goes_on(load, tuple(load.done), f"when {replica} is back")
    load.is_over = True


async def _run(clusters: Clusters, cluster: LocalCluster) -> None:
    load = Load()
    connected = [
        await connect_async(cluster.document, deadline_s=DEADLINE_S, history=History(clusters.history))
        for _ in range(FRONT_ENDS)
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for client in connected:
                for worker in load.workers(client):
                    group.create_task(worker)
            group.create_task(_kill_in_turn(cluster, load))
    finally:
        for client in connected:
            await client.aclose()
    async with connect_async(cluster.document, history=clusters.history) as last:
        for queue in QUEUES:
            await drained(last.queue(queue), max_items=1)
        await last.register("leader").read()
        for user in range(3):
            await last.dictionary("users").get(f"user-{user}")


def test_killing_replicas_in_turn_loses_and_doubles_nothing(clusters: Clusters) -> None:
    cluster = clusters.start(rules=RULES)
    asyncio.run(_run(clusters, cluster))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"
    for name in MAJORITIES:
        known = len(told.calls[name]) - told.unknown(name)
        assert told.unknown(name) <= 0.1 * known, f"{name}: with a majority up few outcomes are unknown"
