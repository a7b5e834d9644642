"""Shows what wrong clocks do, and what they never do, on real replicas and clients whose clocks are wrong by a set amount.

* Within the offset that replicas accept, nothing is refused, and in spite of a false declaration nothing is lost,
  doubled or contradicted: only the order of blind operations may be off.
* With the replicas' error declared and the clients' clocks measured, all of it is linearizable, however wrong the
  clients' clocks are.
* A replica whose clock is beyond the offset is told by the others, its callers and the command line by how much; nothing
  is lost, and it takes part again once its clock is right.
* Where all clocks were ahead and were set right, objects go on from where they stand.
"""

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, OutcomeUnknown, connect, connect_async
from quorate.client_sdk.api.history import History
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.timestamps.clock import Now
from tests.system.harness import WAIT_S, Clusters, http, until_now
from tests.system.histories import Told
from tests.system.in_vain import failure_of
from tests.system.load import DEADLINE_S, MAJORITIES, Load, goes_on, last_look
from tests.unit.cli.conftest import quorate

TIMEOUT_S: Final = 60.0
AHEAD_S: Final = 60.0
IN_VAIN_S: Final = 5.0
"""The deadline of what may fail."""
SLACK_S: Final = 30.0
"""A busy machine may take so long between stamping and refusing; by far less than clocks are wrong by."""
MEASURED: Final = """\
[clock]
replica_error_s = 0.1
offset_max_s = 2.0
"""
"""Without `front_end_error_s` a caller measures its clock against the replicas'."""
OFF_BY: Final = r"(-?[0-9.]+) s (?:ahead of|behind) this replica's clock"
RIGHT_CALLERS: Final = MEASURED.replace("0.1", "0.2") + "front_end_error_s = 0.0\n"
"""Callers' clocks are better than replicas'."""


