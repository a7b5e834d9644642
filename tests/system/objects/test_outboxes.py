"""A queue with outboxes on real replicas: one replica takes enqueues, and all of them come, once each, when the others are there again."""

import json
import random
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import Client, OutcomeUnknown, Unavailable, connect
from tests.system.harness import Clusters, answered, until_now
from tests.unit.cli.conftest import quorate_here

RULES: Final = (ChoiceRule("queue/mail", outbox=True),)
EXACT: Final = (ChoiceRule("queue/mail", outbox=True, exact_empty=True),)
ITEMS: Final = 100
"""More than are relayed together."""
WORKERS: Final = 3
TURNS: Final = 30
STEPS: Final = 24
"""Of each worker between two kills: most of those that find nothing wait for their deadline."""


def post(url: str, body: Any) -> int:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(answer.status)


def taken(client: Client, expected: int) -> list[Any]:
    """All items, once so many have come; and what comes after them."""
    found: list[Any] = []

    def take() -> bool:
        found.extend(answered(lambda: client.queue("mail").dequeue(max_items=50)))
        return len(found) >= expected

    until_now(take, f"{expected} items come")
    found.extend(answered(lambda: client.queue("mail").dequeue(max_items=50)))
    return found


@pytest.mark.slow
def test_one_replica_takes_what_all_deliver_once_each(clusters: Clusters) -> None:
    cluster: LocalCluster = clusters.start(rules=RULES)
    with connect(cluster.document) as client:
        queue = client.queue("mail")
        queue.enqueue("before")
        assert taken(client, 1) == ["before"]

        for replica in ("r2", "r3"):
            cluster.kill(replica)
        for number in range(ITEMS):
            queue.enqueue(number)
        queue.enqueue_many(["many 0", "many 1"], idempotency_key="many")
        queue.enqueue_many(["many 0", "many 1"], idempotency_key="many")
        assert post(f"{cluster.urls['r1']}/v1/queues/mail/items", {"items": ["by REST"]}) == 200
        with urllib.request.urlopen(f"{cluster.urls['r1']}/v1/status", timeout=60) as answer:
            assert json.load(answer)["outboxes"]["queue/mail"] > 0
        with pytest.raises((OutcomeUnknown, Unavailable)):
            client.queue("plain").enqueue(1, deadline_s=0.5)

        cluster.kill("r1")
        for replica in ("r1", "r2", "r3"):
            cluster.launch(replica)
        cluster.ready()
        expected = Counter([*range(ITEMS), "many 0", "many 1", "by REST"])
        assert Counter(taken(client, expected.total())) == expected
        until_now(lambda: client.queue("mail@r1").size() == 0, "the outbox is empty")


@pytest.mark.slow
def test_with_exact_empty_who_enqueued_finds_it_and_nothing_only_while_all_replicas_say_so(
    clusters: Clusters,
) -> None:
    cluster: LocalCluster = clusters.start(rules=EXACT)
    with connect(cluster.document) as client:
        queue = client.queue("mail")
        for number in range(TURNS):
            queue.enqueue(number)
            assert queue.dequeue() == number
            if number % 10 == 0:
                assert queue.dequeue() is None
        cluster.kill("r3")
        queue.enqueue("once more")
        assert queue.dequeue() == "once more"
        with pytest.raises(
            Unavailable, match=r"nothing was found in queue/mail, but items may wait in outboxes: .*r3 \("
        ):
            queue.dequeue(deadline_s=1)
        cluster.launch("r3")
        cluster.ready()
        assert answered(queue.dequeue) is None


def work(document: Path, history: Path, seed: int) -> Counter[str]:
    """Enqueue and dequeue without a pause; what came of it."""
    rng, told = random.Random(seed), Counter[str]()
    with connect(document, history=history) as client:
        queue = client.queue("mail")
        for number in range(STEPS):
            if rng.random() < 0.4:
                queue.enqueue(f"{history.stem} {number}")
                continue
            try:
                told["empty" if queue.dequeue(deadline_s=0.5) is None else "item"] += 1
            except (OutcomeUnknown, Unavailable):
                told["no answer"] += 1
    return told


@pytest.mark.slow
def test_while_replicas_are_killed_in_turn_every_enqueue_is_taken_and_it_is_a_semiqueue(
    clusters: Clusters,
) -> None:
    cluster: LocalCluster = clusters.start(rules=EXACT)
    histories, told = list[Path](), Counter[str]()
    with ThreadPoolExecutor(WORKERS) as workers:
        for killed in (None, "r1", "r2", "r3"):
            if killed is not None:
                cluster.kill(killed)
            some = [clusters.folder / f"{killed}-{number}.jsonl" for number in range(WORKERS)]
            seeds = range(len(histories), len(histories) + WORKERS)
            for each in workers.map(work, [cluster.document_path] * WORKERS, some, seeds):
                told += each
            histories += some
            if killed is not None:
                cluster.restart(killed)
                cluster.ready()
    assert told.keys() == {"empty", "item", "no answer"}
    clusters.history.write_text("".join(each.read_text() for each in histories))
    checked = quorate_here("check", str(clusters.history), "--cluster", str(cluster.document_path), "--json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    found = json.loads(checked.stdout)
    assert (found["right"], found["judged_as"]) == (True, {"queue/mail": "semiqueue"})
