"""`quorate choice show` and `remove`, and what is said of objects that no rule can be for."""

import json

from quorate.api_specs.cluster import parse
from quorate.cli.cluster.choice_command import without_rule
from quorate.cli.cluster.document import new_document
from quorate.cli.cluster.local_cluster import LocalCluster
from tests.unit.cli.conftest import run_at

EAGER = '"Enq/Ok" = [0, 1]\n"Deq/Ok" = [3, 1]\n"Deq/Empty" = [3, 0]\n"Peek/Ok" = [3, 0]'


def test_a_rule_is_shown_and_removed(running: LocalCluster) -> None:
    assert run_at(running, "choice", "set", "queue/jobs", "Enq=0,1", "Deq=3,1")[0] == 0
    code, out, _ = run_at(running, "choice", "show", "queue/jobs")
    assert (code, out.startswith('[[choices]]\nobjects = "queue/jobs"\n'), EAGER in out) == (0, True, True)
    assert 'objects = "queue/*"' in run_at(running, "choice", "show", "queue/other")[1]
    assert 'objects = "dictionary/*"' in run_at(running, "choice", "show", "dictionary/users/ann")[1]
    told = json.loads(run_at(running, "choice", "show", "--json")[1])
    assert (told["epoch"], told["is_changing"]) == (2, False)
    assert [each["objects"] for each in told["rules"]] == [
        "queue/jobs",
        "queue/*",
        "register/*",
        "dictionary/*",
    ]
    code, out, err = run_at(running, "choice", "remove", "queue/jobs", "--dry-run")
    assert (code, out) == (0, "Nothing was changed.\n")
    assert "queue/jobs: Enq/Ok less available: tolerates 1 failed replica (was 2)." in err
    assert json.loads(run_at(running, "choice", "remove", "queue/jobs", "--json")[1])["epoch"] == 4
    assert 'objects = "queue/*"' in run_at(running, "choice", "show", "queue/jobs")[1]
    assert run_at(running, "choice", "remove", "queue/*")[:2] == (0, "Configuration 6 is in force.\n")
    code, out, _ = run_at(running, "choice", "show", "queue/jobs")
    assert (code, out.splitlines()[0]) == (0, "# No rule is for queue/jobs: majorities.")
    assert '"Deq/Ok" = [2, 2]' in out
    assert json.loads(run_at(running, "choice", "show", "queue/jobs", "--json")[1])["rules"] == []


def test_who_repeats_a_removal_that_was_cut_off_goes_on(running: LocalCluster) -> None:
    """By then the rule is one of before alone."""
    assert run_at(running, "choice", "set", "queue/jobs", "Enq=0,1", "Deq=3,1")[0] == 0
    running.kill("r3")
    words = ("choice", "remove", "queue/jobs", "--deadline", "2")
    for _ in range(2):
        code, _, err = run_at(running, *words)
        assert (code, "After 2 s the change is under way" in err) == (3, True), err
    out = run_at(running, "choice", "show")[1]
    assert out.startswith("# The cluster changes to what stands here.")
    assert "queue/jobs" not in out
    running.restart("r3")
    assert run_at(running, "choice", "remove", "queue/jobs")[:2] == (0, "Configuration 4 is in force.\n")


def test_what_cannot_be_is_told_with_what_to_write(running: LocalCluster) -> None:
    there = "there are queue/*, register/*, dictionary/*."
    wrong: tuple[tuple[tuple[str, ...], str], ...] = (
        (("set", "queue"), "'queue' is a type alone: write queue/NAME for one object, or 'queue/*' for all"),
        (("set", "queue/", "Enq=0,1"), "'queue/' is a type alone: write queue/NAME"),
        (("set", "dict/users"), "'dict/users': rules call that type dictionary: write dictionary/users."),
        (("set", "dict"), "write dictionary/NAME."),
        (("set", "dictionary/d/k"), "write dictionary/d, which holds for all its keys"),
        (("set", "jobs"), "'jobs' must start with one of queue, register, dictionary, as queue/jobs."),
        (("set", "*/jobs", "Enq=0,1"), "'*/jobs' must start with one of queue, register, dictionary"),
        (("show", "queue"), "'queue' is a type alone"),
        (("show", "queue/f*"), f"No rule is for exactly queue/f*: {there} Or name one object"),
        (("remove", "queue/jobs"), f"No rule is for exactly queue/jobs: {there}"),
        (("remove", "dict/users"), "write dictionary/users."),
    )
    for words, expected in wrong:
        code, _, err = run_at(running, "choice", *words)
        assert (code, expected in " ".join(err.split())) == (2, True), err
    code, _, err = run_at(running, "choice", "set", "*/jobs", "--dry-run")
    assert (code, '[[choices]]\nobjects = "*/jobs"\n' in err) == (0, True), err


def test_a_rule_that_is_gone_already_is_no_mistake() -> None:
    """Another operator may have removed it meanwhile."""
    document = parse(new_document({"r1": "http://127.0.0.1:8001"}))
    assert [each.objects for each in without_rule(document, "queue/*").choices] == [
        "register/*",
        "dictionary/*",
    ]
    assert without_rule(document, "queue/jobs") == document
