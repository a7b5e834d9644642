"""A replica loses its disk. It refuses to vote and says what to do; what it says works.

Items are enqueued at two of three replicas, so that each is on the lost disk and on one other, or on both others. Then
the disk of r3 is gone. All stop, `quorate replace` makes r3 a new store from the others', and all start again. Then
one and the other old replica is killed: everything that was acknowledged must come out of the new store and an old one.
"""

import json
import shutil
import time
import urllib.error
import urllib.request

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from tests.system.harness import Clusters
from tests.unit.cli.conftest import quorate

ITEMS = 60
TIMEOUT_S = 60


def test_a_lost_disk_is_replaced_and_nothing_acknowledged_is_missing(clusters: Clusters) -> None:
    cluster = clusters.start()
    for down, first in (("r1", 0), ("r2", ITEMS // 3), ("r3", 2 * ITEMS // 3)):
        cluster.kill(down)
        with connect(cluster.document) as client:
            client.queue("jobs").enqueue_many(list(range(first, first + ITEMS // 3)))
            client.register("last").write(down)
        cluster.restart(down)
    cluster.stop()
    shutil.rmtree(cluster.data_folder("r3"))

    cluster.start()
    assert "quorate replace" in _reason_not_ready(cluster, "r3")
    cluster.stop()

    shutil.rmtree(cluster.data_folder("r3"))
    told = _replace(cluster)
    assert told["objects"] == 2

    again = LocalCluster(cluster.root)
    clusters.made.append(again)
    again.start()
    again.ready()
    assert again.document.hash != cluster.document.hash
    again.kill(
        "r2"
    )  # The first third was on its disk and on the lost one, so it must come out of the new store.
    with connect(again.document) as client:
        taken: list[int] = []
        while len(taken) < ITEMS // 3:
            taken += client.queue("jobs").dequeue(max_items=ITEMS // 3 - len(taken))
        again.restart("r2")
        again.kill("r1")  # So was the second third on this one's.
        while rest := client.queue("jobs").dequeue(max_items=2 * ITEMS):
            taken += rest
        assert taken == list(range(ITEMS))
        assert client.register("last").read() == "r3"


def _reason_not_ready(cluster: LocalCluster, replica: str) -> str:
    """The detail of the problem that the readiness endpoint answers, once the process listens."""
    url = cluster.urls[replica] + "/v1/health/ready"
    for other in ("r1", "r2"):
        _answer(cluster.urls[other] + "/v1/health/ready")
    problem = _answer(url)
    assert problem["status"] == 503
    return str(problem["detail"])


def _answer(url: str) -> dict[str, object]:
    """What the endpoint says, asked again while nothing listens there."""
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                body = response.read()
        except urllib.error.HTTPError as problem:
            body = problem.read()
        except OSError:
            assert time.monotonic() < until_s, f"nothing listens at {url}"
            time.sleep(0.05)
            continue
        answer: dict[str, object] = json.loads(body)
        return answer


def _replace(cluster: LocalCluster) -> dict[str, int]:
    command = ["replace", "--json", "--id", "r3"]
    command += ["--cluster", str(cluster.document_path), "--data", str(cluster.data_folder("r3"))]
    command += ["--from", f"r1={cluster.data_folder('r1')}", "--from", f"r2={cluster.data_folder('r2')}"]
    said = quorate(*command, timeout_s=TIMEOUT_S)
    assert said.returncode == 0, said.stderr
    answer: dict[str, int] = json.loads(said.stdout)
    return answer
