"""Shows that a replica does not vote from an old copy of its own folder, as a restored backup is.

The folder is sound and bears the right names: only the other replicas know that it had come further. A front end that
was there before does not believe it either, before it knows it itself. With the newest folder back it votes again.
"""

import shutil

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from tests.system.harness import WAIT_S, Clusters, until_now


def reasons(cluster: LocalCluster, replica: str) -> list[str]:
    """Why the replica says that it is not ready; a reason of the test's while it does not answer."""
    try:
        found: list[str] = httpx.get(
            cluster.urls[replica] + "/v1/status", timeout=WAIT_S, trust_env=False
        ).json()["reasons"]
    except httpx.TransportError:
        return ["it does not answer"]
    return found


def test_a_restored_backup_does_not_vote(clusters: Clusters) -> None:
    cluster = clusters.start()
    folder, backup, newest = (
        cluster.data_folder("r1"),
        clusters.folder / "backup",
        clusters.folder / "newest",
    )
    with connect(cluster.document, deadline_s=20) as client:
        queue = client.queue("jobs")
        queue.enqueue_many(list(range(10)))
        cluster.kill("r1")
        shutil.copytree(folder, backup)
        cluster.restart("r1")
        cluster.kill("r3")  # Or the two others could do it without r1, whose copy would be no older then.
        assert queue.dequeue(max_items=3) == [0, 1, 2]
        queue.enqueue_many(list(range(10, 20)))
        cluster.restart("r3")
        cluster.kill("r1")
        cluster.restart("r1")  # tells the others how far it is before it votes
        cluster.kill("r1")
        shutil.move(folder, newest)
        shutil.copytree(backup, folder)
        cluster.start()
        until_now(
            lambda: any("older copy" in each for each in reasons(cluster, "r1")), "r1 knows that it is old"
        )

        ready = httpx.get(cluster.urls["r1"] + "/v1/health/ready", timeout=WAIT_S, trust_env=False)
        assert ready.status_code == 503
        assert ready.json()["type"] == "/problems/store-lost"
        assert "Put the newest folder back" in ready.json()["detail"]
        assert queue.dequeue() == 3, "the two others are a majority"

        cluster.kill("r1")
        shutil.rmtree(folder)
        shutil.move(newest, folder)
        cluster.restart("r1")
        cluster.kill("r2")
        taken = []
        while items := queue.dequeue(max_items=50):
            taken += items
        assert taken == list(range(4, 20)), "r1 and r3 are a majority again"


@pytest.mark.parametrize("ahead_s", [0, 600])
def test_an_older_copy_is_found_out_also_after_clocks_were_ahead(clusters: Clusters, ahead_s: int) -> None:
    """All that is stored then is stamped below what the store holds already, and its clock rises nevertheless."""
    cluster = clusters.make()
    for replica in cluster.urls:
        cluster.serve_options[replica] = ["--clock-offset", str(ahead_s)]
    cluster.start()
    cluster.ready()
    ahead = httpx.put(
        f"{cluster.urls['r1']}/v1/registers/other", json={"value": 1}, timeout=WAIT_S, trust_env=False
    )
    assert ahead.status_code == 204
    for replica in cluster.urls:
        cluster.kill(replica)
        cluster.serve_options[replica] = []
    cluster.start()
    cluster.ready()
    folder, backup = cluster.data_folder("r2"), clusters.folder / "backup"
    with connect(cluster.document, deadline_s=20) as client:
        queue, register = client.queue("jobs"), client.register("leader")
        register.write("first")
        queue.enqueue("first")
        cluster.kill("r2")
        shutil.copytree(folder, backup)
        cluster.restart("r2")
        cluster.kill("r3")
        register.write("second")
        queue.enqueue("second")
        cluster.kill("r2")
        cluster.restart("r2")  # tells r1 how far it is before it votes
        cluster.kill("r2")
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        cluster.start()
        until_now(
            lambda: any("older copy" in each for each in reasons(cluster, "r2")), "r2 knows that it is old"
        )
        assert register.read() == "second"
        assert [queue.dequeue(), queue.dequeue()] == ["first", "second"]