class WrongClock:
    """This machine's clock, and so many seconds."""

    def __init__(self, offset_s: float) -> None:
        self._offset_us: Final = round(offset_s * 1e6)

    def now(self) -> Now:
        """See Clock."""
        return Now(time.monotonic(), time.time_ns() // 1000 + self._offset_us)


@asynccontextmanager
async def client_with(cluster: LocalCluster, offset_s: float, history: History) -> AsyncIterator[AsyncClient]:
    """The SDK's client with a wrong clock."""
    driver = Driver(
        cluster.document,
        transport=http(cluster.document),
        site=new_site(),
        seed=secrets.randbits(64),
        clock=WrongClock(offset_s),
    )
    async with AsyncClient(driver, deadline_s=DEADLINE_S, history=history) as client:
        yield client


def started(clusters: Clusters, offsets_s: Sequence[float], settings: str = "") -> LocalCluster:
    """A running cluster whose replicas' clocks are wrong by `offsets_s`."""
    cluster = clusters.make(settings=settings)
    for replica, offset_s in zip(cluster.urls, offsets_s, strict=True):
        cluster.serve_options[replica] = ["--clock-offset", str(offset_s)]
    cluster.start()
    cluster.ready()
    return cluster


async def _load(clusters: Clusters, cluster: LocalCluster, client_offsets_s: Sequence[float]) -> None:
    load = Load()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for offset_s in client_offsets_s:
            client = await stack.enter_async_context(
                client_with(cluster, offset_s, History(clusters.history))
            )
            for worker in load.workers(client):
                group.create_task(worker)
        await goes_on(load, MAJORITIES, "with all")
        await asyncio.to_thread(cluster.kill, "r2")
        await goes_on(load, MAJORITIES, "without the one whose clock is right")
        await asyncio.to_thread(cluster.restart, "r2")
        load.is_over = True
    async with connect_async(cluster.document, deadline_s=DEADLINE_S, history=clusters.history) as last:
        await last_look(last)


@pytest.mark.parametrize(
    ("replicas_s", "clients_s", "settings", "is_exact"),
    [
        pytest.param((0.5, 0.0, -0.5), (0.7, 0.0, -0.7), "", False, id="declared falsely"),
        pytest.param((0.1, 0.0, -0.1), (30.0, 0.0, -30.0), MEASURED, True, id="declared rightly"),
    ],
)
def test_wrong_clocks_within_the_offset_lose_and_double_nothing(
    clusters: Clusters,
    replicas_s: Sequence[float],
    clients_s: Sequence[float],
    settings: str,
    is_exact: bool,
) -> None:
    cluster = started(clusters, replicas_s, settings)
    asyncio.run(_load(clusters, cluster, clients_s))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(is_exact=is_exact) == 0, "a search was given up"
    assert not any(ends["fail"] for ends in told.ends.values()), "nothing is refused"


def put(url: str, deadline_s: float = DEADLINE_S) -> httpx.Response:
    """A write through the front end of the replica at `url`, which stamps with its clock."""
    place = f"{url}/v1/registers/plain?deadline_s={deadline_s:g}"
    return httpx.put(place, json={"value": url}, timeout=TIMEOUT_S, trust_env=False)


def test_what_is_declared_of_callers_says_nothing_of_the_clocks_that_order_what_comes_by_rest(
    clusters: Clusters,
) -> None:
    """r1 is 0.3 s ahead of r2, as is declared. A write at r2 that began after one at r1 had returned was hidden by it."""
    cluster = started(clusters, (0.15, -0.15, 0.0), RIGHT_CALLERS)
    assert put(cluster.urls["r1"]).is_success
    assert put(cluster.urls["r2"]).is_success
    read = httpx.get(cluster.urls["r3"] + "/v1/registers/plain", timeout=TIMEOUT_S, trust_env=False)
    assert read.json() == {"value": cluster.urls["r2"]}


def alone_with_r3(cluster: LocalCluster) -> None:
    """While the others are away r3's clock is all there is to go by, and r3 stores what it stamps a minute ahead."""
    for replica in ("r1", "r2"):
        cluster.kill(replica)
    assert put(cluster.urls["r3"], IN_VAIN_S).status_code in (503, 504)
    for replica in ("r1", "r2"):
        cluster.restart(replica)


def doctor(cluster: LocalCluster) -> str:
    """What `quorate doctor` says."""
    said = quorate("doctor", "--cluster", str(cluster.document_path), timeout_s=WAIT_S)
    return " ".join((said.stdout + said.stderr).split())


def off_by(text: str) -> float:
    """The measured offset that a sentence names, in seconds."""
    found = re.search(OFF_BY, text)
    assert found, text
    return float(found[1])


def test_a_clock_beyond_the_offset_is_told_so_and_harms_nobody(clusters: Clusters) -> None:
    """r3 is a minute ahead. Callers that measure their clocks go by the two others; what needs r3 fails and says why."""
    cluster = started(clusters, (0.0, 0.0, AHEAD_S), MEASURED)
    with connect(cluster.document, history=clusters.history, deadline_s=DEADLINE_S) as client:
        queue, register = client.queue("jobs"), client.register("leader")
        for number in range(5):
            queue.enqueue(number)
            register.write(number)
            assert register.read() == number
            assert queue.dequeue() == number
        queue.enqueue("last")
        alone_with_r3(cluster)
        for number in range(5, 8):
            register.write(number)
            assert register.read() == number
        through_r3 = put(cluster.urls["r3"], IN_VAIN_S)
        if through_r3.status_code == 504:  # r3 has stored it, and nobody else will
            assert abs(off_by(through_r3.json()["detail"]) - AHEAD_S) < SLACK_S
        else:  # the front end there had heard of the others' clocks before it stamped, and went by them
            assert through_r3.status_code == 204
        skew = re.compile(r"clock skew (59|60)[0-9]{3} ms between replicas")
        until_now(lambda: skew.search(doctor(cluster)) is not None, "the doctor measures it")
        cluster.kill("r1")
        tries = itertools.count(1)
        unknown = failure_of(
            lambda: queue.enqueue(f"perhaps {next(tries)}", deadline_s=1.0), OutcomeUnknown, words=OFF_BY
        )
        assert abs(off_by(str(unknown)) - AHEAD_S) < SLACK_S
        cluster.kill("r3")
        cluster.serve_options.clear()
        cluster.restart("r3")
        assert register.read() == 7
        first, *others = iter(queue.dequeue, None)
        assert first == "last"
        assert {*others} <= {f"perhaps {number}" for number in range(1, next(tries))}
    assert Told(clusters.history).check() == 0


def set_right(cluster: LocalCluster) -> None:
    """All replicas begin anew, with the machine's clock."""
    for replica in cluster.urls:
        cluster.kill(replica)
    cluster.serve_options.clear()
    for replica in cluster.urls:
        cluster.restart(replica)
    cluster.ready()


def stored_ahead_s(url: str) -> float:
    """The replica's metric."""
    told = httpx.get(url + "/metrics", timeout=TIMEOUT_S, trust_env=False).text
    found = re.search(r"^quorate_stored_ahead_seconds (\S+)$", told, re.MULTILINE)
    assert found, told
    return float(found[1])


@pytest.mark.parametrize("ahead_s", [AHEAD_S, 300 * 86_400.0], ids=["a minute", "300 days"])
def test_what_was_changed_while_all_clocks_were_ahead_goes_on_when_they_are_set_right(
    clusters: Clusters, ahead_s: float
) -> None:
    """A new client's writes, deletes and enqueues come after what is there, at once; and the doctor knows of it."""
    cluster = started(clusters, (ahead_s, ahead_s, ahead_s), MEASURED)
    with connect(cluster.document, history=clusters.history, deadline_s=DEADLINE_S) as client:
        client.register("leader").write("old")
        client.dictionary("d").put("k", "old")
        client.queue("jobs").enqueue("first")
        assert client.register("swapped").compare_and_set(None, "old")
    set_right(cluster)
    assert all(abs(stored_ahead_s(url) - ahead_s) < TIMEOUT_S for url in cluster.urls.values())
    assert "ahead of the clocks at r1: " in doctor(cluster)
    begun_s = time.monotonic()
    with connect(cluster.document, history=clusters.history, deadline_s=DEADLINE_S) as client:
        client.register("leader").write("new")
        client.dictionary("d").delete("k")
        client.queue("jobs").enqueue("second")
        assert client.register("swapped").compare_and_set("old", "new")
    with connect(cluster.document, history=clusters.history, deadline_s=DEADLINE_S) as client:
        assert client.register("leader").read() == "new"
        assert client.dictionary("d").get("k") is None
        assert [client.queue("jobs").dequeue() for _ in range(3)] == ["first", "second", None]
        assert client.register("swapped").read() == "new"
    assert time.monotonic() - begun_s < SLACK_S
    assert Told(clusters.history).check() == 0
