"""Shows that standing rules fall back and go back by themselves while a cluster is used: more failures are survived, and nothing acknowledged is lost,
doubled or out of order.

Replicas are ended with SIGKILL, also the one that switches, in the middle of that. Histories are held against the serial specifications.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, from_json
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, OutcomeUnknown, Unavailable, connect
from quorate.replica.upkeep.switching import NO_RIGHT
from tests.system.guarded import GuardedCluster
from tests.system.harness import Clusters, until, until_now
from tests.system.histories import Told
from tests.system.load import DEADLINE_S, IN_VAIN_S, MAJORITIES, Load, front_ends, goes_on

AFTER_S: Final = 2.0
TRIES: Final = 3
OF_THREE: Final = "votes(2; r1:1, r2:1, r3:1)"
OF_FOUR: Final = "votes(3; r1:1, r2:1, r3:1, r4:1)"
FRONT_ENDS: Final = 2
SHORT_DEADLINE_S: Final = 7.9
SHORT: Final = f"""\
[clock]
offset_max_s = 1.0
replica_error_s = 0.0
front_end_error_s = 0.0

[limits]
retry_window_s = 8.0
deadline_s_max = {SHORT_DEADLINE_S}
wait_s_max = 1.0
consumed_lag_s = 1.0
"""
"""Keys are remembered for 8 + 7.9 + 2 * 1 seconds: so long is a switch in its middle."""


def standing(down: str, reads: str, objects: str = "*") -> ChoiceRule:
    """Majorities of all, and of the others while one member is down."""
    return ChoiceRule(objects, fallback=Fallback(down=(down,), after_s=AFTER_S, reads=reads))


def documents(cluster: LocalCluster) -> dict[str, ClusterDocument]:
    """The configuration in which each replica that runs is."""
    found: dict[str, ClusterDocument] = {}
    for replica in cluster.pids:
        try:
            told = httpx.get(f"{cluster.urls[replica]}/v1/cluster", trust_env=False).json()
            found[replica] = from_json(told["document"])
        except httpx.TransportError:
            continue
    return found


def are_in(cluster: LocalCluster, *, fallen_back: bool, replicas: int) -> bool:
    """Whether so many replicas run, and all are in one configuration, which does not change, with these choices in force."""
    found = documents(cluster)
    are_there = [
        each.former is None and {rule.has_fallen_back for rule in each.standing_rules} == {fallen_back}
        for each in found.values()
    ]
    is_one = len({each.number for each in found.values()}) == 1
    return len(found) == replicas and is_one and all(are_there)


async def have_switched(cluster: LocalCluster, *, fallen_back: bool, replicas: int) -> None:
    """Wait for that."""
    await until(
        lambda: are_in(cluster, fallen_back=fallen_back, replicas=replicas),
        f"fallen back: {fallen_back} at {replicas} replicas",
    )


@asynccontextmanager
async def used(
    clusters: Clusters, cluster: LocalCluster, load: Load, deadline_s: float = DEADLINE_S
) -> AsyncIterator[list[AsyncClient]]:
    """The cluster, while front ends work on it."""
    made = front_ends(
        cluster.document, clusters.history, count=FRONT_ENDS, deadline_s=deadline_s, queues=load.queues
    )
    async with made as connected, asyncio.TaskGroup() as group:
        for client in connected:
            for worker in load.workers(client):
                group.create_task(worker)
        yield connected
        load.is_over = True


def check(clusters: Clusters) -> None:
    """Nothing was lost, doubled or out of order."""
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"


async def _a_second_failure(clusters: Clusters, cluster: LocalCluster) -> None:
    load = Load(("jobs", "fixed"), deadline_s=DEADLINE_S)
    async with used(clusters, cluster, load) as connected:
        await goes_on(load, (*MAJORITIES, "queue/fixed"), "at first")
        cluster.kill("r4")
        await have_switched(cluster, fallen_back=True, replicas=3)
        await goes_on(load, (*MAJORITIES, "queue/fixed"), "with one replica down")
        cluster.kill("r3")
        await goes_on(load, MAJORITIES, "with two of four replicas down")
        with pytest.raises((Unavailable, OutcomeUnknown)):
            await connected[0].queue("fixed").peek(deadline_s=IN_VAIN_S)
        await asyncio.to_thread(cluster.restart, "r3")
        await asyncio.to_thread(cluster.restart, "r4")
        await have_switched(cluster, fallen_back=False, replicas=4)
        await goes_on(load, (*MAJORITIES, "queue/fixed"), "with all back")


def test_a_cluster_of_four_survives_a_second_failure_after_the_first_and_goes_back(
    clusters: Clusters,
) -> None:
    rules = [ChoiceRule("queue/fixed"), standing("r4", OF_THREE)]
    cluster = clusters.make(rules=rules, replicas=4)
    cluster.start()
    cluster.ready()
    asyncio.run(_a_second_failure(clusters, cluster))
    check(clusters)
    told = cluster.log_file("r3").read_text()
    assert "is in force, chosen while the cluster ran" in told, "it came back with the fallback in force"
    assert "the cluster file differs from it" not in told


def hold_a_key(cluster: LocalCluster, key: str = "k") -> None:
    """Both choices are in force until this is forgotten: so long a switch is in its middle."""
    with connect(cluster.document) as client:
        client.queue("keyed").enqueue("under a key", idempotency_key=key)


def is_in_the_middle(cluster: LocalCluster) -> bool:
    """Whether each replica that runs is where both choices are in force."""
    found = documents(cluster).values()
    return len(found) == len(cluster.pids) and all(each.former is not None for each in found)


async def _is_killed_in_the_middle(cluster: LocalCluster) -> bool:
    """Whether r1 was ended while it switched since r5 is down; a busy machine may come too late for that."""
    cluster.kill("r5")
    await until(
        lambda: is_in_the_middle(cluster) or are_in(cluster, fallen_back=True, replicas=4),
        "a switch is in its middle, or at its end",
    )
    cluster.kill("r1")
    return all(each.former is not None for each in documents(cluster).values())


async def _the_acting_one_dies(clusters: Clusters, cluster: LocalCluster) -> None:
    load = Load(deadline_s=SHORT_DEADLINE_S)
    async with used(clusters, cluster, load, SHORT_DEADLINE_S):
        await goes_on(load, MAJORITIES, "at first")
        for number in range(TRIES):
            await asyncio.to_thread(hold_a_key, cluster, f"k{number}")
            if await _is_killed_in_the_middle(cluster):
                break
            await asyncio.to_thread(cluster.restart, "r1")
            await asyncio.to_thread(cluster.restart, "r5")
            await have_switched(cluster, fallen_back=False, replicas=5)
        else:
            pytest.fail("it ended too soon each time")
        await have_switched(cluster, fallen_back=True, replicas=3)
        await goes_on(load, MAJORITIES, "after another one has ended the switch")
        await asyncio.to_thread(cluster.restart, "r1")
        await asyncio.to_thread(cluster.restart, "r5")
        await have_switched(cluster, fallen_back=False, replicas=5)


def test_who_switches_is_killed_in_the_middle_and_another_one_goes_on(clusters: Clusters) -> None:
    cluster = clusters.make(rules=[standing("r5", OF_FOUR)], replicas=5, settings=SHORT)
    cluster.start()
    cluster.ready()
    asyncio.run(_the_acting_one_dies(clusters, cluster))
    check(clusters)


def test_a_member_that_comes_back_in_the_middle_has_the_switch_taken_back(clusters: Clusters) -> None:
    cluster = clusters.make(rules=[standing("r4", OF_THREE)], replicas=4)
    cluster.start()
    cluster.ready()
    hold_a_key(cluster)
    cluster.kill("r4")
    until_now(lambda: is_in_the_middle(cluster), "a switch is in its middle")
    cluster.restart("r4")
    until_now(lambda: are_in(cluster, fallen_back=False, replicas=4), "the first choice alone is in force")
    # One step, not the end of the switch and another one: those have two each.
    assert {each.number for each in documents(cluster).values()} == {2}


def test_the_replicas_own_token_needs_scope_admin_and_each_replica_says_so(tmp_path: Path) -> None:
    with GuardedCluster(tmp_path, replicas=3, rules=[standing("r3", "r1")]) as cluster:

        def status(replica: str = "r1") -> dict[str, Any]:
            with cluster.client(cluster.replica_token) as client:
                told: dict[str, Any] = client.get(f"{cluster.document.urls[replica]}/v1/status").json()
                return told

        for replica in cluster.document.urls:
            cluster.wait_for(lambda replica=replica: status(replica)["switch_waits"] == NO_RIGHT, replica)
        cluster.signal(signal.SIGKILL, "r3")
        list_of_tokens = cluster.tokens.read_text()
        assert "scopes=replica " in list_of_tokens
        cluster.tokens.write_text(list_of_tokens.replace("scopes=replica ", "scopes=replica,admin "))
        cluster.wait_for(lambda: status()["fallbacks"] == {"*": True})
        cluster.wait_for(lambda: status()["switch_waits"] == "")
        assert cluster.log().count(NO_RIGHT) == 2, "when it began, and that it is over"
