"""Shows that clients on bad networks and replicas that stop, die and come back lose, double and contradict nothing.

Between each of three clients and each of three replicas stands a proxy of its own. Each client meets every fault of a link
(each way slowed, held back, swallowed; the connection cut; connections refused), at a replica and in an order that a
seed draws, each until it was felt and then a little longer. Meanwhile every replica in turn is stopped with SIGSTOP under
load and goes on later, and one is ended with SIGKILL and started again. What is held back arrives late, often
after its client has given up and asked again. Then, several times, one client is unheard for a while and heard late, and
one client reaches one replica alone while the others reach the rest. The histories of all clients are held against the serial specifications.

The seed draws the schedule; what the processes make of it differs from run to run. `QUORATE_FAULT_SEED=N` tries others.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final, NamedTuple

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, QuorateError, connect_async
from quorate.client_sdk.api.history import History
from tests.support.fault_proxy import FaultProxy, Way
from tests.system.harness import Clusters, until
from tests.system.histories import Told
from tests.system.load import MAJORITIES, Load, goes_on, last_look

FIRST_SEED: Final = int(os.environ.get("QUORATE_FAULT_SEED", "1"))
SEEDS: Final = range(FIRST_SEED, FIRST_SEED + 2)
CLIENTS: Final = 3
LONGER_S: Final = 0.3
STOPPED_S: Final = 0.5
SLOW_S: Final = 0.03
ROUNDS: Final = 2
APART_S: Final = 0.5
DEADLINE_S: Final = 4.0
"""Some operations are to be given up while a link is held, and to arrive all the same."""


class Linked(NamedTuple):
    """A client, and its proxy before each replica."""

    client: AsyncClient
    links: Mapping[str, FaultProxy]


Fault = Callable[[FaultProxy, random.Random], Awaitable[None]]


async def _felt(counter: Counter[str], fault: str, rng: random.Random) -> None:
    """Until the fault that was just switched on has met something, and a little longer."""
    before = counter[fault]
    await until(lambda: counter[fault] > before, f"{fault} is felt")
    await asyncio.sleep(LONGER_S * rng.random())


async def _slow(way: Way, rng: random.Random) -> None:
    way.delay_s, way.jitter_s = SLOW_S * rng.random(), SLOW_S
    await _felt(way.felt, "delay", rng)
    way.delay_s = way.jitter_s = 0.0


async def _hold(way: Way, rng: random.Random) -> None:
    way.hold()
    await _felt(way.felt, "hold", rng)
    way.release()


async def _swallow(way: Way, rng: random.Random) -> None:
    way.is_swallowing = True
    await _felt(way.felt, "swallow", rng)
    way.is_swallowing = False


async def _cut(proxy: FaultProxy, _: random.Random) -> None:
    before = proxy.cut_count

    def is_cut() -> bool:
        proxy.cut()
        return proxy.cut_count > before

    await until(is_cut, "a connection is there, and cut")


async def _refuse(proxy: FaultProxy, rng: random.Random) -> None:
    await _cut(proxy, rng)  # First: once it refuses, there may never be a connection to cut.
    await proxy.refuse()
    await asyncio.sleep(LONGER_S * rng.random())
    await proxy.listen()


FAULTS: Final[Mapping[str, Fault]] = {
    "requests slow": lambda proxy, rng: _slow(proxy.to_server, rng),
    "replies slow": lambda proxy, rng: _slow(proxy.to_client, rng),
    "requests held": lambda proxy, rng: _hold(proxy.to_server, rng),
    "replies held": lambda proxy, rng: _hold(proxy.to_client, rng),
    "requests lost": lambda proxy, rng: _swallow(proxy.to_server, rng),
    "replies lost": lambda proxy, rng: _swallow(proxy.to_client, rng),
    "cut": _cut,
    "refused": _refuse,
}


async def _break_links(links: Mapping[str, FaultProxy], rng: random.Random) -> None:
    """Every fault once, each at some replica, for one client."""
    for fault in rng.sample(sorted(FAULTS), len(FAULTS)):
        replica = rng.choice(sorted(links))
        await FAULTS[fault](links[replica], rng)


async def _break_replicas(cluster: LocalCluster, rng: random.Random) -> None:
    """Stop every replica for a while, one after another, and kill one of them."""
    killed = rng.choice(sorted(cluster.urls))
    for replica in rng.sample(sorted(cluster.urls), len(cluster.urls)):
        os.kill(cluster.pids[replica], signal.SIGSTOP)
        await asyncio.sleep(STOPPED_S * (1 + rng.random()))
        if replica == killed:
            await asyncio.to_thread(cluster.kill, replica)
            await asyncio.to_thread(cluster.restart, replica)
        else:
            os.kill(cluster.pids[replica], signal.SIGCONT)


async def _late(clients: Sequence[Linked], rng: random.Random, number: int) -> None:
    """What one client enqueues is under way for long, and arrives when others have enqueued and dequeued after it."""
    unheard, other = rng.sample(clients, 2)
    ways = [proxy.to_server for proxy in unheard.links.values()]
    for way in ways:
        way.hold()
    enqueued = asyncio.create_task(_tried(unheard.client.queue("probe").enqueue(f"late-{number}")))
    await until(lambda: all(way.felt["hold"] for way in ways), "it is under way")
    await _tried(other.client.queue("probe").enqueue(f"soon-{number}"))
    await _tried(other.client.queue("probe").dequeue())
    for way in ways:
        way.release()
    await enqueued


async def _apart(clients: Sequence[Linked], rng: random.Random, number: int) -> None:
    """One client reaches one replica only, and the others all the rest: what it writes there must not count."""
    alone, other = rng.sample(clients, 2)
    lonely = rng.choice(sorted(alone.links))
    ways = [
        proxy.to_server
        for each in clients
        for replica, proxy in each.links.items()
        if (each is alone) != (replica == lonely)
    ]
    for way in ways:
        way.hold()
    await _tried(alone.client.register("probe").write(number, deadline_s=APART_S))
    await _tried(alone.client.queue("probe").enqueue(f"apart-{number}", deadline_s=APART_S))
    await _tried(other.client.register("probe").read())
    await _tried(other.client.queue("probe").dequeue())
    for way in ways:
        way.release()


async def _tried(operation: Awaitable[object]) -> None:
    """Its end is in the history."""
    with suppress(QuorateError):
        await operation


async def _break_everything(cluster: LocalCluster, clients: Sequence[Linked], load: Load, seed: int) -> None:
    await goes_on(load, MAJORITIES, "before the first fault")
    async with asyncio.TaskGroup() as group:
        for number, each in enumerate(clients):
            group.create_task(_break_links(each.links, random.Random(f"{seed} {number}")))
        group.create_task(_break_replicas(cluster, random.Random(f"{seed} replicas")))
    await goes_on(load, MAJORITIES, "after these faults")
    load.is_over = True
    rng = random.Random(f"{seed} clients")
    for number in range(ROUNDS):
        await _late(clients, rng, number)
        await _apart(clients, rng, number)


async def _linked(stack: AsyncExitStack, cluster: LocalCluster, seed: int, history: History) -> Linked:
    """A client with a proxy of its own before each replica."""
    links = {
        replica: await stack.enter_async_context(FaultProxy(url, seed=seed))
        for replica, url in cluster.urls.items()
    }
    endpoints = {replica: proxy.url for replica, proxy in links.items()}
    connecting = connect_async(cluster.document, endpoints=endpoints, deadline_s=DEADLINE_S, history=history)
    return Linked(await stack.enter_async_context(connecting), links)


async def _run(clusters: Clusters, cluster: LocalCluster, seed: int) -> None:
    load = Load(deadline_s=DEADLINE_S)
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        clients = [await _linked(stack, cluster, seed, History(clusters.history)) for _ in range(CLIENTS)]
        for each in clients:
            for worker in load.workers(each.client):
                group.create_task(worker)
        group.create_task(_break_everything(cluster, clients, load, seed))
    async with connect_async(cluster.document, history=clusters.history) as last:
        await last_look(last, ("jobs", "probe"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_bad_links_and_stopped_replicas_lose_and_double_nothing(clusters: Clusters, seed: int) -> None:
    print(f"seed {seed}: QUORATE_FAULT_SEED={seed} {__name__}")
    cluster = clusters.start()
    asyncio.run(_run(clusters, cluster, seed))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check() == 0, "a search was given up"
