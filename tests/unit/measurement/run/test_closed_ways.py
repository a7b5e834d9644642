"""What a cut and a partition do between real replicas. Each replica serves operations by a front end of its own, which
reaches the others as it reaches them when it decides for others: so what that front end can do shows which ways are closed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect_async
from quorate.measurement.clock import RunClock
from quorate.measurement.faults.proxies import Ways
from quorate.measurement.plan.plan_check import PROBER, parse_plan
from quorate.measurement.plan.schedule import Outage, Parting, Schedule
from quorate.measurement.run.conductor import Conductor
from quorate.measurement.run.measuring import Setting, closable
from quorate.measurement.run.replicas import start_all
from tests.unit.measurement.plans import plan_text

WAIT_S: Final = 60.0
DEADLINE_S: Final = 20.0
IN_VAIN_S: Final = 1.0
"""The deadline of what cannot be done."""
LONG_S: Final = 3600.0
NAMES: Final = ("r1", "r2", "r3")
ALL = ChoiceRule("queue/all", {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Deq/Empty": (1, 0)})
TWO = ChoiceRule("queue/two", {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)})

pytestmark = pytest.mark.slow


class World:
    """Replicas, the ways between all of them, and a schedule that happens to them."""

    def __init__(
        self, cluster: LocalCluster, ways: Ways, schedule: Schedule, http: httpx.AsyncClient
    ) -> None:
        clock = RunClock()
        self.conductor = Conductor(schedule, cluster, ways, list(NAMES), clock)
        self.began_s = clock.now_s()
        self.cluster = cluster
        self.ways = ways
        self._http = http

    async def enqueues(self, replica: str, queue: str, deadline_s: float = DEADLINE_S) -> bool:
        """Whether the front end of that replica can add to a queue. It is asked directly."""
        url = f"{self.cluster.urls[replica]}/v1/queues/{queue}/items"
        answer = await self._http.post(url, params={"deadline_s": deadline_s}, json={"item": 1})
        return answer.is_success

    async def reached(self, asker: str) -> set[str]:
        """The replicas that a front end of that name gets answers of."""
        found = set()
        for name, url in self.ways.urls_of(asker).items():
            try:
                found |= {name} if (await self._http.get(f"{url}/v1/health/ready")).is_success else set()
            except httpx.TransportError:
                continue
        return found


@asynccontextmanager
async def world(folder: Path, schedule: Schedule) -> AsyncIterator[World]:
    """Three replicas and the ways that `schedule` closes; it is not begun."""
    plan = parse_plan(plan_text())
    cluster = LocalCluster.create(folder, rules=(ALL, TWO))
    async with AsyncExitStack() as stack:
        stack.enter_context(cluster)
        setting = Setting(folder, cluster.document, cluster, "")
        ways = await stack.enter_async_context(Ways(closable(plan, setting, schedule), cluster.urls))
        for name in NAMES:
            cluster.set_endpoints(name, ways.endpoints_of(name))
        await start_all(cluster)
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=WAIT_S, trust_env=False))
        yield World(cluster, ways, schedule, http)


@asynccontextmanager
async def happening(here: World, is_so: Callable[[], bool]) -> AsyncIterator[None]:
    """The schedule from now on; goes on once `is_so` says that its faults are there, and ends them afterwards."""
    task = asyncio.ensure_future(here.conductor.run(here.began_s))
    until_s = time.monotonic() + WAIT_S
    try:
        while not is_so():
            assert time.monotonic() < until_s
            assert not task.done(), task
            await asyncio.sleep(0.02)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_cut_replica_is_reached_by_nobody_and_reaches_nobody(tmp_path: Path) -> None:
    cut = Schedule(LONG_S, (Outage(0.0, LONG_S, "r3", "cut", "planned 1"),), ())
    async with world(tmp_path, cut) as here:
        assert await here.enqueues("r1", "all")
        assert await here.enqueues("r3", "two")
        async with happening(here, lambda: not here.conductor.up_times.is_up("r3")):
            assert not await here.enqueues("r1", "all", IN_VAIN_S), "r1 reaches r3"
            assert not await here.enqueues("r3", "two", IN_VAIN_S), "r3 reaches the others"
            assert await here.enqueues("r1", "two")
            for asker in ("f1", "f2", PROBER):
                assert await here.reached(asker) == {"r1", "r2"}


async def test_a_partition_between_replicas_is_one_for_them_alone(tmp_path: Path) -> None:
    partings = tuple(
        sorted(Parting(0.0, LONG_S, *way, "partitions 1") for way in (("r1", "r3"), ("r3", "r1")))
    )
    async with world(tmp_path, Schedule(LONG_S, (), partings)) as here:
        assert await here.enqueues("r1", "all")
        links = here.conductor.link_times
        async with happening(here, lambda: not (links.is_up(("r1", "r3")) or links.is_up(("r3", "r1")))):
            assert not await here.enqueues("r1", "all", IN_VAIN_S)
            assert not await here.enqueues("r3", "all", IN_VAIN_S)
            assert await here.enqueues("r2", "all")
            assert await here.reached("f1") == set(NAMES)
            async with connect_async(here.cluster.document, endpoints=here.ways.endpoints_of("f1")) as client:
                await client.queue("all").enqueue("x", deadline_s=DEADLINE_S)


async def test_a_killed_replica_refuses_also_where_a_proxy_stands_before_it(tmp_path: Path) -> None:
    """The proxy is there for the cut at the end of the plan, which is never reached."""
    outages = (
        Outage(0.0, LONG_S, "r3", "kill", "planned 1"),
        Outage(LONG_S, 2 * LONG_S, "r3", "cut", "planned 2"),
    )
    async with world(tmp_path, Schedule(LONG_S, outages, ())) as here:
        assert await here.reached("f1") == set(NAMES)
        async with happening(here, lambda: not here.conductor.up_times.is_up("r3")):
            url = here.ways.endpoints_of("f1")["r3"]
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
