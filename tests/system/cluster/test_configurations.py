"""Shows that an edit of the cluster file, or a folder formatted again, hides nothing that was acknowledged.

A replica that has voted refuses to vote under other members, votes or quorum choices, and says which lines differ; a new one
asks every other before its first vote. With the old lines back, all that was acknowledged is there. What decides nothing about
quorums may be edited.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.data_folder import format_data_folder
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import QuorateError, connect
from quorate.measurement.faults.held_ports import LOCAL, HeldPort
from tests.system.harness import WAIT_S, Clusters, until_now
from tests.unit.cli.conftest import quorate

IN_VAIN_S = 1.5
"""The deadline of what must fail."""
EAGER = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})


def not_ready(cluster: LocalCluster, replica: str) -> dict[str, Any]:
    """The problem with which a replica says that it does not vote; empty while it does not answer, or votes."""
    url = cluster.urls[replica] + "/v1/health/ready"
    try:
        answer = httpx.get(url, timeout=WAIT_S, trust_env=False)
    except httpx.TransportError:
        return {}
    problem: dict[str, Any] = {} if answer.is_success else answer.json()
    return problem


def until_refused(cluster: LocalCluster, replica: str, name: str, *words: str) -> str:
    """Wait until a replica refuses with this problem and all these words; its sentence."""

    def is_told() -> bool:
        problem = not_ready(cluster, replica)
        return problem.get("type") == f"/problems/{name}" and all(each in problem["detail"] for each in words)

    until_now(is_told, f"{replica} refuses with {name}: {words}")
    sentence: str = not_ready(cluster, replica)["detail"]
    return sentence


def told(command: str, document: Path) -> str:
    """What `quorate status` or `doctor` prints, in one line."""
    done = quorate(command, "--cluster", str(document), timeout_s=WAIT_S)
    return " ".join((done.stdout + done.stderr).split())


def edited(cluster: LocalCluster, name: str, text: str) -> LocalCluster:
    """The same folders with another document."""
    path = cluster.root / name
    path.write_text(text, encoding="utf-8")
    return LocalCluster(cluster.root, path)


@contextmanager
def with_two_more(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Five members, and majorities of them: two freshly formatted ones beside the three that have voted."""
    text = cluster.document_path.read_text(encoding="utf-8")
    head, _, rest = text.partition("\n# Quorum choices")
    _, place, rest = rest.partition("\n[clock]")
    assert place
    ports = [HeldPort.chosen() for _ in range(2)]
    for number, port in enumerate(ports, 4):
        head += f'\n[[replicas]]\nid = "r{number}"\nurl = "http://{LOCAL}:{port.number}"\n'
    five = edited(cluster, "five.toml", head + place + rest)
    for replica in ("r4", "r5"):
        format_data_folder(five.data_folder(replica), five.document, replica)
    with five:
        yield five


def test_two_members_more_hide_nothing(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=20) as client:
        cluster.kill("r3")
        client.register("leader").write("ann")
        client.queue("jobs").enqueue_many([1, 2, 3])
    cluster.stop()
    with with_two_more(cluster) as five:
        for replica in ("r3", "r4", "r5"):
            five.launch(replica)
        differs = "[[replicas]] has r4, r5, not a member then"
        until_refused(five, "r3", "other-configuration", differs, "Put these lines back")
        for replica in ("r4", "r5"):
            until_refused(
                five,
                replica,
                "other-configuration",
                f"replica {replica} is new, and replica r3 says",
                differs,
            )
        with connect(five.document, deadline_s=IN_VAIN_S) as client:
            for look in (
                client.register("leader").read,
                client.queue("jobs").size,
                client.queue("jobs").dequeue,
            ):
                with pytest.raises(QuorateError):
                    look()
        assert differs in " ".join(five.log_file("r3").read_text().split())
        for command in ("status", "doctor"):
            assert differs in told(command, five.document_path)
    cluster.start()
    cluster.ready()
    with connect(cluster.document, deadline_s=20) as client:
        assert client.register("leader").read() == "ann"
        assert client.queue("jobs").dequeue(max_items=5) == [1, 2, 3]


