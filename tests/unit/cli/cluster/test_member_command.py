"""`quorate member`, on a cluster that runs: who is a member, what would change, what is refused, and what is done."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.cli.cluster import change_command, member_command
from quorate.cli.cluster.change_command import joining, with_stores
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.member_command import _unfit as unfit
from quorate.cli.cluster.member_command import changed
from quorate.cli.cluster.probe import NoAnswer
from quorate.cli.cluster.status import CatchUp, Found
from quorate.cli.failure import Failure, Usage
from quorate.client_sdk.protocol.configurations import joint, settled, taken_back
from tests.system.harness import until_now
from tests.unit.cli.conftest import Run, quorate_here

THREE = ClusterDocument(
    "c", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}", store=f"s{n}") for n in (1, 2, 3))
)
R4 = ReplicaInfo("r4", "http://127.0.0.1:4", store="s4")
EAGER = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
ANY = ReplicaInfo("", R4.url, 1)


@pytest.fixture(scope="module")
def joined(cluster: LocalCluster) -> str:
    """The URL of r4, which is no member; of the cluster that all tests here share, so what is done for real is done last."""
    return cluster.join("r4")


def sentence(text: str) -> str:
    return " ".join(text.split())


def told(run: Run, *words: str) -> Any:
    done = run("member", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_members_are_listed_with_their_votes_and_how_they_are(cluster: LocalCluster, run: Run) -> None:
    done = run("member", "list")
    assert (done.returncode, done.stderr) == (0, "")
    title, *lines = [line.split() for line in done.stdout.splitlines() if line.strip("─ ")]
    assert title == ["replica", "role", "votes", "state", "missing", "url"]
    for row, (id, url) in zip(lines, cluster.document.urls.items(), strict=False):
        assert (row[:4], row[-1]) == ([id, "voter", "1", "ready"], url)
    assert lines[3:] == [["Configuration", "0."]]
    found = told(run, "list")
    assert (found["epoch"], found["is_changing"], found["removed"]) == (0, False, [])
    assert [(each["id"], each["url"]) for each in found["members"]] == [*cluster.document.urls.items()]
    for each in found["members"]:
        assert (each["votes"], each["role"], each["is_ready"], each["trouble"]) == (1, "voter", True, "")
        assert each["missing"] in (None, 0)
        assert each["store"] == cluster.document.stores[each["id"]] != ""


def test_what_would_change_is_said_and_nothing_is_done(joined: str, run: Run) -> None:
    now = "r1 (1), r2 (1), r3 (1)"
    cases: dict[tuple[str, ...], tuple[str, str]] = {
        ("add", joined): (f"{now}, r4 (1)", "tolerates 2 failed replicas (was 1)."),
        ("add", joined, "--votes", "0"): (f"{now}, r4 (0)", "Nothing was changed."),
        ("remove", "r3"): ("r1 (1), r2 (1)", "tolerates no failed replica (was 1)."),
        ("remove", "r2", "r3"): ("r1 (1)", "tolerates no failed replica (was 1)."),
        ("replace", "r2", joined): ("r1 (1), r3 (1), r4 (1)", "Nothing was changed."),
        ("votes", "r1", "3"): ("r1 (3), r2 (1), r3 (1)", "tolerates no failed replica (was 1)."),
        ("votes", "r1", "1"): (now, "Nothing would change."),
    }
    for words, (members, expected) in cases.items():
        done = run("member", *words, "--dry-run")
        assert done.returncode == 0, done.stderr
        assert f"Members and their votes: {members}.\n" in done.stderr
        assert expected in done.stderr + done.stdout
        shifts = told(run, *words, "--dry-run")
        assert (shifts["epoch"], bool(shifts["shifts"])) == (0, "tolerates" in expected)
    assert told(run, "list")["epoch"] == 0


def test_what_cannot_be_done_is_said_in_a_sentence(cluster: LocalCluster, joined: str, run: Run) -> None:
    here = cluster.urls["r1"]
    cases: dict[tuple[str, ...], tuple[int, str]] = {
        ("add", "r4"): (2, "'r4' must be a replica's URL, as http://127.0.0.1:8004."),
        ("add", joined, "file:///tmp"): (2, "'file:///tmp' must be a replica's URL"),
        ("add", "http://127.0.0.1:1"): (
            1,
            "does not tell which replica it is: connection refused. A new one is started by: quorate serve",
        ),
        ("add", here): (0, "Members and their votes: r1 (1), r2 (1), r3 (1)."),
        ("add", joined, joined): (2, "two of them say that they are the same replica"),
        ("replace", "r2", here): (2, "r1 is a member already: start a new replica with an id of its own"),
        ("replace", "r9", joined): (2, "The cluster has no member 'r9': they are r1, r2, r3."),
        ("remove", "r2", "r9"): (2, "The cluster has no member 'r9': they are r1, r2, r3."),
        ("votes", "r9", "1"): (2, "The cluster has no member 'r9': they are r1, r2, r3."),
        ("add", joined.removeprefix("http://"), "--dry-run"): (0, "r4 (1)."),
        ("remove", here): (2, f"{here} is r1: name a member by its id."),
        ("move", joined, "r3"): (2, f"The cluster has no member '{joined}': they are r1, r2, r3."),
        ("move", "r9", joined): (2, "The cluster has no member 'r9': they are r1, r2, r3."),
        ("move", "r3", "here"): (2, "'here' must be a replica's URL"),
        ("move", "r3", here): (2, f"replica r3: at {here} is r1: give it a place of its own"),
        ("move", "r3", joined): (2, "and r3 of 'local' has store"),
        ("move", "r3", "http://127.0.0.1:1"): (1, "Start r3 there first, on its data folder"),
        ("move", "r3", cluster.urls["r3"], "--dry-run"): (0, ""),
        ("remove", "r1", "r2", "r3"): (2, "No member would be left: leave one out"),
    }
    for words, (code, expected) in cases.items():
        done = run("member", *words)
        assert (done.returncode, expected in sentence(done.stderr)) == (code, True), done.stderr
    assert told(run, "list")["epoch"] == 0


def test_rules_that_do_not_fit_the_members_are_changed_together_with_them() -> None:
    eager = replace(THREE, choices=(EAGER,))
    with pytest.raises(Usage, match=r"With these members: .*queue/\*.* use `quorate change`\.") as refused:
        changed(eager, [R4, replace(R4, id="r5", url="http://127.0.0.1:5")], [])
    assert "Change members and rules together: write both into a cluster file" in str(refused.value)


def test_a_member_is_changed_where_it_stands_and_a_new_one_comes_last() -> None:
    heavier = changed(THREE, [replace(THREE.replicas[1], votes=3)], [])
    assert heavier.votes == {"r1": 1, "r2": 3, "r3": 1}
    assert list(heavier.votes) == ["r1", "r2", "r3"]
    assert changed(THREE, [R4], ["r2"]).replicas == (THREE.replicas[0], THREE.replicas[2], R4)


class Place:
    """What is told at each URL, instead of what a replica there would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: Any = {}
        self.asked: list[tuple[str, str]] = []
        monkeypatch.setattr(change_command, "get", self.get)

    def get(self, url: str, path: str, _token: str | None = None) -> Any:
        """See `probe`."""
        self.asked.append((url, path))
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """One at which whoever is asked says what the test wants."""
    return Place(monkeypatch)


