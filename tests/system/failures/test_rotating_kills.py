"""Shows that killing one replica after another, each brought back before the next, loses and doubles nothing.

Three front ends work on three queues (majorities; Enq at one replica and Deq at all; Enq at all and Deq from one), a
register and a dictionary, while every replica in turn is ended with SIGKILL under load and started again. Afterwards the
queues are drained and the whole history is held against the serial specifications, object by object: linearizable,
nothing acknowledged lost, nothing delivered twice, nothing invented. Operations with unknown outcome are counted apart:
each may have taken effect once or never.

While a replica is down, majorities go on, and the other two queues do exactly what their quorums allow: where one replica
stores an enqueue it is done and a dequeue, which needs all, is refused for certain; where all must store it, it is not
done. That, and the same front ends working on through a restart of every replica, is what this test shows beside
`test_kill_all.py` (what is on disk) and `test_faulty_links.py` (majorities only).
"""

import asyncio
import itertools
from typing import Final

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, AsyncQueue, OutcomeUnknown, Unavailable
from tests.system.harness import Clusters
from tests.system.histories import Told
from tests.system.in_vain import failure_in
from tests.system.load import DEADLINE_S, IN_VAIN_S, MAJORITIES, Load, front_ends, goes_on

EAGER: Final[dict[str, tuple[int, int]]] = {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}
THRIFTY: Final[dict[str, tuple[int, int]]] = {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Deq/Empty": (1, 0)}
RULES: Final = (ChoiceRule("queue/eager", EAGER), ChoiceRule("queue/thrifty", THRIFTY))
QUEUES: Final = ("jobs", "eager", "thrifty")
FRONT_ENDS: Final = 3
ATTEMPTS: Final = 10


async def _is_definitely_refused(queue: AsyncQueue) -> bool:
    """Soon, if not at once: an owner whose turn all had promised may still use it, and may lose it to another one with an accept
    under way, so that a dequeue takes place after all, or has an unknown outcome."""
    for _ in range(ATTEMPTS):
        try:
            await queue.dequeue(deadline_s=IN_VAIN_S)
        except OutcomeUnknown:
            continue
        except Unavailable as refused:
            return refused.definite
    return False


async def _does_what_quorums_allow(client: AsyncClient, down: str) -> None:
    eager, thrifty = client.queue("eager"), client.queue("thrifty")
    await eager.enqueue(f"while {down} is down")
    assert await _is_definitely_refused(eager), "nothing can be proposed without the promise of all"
    words, tries = f"perhaps, for {down} is down", itertools.count(1)
    await failure_in(lambda: thrifty.enqueue(f"{words} {next(tries)}", deadline_s=IN_VAIN_S), OutcomeUnknown)


async def _kill_in_turn(cluster: LocalCluster, client: AsyncClient, load: Load) -> None:
    await goes_on(load, tuple(load.done), "before the first kill")
    for replica in cluster.urls:
        await asyncio.to_thread(cluster.kill, replica)
        await goes_on(load, MAJORITIES, f"while {replica} is down")
        await _does_what_quorums_allow(client, replica)
        await asyncio.to_thread(cluster.restart, replica)
        await goes_on(load, tuple(load.done), f"when {replica} is back")
    load.is_over = True


async def _run(clusters: Clusters, cluster: LocalCluster) -> None:
    load = Load(QUEUES)
    made = front_ends(
        cluster.document, clusters.history, count=FRONT_ENDS, deadline_s=DEADLINE_S, queues=QUEUES
    )
    async with made as connected, asyncio.TaskGroup() as group:
        for client in connected:
            for worker in load.workers(client):
                group.create_task(worker)
        group.create_task(_kill_in_turn(cluster, connected[0], load))


def test_killing_replicas_in_turn_loses_and_doubles_nothing(clusters: Clusters) -> None:
    cluster = clusters.start(rules=RULES)
    asyncio.run(_run(clusters, cluster))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"
    for name in MAJORITIES:
        known = len(told.calls[name]) - told.unknown(name)
        assert told.unknown(name) <= 0.1 * known, f"{name}: with a majority up few outcomes are unknown"
