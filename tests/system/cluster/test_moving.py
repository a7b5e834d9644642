"""Shows that a member moves to another URL while the cluster is used: all others, and clients that know the old one, find it there.

Where each item may be at one replica alone, dequeues need the one that moved, so they end only where it was found.
"""

from pathlib import Path
from typing import Any, Final

import httpx

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from quorate.measurement.faults.held_ports import HeldPort
from tests.docs.pages import blocks_run_by
from tests.system.cluster.test_members import member
from tests.system.harness import Clusters, until_now
from tests.unit.cli.conftest import quorate, told_in_vain

EAGER: Final = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})


def moved(cluster: LocalCluster, replica: str) -> tuple[str, Path]:
    """A replica that is stopped, and started at another port with a file of its own that says so: its new URL, and that file."""
    cluster.kill(replica)
    held = HeldPort.chosen()
    url = f"http://127.0.0.1:{held.number}"
    file = cluster.root / f"{replica}.toml"
    file.write_text(cluster.document_path.read_text().replace(cluster.urls[replica], url))
    cluster.serve_options[replica] = ["--cluster", str(file)]
    cluster.launch(replica)
    until_now(lambda: is_live(url), f"{replica} answers at its new place")
    return url, file


def is_live(url: str) -> bool:
    try:
        return httpx.get(f"{url}/v1/health/live", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def goes_round(queue: Any, item: int) -> bool:
    queue.enqueue(item)
    return bool(queue.dequeue() == item)


def test_a_member_moves_and_all_find_it_there(clusters: Clusters) -> None:
    cluster = clusters.start(rules=[EAGER])
    with connect(cluster.document_path) as client:
        queue = client.queue("jobs")
        assert goes_round(queue, 1)
        url, file = moved(cluster, "r3")
        queue.enqueue(2)
        [block] = blocks_run_by("tests/system/cluster/test_moving.py")
        told = block.text.replace("http://127.0.0.1:8013", url).split()[1:]
        done = quorate(*told, "--cluster", str(file))  # The operator's copy says already where r3 is to be.
        assert done.stdout == f"Configuration 1 is in force: r3 is at {url}.\n", done.stderr
        assert queue.dequeue() == 2, "who knew the old place finds it at the new one"
        found = {each["id"]: each for each in member(cluster, "list")["members"]}
        assert {id: each["is_ready"] for id, each in found.items()} == dict.fromkeys(("r1", "r2", "r3"), True)
        assert found["r3"]["url"] == url
        assert member(cluster, "move", "r3", url)["epoch"] == 1, "it is there already"
        cluster.go_on()
        for replica in ("r1", "r2", "r3"):  # Each with the file of before: the store knows where r3 is.
            cluster.serve_options.clear()
            cluster.kill(replica)
            cluster.restart(replica)
            assert goes_round(queue, 3)
        assert cluster.urls["r3"] == url
    with connect(cluster.document_path) as late:
        assert goes_round(late.queue("jobs"), 4)
    written = quorate("configuration", "--cluster", str(file))
    assert f'url = "{url}"\nvotes = 1\n' in written.stdout
    assert "moved = 1\n" in written.stdout


def test_a_member_moves_in_the_middle_of_a_change_that_waits_for_it(clusters: Clusters) -> None:
    cluster = clusters.start(rules=[EAGER])
    file = cluster.root / "new.toml"
    text = cluster.document_path.read_text()
    file.write_text(text.replace('objects = "queue/*"', 'objects = "queue/other"'))
    with connect(cluster.document_path) as client:
        assert goes_round(client.queue("jobs"), 1)
        url, _ = moved(cluster, "r3")
        change = ("change", str(file), "--cluster", str(cluster.document_path))
        told_in_vain(1, "r3 did not answer", *change, "--deadline", "3")
        assert member(cluster, "move", "r3", url)["epoch"] == 1
        done = quorate("change", str(file), "--cluster", str(cluster.document_path), "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert goes_round(client.queue("jobs"), 2)
    found = {each["id"]: each for each in member(cluster, "list")["members"]}
    assert found["r3"]["url"] == url, "the file of before does not move it back"