def says(
    replica: str = "r4", store: str = "s4", cluster: str = "c", hash: str = THREE.hash, epoch: int = 0
) -> Mapping[str, Any]:
    return {"replica": replica, "store": store, "cluster": cluster, "hash": hash, "epoch": epoch}


BOTH = joint(THREE, changed(THREE, [R4], ["r3"]))


@pytest.mark.parametrize(
    ("now", "given", "expected"),
    [
        (THREE, ANY, R4),
        (THREE, replace(ANY, votes=0), replace(R4, votes=0)),
        (THREE, R4, R4),
        (BOTH, ANY, R4),
        (settled(BOTH), ANY, R4),
    ],
    ids=["new", "a learner", "as it was given", "its change is under way", "it is one already"],
)
def test_a_replica_that_joins_says_itself_who_it_is(
    place: Place, now: ClusterDocument, given: ReplicaInfo, expected: ReplicaInfo
) -> None:
    place.told = says(hash=now.hash, epoch=now.number)
    assert joining(now, R4.url, given) == expected
    assert place.asked == [(R4.url, "/v1/status")]


@pytest.mark.parametrize("now", [BOTH, settled(BOTH)], ids=["its change is under way", "it is one already"])
def test_whoever_repeats_a_change_goes_on_though_the_new_member_is_down(
    place: Place, now: ClusterDocument
) -> None:
    place.told = NoAnswer("connection refused")
    assert joining(now, R4.url, ANY) == R4


