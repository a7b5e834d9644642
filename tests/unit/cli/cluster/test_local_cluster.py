"""Replicas as child processes: what was acknowledged survives SIGKILL, and `quorate up` stops what it started.

That no child outlives a parent that is killed, `tests/system/cluster/test_up.py` shows."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.cli.cluster.data_folder import format_data_folder
from quorate.cli.cluster.document import new_document, read_document, write_new
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.cli.failure import Failure, Usage
from quorate.client_sdk import connect
from quorate.measurement.faults.held_ports import HeldPort
from tests.support import forked
from tests.support.voted import go_on
from tests.unit.cli.conftest import quorate

DEADLINE_S = 120.0


def up(*words: str) -> subprocess.Popen[str]:
    """`quorate up` with these words."""
    return forked.started(["up", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ready_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The line that says all are ready."""
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def has_gone(pid: int) -> bool:
    """Whether the process ended within the deadline."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # A child of the init process of a container may stay as a zombie; it does nothing any more.
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_killed_replica_comes_back_with_its_data(tmp_path: Path) -> None:
    with LocalCluster.create(tmp_path) as cluster:
        cluster.start()
        cluster.ready()
        with connect(cluster.document) as client:
            client.queue("q").enqueue_many(["a", "b"])
            cluster.kill("r1")
            assert cluster.pids.keys() == {"r2", "r3"}
            assert list(cluster.died()) == []  # it did not end by itself
            client.queue("q").enqueue("c")
            cluster.kill("r2")
            cluster.kill("r3")
            cluster.start()
            cluster.ready()
            # One dequeue may take fewer than there are.
            assert [client.queue("q").dequeue() for _ in range(4)] == ["a", "b", "c", None]
        pids = cluster.pids
    assert all(has_gone(pid) for pid in pids.values())


@pytest.mark.slow
def test_taken_port_is_named(tmp_path: Path, cluster: LocalCluster) -> None:
    port = int(cluster.urls["r1"].rpartition(":")[2])
    with pytest.raises(Failure, match=f"Port {port} is taken"):
        LocalCluster.create(tmp_path / "new", replicas=1, ports=[port])
    assert not (tmp_path / "new").exists()
    with pytest.raises(Failure, match=f"Port {port} of r1 is taken: stop what listens there \\(perhaps r1"):
        LocalCluster(tmp_path, cluster.document_path).start()


def file_of(path: Path, *ids: str) -> ClusterDocument:
    """A cluster file with these replicas."""
    write_new(path, new_document({id: f"http://127.0.0.1:{port}" for port, id in enumerate(ids, 1)}))
    return read_document(path)


def test_clusters_of_one_name_in_one_folder_have_stores_and_members_of_their_own(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    document = file_of(first, "x1")
    format_data_folder(tmp_path / "x1", document, "x1")
    go_on(tmp_path / "x1", document, "x1", replace(document, epoch=2))
    file_of(second, "y1", "y2")
    other = LocalCluster(tmp_path, second)
    other.format_missing()
    assert other.go_on() == (set(), set())
    assert [other.data_folder(id).exists() for id in ("y1", "y2")] == [True, True]
    assert list(other.urls) == ["y1", "y2"]


def test_members_that_left_get_no_new_stores_where_their_folders_are_gone(tmp_path: Path) -> None:
    document = file_of(tmp_path / "cluster.toml", "r1")
    both = with_members(document, [*document.replicas, ReplicaInfo("r2", "http://127.0.0.1:2")])
    format_data_folder(tmp_path / "r2", both, "r2")
    go_on(tmp_path / "r2", both, "r2", replace(both, replicas=both.replicas[1:], epoch=2, retired=("r1",)))
    cluster = LocalCluster(tmp_path)
    cluster.format_missing()
    assert not cluster.data_folder("r1").exists()
    assert cluster.go_on() == ({"r1"}, set())


@pytest.mark.parametrize(("host", "elsewhere"), [("127.0.0.1", set()), ("localhost", {"r2"})])
def test_members_that_came_start_at_urls_of_this_machine(
    tmp_path: Path, host: str, elsewhere: set[str]
) -> None:
    """Such as `LocalCluster` can hold the port of."""
    document = file_of(tmp_path / "cluster.toml", "r1")
    came = ReplicaInfo("r2", f"http://{host}:2")
    later = replace(with_members(document, [*document.replicas, came]), epoch=2)
    format_data_folder(tmp_path / "r1", document, "r1")
    go_on(tmp_path / "r1", document, "r1", later)
    (tmp_path / "r2").mkdir()
    cluster = LocalCluster(tmp_path)
    assert cluster.go_on() == (set(), elsewhere)
    assert cluster.urls.keys() == {"r1", "r2"} - elsewhere


@pytest.mark.slow
def test_up_on_a_taken_port_leaves_nothing_in_the_way(tmp_path: Path, cluster: LocalCluster) -> None:
    port = cluster.urls["r1"].rpartition(":")[2]
    refused = quorate("up", "--data", str(tmp_path / "data"), "--ports", port)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"Port {port} is taken" in refused.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_serve_on_a_taken_port_certainly_does_not_happen(tmp_path: Path, cluster: LocalCluster) -> None:
    port = cluster.urls["r1"].rpartition(":")[2]
    other = LocalCluster.create(tmp_path, replicas=1)
    words = ("--cluster", str(other.document_path), "--id", "r1", "--data", str(other.data_folder("r1")))
    refused = quorate("serve", *words, "--port", port, "--json")
    assert refused.returncode == 1
    told = json.loads(refused.stdout)
    assert told["definite"]
    assert f"can listen on 127.0.0.1:{port}" in told["error"]


@pytest.mark.slow
def test_status_tells_a_wrong_token_from_a_dead_replica(tmp_path: Path) -> None:
    with LocalCluster.create(tmp_path, replicas=1, token="sesame") as guarded:
        guarded.start()
        guarded.ready()
        asked = quorate("status", "--json", QUORATE_CLUSTER=str(guarded.document_path))
    (told,) = json.loads(asked.stdout)["replicas"]
    assert asked.returncode == 1
    assert told["is_up"]
    assert "QUORATE_TOKEN" in told["fix"]


@pytest.mark.slow
def test_status_waits_until_all_are_ready_and_no_longer_than_told(tmp_path: Path) -> None:
    with LocalCluster.create(tmp_path, replicas=2) as made:
        made.start()
        made.ready()
        made.kill("r2")
        named: dict[str, Any] = {"QUORATE_CLUSTER": str(made.document_path)}
        assert quorate("status", "--wait", "0.5", **named).returncode == 1
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(quorate, "status", "--wait", "50", "--json", **named)
            made.launch("r2")
            told = waiting.result()
    assert told.returncode == 0, told.stdout
    assert all(each["is_ready"] for each in json.loads(told.stdout)["replicas"])


@pytest.mark.slow
def test_replica_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    made = LocalCluster.create(tmp_path, replicas=1)
    (tmp_path / "r1" / "identity.json").write_text("{}")
    with made:
        made.start()
        with pytest.raises(Failure, match=r"Replica r1 ended while it started: .*identity"):
            made.ready()


@pytest.mark.slow
def test_up_stops_everything_and_goes_on_with_the_same_folder(tmp_path: Path) -> None:
    first = up("--data", str(tmp_path / "data"))
    told = ready_line(first)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert {(tmp_path / "data" / f"r{n}.log").stat().st_mode & 0o777 for n in (1, 2, 3)} == {0o600}
    document = str(told["cluster"])
    assert quorate("queue", "q", "enqueue", "1", "--cluster", document).returncode == 0
    first.send_signal(signal.SIGTERM)
    _, stderr = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0, stderr
    assert all(has_gone(int(replica["pid"])) for replica in told["replicas"])
    with Path(document).open("a") as text:
        text.write('\n[types]\nlost = "nowhere:Lost"\n')
    second = up("--data", str(tmp_path / "data"))
    try:
        assert ready_line(second)["cluster"] == document
        assert second.stderr is not None
        said = [second.stderr.readline() for _ in range(2)]
        assert said[1].startswith("no call of lost can be run at r1, r2, r3: nowhere:Lost cannot be imported")
        assert quorate("queue", "q", "dequeue", "--cluster", document).stdout == "1\n"
    finally:
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0


@pytest.mark.slow
def test_temporary_folder_goes_away_and_a_death_is_told() -> None:
    process = up("--replicas", "3")
    told = ready_line(process)
    root = Path(str(told["cluster"])).parent
    os.kill(int(told["replicas"][0]["pid"]), signal.SIGKILL)
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(2)]
    assert "Replica r1 ended by itself" in lines[1]
    assert is_ready(told["replicas"][1]["url"])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)
    assert not root.exists()


def test_up_refuses_to_change_a_document_that_exists(tmp_path: Path) -> None:
    LocalCluster.create(tmp_path)
    for others in (("--replicas", "5"), ("--ports", "20001,20002,20003")):
        done = quorate("up", "--data", str(tmp_path), *others)
        assert done.returncode == 2
        assert "which replicas there are" in done.stderr


@pytest.mark.slow
def test_the_same_command_again_goes_on(tmp_path: Path) -> None:
    held = [HeldPort.chosen() for _ in range(3)]
    ports = [port.number for port in held]
    words = ("--data", str(tmp_path / "data"), "--ports", ",".join(map(str, ports)))
    for _ in range(2):
        # Forked, for the tests above start a Python for each process.
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = forked.started(("up", *words), **streams, text=True)
        urls = [replica["url"] for replica in ready_line(process)["replicas"]]
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, said
        assert urls == [f"http://127.0.0.1:{port}" for port in ports]


def test_cluster_without_a_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="There is no cluster file"):
        LocalCluster(tmp_path)
