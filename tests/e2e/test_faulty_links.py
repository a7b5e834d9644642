"""Shows that clients on bad networks and replicas that stop, die and come back lose, double and contradict nothing.

Between each of three clients and each of three replicas stands a proxy of its own. Each client meets every fault of a link
(each way slowed, held back, swallowed; the connection cut; connections refused), at a replica and in an order that a
seed draws, each until it was felt and then a little longer. Meanwhile every replica in turn is stopped with SIGSTOP under
load and goes on later, and one is ended with SIGKILL and started again. What is held back arrives late, often
after its client has given up and asked again. The histories of all clients are held against the serial specifications.

The seed draws the schedule; what the processes make of it differs from run to run. `QUORATE_FAULT_SEED=N` tries others.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

import pytest

from quorate.cli.local_cluster import LocalCluster
from quorate.client_sdk import connect_async
from quorate.client_sdk.history import History
from tests.e2e.fault_proxy import Proxy, Way
from tests.e2e.harness import Clusters, until
from tests.e2e.histories import Told
from tests.e2e.load import DEADLINE_S, MAJORITIES, Load, goes_on, last_look

FIRST_SEED: Final = int(os.environ.get("QUORATE_FAULT_SEED", "1"))
SEEDS: Final = range(FIRST_SEED, FIRST_SEED + 2)
CLIENTS: Final = 3
LONGER_S: Final = 0.3
STOPPED_S: Final = 0.5
SLOW_S: Final = 0.03

Fault = Callable[[Proxy, random.Random], Awaitable[None]]


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


async def _cut(proxy: Proxy, _: random.Random) -> None:
    before = proxy.cut_count

    def is_cut() -> bool:
        proxy.cut()
        return proxy.cut_count > before

    await until(is_cut, "a connection is there, and cut")


async def _refuse(proxy: Proxy, rng: random.Random) -> None:
    proxy.refuse()
    await _cut(proxy, rng)
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


async def _break_links(links: Mapping[str, Proxy], rng: random.Random) -> None:
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


async def _break_everything(
    cluster: LocalCluster, proxies: list[dict[str, Proxy]], load: Load, seed: int
) -> None:
    await goes_on(load, MAJORITIES, "before the first fault")
    async with asyncio.TaskGroup() as group:
        for number, links in enumerate(proxies):
            group.create_task(_break_links(links, random.Random(f"{seed} {number}")))
        group.create_task(_break_replicas(cluster, random.Random(f"{seed} replicas")))
    await goes_on(load, MAJORITIES, "after the last fault")
    load.is_over = True


async def _run(clusters: Clusters, cluster: LocalCluster, seed: int) -> None:
    load = Load()
    async with AsyncExitStack() as stack:
        proxies = [
            {
                replica: await stack.enter_async_context(Proxy(url, seed=seed))
                for replica, url in cluster.urls.items()
            }
            for _ in range(CLIENTS)
        ]
        async with asyncio.TaskGroup() as group:
            for links in proxies:
                client = await stack.enter_async_context(
                    connect_async(
                        cluster.document,
                        endpoints={replica: proxy.url for replica, proxy in links.items()},
                        deadline_s=DEADLINE_S,
                        history=History(clusters.history),
                    )
                )
                for worker in load.workers(client):
                    group.create_task(worker)
            group.create_task(_break_everything(cluster, proxies, load, seed))
    async with connect_async(cluster.document, history=clusters.history) as last:
        await last_look(last)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_bad_links_and_stopped_replicas_lose_and_double_nothing(clusters: Clusters, seed: int) -> None:
    print(f"seed {seed}: QUORATE_FAULT_SEED={seed} {__name__}")
    cluster = clusters.start()
    asyncio.run(_run(clusters, cluster, seed))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check() == 0, "a search was given up"
