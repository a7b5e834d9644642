"""Shows that the metrics of replicas that live tell of one that was killed: who is down, what it holds up, whose clock is off,
and that operations go on; and what callers saw when there was no quorum any more.
"""

import json
from typing import Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import OperationKind, Unavailable, connect
from tests.system.harness import QUICK, WAIT_S, Clusters, until_now
from tests.unit.cli.conftest import quorate

OFFSET_S: Final = 0.4
SEEN_S: Final = 60.0
"""How long a change among the others may go unseen, 14 s, and how slow this machine may be besides."""

Labels = frozenset[tuple[str, str]]


def series(cluster: LocalCluster, replica: str, name: str) -> dict[Labels, float]:
    """All series of one metric at one replica, by their labels."""
    text = httpx.get(cluster.urls[replica] + "/metrics", timeout=WAIT_S, trust_env=False).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {frozenset(each.labels.items()): each.value for each in samples if each.name == name}


def of_replicas(cluster: LocalCluster, name: str) -> dict[str, float]:
    """The series of r1 that have a label for each replica."""
    return {dict(labels)["replica"]: value for labels, value in series(cluster, "r1", name).items()}


def operations(cluster: LocalCluster, *, outcome: str) -> float:
    """How many enqueues ended so at r1."""
    where = frozenset({("type", "queue"), ("operation", "Enq"), ("outcome", outcome)})
    return series(cluster, "r1", "quorate_operations_total").get(where, 0.0)


def enqueue(cluster: LocalCluster) -> int:
    """The status that r1 answers to an enqueue."""
    url = f"{cluster.urls['r1']}/v1/queues/jobs/items"
    return httpx.post(
        url, json={"item": 1}, params={"deadline_s": 1.5}, timeout=WAIT_S, trust_env=False
    ).status_code


@pytest.mark.slow
def test_metrics_tell_of_a_killed_replica(clusters: Clusters) -> None:
    cluster = clusters.make(settings=QUICK)
    cluster.serve_options["r2"] = ["--clock-offset", str(OFFSET_S)]
    cluster.start()
    cluster.ready()
    until_now(lambda: of_replicas(cluster, "quorate_peer_up") == {"r2": 1, "r3": 1}, "both others are up")

    def errors() -> dict[str, float]:
        return of_replicas(cluster, "quorate_clock_offset_error_seconds")

    until_now(lambda: max(errors().values()) < OFFSET_S, "both were measured while the machine was not busy")
    offsets, bounds = of_replicas(cluster, "quorate_clock_offset_seconds"), errors()
    assert abs(offsets["r2"] - OFFSET_S) <= bounds["r2"] + 0.001
    assert abs(offsets["r3"]) <= bounds["r3"] + 0.001

    with connect(cluster.document, deadline_s=1.9) as client:
        users = client.dictionary("users")
        users.put("ann", 1)
        cluster.kill("r3")
        users.delete("ann")
        counted = client.counters().operations
        assert {kind: times.count for kind, times in counted.items()} == {
            OperationKind("dictionary", "Put", "Ok"): 1,
            OperationKind("dictionary", "Delete", "Ok"): 1,
        }
    until_now(lambda: enqueue(cluster) == 200, "two are enough")
    assert operations(cluster, outcome="Ok") == 1
    until_now(
        lambda: of_replicas(cluster, "quorate_peer_up") == {"r2": 1, "r3": 0}, "the one that is down is seen"
    )
    assert of_replicas(cluster, "quorate_clock_offset_seconds").keys() == {"r2"}
    until_now(lambda: held_up(cluster) == {"r3"}, "the one that holds up forgetting is named")

    cluster.kill("r2")
    with connect(cluster.document, deadline_s=1.0) as client:
        with pytest.raises(Unavailable):
            client.queue("jobs").peek()
        assert client.counters().operations[OperationKind("queue", "Peek", "unavailable")].count == 1
    assert enqueue(cluster) in (503, 504)
    assert operations(cluster, outcome="unavailable") + operations(cluster, outcome="unknown") == 1
    assert series(cluster, "r1", "quorate_ready") == {frozenset(): 1}


