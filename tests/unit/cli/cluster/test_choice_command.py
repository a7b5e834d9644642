"""`quorate choice show` and `remove`, and what is said of objects that no rule can be for."""

import json
from pathlib import Path
from urllib.parse import urlsplit

from quorate.api_specs.cluster import ChoiceRule, parse
from quorate.api_specs.configuration import with_members
from quorate.cli.cluster.choice_command import with_rule, without_rule
from quorate.cli.cluster.document import new_document, read_document
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk.protocol.configurations import joint
from quorate.spark_reports.report import Options, make_report
from tests.unit.cli.conftest import begun, run_at, told_in_vain

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
    assert begun(running, running.document) == 3
    running.kill("r3")
    words = ("choice", "remove", "queue/jobs", "--deadline", "2")
    for _ in range(2):
        told_in_vain(
            3, "After 2 s the change is under way", *words, QUORATE_CLUSTER=str(running.document_path)
        )
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


def test_a_rule_is_set_and_removed_in_the_middle_of_a_change_in_which_members_are_declared_dead() -> None:
    """What is wanted then is what the cluster changes to, where nobody is dead."""
    urls = {f"r{number}": f"http://127.0.0.1:{8000 + number}" for number in (1, 2, 3)}
    old = parse(new_document(urls))
    both = joint(old, with_members(old, old.replicas[:2]), ["r3"])
    rule = ChoiceRule("queue/jobs", {"Enq/Ok": (0, 1), "Deq/Ok": (2, 1)})
    for wanted in (with_rule(both, rule), without_rule(both, "queue/*")):
        assert (wanted.former, wanted.declared_dead) == (None, ())


def report(running: LocalCluster, tmp_path: Path) -> str:
    """The folder of a report as Prometheus would have it: two of the replicas fail together for a quarter of an hour."""
    names = [urlsplit(url).netloc for url in read_document(running.document_path).urls.values()]
    rows = [
        f"{name},{start},{start + 900},{int(name == names[0] or start != 900)}"
        for name in names
        for start in (0, 900, 1800, 2700)
    ]
    trace = tmp_path / "up.csv"
    trace.write_text("\n".join(["replica,start_s,end_s,up", *rows]) + "\n")
    options = Options(engine="python", adt="queue", mix={"Enq": 3.0, "Deq": 1.0})
    return str(make_report(trace, tmp_path / "out", options).json.parent)


def test_the_advice_of_a_report_is_shown_and_then_applied(running: LocalCluster, tmp_path: Path) -> None:
    words = ("choice", "set", "queue/jobs", "--advice", report(running, tmp_path))
    code, out, err = run_at(running, *words, "--dry-run")
    assert (code, out, EAGER in err) == (0, "Nothing was changed.\n", True), err
    figures = err[err.index("By the report ") :].splitlines()
    assert figures[:4] == [
        f"By the report {tmp_path}/out/figures.json: 60 min, trace (up.csv):",
        "queue/jobs: Enq/Ok available 75.00 % -> 100 % of that time.",
        "queue/jobs: Deq/Ok, Deq/Empty, Peek/Ok, Peek/Empty, Size/Ok available 75.00 % of that time, as before.",
        "queue/jobs: Enq/Ok more available: tolerates 2 failed replicas (was 1).",
    ]
    assert run_at(running, *words)[:2] == (0, "Configuration 2 is in force.\n")
    assert EAGER in run_at(running, "choice", "show", "queue/jobs")[1]
    told = json.loads(run_at(running, *words, "--dry-run", "--json")[1])
    assert (told["shifts"], told["advice"]["report"]) == ([], f"{tmp_path}/out/figures.json")
    assert told["advice"]["available"][0] == {"event_classes": ["Enq/Ok"], "before": 1.0, "after": 1.0}


def test_a_choice_of_ones_own_gets_the_figures_of_the_report(running: LocalCluster, tmp_path: Path) -> None:
    out = report(running, tmp_path)
    for words, rule, figures in (
        (
            ("Enq=0,3", "Deq=1,3"),
            '"Enq/Ok" = [0, 3]',
            "Enq/Ok, Deq/Ok available 75.00 % of that time, as before.",
        ),
        (
            ("--reads", "r1", "--writes", "r1"),
            'writes = "r1"',
            "Size/Ok available 75.00 % -> 100 % of that time.",
        ),
    ):
        code, _, err = run_at(running, "choice", "set", "queue/jobs", *words, "--advice", out, "--dry-run")
        assert (code, rule in err, figures in err) == (0, True, True), err
    code, _, err = run_at(running, "choice", "set", "register/r", "--advice", out)
    assert (code, "is about objects of type queue, and not about register/r" in err) == (2, True)


def test_a_standing_rule_is_all_that_a_report_says_of_it_or_nothing(
    running: LocalCluster, tmp_path: Path
) -> None:
    out = report(running, tmp_path)
    wrong: tuple[tuple[tuple[str, ...], str], ...] = (
        (("--standing",), "--standing takes the rule of a report: add --advice OUT"),
        (
            ("--standing", "--advice", out, "Enq=0,3"),
            "--standing takes both choices and the condition from the report",
        ),
        (
            ("--standing", "--advice", out, "--after", "0"),
            "--standing takes both choices and the condition from the report",
        ),
        (
            ("--standing", "--advice", out),
            "has no standing rule: leave --standing out. For the queue, no standing rule was found",
        ),
    )
    for words, expected in wrong:
        code, _, err = run_at(running, "choice", "set", "queue/jobs", *words)
        assert (code, expected in " ".join(err.split())) == (2, True), err
