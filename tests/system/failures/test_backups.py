"""Backups of replicas that run, by the command; and how one replica, and a whole cluster, come back from them.

While clients enqueue, dequeue, write and delete, every replica is backed up. Then the cluster is destroyed and made anew from
the backups, which are of three moments. What ended before the first backup began must be there: every item that nobody took,
none that somebody took by then, the register's value or a later one, no deleted key. With one replica lost, the others go on
while its folder is restored; it does not vote; and with `quorate replace` it comes back with what it alone had held.
"""

import itertools
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import QuorateError, connect
from tests.system.guarded import GuardedCluster, new_token
from tests.system.harness import Clusters, until_now
from tests.unit.cli.conftest import quorate

WAIT_S = 60.0


class Told:
    """What clients that use a cluster were told, and when; on threads of their own until it is over."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.enqueued: dict[int, float] = {}
        self.taken: dict[int, float] = {}
        self.in_doubt = 0
        """Items that a dequeue of unknown outcome may have taken."""
        self.written: dict[int, float] = {}
        self.deleted: dict[str, float] = {}
        self._cluster = cluster
        self._is_over = threading.Event()
        works = (self._enqueue, self._dequeue, self._write, self._delete)
        self._threads = [threading.Thread(target=self._work, args=(work,)) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()

    def _work(self, work: Any) -> None:
        with connect(self._cluster.document, deadline_s=20) as client:
            for number in itertools.count(1):
                if self._is_over.is_set():
                    return
                try:
                    work(client, number)
                except QuorateError as error:
                    if work == self._dequeue and not error.definite:
                        self.in_doubt += 1
                time.sleep(0.002)

    def _enqueue(self, client: Any, number: int) -> None:
        client.queue("jobs").enqueue(number)
        self.enqueued[number] = time.time()

    def _dequeue(self, client: Any, number: int) -> None:
        if number % 4 == 0:
            for item in client.queue("jobs").dequeue(max_items=1):
                self.taken[item] = time.time()

    def _write(self, client: Any, number: int) -> None:
        client.register("leader").write(number)
        self.written[number] = time.time()

    def _delete(self, client: Any, number: int) -> None:
        key = f"k{number % 7}-{number}"
        users = client.dictionary("users")
        users.put(key, number)
        users.delete(key)
        self.deleted[key] = time.time()


def done(*words: str, code: int = 0) -> dict[str, Any]:
    """What the command answers."""
    ended = quorate(*words, "--json")
    assert ended.returncode == code, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def why_not_ready(cluster: LocalCluster, replica: str) -> str:
    try:
        answer = httpx.get(cluster.urls[replica] + "/v1/health/ready", timeout=WAIT_S, trust_env=False)
    except httpx.TransportError:
        return "it does not answer"
    return "" if answer.status_code == 200 else str(answer.json()["detail"])


@pytest.mark.slow
def test_whole_cluster_comes_back_from_backups_taken_under_load(clusters: Clusters, tmp_path: Path) -> None:
    cluster = clusters.start()
    document, backups = str(cluster.document_path), tmp_path / "backups"
    with connect(cluster.document) as client:
        for start in range(0, 3000, 1000):  # some bytes to copy, in a queue that nobody takes from
            client.queue("long").enqueue_many([f"{start + n}{'x' * 2000}" for n in range(1000)])
    with Told(cluster) as told:
        until_now(lambda: len(told.taken) >= 10 and len(told.deleted) >= 10, "the load goes on")
        began = time.time()
        made = done("backup", "--cluster", document, "--out", str(backups))
        ended = time.time()
        count = len(told.enqueued)
        until_now(lambda: len(told.enqueued) > count + 20, "the load goes on after the backups")
    assert [each["replica"] for each in made["backups"]] == list(cluster.urls)
    assert sum(began < at < ended for at in told.enqueued.values()) > 20, "nobody waits for a backup"
    assert sum("backup-taken" in cluster.log_file(id).read_text() for id in cluster.urls) == 3

    cluster.stop()
    for id in cluster.urls:
        shutil.rmtree(cluster.data_folder(id))
    old_hash = cluster.document.hash
    root = clusters.folder / "again"
    folders = [str(backups / id) for id in cluster.urls]
    answer = done("restore-cluster", *folders, "--cluster", document, "--data-root", str(root))
    again = LocalCluster(root, cluster.document_path)
    clusters.made.append(again)
    assert again.document.hash == answer["hash"] != old_hash
    again.start()
    again.ready()
    with connect(again.document) as client:
        left: list[int] = []
        while items := client.queue("jobs").dequeue(max_items=1000):
            left += items
        value = client.register("leader").read()
        keys = client.dictionary("users").items().keys()
        assert client.queue("long").size() == 3000
    before = {item for item, at in told.enqueued.items() if at < began}
    taken_before = {item for item, at in told.taken.items() if at < began}
    assert len(left) == len(set(left))
    missing = before - set(left) - told.taken.keys()
    assert len(missing) <= told.in_doubt + 1, missing  # one may be with the dequeue that was under way
    assert not taken_before & set(left)
    assert value >= max(number for number, at in told.written.items() if at < began)
    assert not keys & {key for key, at in told.deleted.items() if at < began}


@pytest.mark.slow
def test_what_was_done_under_a_key_is_not_done_again_after_a_restore(
    clusters: Clusters, tmp_path: Path
) -> None:
    cluster = clusters.start()
    document, backups = str(cluster.document_path), tmp_path / "backups"
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue_many(["a", "b", "c"], idempotency_key="adds")
        assert client.queue("jobs").dequeue(max_items=1, idempotency_key="takes") == ["a"]
    done("backup", "--cluster", document, "--out", str(backups))
    cluster.stop()
    root = clusters.folder / "again"
    folders = [str(backups / id) for id in cluster.urls]
    done("restore-cluster", *folders, "--cluster", document, "--data-root", str(root))
    again = LocalCluster(root, cluster.document_path)
    clusters.made.append(again)
    again.start()
    again.ready()
    with connect(again.document, deadline_s=20) as client:
        client.queue("jobs").enqueue_many(["a", "b", "c"], idempotency_key="adds")
        assert client.queue("jobs").dequeue(max_items=1, idempotency_key="takes") == ["a"]
        assert client.queue("jobs").dequeue(max_items=9) == ["b", "c"]


@pytest.mark.slow
def test_restored_replica_does_not_vote_until_it_was_replaced(clusters: Clusters, tmp_path: Path) -> None:
    """Enq needs one replica: what only r3 had comes back with its backup, and with nothing else."""
    alone = ChoiceRule("queue/*", classes={"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
    cluster = clusters.start(rules=[alone])
    document = str(cluster.document_path)
    for down in ("r1", "r2"):
        cluster.kill(down)
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue_many(list(range(10)))
    done("backup", "--cluster", document, "--id", "r3", "--out", str(tmp_path / "b3"))
    cluster.kill("r3")
    shutil.rmtree(cluster.data_folder("r3"))
    for back in ("r1", "r2"):
        cluster.launch(back)
    until_now(lambda: why_not_ready(cluster, "r1") == "" == why_not_ready(cluster, "r2"), "two are ready")
    with connect(cluster.document) as client:
        client.register("leader").write("before")
        done("restore", str(tmp_path / "b3"), "--data", str(cluster.data_folder("r3")))
        cluster.launch("r3")
        until_now(lambda: "quorate replace" in why_not_ready(cluster, "r3"), "r3 says what to do")
        assert "restored from a backup" in why_not_ready(cluster, "r3")
        client.register("leader").write("meanwhile")
        client.queue("jobs").enqueue(10)
    cluster.stop()
    restored = tmp_path / "restored"
    cluster.data_folder("r3").rename(restored)
    sources = [f"r1={cluster.data_folder('r1')}", f"r2={cluster.data_folder('r2')}", f"r3={restored}"]
    froms = [word for source in sources for word in ("--from", source)]
    words = ["replace", "--cluster", document, "--id", "r3", "--data", str(cluster.data_folder("r3"))]
    done(*words, *froms, "--accept-loss")
    again = LocalCluster(cluster.root)
    clusters.made.append(again)
    again.start()
    again.ready()
    with connect(again.document) as client:
        assert client.queue("jobs").dequeue(max_items=100) == list(range(11))
        assert client.register("leader").read() == "meanwhile"


def test_stopped_replica_is_backed_up_from_its_folder(clusters: Clusters, tmp_path: Path) -> None:
    cluster = clusters.make(replicas=1)
    words = ["backup", "--cluster", str(cluster.document_path), "--id", "r1"]
    words += ["--data", str(cluster.data_folder("r1"))]
    cluster.start()
    cluster.ready()
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue_many([1, 2, 3])
    assert "in use by another process" in done(*words, "--out", str(tmp_path / "b1"), code=1)["error"]
    cluster.stop()
    done(*words, "--out", str(tmp_path / "b1"))
    root = tmp_path / "again"
    done(
        "restore-cluster",
        str(tmp_path / "b1"),
        "--cluster",
        str(cluster.document_path),
        "--data-root",
        str(root),
    )
    again = LocalCluster(root, cluster.document_path)
    clusters.made.append(again)
    again.start()
    again.ready()
    with connect(again.document) as client:
        assert client.queue("jobs").dequeue(max_items=5) == [1, 2, 3]


def test_backup_of_a_running_replica_needs_scope_admin(tmp_path: Path) -> None:
    made = GuardedCluster(tmp_path)
    admin = new_token(made.tokens, "admin", name="nightly")
    writer = new_token(made.tokens, "write", name="shop")
    with made as cluster:
        words = ["backup", "--cluster", str(cluster.path), "--out", str(tmp_path / "b"), "--id", "r1"]
        refused = quorate(*words, **cluster.environment(writer))
        assert refused.returncode == 1
        assert "scope admin" in refused.stdout + refused.stderr
        assert not (tmp_path / "b").exists()
        taken = quorate(*words, **cluster.environment(admin))
        assert taken.returncode == 0, taken.stderr
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "b").iterdir()} == {0o600}
        (line,) = (line for line in cluster.log().splitlines() if '"act":"backup-taken"' in line)
        assert "nightly" in line
        assert admin not in cluster.log()
        assert '"act":"backup"' in taken.stderr
