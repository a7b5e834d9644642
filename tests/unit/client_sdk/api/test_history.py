"""Histories: each line's form and time of writing, against replicas behind real loopback servers."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorate.client_sdk import History, OutcomeUnknown, QuorateError, connect
from tests.unit.client_sdk.loopback import Handler, LoopbackCluster, PendingCommand, cluster_of
from tests.unit.client_sdk.scripted import document_of


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a history, each with exactly the fields that are promised."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        assert list(line) == ["process", "id", "type", "f", "object", "key", "value", "result", "time"]
    return lines


def test_a_history_tells_every_operation(cluster: LoopbackCluster, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with connect(cluster.document, history=path) as client:
        queue, register, users = client.queue("q"), client.register("r"), client.dictionary("d")
        queue.enqueue("a")
        queue.enqueue_many(["b", "c"])
        queue.peek()
        queue.size()
        queue.dequeue()
        queue.dequeue(max_items=4)
        queue.dequeue()
        register.write({"x": 1})
        register.read()
        register.compare_and_set({"x": 1}, 2)
        register.compare_and_set({"x": 1}, 3)
        users.put("k/", 1)
        users.get("k/")
        users.put_if_absent("k/", 2)
        users.compare_and_set("k/", 1, None)
        users.delete("k/")
        users.get("k/")
        users.put("k/", 3)
        users.items("k/")
        users.size("k/")
    lines = lines_of(path)
    ended = {line["id"]: line for line in lines if line["type"] != "invoke"}
    begun = [line for line in lines if line["type"] == "invoke"]
    assert len(begun) == len(ended) == 24
    told = [
        (
            line["f"],
            line["object"],
            line["key"],
            line["value"],
            ended[line["id"]]["type"],
            ended[line["id"]]["result"],
        )
        for line in begun
    ]
    assert told[:12] == [
        ("enqueue", "queue/q", None, "a", "ok", None),
        ("enqueue", "queue/q", None, "b", "ok", None),
        ("enqueue", "queue/q", None, "c", "ok", None),
        ("peek", "queue/q", None, None, "ok", "a"),
        ("size", "queue/q", None, None, "ok", 3),
        ("dequeue", "queue/q", None, None, "ok", "a"),
        ("dequeue", "queue/q", None, None, "ok", "b"),
        ("dequeue", "queue/q", None, None, "ok", "c"),
        ("dequeue", "queue/q", None, None, "fail", None),
        ("dequeue", "queue/q", None, None, "fail", None),
        ("dequeue", "queue/q", None, None, "ok", None),
        ("write", "register/r", None, {"x": 1}, "ok", None),
    ]
    assert told[12:20] == [
        ("read", "register/r", None, None, "ok", {"x": 1}),
        ("cas", "register/r", None, [{"x": 1}, 2], "ok", True),
        ("cas", "register/r", None, [{"x": 1}, 3], "ok", False),
        ("put", "dictionary/d", "k=2F", 1, "ok", None),
        ("get", "dictionary/d", "k=2F", None, "ok", 1),
        ("put_if_absent", "dictionary/d", "k=2F", 2, "ok", False),
        ("cas", "dictionary/d", "k=2F", [1, None], "ok", True),
        ("delete", "dictionary/d", "k=2F", None, "ok", None),
    ]
    assert told[-2:] == [
        ("items", "dictionary/d", None, ["k=2F", ""], "ok", {"k=2F": 3}),
        ("size", "dictionary/d", None, ["k=2F", ""], "ok", 1),
    ]
    assert all(line["time"] <= ended[line["id"]]["time"] for line in begun)
    assert len({line["process"] for line in lines}) == 1


def test_a_history_tells_failures_as_they_are(cluster: LoopbackCluster, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with connect(cluster.document, history=History(path, process="worker-1")) as client:
        for replica in ("r2", "r3"):
            cluster.servers[replica].stop()
        with pytest.raises(QuorateError):
            client.register("r").read(deadline_s=0.3)
        with pytest.raises(OutcomeUnknown):
            client.queue("q").enqueue("maybe", deadline_s=1.5)
    types = [(line["f"], line["type"]) for line in lines_of(path)]
    assert types == [("read", "invoke"), ("read", "fail"), ("enqueue", "invoke"), ("enqueue", "info")]
    assert {line["process"] for line in lines_of(path)} == {"worker-1"}


def test_an_invoke_is_on_file_before_anything_is_sent(cluster: LoopbackCluster, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    on_file: list[int] = []

    def looking_first(handler: Handler) -> Handler:
        async def handle(asked: PendingCommand) -> bytes:
            if asked.line.startswith("POST"):
                on_file.append(len(lines_of(path)))
            return await handler(asked)

        return handle

    for server in cluster.servers.values():
        server.handler = looking_first(server.handler)
    with connect(cluster.document, history=path) as client:
        client.queue("q").enqueue(1)
    assert min(on_file) == 1


def test_threads_and_clients_share_a_history_without_torn_lines(
    cluster: LoopbackCluster, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    with (
        connect(cluster.document, history=path) as one,
        connect(cluster.document, history=path) as two,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda number: (one, two)[number % 2].queue("q").enqueue("x" * 500), range(60)))
    lines = lines_of(path)
    assert len(lines) == 120
    assert len({line["process"] for line in lines}) == 2
    assert len({line["id"] for line in lines}) == 60
