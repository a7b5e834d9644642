"""Shows who may not vote: a replica without its store, one with another cluster file, one on another's folder.

A replica whose folder was emptied starts, refuses to vote and says what to do, while the others go on; with one more
replica down there is no quorum, for it is really not counted. With its folder back it votes again. A front end and a
replica whose cluster files differ refuse each other by name, without harm to the rest. A replica is refused the
folder of another one, and a folder that another process uses.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.client_sdk import RefusedByReplicas, Unavailable, connect
from tests.system.harness import WAIT_S, Clusters, until_now
from tests.system.in_vain import failure_of
from tests.unit.cli.conftest import quorate

TIMEOUT_S: Final = 20.0
IN_VAIN_S: Final = 5.0
"""The deadline of what must fail."""


def get(cluster: LocalCluster, replica: str, path: str) -> httpx.Response:
    """A plain request to a replica."""
    return httpx.get(cluster.urls[replica] + path, timeout=TIMEOUT_S, trust_env=False)


def is_live(cluster: LocalCluster, replica: str) -> bool:
    """Whether its process answers."""
    try:
        return get(cluster, replica, "/v1/health/live").is_success
    except httpx.TransportError:
        return False


def serve(cluster: LocalCluster, replica: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`quorate serve`, which must end by itself."""
    words = ("--id", replica, "--cluster", str(cluster.document_path), "--data", str(folder))
    return quorate("serve", *words, timeout_s=WAIT_S)


def test_a_replica_without_its_store_does_not_vote(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=TIMEOUT_S) as client:
        queue = client.queue("jobs")
        queue.enqueue_many(["a", "b", "c"])
        cluster.kill("r1")
        kept = clusters.folder / "kept"
        shutil.move(cluster.data_folder("r1"), kept)
        cluster.data_folder("r1").mkdir(mode=0o700)
        cluster.start()
        until_now(lambda: is_live(cluster, "r1"), "r1 answers")

        _assert_says_what_to_do(get(cluster, "r1", "/v1/health/ready"))
        assert "Put the folder back" in get(cluster, "r1", "/v1/status").json()["reasons"][0]
        assert queue.dequeue() == "a"
        assert queue.size() == 2
        cluster.kill("r2")
        # A new front end: the other one still has its turn and would send an accept at once, which r3 might keep.
        with connect(cluster.document, deadline_s=IN_VAIN_S) as other:
            why = "its promises are forgotten"  # Who cannot vote says so.
            assert failure_of(other.queue("jobs").dequeue, Unavailable, words=why).definite

        cluster.kill("r1")
        shutil.rmtree(cluster.data_folder("r1"))
        shutil.move(kept, cluster.data_folder("r1"))
        cluster.restart("r1")
        assert queue.dequeue() == "b", "r1 and r3 are a majority again"


def _assert_says_what_to_do(response: httpx.Response) -> None:
    problem: dict[str, Any] = response.json()
    assert response.status_code == 503
    assert problem["type"].endswith("/store-lost")
    assert "has voted before" in problem["detail"]
    assert "Put the folder back" in problem["detail"]


def test_a_front_end_with_another_document_is_refused(clusters: Clusters) -> None:
    cluster = clusters.start()
    text = cluster.document_path.read_text(encoding="utf-8")
    other = clusters.folder / "other.toml"
    other.write_text(text + "\n[limits]\npage_entries_max = 1000\n", encoding="utf-8")
    with connect(other, deadline_s=TIMEOUT_S) as stranger:
        for operation in (stranger.queue("jobs").dequeue, lambda: stranger.register("x").write(1)):
            with pytest.raises(RefusedByReplicas, match="cluster file") as refused:
                operation()
            assert refused.value.definite
    with connect(cluster.document) as client:
        assert client.register("x").read() is None, "nothing of the stranger's was stored"


def test_a_replica_with_another_document_is_left_out(clusters: Clusters) -> None:
    cluster = clusters.start()
    text = cluster.document_path.read_text(encoding="utf-8")
    other_path = clusters.folder / "other.toml"
    other_path.write_text(text + "\n[limits]\npage_entries_max = 1000\n", encoding="utf-8")
    cluster.kill("r3")
    with (
        LocalCluster(cluster.root, other_path) as other,
        connect(cluster.document, deadline_s=TIMEOUT_S) as client,
    ):
        other.restart("r3")
        queue = client.queue("jobs")
        queue.enqueue("a")
        assert queue.dequeue() == "a"
        assert is_ready(cluster.urls["r3"]), "it would vote, with others of its own document"
        cluster.kill("r1")
        failure_of(
            lambda: queue.dequeue(deadline_s=IN_VAIN_S), RefusedByReplicas, Unavailable, words="cluster file"
        )


def test_a_replica_is_refused_a_folder_that_is_not_its_own(clusters: Clusters) -> None:
    cluster = clusters.start()
    in_use = serve(cluster, "r1", cluster.data_folder("r1"))
    assert in_use.returncode == 1, "it may be free soon: systemd tries again"
    assert "is in use by another process" in in_use.stderr
    for replica in cluster.urls:
        cluster.kill(replica)
    of_another = serve(cluster, "r1", cluster.data_folder("r2"))
    assert of_another.returncode == 2, "it will be another's again: systemd does not"
    assert "belongs to replica 'r2', not to 'r1'" in of_another.stderr
    cluster.start()
    cluster.ready()
