"""`quorate bench` on a live cluster: its figures, what it leaves, what it refuses, and its early end."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from quorate.measurement.speed.works import BATCHES_IN_FLIGHT, WARM_UP
from tests.support import forked
from tests.unit.cli.conftest import TIMEOUT_S, Run

pytestmark = pytest.mark.slow

SHORT = ("--seconds", "60", "--items", "20")


def test_each_operation_gets_a_figure_and_nothing_is_left(
    run: Run, cluster: LocalCluster, tmp_path: Path
) -> None:
    out = tmp_path / "bench.json"
    done = run("bench", *SHORT, "--in-flight", "1,4", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert json.loads(out.read_text()) == document
    assert document["is_whole"]
    assert document["cluster"] == {
        "name": "local",
        "configuration": 0,
        "replicas": dict.fromkeys(cluster.urls, 1),
    }
    singles = [("queue", "enqueue"), ("queue", "dequeue"), ("keyed", "keyed enqueue")]
    singles += [("dictionary", each) for each in ("put", "get", "compare-and-set")]
    found = {(each["work"], each["operation"], each["in_flight"]): each for each in document["figures"]}
    batches = [("batches", f"batch {each}", BATCHES_IN_FLIGHT) for each in ("enqueue", "dequeue")]
    assert set(found) == {(*each, width) for each in singles for width in (1, 4)} | set(batches)
    assert {each["count"] for name, each in found.items() if name not in batches} == {20}
    assert {found[name]["count"] for name in batches} == {1}
    assert all(not each["failed"] for each in found.values())
    assert all(sum(count for *_, count in each["histogram"]) == each["count"] for each in found.values())
    with connect(cluster.document_path) as client:
        assert client.queue("bench-queue").size() == client.dictionary("bench-dictionary").size() == 0
    again = run("bench", "--out", str(out))
    assert (again.returncode, json.loads(out.read_text())) == (2, document)
    assert f"{out} exists already" in again.stderr


def test_objects_of_others_are_not_touched(run: Run, cluster: LocalCluster) -> None:
    with connect(cluster.document_path) as client:
        client.queue("mine-queue").enqueue("keep")
        refused = run("bench", *SHORT, "--prefix", "mine-")
        assert refused.returncode == 2
        assert "queue/mine-queue holds 1 item, and would be emptied" in refused.stderr
        assert client.queue("mine-queue").items() == ["keep"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--works", "queue,stack"), "there is no work 'stack'; there are queue, keyed, dictionary, batches"),
        (("--in-flight", "1,0"), "give up to 10 numbers from 1 to 1024"),
        (("--in-flight", "1,,4"), "give up to 10 numbers"),
        (("--in-flight", ",".join("1" * 11)), "give up to 10 numbers"),
        (("--prefix", "a b"), "a b"),
    ],
)
def test_what_is_asked_wrongly_is_refused(run: Run, words: tuple[str, ...], told: str) -> None:
    refused = run("bench", *words)
    assert refused.returncode == 2
    assert told in refused.stderr


def test_a_batch_has_as_many_items_as_a_message_has_room_for(run: Run) -> None:
    words = ("--works", "batches", "--bytes", "100000", "--items", "42", "--seconds", "60", "--json")
    done = run("bench", *words)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert [(each["count"], each["items_each"], each["failed"]) for each in figures] == [(1, 41, {})] * 2


def test_a_stream_that_is_not_utf_8_gets_ascii(run: Run) -> None:
    """Standard output is text without an encoding here."""
    done = run("bench", *SHORT, "--works", "keyed", "--in-flight", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "#" in done.stdout
    assert done.stdout.splitlines()[0].startswith("keyed enqueue, 2 in flight: ")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_ctrl_c_ends_it_with_what_is_there(cluster: LocalCluster, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    words = ("bench", "--seconds", "60", "--items", "1000000", "--out", str(out))
    environment = os.environ | {"QUORATE_CLUSTER": str(cluster.document_path), "PYTHONIOENCODING": "utf-8"}
    with (
        connect(cluster.document_path) as client,
        forked.started(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as bench,
    ):
        queue = client.queue("bench-queue")
        try:
            until_s = time.monotonic() + TIMEOUT_S
            while queue.size() <= WARM_UP:  # Those that the warm-up brings.
                assert bench.poll() is None, bench.communicate()
                assert time.monotonic() < until_s, "nothing was enqueued"
            bench.send_signal(signal.SIGINT)
            told, said = bench.communicate(timeout=TIMEOUT_S)
        finally:
            bench.kill()
        assert bench.returncode == 0, said
        assert queue.size() == 0
    document = json.loads(out.read_text())
    (figure,) = document["figures"]
    assert (document["is_whole"], figure["operation"]) == (False, "enqueue")
    assert figure["count"] > WARM_UP
    assert "█" in told