def held_up(cluster: LocalCluster) -> set[str]:
    """The replicas that r1 or r2 names."""
    found: set[str] = set()
    for replica in ("r1", "r2"):
        named = series(cluster, replica, "quorate_tombstones_held_up")
        found |= {dict(labels)["replica"] for labels, value in named.items() if value}
    return found


def health(cluster: LocalCluster, name: str) -> httpx.Response:
    """What r1 answers to a question about its health."""
    return httpx.get(f"{cluster.urls['r1']}/v1/health/{name}", timeout=WAIT_S, trust_env=False)


def held(cluster: LocalCluster) -> dict[tuple[str, str], float]:
    """Of r1's series, whether each event class of queues has its quorums, by the rule's objects."""
    found = series(cluster, "r1", "quorate_quorums_held").items()
    told = [(dict(labels), value) for labels, value in found]
    return {(each["objects"], each["event_class"]): value for each, value in told if each["type"] == "queue"}


@pytest.mark.slow
def test_the_health_of_quorums_tells_of_two_killed_of_three_while_the_replica_itself_is_ready(
    clusters: Clusters,
) -> None:
    rule = ChoiceRule("queue/fast-*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
    cluster = clusters.start(rules=[rule])
    until_now(lambda: health(cluster, "quorums").status_code == 200, "all quorums are held")
    assert health(cluster, "quorums").json()["voting"] == 3
    assert set(held(cluster).values()) == {1}

    named = ("--cluster", str(cluster.document_path))
    assert "every operation finds its own" in quorate("doctor", *named).stdout
    assert " no: " not in quorate("status", *named).stdout

    cluster.kill("r3")
    fast = "queue/fast-*: Enq yes; Deq, Peek, Size no: 2 of 3 needed replicas answer"
    assert f"{fast}." in quorate("status", *named).stdout
    assert "queue/*: Enq, Deq, Peek, Size yes." in quorate("status", *named).stdout
    until_now(lambda: health(cluster, "quorums").status_code == 503, "one is missing", deadline_s=SEEN_S)
    one = health(cluster, "quorums").json()["detail"]
    assert one.startswith("quorums are missing for rule 1, queue: Deq/Ok, Deq/Empty, Peek/Ok")
    assert "Enq/Ok" not in one  # majorities
    assert "2 of 3 replicas vote" in one

    cluster.kill("r2")
    until_now(
        lambda: "1 of 3 replicas vote" in health(cluster, "quorums").json()["detail"],
        "two are missing",
        deadline_s=SEEN_S,
    )
    detail = health(cluster, "quorums").json()["detail"]
    assert ", queue: Enq/Ok" in detail  # by majorities, behind the rule
    assert "rule 1, queue: Enq/Ok" not in detail
    assert "fast" not in detail  # asks for no token, so names no objects
    assert held(cluster)["queue/fast-*", "Enq/Ok"] == 1
    assert held(cluster)["queue/fast-*", "Deq/Ok"] == 0
    assert {value for (objects, _), value in held(cluster).items() if objects != "queue/fast-*"} == {0}
    assert health(cluster, "ready").status_code == 200
    told = json.loads(quorate("status", "--json", *named).stdout)
    assert "quorums are missing" in told["replicas"][0]["quorums"]
    lacks = {each["objects"]: each["lacking"].get("Deq") for each in told["quorums"]}
    assert lacks["queue/*"] == "1 of 2 needed replicas answers"
    doctor = quorate("doctor", "--json", *named)
    (check,) = [each for each in json.loads(doctor.stdout)["checks"] if each["what"] == "quorums"]
    assert not check["ok"]
    assert "queue/fast-*: Enq yes; Deq, Peek, Size no: 1 of 3 needed replicas answers" in check["found"]

    cluster.start()
    until_now(lambda: health(cluster, "quorums").status_code == 200, "all are back", deadline_s=SEEN_S)
