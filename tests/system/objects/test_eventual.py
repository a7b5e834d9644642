"""Objects of eventual consistency on real replicas, two of three of which are dead: any one answers, and each answer says that it may be old."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from quorate.api_specs.cluster import ChoiceRule, parse
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import BadInput, Client, Unavailable, connect
from quorate.client_sdk.adapters.standard_mapping import Mapping
from quorate.client_sdk.adapters.standard_queue import Queue
from quorate.client_sdk.protocol.core.values import Done, Operation, Outcome
from tests.system.harness import Clusters
from tests.unit.cli.conftest import quorate_here

EVENTUAL: Final = (
    ChoiceRule("register/old", consistency="eventual"),
    ChoiceRule("dictionary/old", consistency="eventual"),
    ChoiceRule("queue/old", consistency="eventual"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One of three replicas lives; what was written before is at all of them."""
    clusters = Clusters(tmp_path_factory.mktemp("eventual"))
    try:
        made = clusters.start(rules=EVENTUAL)
        with connect(made.document) as client:
            for name in ("old", "new"):
                client.register(name).write("blue")
                client.dictionary(name).put("a", 1)
                client.dictionary(name).put("b", 2)
                client.queue(name).enqueue_many(["x", "y"])
        for replica in ("r2", "r3"):
            made.kill(replica)
        yield made
    finally:
        clusters.stop()


def looks(client: Client, name: str) -> list[Any]:
    """What each operation that only observes is answered."""
    return [
        client.register(name).read(),
        client.dictionary(name).get("a"),
        client.dictionary(name).items(),
        client.queue(name).peek(),
        client.queue(name).size(),
    ]


def test_one_replica_answers_what_observes_and_no_other_operation(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    outcomes: list[Outcome] = []

    def note(operation: Operation, began_s: float, took_s: float, outcome: Outcome) -> None:
        del operation, began_s, took_s
        outcomes.append(outcome)

    with connect(cluster.document, history=tmp_path / "history.jsonl") as client:
        client.on_finished(note)
        assert looks(client, "old") == ["blue", 1, {"a": 1, "b": 2}, "x", 2]
        assert all(isinstance(outcome, Done) and outcome.is_weak for outcome in outcomes)
        with pytest.raises(Unavailable):
            client.register("new").read(deadline_s=0.5)
        for change in (
            lambda: client.register("old").compare_and_set("blue", "red", deadline_s=0.5),
            lambda: client.queue("old").dequeue(deadline_s=0.5),
        ):
            with pytest.raises(Unavailable):
                change()
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [line.get("weak") for line in lines if line["type"] == "ok"] == [True] * 5


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("registers/{}", {"value": "blue"}),
        ("registers/{}?deadline_s=20", {"value": "blue"}),
        ("dictionaries/{}/entries/a", {"value": 1}),
        ("dictionaries/{}", {"size": 2, "items": {"a": 1, "b": 2}}),
        ("queues/{}/peek", {"items": ["x"]}),
        ("queues/{}", {"size": 2}),
    ],
)
def test_answers_over_http_are_labelled(cluster: LocalCluster, path: str, answer: dict[str, Any]) -> None:
    place = f"{cluster.urls['r1']}/v1/{path.format('old')}"
    with urllib.request.urlopen(place, timeout=60) as response:
        assert response.headers["Quorate-Consistency"] == "eventual"
        told = json.load(response)
    assert {name: told[name] for name in answer} == answer


def test_answers_in_the_shell_are_labelled(cluster: LocalCluster) -> None:
    place = str(cluster.document_path)
    told = quorate_here("register", "old", "read", QUORATE_CLUSTER=place)
    assert (told.stdout, told.stderr) == ('"blue"\n', "eventual consistency: it may be old\n")
    told = quorate_here("register", "old", "read", "--json", QUORATE_CLUSTER=place)
    assert json.loads(told.stdout) == {"value": "blue", "consistency": "eventual"}


@pytest.mark.parametrize("name", ["register/old", "dictionary/old", "queue/old"])
def test_logs_side_by_side_are_labelled(cluster: LocalCluster, name: str) -> None:
    place = str(cluster.document_path)
    shown = quorate_here("trace", name, QUORATE_CLUSTER=place).stdout
    assert "\nEventual consistency: an answer may be older than what is shown here.\n" in shown
    told = json.loads(quorate_here("trace", name, "--json", QUORATE_CLUSTER=place).stdout)["traces"]
    assert {each["consistency"] for each in told} == {"eventual"}
    told = json.loads(quorate_here("trace", "register/new", "--json", QUORATE_CLUSTER=place).stdout)["traces"]
    assert "consistency" not in told[0]


def test_what_is_not_there_is_labelled_too(cluster: LocalCluster) -> None:
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"{cluster.urls['r1']}/v1/dictionaries/old/entries/none", timeout=60)
    with missing.value:
        assert (missing.value.code, missing.value.headers["Quorate-Consistency"]) == (404, "eventual")


def test_standard_interfaces_would_decide_by_old_answers(cluster: LocalCluster) -> None:
    with connect(cluster.document) as client:
        for interface in (Mapping, Queue):
            with pytest.raises(BadInput, match="is of eventual consistency"):
                interface(client, "old")


def test_traces_say_so(cluster: LocalCluster) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with connect(cluster.document, tracer_provider=provider) as client:
        client.register("old").read()
    told = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    assert [each["quorate.consistency"] for each in told if "quorate.outcome" in each] == ["eventual"]


def test_doctor_says_what_may_be_missed(cluster: LocalCluster) -> None:
    told = json.loads(quorate_here("doctor", "--json", "--cluster", str(cluster.document_path)).stdout)
    found = {check["what"]: check["found"] for check in told["checks"]}
    assert (
        "Read/Ok may miss Write/Ok: [Write(a); Ok()] [Read(); Ok(null)]"
        in found["eventual consistency of register/old, register"]
    )
    assert {name for name in found if name.startswith("eventual")} == {
        f"eventual consistency of {type_}/old, {type_}" for type_ in ("register", "dictionary", "queue")
    }


def test_the_file_says_so_again(cluster: LocalCluster) -> None:
    text = cluster.document_path.read_text()
    assert text.count('consistency = "eventual"') == len(EVENTUAL)
    assert parse(text).choice_of("register/old").is_weak
    assert not parse(text).choice_of("register/new").is_weak