@pytest.mark.parametrize(
    ("now", "answer", "given", "kind", "words"),
    [
        (THREE, NoAnswer("no answer in time"), ANY, Failure, "which replica it is: no answer in time. A new"),
        (BOTH, NoAnswer("no answer in time"), replace(R4, id="r9"), Failure, "does not tell which replica"),
        (THREE, {"hello": "world"}, ANY, Failure, "does not tell which replica it is: 'replica'. A new"),
        (THREE, ["r4"], ANY, Failure, "does not tell which replica it is"),
        (THREE, says(cluster="other"), ANY, Usage, "is a replica of cluster 'other', and this is 'c'"),
        (settled(BOTH), says("r3", "s3"), ANY, Usage, "is r3, which was a member before: start it with"),
        (taken_back(BOTH), says(), ANY, Usage, "is r4, which was a member before: start it with another id"),
        (
            THREE,
            says("r2", "s2"),
            ANY,
            Usage,
            "r2 is a member already, at http://127.0.0.1:2 with store s2, and",
        ),
        (THREE, {**says(), "url": "http://r4:4"}, ANY, Usage, "is r4, which others reach at http://r4:4"),
        (BOTH, says("r3", "s3"), ANY, Usage, "r3 is a member already, at http://127.0.0.1:3"),
        (
            BOTH,
            says(store="other"),
            ANY,
            Usage,
            "r4 is a member already, at .* and .* has store other: start",
        ),
        (THREE, says(hash="another"), ANY, Usage, "goes by another cluster file, or is of another cluster"),
        (
            THREE,
            says(hash="later", epoch=4),
            ANY,
            Failure,
            "is in configuration 4, and the members that answered are in 0. They go on by themselves",
        ),
        (THREE, says("r5"), R4, Usage, "is r5 with store s4, and the file says r4 s4: correct it"),
        (THREE, says(store="other"), R4, Usage, "is r4 with store other, and the file says r4 s4: correct"),
    ],
)
def test_who_cannot_become_a_member_is_named(
    place: Place, now: ClusterDocument, answer: Any, given: ReplicaInfo, kind: type[Failure], words: str
) -> None:
    place.told = answer
    with pytest.raises(kind, match=words) as refused:
        joining(now, R4.url, given)
    assert type(refused.value) is kind


def test_a_file_that_is_to_be_in_force_has_the_stores_that_the_cluster_knows(place: Place) -> None:
    """New ones alone are asked."""
    place.told = says()
    bare = [replace(each, store="") for each in (*THREE.replicas[:2], R4)]
    wanted = replace(THREE, replicas=tuple(bare))
    assert with_stores(wanted, THREE).replicas == (*THREE.replicas[:2], R4)
    assert place.asked == [(R4.url, "/v1/status")]


def test_a_change_under_way_is_repeated_with_the_same_words() -> None:
    """Whom it brings is a member by then, and who leaves is one still."""
    again = changed(BOTH, [R4], ["r3"])
    assert replace(again, epoch=UNSET, old=UNSET) == changed(THREE, [R4], ["r3"])
    ruled = joint(THREE, replace(changed(THREE, [R4], ["r3"]), choices=(ChoiceRule("queue/a"),)))
    assert changed(ruled, [R4], ["r3"]).choices == ruled.choices


