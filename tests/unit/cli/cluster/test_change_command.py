"""`quorate change` and `quorate choice set`, on a cluster that runs."""

import json
import signal
import subprocess
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, parse
from quorate.api_specs.configuration import with_members
from quorate.cli.cluster.change_command import Shift, shifts_between
from quorate.cli.cluster.change_command import _check as check
from quorate.cli.cluster.change_command import _check_off as check_off
from quorate.cli.cluster.change_command import _told_of_end as told_of_end
from quorate.cli.cluster.choice_command import with_rule
from quorate.cli.cluster.document import read_document
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.failure import Usage
from quorate.client_sdk.protocol.configurations import joint, settled, taken_back
from tests.unit.cli.conftest import begun, quorate, run_at, told_in_vain

EAGER = ("Enq=0,1", "Deq=3,1")
THREE = ClusterDocument("c", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2, 3)))


def run(cluster: LocalCluster, *words: str) -> tuple[int, str, str]:
    code, out, err = run_at(cluster, *words)
    return code, out.strip(), err


def told(cluster: LocalCluster, *words: str) -> dict[str, Any]:
    code, out, err = run(cluster, *words, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_choice_is_set_and_the_file_of_before_does_for_everybody(
    running: LocalCluster, tmp_path: Path
) -> None:
    assert run(running, "queue", "jobs", "enqueue", "1")[0] == 0
    code, out, err = run(running, "choice", "set", "queue/jobs", *EAGER, "--dry-run")
    assert (code, out) == (0, "Nothing was changed.")
    assert "queue/jobs: Enq/Ok more available: tolerates 2 failed replicas (was 1)." in err
    assert (
        "Deq/Ok, Deq/Empty, Peek/Ok, Peek/Empty, Size/Ok less available: tolerates no failed replica (was 1)."
        in err
    )
    assert '"Enq/Ok" = [0, 1]' in err, "the rule, for the cluster file"
    code, out, err = run(running, "choice", "set", "queue/jobs", *EAGER)
    assert (code, out) == (0, "Configuration 2 is in force."), err
    assert (
        "Joint configuration 1: each quorum is one of the old and one of the new.\n2 objects to copy.\n"
        in err
    )
    for replica in ("r2", "r3"):
        running.kill(replica)
    assert run(running, "queue", "jobs", "enqueue", "2")[0] == 0, "one replica stores it"
    for replica in ("r2", "r3"):
        running.restart(replica)
    assert run(running, "queue", "jobs", "dequeue", "--max", "5")[1] == "1\n2"
    code, out, _ = run(running, "status")
    assert (code, "Configuration 2 is in force, chosen while the cluster ran." in out) == (0, True)
    assert run(running, "doctor")[0] == 0
    again = told(running, "change", str(running.document_path))
    assert (again["epoch"], [each["after"] for each in again["shifts"]]) == (4, [1, 1])


def test_who_repeats_a_change_that_was_cut_off_goes_on_and_it_can_be_taken_back(
    running: LocalCluster,
) -> None:
    """One replica stores an enqueue: only when all have left that rule nothing can be enqueued under it any more."""
    assert told(running, "choice", "set", "queue/*", *EAGER)["epoch"] == 2
    assert begun(running, running.document) == 3
    running.kill("r3")
    words = ("change", str(running.document_path), "--deadline", "2")
    named = {"QUORATE_CLUSTER": str(running.document_path)}
    why = "After 2 s the change is under way: r3 did not go on to configuration 3 (one that is off"
    told_in_vain(3, why, *words, **named)
    code, out, _ = run(running, "status")
    assert (code, "the cluster is changing to it from the one before" in out) == (1, True)
    assert run(running, "queue", "jobs", "enqueue", "1")[0] == 0
    why = "It is another operator's change, which is finished first."
    told_in_vain(3, why, *("choice", "set", "queue/other", "Enq=0,2", "--deadline", "2"), **named)
    code, _, err = run(running, "member", "remove", "r3", "--declare-dead", "r9")
    assert (code, "r9 cannot be declared dead: the members are r1, r2, r3" in " ".join(err.split())) == (
        2,
        True,
    )
    code, out, err = run(running, "member", "remove", "r3", "--declare-dead", "r3", "--dry-run")
    assert (code, out) == (0, "Nothing was changed."), "the change may go on without it"
    assert (
        "What r3 alone stored is lost, if others have not copied it yet: acknowledged Deq/Ok of queue/*"
        in err
    )
    code, out, err = run(running, "change", "--abort")
    assert (code, out) == (0, "Configuration 4 is in force, with the quorums of before the change."), err
    code, _, err = run(running, *words)
    assert code == 1
    assert "The change does not begin before r3 answers.\n" in err
    assert "After 2 s the change has not begun: r3 did not answer (one that is off for good can be" in err
    assert told(running, *words, "--dry-run")["awaited"] == ["r3"]
    running.restart("r3")
    assert told(running, "change", str(running.document_path))["epoch"] == 6
    assert run(running, "queue", "jobs", "dequeue")[1] == "1"
    code, out, _ = run(running, "change", "--abort")
    assert (code, out) == (0, "No change was under way. Configuration 6 is in force.")


def test_what_cannot_change_is_told_before_anything_is_done(running: LocalCluster, tmp_path: Path) -> None:
    text = running.document_path.read_text()
    new = tmp_path / "new.toml"
    for replaced, by, expected in (
        ('name = "local"', 'name = "other"', "The file is of cluster 'other', and this one is 'local'"),
        ('id = "r3"', 'id = "r4"', "and the file says r4"),
        ("replica_error_s = 0.0", "replica_error_s = 0.5", "clock cannot change while the cluster runs"),
    ):
        assert replaced in text
        new.write_text(text.replace(replaced, by))
        code, _, err = run(running, "change", str(new))
        assert (code, expected in " ".join(err.split())) == (2, True), err
    new.write_text(text)
    wrong: tuple[tuple[tuple[str, ...], str], ...] = (
        (("change",), "Name the cluster file as it is to be"),
        (
            ("change", "none.toml"),
            "There is no file none.toml: print the one in force, `quorate configuration",
        ),
        (("change", str(new), "--abort"), "Name the cluster file as it is to be"),
        (("change", "--abort", "--dry-run"), "--abort with --dry-run: leave one of them out"),
        (("change", "--abort", "--declare-dead", "r3"), "--abort with --declare-dead: leave one of them out"),
        (
            ("change", str(new), "--declare-dead", "r9"),
            "r9 cannot be declared dead: the members are r1, r2, r3",
        ),
        (("change", str(new), "--declare-dead", "r3"), "r3 would still be a member: declare it dead in the"),
        (("choice", "set", "queue/jobs", "Enq=0"), "write CLASS=INITIAL,FINAL with two whole numbers"),
        (("choice", "set", "queue/jobs", "Take=0,1"), "a queue has no 'Take': use Enq/Ok, Deq/Ok"),
        (("choice", "set", "jobs", "Enq=0,1"), "'jobs' must start with one of queue, register, dictionary"),
        (("choice", "set", "queue/jobs", "Enq=0,1", "Deq=1,1"), "Deq/Ok does not meet Deq/Ok"),
    )
    for words, expected in wrong:
        code, _, err = run(running, *words)
        assert (code, expected in " ".join(err.split())) == (2, True), err
    for replica in ("r2", "r3"):
        running.kill(replica)
    words = ("choice", "set", "queue/jobs", *EAGER, "--deadline", "1.5")
    said = told_in_vain(1, "the change has not begun", *words, QUORATE_CLUSTER=str(running.document_path))
    assert "Nothing was changed" in said


def test_what_cannot_follow_the_change_of_another_operator_leaves_nothing_under_way(
    running: LocalCluster, tmp_path: Path
) -> None:
    """That one is brought to its end before."""
    text = running.document_path.read_text()
    (new := tmp_path / "new.toml").write_text(text.replace("replica_error_s = 0.0", "replica_error_s = 0.5"))
    assert begun(running, with_rule(running.document, ChoiceRule("queue/a", collect=False))) == 1
    code, _, err = run(running, "change", str(new))
    assert code == 2
    assert err.endswith("quorate: clock cannot change while the cluster runs: leave it as it is\n")
    assert run(running, "change", "--abort")[1] == "No change was under way. Configuration 2 is in force."


def test_who_stops_a_change_that_waits_is_told_that_nothing_was_changed(running: LocalCluster) -> None:
    assert told(running, "choice", "set", "queue/*", *EAGER)["epoch"] == 2
    running.kill("r3")
    words = ("change", str(running.document_path), "--cluster", str(running.document_path))
    operator = subprocess.Popen(
        [*LocalCluster.PROGRAM, *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert operator.stderr is not None
    lines: list[str] = []
    while not (lines and lines[-1].startswith("Waiting: ")):
        lines.append(operator.stderr.readline())
        assert lines[-1], lines
    operator.send_signal(signal.SIGINT)
    _, last = operator.communicate(timeout=60)
    assert operator.returncode == 1
    assert "quorate: Stopped: the change has not begun: r3 did not answer (one that is off for good" in last
    assert last.endswith("Nothing was changed.\n")


def test_a_token_needs_the_scopes_admin_and_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = {}
    for name, scopes in (("own", ("replica",)), ("app", ("write",)), ("ops", ("admin", "write"))):
        words = [word for scope in scopes for word in ("--scope", scope)]
        made = quorate("token", "new", *words, "--add", str(tmp_path / "tokens"), "--json")
        tokens[name] = json.loads(made.stdout)["token"]
    monkeypatch.setenv("QUORATE_TOKENS_FILE", str(tmp_path / "tokens"))
    with LocalCluster.create(tmp_path / "cluster", token=tokens["own"]) as cluster:
        cluster.start()
        cluster.ready()
        change = ("choice", "set", "queue/jobs", *EAGER, "--cluster", str(cluster.document_path))
        refused = quorate(*change, QUORATE_TOKEN=tokens["app"])
        assert (refused.returncode, "scope admin is needed" in refused.stderr) == (1, True), refused.stderr
        done = quorate(*change, QUORATE_TOKEN=tokens["ops"])
        assert done.returncode == 0, done.stderr


class _Refuses(BaseHTTPRequestHandler):
    status, body = 401, b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("status", "body", "is_off"),
    [
        (401, b'{"detail": "this token is not known"}', False),
        (429, b'{"detail": "its rate is used up"}', False),
        (503, b'{"detail": "it has too much to do"}', False),
        (502, b"<h1>bad gateway</h1>", True),
    ],
    ids=["a token that it refuses", "too many requests", "too much to do", "a proxy before one that is off"],
)
def test_whoever_refuses_to_tell_is_not_off(
    status: int, body: bytes, is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Refuses, "status", status)
    monkeypatch.setattr(_Refuses, "body", body)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refuses) as server:
        Thread(target=server.serve_forever).start()
        try:
            there = ReplicaInfo("r1", f"http://127.0.0.1:{server.server_port}")
            document = replace(THREE, replicas=(there, *THREE.replicas[1:]))
            expected = nullcontext() if is_off else pytest.raises(Usage, match=r"answers .* may not be off")
            with expected:
                check_off("r1", document)
        finally:
            server.shutdown()


def test_a_rule_takes_the_place_of_its_own_or_stands_before_the_wider_ones() -> None:
    document = parse(
        'name = "c"\n[[replicas]]\nid = "r1"\nurl = "http://127.0.0.1:1"\n'
        '[[choices]]\nobjects = "queue/a"\ncollect = false\n[[choices]]\nobjects = "queue/*"\n[[choices]]\nobjects = "register/*"\n'
    )
    eager = {"Enq/Ok": (0, 1)}
    assert [rule.objects for rule in with_rule(document, ChoiceRule("queue/b", eager)).choices] == [
        "queue/a",
        "queue/b",
        "queue/*",
        "register/*",
    ]
    assert with_rule(document, ChoiceRule("dictionary/*")).choices[-1].objects == "dictionary/*"
    kept = with_rule(document, ChoiceRule("queue/a", eager)).choices[0]
    assert (kept.classes, kept.collect) == (eager, False), "it keeps what is not said of it"


def test_systems_are_counted_as_votes_are() -> None:
    """An enqueue reads nobody, which any number of replicas may miss."""
    systems = with_rule(THREE, ChoiceRule("queue/jobs", reads="r1*r2 + r2*r3 + r1*r3"))
    assert list(shifts_between(THREE, systems)) == []
    chain = with_rule(THREE, ChoiceRule("queue/jobs", reads="r1 + r2 + r3"))
    assert list(shifts_between(THREE, chain)) == [
        Shift("queue/jobs", ("Enq/Ok", "Deq/Ok"), 1, 0),
        Shift("queue/jobs", ("Deq/Empty", "Peek/Ok", "Peek/Empty", "Size/Ok"), 1, 2),
    ]


def test_a_new_document_may_be_the_change(running: LocalCluster) -> None:
    """Without a difference nothing is done."""
    same = {"shifts": [], "awaited": [], "epoch": 0}
    assert told(running, "change", str(running.document_path), "--dry-run") == same
    assert told(running, "change", str(running.document_path))["epoch"] == 0
    assert read_document(running.document_path).number == 0


def test_members_change_only_where_the_stores_of_those_that_stay_are_named() -> None:
    """An empty folder could vote in the place of one whose file names no other members. One that leaves, as its disk is lost, cannot tell its store."""
    named = with_members(THREE, [replace(each, store=f"s{each.id}") for each in THREE.replicas])
    r4 = ReplicaInfo("r4", "http://127.0.0.1:4", store="s4")
    with pytest.raises(Usage, match="names no store of r1, r2, r3: an empty folder could vote"):
        check(THREE, with_members(THREE, [*THREE.replicas, r4]))
    check(named, with_members(named, [*named.replicas, r4]))
    lost = replace(named, replicas=(replace(named.replicas[0], store=""), *named.replicas[1:]))
    check(lost, with_members(lost, [*lost.replicas[1:], r4]))
    check(THREE, replace(THREE, choices=(ChoiceRule("queue/*"),)))


def test_it_is_told_what_became_of_a_change_that_was_to_be_taken_back() -> None:
    first, back, later = (replace(THREE, epoch=number) for number in (3, 4, 5))
    assert told_of_end(first, back, back) == (
        "Configuration 4 is in force, with the quorums of before the change."
    )
    assert told_of_end(first, later, back) == (
        "The change was taken back with configuration 4. Another operator has changed the cluster since: configuration 5 is in force."
    )
    both = joint(replace(THREE, epoch=2), with_rule(THREE, ChoiceRule("queue/a", collect=False)))
    assert told_of_end(both, taken_back(both), None) == told_of_end(first, back, back)
    assert told_of_end(both, settled(both), None) == (
        "Configuration 4 is in force: the change had come to its end already."
    )
    assert told_of_end(first, first, None) == "No change was under way. Configuration 3 is in force."
