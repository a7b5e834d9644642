"""Shows that a change comes to its end whoever dies in the middle of it: a member that leaves, the new one for a while, one that was to stay.

Each enqueue may be at one replica alone, so that nothing can be left out but what an operator declares dead.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from tests.system.cluster.test_members import members
from tests.system.harness import Clusters, until_now
from tests.system.load import DEADLINE_S
from tests.unit.cli.conftest import begun, quorate, told_in_vain

ITEMS: Final = list(range(8))


def eager(replicas: int) -> ChoiceRule:
    """An enqueue may be at any one of so many replicas, and a dequeue looks at all."""
    return ChoiceRule("queue/jobs", {"Enq/Ok": (0, 1), "Deq/Ok": (replicas, 1), "Deq/Empty": (replicas, 0)})


def told(url: str, path: str) -> Any:
    return httpx.get(url + path, trust_env=False).raise_for_status().json()


def filled(cluster: LocalCluster) -> None:
    """Each replica holds all items."""
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        client.queue("jobs").enqueue_many(ITEMS)
    until_now(lambda: all(each["missing"] == 0 for each in members(cluster).values()), "all have all")


def emptied(cluster: LocalCluster) -> None:
    """All items are there, in order, for who knows the file of before."""
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        assert client.queue("jobs").dequeue(max_items=len(ITEMS)) == ITEMS


def without(cluster: LocalCluster, gone: Sequence[str], joined: str) -> ClusterDocument:
    """The members of the file, without these, and with one that has joined."""
    url = cluster.urls[joined]
    new = ReplicaInfo(joined, url, store=told(url, "/v1/status")["store"])
    kept = [each for each in cluster.document.replicas if each.id not in gone]
    return with_members(cluster.document, [*kept, new])


def lost(cluster: LocalCluster, *replicas: str) -> None:
    """Their machines are off, and their disks are gone."""
    for replica in replicas:
        cluster.kill(replica)
        shutil.rmtree(cluster.data_folder(replica))


def test_one_that_leaves_is_declared_dead_in_the_middle_of_its_replacement_while_the_new_one_is_down(
    clusters: Clusters,
) -> None:
    cluster = clusters.start(rules=[eager(3)])
    filled(cluster)
    url = cluster.join("r4")
    assert begun(cluster, without(cluster, ["r3"], "r4")) == 1
    lost(cluster, "r3")
    cluster.kill("r4")
    words = ("member", "replace", "r3", url, "--declare-dead", "r3", "--cluster", str(cluster.document_path))
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(quorate, *words)
        until_now(
            lambda: going.done() or told(cluster.urls["r1"], "/v1/cluster")["document"].get("epoch") == 2,
            "the change goes on without r3",
        )
        assert not going.done(), going.result().stderr
        cluster.launch("r4")
        done = going.result()
    assert done.returncode == 0, done.stderr
    assert "Configuration 3 is in force." in done.stdout
    assert [*members(cluster)] == ["r1", "r2", "r4"]
    emptied(cluster)


def test_one_that_was_to_stay_dies_in_the_middle_of_a_change_that_others_were_declared_dead_in(
    clusters: Clusters,
) -> None:
    cluster = clusters.make(rules=[eager(5)], replicas=5)
    cluster.start()
    cluster.ready()
    filled(cluster)
    cluster.join("r6")
    lost(cluster, "r2")
    assert begun(cluster, without(cluster, ["r2"], "r6"), {"r2"}) == 1
    lost(cluster, "r3")
    of_cluster = ("--cluster", str(cluster.document_path))
    why = "r3 did not go on to configuration 1 (one that is off for good can be removed, or replaced"
    told_in_vain(3, why, "member", "replace", "r2", cluster.urls["r6"], "--deadline", "3", *of_cluster)
    abort = quorate("change", "--abort", *of_cluster)
    said = " ".join(abort.stderr.split())
    assert abort.returncode == 2, said
    assert "by `quorate member remove ID --declare-dead ID`" in said
    url = cluster.join("r7")
    done = quorate("member", "replace", "r3", url, "--declare-dead", "r3", *of_cluster)
    assert done.returncode == 0, done.stderr
    assert "What r2 and r3 alone stored is lost" in done.stderr
    assert "Configuration 3 is in force." in done.stdout
    found = members(cluster)
    assert [*found] == ["r1", "r4", "r5", "r6", "r7"]
    assert all(each["is_ready"] for each in found.values())
    emptied(cluster)
