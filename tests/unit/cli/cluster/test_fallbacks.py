"""`quorate choice set --fallback`, and what commands show and keep of it: a cluster that runs, of which one member is ended."""

import json
from pathlib import Path
from typing import Any, Final

from quorate.api_specs.cluster import Fallback, parse
from quorate.cli.cluster.local_cluster import LocalCluster
from tests.system.harness import until_now
from tests.unit.cli.conftest import run_at

SET: Final = ("choice", "set", "queue/jobs", "--down", "r3", "--fallback-reads", "r1", "--after", "2")
SHOWN: Final = """\
[choices.fallback]
down = ["r3"]
after_s = 2
reads = "r1"
"""


def told(cluster: LocalCluster, *words: str) -> Any:
    return json.loads(run_at(cluster, *words, "--json")[1])


def has_fallen_back(cluster: LocalCluster) -> bool:
    configuration = told(cluster, "status")["configuration"]
    return not configuration["is_changing"] and configuration["fallbacks"] == {"queue/jobs": True}


def test_a_fallback_is_set_shown_and_kept_by_commands_that_change_something_else(
    running: LocalCluster, tmp_path: Path
) -> None:
    code, out, err = run_at(running, *SET)
    assert (code, out) == (0, "Configuration 2 is in force.\n"), err
    assert SHOWN in err, "the rule, for the cluster file"
    code, out, _ = run_at(running, "choice", "show", "queue/jobs")
    assert (code, SHOWN in out) == (0, True)
    assert out.startswith("# Its fallback is not in force; it is while r3 is down.\n[[choices]]\n")
    assert run_at(running, *SET)[1] == "Configuration 2 is in force.\n", "the same again changes nothing"
    running.kill("r3")
    until_now(lambda: has_fallen_back(running), "the fallback is in force")
    out = run_at(running, "choice", "show", "queue/jobs")[1]
    assert out.startswith("# Its fallback is in force while r3 is down.\n")
    assert "queue/jobs: its fallback is in force while r3 is down." in run_at(running, "status")[1]
    file = run_at(running, "configuration")[1]
    (rule,) = parse(file).standing_rules
    assert (rule.fallback, rule.has_fallen_back) == (Fallback(down=("r3",), after_s=2.0, reads="r1"), False)
    new = tmp_path / "new.toml"
    new.write_text(file)
    assert run_at(running, "change", str(new), "--dry-run")[:2] == (0, "Nothing would change.\n")
    new.write_text(file + '\n[[choices]]\nobjects = "*/more"\n')
    code, out, err = run_at(running, "change", str(new))
    assert (code, out) == (0, "Configuration 6 is in force.\n"), err
    assert has_fallen_back(running)
    code, out, err = run_at(running, *SET[:-1], "60")
    assert (code, out) == (0, "Configuration 8 is in force.\n"), err
    assert has_fallen_back(running), "the condition is the same"
    assert run_at(running, "choice", "set", "queue/jobs")[1] == "Configuration 10 is in force.\n"
    assert told(running, "status")["configuration"]["fallbacks"] == {}


def test_a_fallback_that_cannot_be_is_told_with_what_to_write(running: LocalCluster) -> None:
    wrong = (
        (("--fallback", "Enq=0,2"), 'fallback: give either down = ["r4"] or live_below = 4'),
        (("--down", "r9"), "fallback: down names r9, which is no member"),
        (("--down", "r3", "--fallback", "Enq=2"), "write CLASS=INITIAL,FINAL"),
        (("--down", "r3", "--fallback", "Enq=0,2", "--fallback", "Enq=0,3"), "give each class once"),
        (("--down", "r3", "--fallback", "Deq=1,1"), "fallback: "),
        (("--down", "r3", "--after", "1"), "after_s is 1: use 2 to 86400 seconds"),
        (("--live-below", "2"), "live_below is 2: fewer members than that hold no majority"),
        (("--down", "r3", "--fallback-reads", "r3"), "while r3 is down no fallback could be put in force"),
    )
    for words, expected in wrong:
        code, _, err = run_at(running, "choice", "set", "queue/jobs", *words)
        assert (code, expected in " ".join(err.split())) == (2, True), err
    code, _, err = run_at(running, "choice", "set", "queue/jobs", "--live-below", "3", "--dry-run")
    assert (code, "live_below = 3\nafter_s = 10\n" in err) == (0, True), err
    assert run_at(running, "choice", "set", "queue/jobs", "--down", "r3")[0] == 0
    code, _, err = run_at(running, "member", "remove", "r3")
    assert (code, "down names r3, which is no member" in " ".join(err.split())) == (2, True), err