def test_new_members_alone_do_not_vote(clusters: Clusters) -> None:
    """Nobody who remembers is up: they wait, for they cannot know that they are the first."""
    cluster = clusters.start(rules=[EAGER])
    cluster.stop()
    with with_two_more(cluster) as five:
        for replica in ("r4", "r5"):
            five.launch(replica)
        sentence = until_refused(five, "r4", "starting", "it is new", "r1 (", "r2 (", "r3 (")
        until_now(lambda: "r5" not in not_ready(five, "r4")["detail"], "r5, which is up, is not waited for")
        assert "the first start of a cluster needs all its replicas" in sentence
        with connect(five.document, deadline_s=IN_VAIN_S) as client, pytest.raises(QuorateError):
            client.queue("jobs").dequeue()


def test_other_quorum_choices_hide_nothing(clusters: Clusters) -> None:
    cluster = clusters.start(rules=[EAGER])
    with connect(cluster.document, deadline_s=20) as client:
        for replica in ("r2", "r3"):
            cluster.kill(replica)
        for number in range(5):
            client.queue("jobs").enqueue(number)
    cluster.stop()
    text = cluster.document_path.read_text(encoding="utf-8")
    for old, new in (("0, 1", "0, 3"), ("3, 1", "1, 3"), ("3, 0", "1, 0")):
        text = text.replace(f"= [{old}]", f"= [{new}]")
    with edited(cluster, "other.toml", text) as other:
        other.start()
        for replica in other.urls:
            until_refused(
                other, replica, "other-configuration", "[[choices]] queue/*: Enq/Ok is (0, 3), and was (0, 1)"
            )
        with connect(other.document, deadline_s=IN_VAIN_S) as client, pytest.raises(QuorateError):
            client.queue("jobs").dequeue()
    cluster.start()
    cluster.ready()
    with connect(cluster.document, deadline_s=20) as client:
        assert client.queue("jobs").dequeue(max_items=9) == list(range(5))


def test_what_decides_nothing_about_quorums_may_be_edited(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=20) as client:
        client.register("leader").write("ann")
    cluster.stop()
    text = cluster.document_path.read_text(encoding="utf-8")
    port = HeldPort.chosen()
    moved = text.replace(cluster.urls["r1"], f"http://{LOCAL}:{port.number}")
    moved = moved.replace("offset_max_s = ", "offset_max_s = 1") + "\n[limits]\npage_entries_max = 1000\n"
    with edited(cluster, "moved.toml", moved) as other:
        other.start()
        other.ready()
        with connect(other.document, deadline_s=20) as client:
            assert client.register("leader").read() == "ann"


def test_a_folder_formatted_again_does_not_vote_though_the_witness_missed_everything(
    clusters: Clusters,
) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=20) as client:
        cluster.kill("r3")
        client.register("leader").write("ann")
        cluster.kill("r1")
        kept = clusters.folder / "kept"
        shutil.move(cluster.data_folder("r1"), kept)
        format_data_folder(cluster.data_folder("r1"), cluster.document, "r1")
        cluster.kill("r2")
        for replica in ("r1", "r3"):
            cluster.launch(replica)
        until_refused(
            cluster, "r1", "store-lost", "replica r3 knows store", "made anew under its id", "quorate replace"
        )
        with connect(cluster.document, deadline_s=IN_VAIN_S) as other, pytest.raises(QuorateError):
            other.register("leader").read()
        cluster.restart("r2")
        assert client.register("leader").read() == "ann"

        cluster.kill("r1")
        shutil.rmtree(cluster.data_folder("r1"))
        shutil.move(kept, cluster.data_folder("r1"))
        cluster.restart("r1")
        cluster.kill("r3")
        assert client.register("leader").read() == "ann", "with its own folder it votes again"


def test_the_first_start_waits_for_all_and_later_ones_for_nobody(clusters: Clusters) -> None:
    cluster = clusters.make()
    for replica in ("r1", "r2"):
        cluster.launch(replica)
    until_refused(cluster, "r1", "starting", "it is new", "r3 (")
    cluster.restart("r3")
    cluster.ready()
    for replica in ("r2", "r3"):
        cluster.kill(replica)
    cluster.kill("r1")
    cluster.restart("r1")
