"""What holds up the forgetting of deleted keys is told: by each replica, by `quorate status` and by `quorate doctor`.

One of three replicas is killed; keys are deleted by the other two. Once the retry window has passed, these tombstones
wait for that replica alone, and it must be named. It comes back; the keys are forgotten and the figures fall to zero.
"""

import json
from functools import partial
from typing import Any

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.status import Found, ask_all
from quorate.client_sdk import connect
from tests.system.harness import QUICK, Clusters, answered, until_now
from tests.unit.cli.conftest import quorate

KEYS = [f"key-{number}" for number in range(6)]
UP = ("r1", "r2")


def told(cluster: LocalCluster) -> dict[str, Found]:
    """What each replica says of itself."""
    return {each.id: each for each in ask_all(cluster.document)}


def waiting(cluster: LocalCluster, *replicas: str) -> list[int]:
    """The figure of each of these replicas; -1 for one that tells none."""
    found = told(cluster)
    return [-1 if (each := found[id].tombstones) is None else each.waiting for id in replicas]


def held_up_by(cluster: LocalCluster) -> set[str]:
    """Every replica that one of them names."""
    return {id for each in told(cluster).values() if each.tombstones for id in each.tombstones.held_up_by}


def command(cluster: LocalCluster, *words: str) -> Any:
    """A command of its own process on that cluster, in JSON."""
    return json.loads(quorate(*words, "--json", "--cluster", str(cluster.document_path)).stdout)


@pytest.mark.slow
def test_replica_that_holds_up_forgetting_is_named_until_it_is_back(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    with connect(cluster.document, deadline_s=1.9) as client:
        users = client.dictionary("users")
        for key in KEYS:
            answered(partial(users.put, key, 1))
        assert waiting(cluster, *cluster.urls) == [0, 0, 0]
        cluster.kill("r3")
        for key in KEYS:
            answered(partial(users.delete, key))
    until_now(lambda: waiting(cluster, *UP) == [len(KEYS)] * 2, "both see what waits")
    until_now(lambda: held_up_by(cluster) == {"r3"}, "the one that is down is named")

    found = told(cluster)
    for id in UP:
        tombstones = found[id].tombstones
        assert tombstones is not None
        assert tombstones.oldest_s is not None
        assert tombstones.oldest_s > cluster.document.limits.retry_window_s
    shown = quorate("status", "--cluster", str(cluster.document_path)).stdout
    assert f"waits to forget {len(KEYS)} deleted keys" in shown
    assert "held up by r3" in shown
    as_json = {each["id"]: each["tombstones"] for each in command(cluster, "status")["replicas"]}
    assert [as_json[id]["waiting"] for id in UP] == [len(KEYS)] * 2
    assert as_json["r3"] is None
    check = deleted_keys(command(cluster, "doctor"))
    assert not check["ok"]
    assert "held up by r3" in check["found"]
    assert "bring back r3" in check["fix"]

    cluster.restart("r3")
    until_now(lambda: waiting(cluster, *cluster.urls) == [0, 0, 0], "all is forgotten")
    assert held_up_by(cluster) == set()
    assert deleted_keys(command(cluster, "doctor"))["ok"]
    assert "waits to forget" not in quorate("status", "--cluster", str(cluster.document_path)).stdout


def deleted_keys(doctor: Any) -> Any:
    """The doctor's check of that name."""
    return next(check for check in doctor["checks"] if check["what"] == "deleted keys")