def test_it_is_told_who_leaves_what_is_missing_and_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the cluster changes; r2 does not know yet how far it is behind."""
    found = [
        Found("r1", "http://r1", True, True, catch_up={"r2": CatchUp(7, 1.0), "r4": CatchUp(3, 1.0)}),
        Found("r2", "http://r2", True, True, catch_up={"r1": CatchUp(7, 1.0), "r4": CatchUp(None, None)}),
        Found("r3", "http://r3", trouble="connection refused"),
        Found("r4", "http://r4", True, trouble="it is new"),
    ]
    monkeypatch.setattr(member_command, "told_document", lambda _: BOTH)
    monkeypatch.setattr(member_command, "ask_all", lambda _: found)
    listed = json.loads(quorate_here("member", "list", "--cluster", "any.toml", "--json").stdout)
    assert (listed["epoch"], listed["is_changing"]) == (1, True)
    assert [(each["id"], each["role"], each["missing"], each["is_ready"]) for each in listed["members"]] == [
        ("r1", "voter", 7, True),
        ("r2", "voter", None, True),
        ("r3", "leaving", None, False),
        ("r4", "voter", 0, False),
    ]
    out = quorate_here("member", "list", "--cluster", "any.toml").stdout
    assert [line for line in out.splitlines() if line.startswith("r3")][-1] == "r3: connection refused."
    assert "r4: it is new." in out
    assert out.endswith("Configuration 1; the cluster changes to it from the one before.\n")


LEVEL = CatchUp(0, 0.5)
READY = {f"r{n}": Found(f"r{n}", "http://any", True, True) for n in (1, 2)}


def learner(**catch_up: CatchUp) -> Found:
    return Found("r4", R4.url, True, True, catch_up=catch_up)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (learner(r1=LEVEL, r2=LEVEL), ""),
        (learner(r1=LEVEL, r2=CatchUp(3, 1.0)), ""),
        (learner(r1=LEVEL, r2=LEVEL, r3=CatchUp(7, None)), ""),
        (learner(r1=LEVEL, r2=CatchUp(812, None)), "r4 is behind: it misses changes, 812 of r2"),
        (
            learner(r1=CatchUp(None, None), r2=CatchUp(9, 60.0)),
            "r4 is behind: it misses changes, how much of r1 is not known, 9 of r2",
        ),
        (learner(r1=LEVEL), "r4 is behind: it misses changes, how much of r2 is not known"),
        (Found("r4", R4.url, trouble="connection refused"), "r4 is not ready: connection refused"),
    ],
    ids=["level", "on their way", "one is down", "behind", "not known", "not asked yet", "down"],
)
def test_a_learner_is_unfit_for_a_vote_while_it_is_behind_those_that_are_ready(
    found: Found, words: str
) -> None:
    assert unfit("r4", [*READY.values(), Found("r3", "http://any"), found]) == words


def test_a_learner_that_is_behind_gets_a_vote_by_force_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = changed(THREE, [replace(R4, votes=0)], [])
    done: list[ClusterDocument] = []
    monkeypatch.setattr(member_command, "told_document", lambda _: now)
    monkeypatch.setattr(
        member_command, "ask_all", lambda _: [*READY.values(), learner(r1=LEVEL, r2=CatchUp(812, None))]
    )
    monkeypatch.setattr(member_command, "carry_out", lambda now, want, _: done.append(want(now)))
    words = ("member", "votes", "r4", "1", "--cluster", "any.toml")
    refused = quorate_here(*words)
    assert (refused.returncode, done) == (1, [])
    assert "r4 is behind: it misses changes, 812 of r2. Look again with" in sentence(refused.stderr)
    forced = quorate_here(*words, "--force")
    assert (forced.returncode, [each.votes["r4"] for each in done]) == (0, [1])
    assert "r4 is behind: it misses changes, 812 of r2.\n" in forced.stderr
    assert quorate_here("member", "votes", "r4", "0", "--cluster", "any.toml").returncode == 0


def test_where_nobody_answers_that_is_said_and_no_member_is_called_unknown(tmp_path: Path) -> None:
    """The file may be of before."""
    file = tmp_path / "cluster.toml"
    file.write_text('name = "c"\n[[replicas]]\nid = "r1"\nurl = "http://127.0.0.1:1"\n')
    for words in (
        ("member", "remove", "r4"),
        ("member", "votes", "r4", "1"),
        ("member", "replace", "r4", "http://127.0.0.1:1"),
        ("member", "add", "http://127.0.0.1:1"),
        ("choice", "remove", "queue/x"),
        ("choice", "set", "queue/x", "Enq=0,1"),
        ("change", str(file)),
        ("change", "--abort"),
    ):
        done = quorate_here(*words, "--cluster", str(file))
        assert done.returncode == 1
        assert "No replica tells which configuration is in force: r1: connection refused." in done.stderr


def test_members_are_added_and_removed(cluster: LocalCluster, joined: str, run: Run) -> None:
    """The last test here."""
    done = run("member", "add", joined, "--votes", "0")
    assert (done.returncode, done.stdout) == (0, "Configuration 2 is in force.\n"), done.stderr
    assert " to copy." not in done.stderr, "no quorum has changed"
    found = {each["id"]: each for each in told(run, "list")["members"]}
    assert [(id, each["role"], each["votes"]) for id, each in found.items()] == [
        ("r1", "voter", 1),
        ("r2", "voter", 1),
        ("r3", "voter", 1),
        ("r4", "learner", 0),
    ]
    assert (found["r4"]["url"], found["r4"]["is_ready"]) == (joined, True)
    until_now(lambda: told(run, "list")["members"][3]["missing"] == 0, "r4 misses nothing")
    assert told(run, "votes", "r4", "1")["epoch"] == 4
    assert told(run, "remove", "r3")["epoch"] == 6
    listed = told(run, "list")
    assert (listed["epoch"], listed["removed"]) == (6, ["r3"])
    assert [(each["id"], each["votes"]) for each in listed["members"]] == [("r1", 1), ("r2", 1), ("r4", 1)]
    assert told(run, "remove", "r3")["epoch"] == 6, "it was done"
    assert told(run, "add", joined)["epoch"] == 6, "it was done"
    assert run("member", "list").stdout.endswith("Configuration 6. Removed: r3.\n")
    assert told(run, "votes", "r4", "2")["epoch"] == 8
    of_one_that_left = run("member", "list", "--cluster", cluster.urls["r3"])
    assert of_one_that_left.stdout.endswith("Configuration 8. Removed: r3.\n")
    for words, expected in (
        (("votes", "r3", "1"), "r3 is about to leave, or has left: the members are r1, r2, r4."),
        (("add", cluster.urls["r3"]), "is r3, which was a member before"),
    ):
        refused = run("member", *words)
        assert (refused.returncode, expected in sentence(refused.stderr)) == (2, True), refused.stderr
