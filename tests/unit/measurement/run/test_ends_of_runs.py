"""How runs end, other than by themselves; and runs on a cluster that others run."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.document import read_document
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.measurement.run.course import UNENDED
from tests.docs.pages import blocks_run_by
from tests.support import forked
from tests.unit.cli.conftest import quorate
from tests.unit.measurement.runs import RunRead

TIMEOUT_S = 150
ROWS = 20

pytestmark = pytest.mark.slow

SHORT = """
[time]
duration = "60s"
[cluster]
replicas = 3
[[planned]]
at = "500ms"
for = "50s"
replicas = ["r1"]
kind = "stop"
[[workloads]]
type = "dictionary"
rates = { Put = 5, Get = 5, PutIfAbsent = 5, Delete = 5, Cas = 5, Items = 5 }
deadline = "500ms"
[[workloads.choices]]
name = "entries"
"""
OPERATIONS = {"Put", "Get", "PutIfAbsent", "Delete", "Cas", "Items"}


def measure(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A run of the plan in a folder."""
    words = ["measure", "plan.toml", "--out", "run", *options]
    return forked.started(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def started(folder: Path) -> "subprocess.Popen[str]":
    """A run of SHORT, once it has written rows of its operations and has stopped a replica."""
    (folder / "plan.toml").write_text(SHORT)
    process = measure(folder, "--json")
    wait_for(folder, "r1", process)
    until = time.monotonic() + TIMEOUT_S
    while len(RunRead(folder / "run").operations) < ROWS:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "no rows were written in time"
        time.sleep(0.1)
    return process


def wait_for(folder: Path, replica: str, process: "subprocess.Popen[str] | None" = None) -> None:
    """Wait until the run has noted that the replica is down."""
    until = time.monotonic() + TIMEOUT_S
    noted = folder / "run" / "replicas.csv"
    while not noted.exists() or not RunRead(noted.parent).of(replica):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < until, f"{replica} was not noted as down in time"
        time.sleep(0.1)


def wait_until_all_went_well(run: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until each operation of SHORT has been done once, and noted."""
    until = time.monotonic() + TIMEOUT_S
    done: set[str] = set()
    while not done >= OPERATIONS:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, f"only {done} were done in time"
        time.sleep(0.1)
        done = {row["operation"] for row in RunRead(run).operations if row["outcome"] == "ok"}


def kill_replica(folder: Path, replica: str) -> None:
    """End a replica of the run without its knowledge."""
    (log,) = (folder / "run").glob(f"cluster-*/{replica}.log")
    (pid,) = (pid for pid in children_of(folder) if log in files_of(pid))
    os.kill(pid, signal.SIGKILL)


def files_of(pid: int) -> list[Path]:
    """Where a process is, and what it has open."""
    return [each.readlink() for each in (Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}/fd").iterdir())]


def children_of(folder: Path) -> list[int]:
    """Processes that are in the folder, or have a file of it open."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if int(each.name) != os.getpid() and any(
                file.is_relative_to(folder) for file in files_of(int(each.name))
            ):
                found.append(int(each.name))
        except OSError:
            continue
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds processes in /proc")


@needs_proc
def test_an_interrupted_run_is_whole_up_to_there_and_leaves_no_process(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        wait_until_all_went_well(tmp_path / "run", process)
        kill_replica(tmp_path, "r3")
        wait_for(tmp_path, "r3")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, out + err
    assert "Traceback" not in err
    told = json.loads(out)
    assert not told["whole"]
    assert any("ended early" in each for each in told["notes"])
    assert sum("r3 ended by itself" in each for each in told["notes"]) == 1
    assert children_of(tmp_path) == []
    run = RunRead(tmp_path / "run")
    assert 1 < run.end_s - run.start_s < 55
    assert run.told["made"]["state"] == "was ended early"
    assert run.told["notes"] == told["notes"]
    assert len(run.of("r1")) == len(run.of("r3")) == 1
    assert not run.of("r2")
    outcomes = Counter((row["operation"], row["outcome"]) for row in run.operations)
    assert all(outcomes[name, "ok"] > 0 for name in OPERATIONS)
    assert sum(outcomes.values()) == sum(
        sum(each[key] for key in ("ok", "unavailable", "unknown")) for each in told["outcomes"]
    )


@needs_proc
def test_a_killed_run_can_be_read_up_to_there(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)
    run = RunRead(tmp_path / "run")
    assert len(run.operations) >= ROWS
    assert run.told["made"]["state"] == "is going on, or was killed"
    assert run.told["notes"] == [UNENDED]
    assert run.start_s < min(row["start_s"] for row in run.operations)
    assert len(run.of("r1")) == 1
    # Replicas end with their parent; the one that stood still cannot, and is ended here, as docs/how-to/measuring.md says.
    for pid in children_of(tmp_path):
        os.kill(pid, signal.SIGCONT)
    until = time.monotonic() + TIMEOUT_S
    while children_of(tmp_path):
        assert time.monotonic() < until, "replicas did not end with their parent"
        time.sleep(0.1)


@needs_proc
def test_a_run_that_is_ended_while_it_starts_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(SHORT)
    with measure(tmp_path) as process:
        assert process.stdout is not None
        assert "Starting 3 replicas" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert "Filling" not in out, "it waited until the replicas were ready"
    assert (process.returncode, err) == (
        1,
        "quorate: Nothing was measured: the run ended before its first operation did.\n",
    )
    assert children_of(tmp_path) == []


@needs_proc
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="lets a file grow no further by prlimit")
def test_a_run_whose_disk_is_full_ends_with_a_sentence_and_can_be_read_up_to_there(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        rows = tmp_path / "run" / "operations-1.jsonl.gz"
        written = rows.stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (written + 1, written + 1))
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    told = json.loads(out)["error"]
    assert (
        "cannot be written: File too large. The run was ended; what was written before can be read." in told
    )
    assert "Traceback" not in err
    assert "never retrieved" not in err
    assert children_of(tmp_path) == []
    run = RunRead(tmp_path / "run")
    assert len(run.operations) >= ROWS
    assert run.told["made"]["state"] != "is whole"


NO_RETURN = """
[time]
duration = "30s" # a start that fails may take long on a busy machine, and must end before the run does
[cluster]
replicas = 3
[[planned]]
at = "500ms"
for = "18s" # the folder and the port are taken meanwhile, by a test that may be slow
replicas = ["r1", "r2"]
[[workloads]]
type = "queue"
rates = { Enq = 5 }
deadline = "200ms"
[[workloads.choices]]
name = "one"
classes = { "Enq/Ok" = [0, 1], "Deq/Ok" = [3, 1], "Deq/Empty" = [3, 0] }
"""


def test_replicas_that_do_not_come_back_are_told_of_and_stay_down(tmp_path: Path) -> None:
    """One whose folder is damaged while it is dead, and one whose port somebody else takes meanwhile."""
    (tmp_path / "plan.toml").write_text(NO_RETURN)
    with (
        measure(tmp_path, "--json") as process,
        socket.socket() as taker,
    ):
        for replica in ("r1", "r2"):
            wait_for(tmp_path, replica, process)
        (root,) = (tmp_path / "run").glob("cluster-*")
        (root / "r1" / "identity.json").write_text("{}")
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", urlsplit(read_document(root / "cluster.toml").urls["r2"]).port))
        taker.listen()
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, out + err
    assert "Traceback" not in err
    told = json.loads(out)
    assert told["whole"]
    notes = sorted(each for each in told["notes"] if "stayed down" in each)
    assert "r1 ended while it started again, and stayed down: " in notes[0]
    assert "identity.json" in notes[0]
    assert "r2 could not be started again, and stayed down: Port" in notes[1]
    assert (root / "r1.log").exists(), "the logs say why"
    run = RunRead(tmp_path / "run")
    for replica in ("r1", "r2"):
        (down,) = run.of(replica)
        assert down.end_s >= run.end_s - 1e-5  # as it is written
    assert "ok" in {row["outcome"] for row in run.operations if row["start_s"] > run.start_s + 5}


def test_a_cluster_that_does_not_answer_is_told_at_once(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path / "cluster")
    (tmp_path / "plan.toml").write_text(RUNNING.format(document=cluster.document_path))
    done = quorate("measure", "plan.toml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert f"No replica of the cluster is ready (r1 at {cluster.urls['r1']}, " in done.stderr


RUNNING = """
[time]
duration = "3s"
[cluster]
document = "{document}"
[[planned]]
at = "1s"
for = "1s"
replicas = ["r1", "r2", "r3"]
kind = "cut"
[[workloads]]
type = "queue"
rates = {{ Enq = 20 }}
deadline = "500ms"
[[workloads.choices]]
name = "majority"
object = "queue/measured"
[[workloads.choices]]
name = "exact"
object = "queue/mail"
"""
MAIL = ChoiceRule("queue/mail", outbox=True, exact_empty=True)


def test_a_running_cluster_is_measured_and_left_running(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with LocalCluster.create(tmp_path_factory.mktemp("cluster"), rules=(MAIL,)) as cluster:
        cluster.start()
        cluster.ready()
        pids = cluster.pids
        (tmp_path / "plan.toml").write_text(RUNNING.format(document=cluster.document_path))
        [block] = blocks_run_by("tests/unit/measurement/run/test_ends_of_runs.py")
        words = block.text.replace("60s", "1s").split()[1:]
        done = quorate(*words, cwd=tmp_path, timeout_s=TIMEOUT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        assert cluster.pids == pids
        assert_rotated(tmp_path / "run")
        run = RunRead(tmp_path / "run")
        assert run.told["choices"]["majority"]["classes"]["Enq/Ok"] == [0, 2]
        assert run.told["choices"]["exact"]["adt"] == "semiqueue"
        assert {row["choice"] for row in run.operations if row["outcome"] == "ok"} == {"majority", "exact"}
        assert {"ok"} < {row["outcome"] for row in run.operations}
        assert (tmp_path / "run" / "replicas.csv").read_text() == "replica,start_s,end_s,up\n"
        assert {probe["up"] for probe in run.probes} == {0, 1}
        (tmp_path / "plan.toml").write_text(
            RUNNING.format(document=cluster.document_path).replace('"r3"]', '"r9"]')
        )
        refused = quorate("measure", "plan.toml", "--out", "other", cwd=tmp_path)
        assert refused.returncode == 2
        assert "planned 1: there is no replica 'r9'; known are r1, r2, r3" in refused.stderr


def assert_rotated(run: Path) -> None:
    """The rows are lines in whole files, as `quorate report --follow` takes them."""
    names = sorted(path.name for path in run.iterdir() if path.name.startswith(("operations", "probes")))
    assert {name.partition("-")[0] for name in names} == {"operations", "probes"}
    assert all(re.fullmatch(r"[a-z]+-1-[0-9]{6}\.jsonl\.gz", name) for name in names)
