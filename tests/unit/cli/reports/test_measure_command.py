"""`quorate measure`: what it says before and after a run. Runs themselves: tests/unit/measurement/run/test_measured_runs.py."""

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from quorate.cli import app, main
from quorate.cli.reports.measure_command import _cluster, outcome_rows
from quorate.measurement.plan.plan_check import parse_plan
from tests.unit.cli.conftest import quorate, quorate_here

PLAN = """
[time]
duration = "1d"
scale = 3600
[cluster]
replicas = 3
[[planned]]
at = "6h"
for = "3h"
replicas = ["r2"]
kind = "cut"
[[workloads]]
type = "queue"
rates = { Enq = 4, Deq = 2 }
[[workloads.choices]]
name = "majorities"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan of 24 s."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_dry_run_shows_what_will_fail_and_what_is_measured(plan: Path, tmp_path: Path) -> None:
    done = quorate("measure", "plan.toml", "--dry-run", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6.0 s" in done.stdout
    assert "6h for 3h" in done.stdout
    assert "queue: Enq 4/s, Deq 2/s on each of majorities, 49 items in each at the start" in done.stdout
    assert (
        "Faults: 1. Load: 6 operations a second from 2 front ends, 144 in all; 24s of real time"
        in done.stdout
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "sentence"), [("often", "is no duration"), ("10ms", "rows are written every 1 s")]
)
def test_rows_are_not_rotated_more_often_than_they_are_written(plan: Path, text: str, sentence: str) -> None:
    done = quorate_here("measure", str(plan), "--dry-run", "--rotate", text)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_dry_run_answers_a_program_too(plan: Path, tmp_path: Path) -> None:
    done = quorate("measure", "plan.toml", "--dry-run", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (told["length_s"], told["operations_per_s"], told["partings"]) == (24, 6, [])
    (outage,) = told["outages"]
    assert outage == {"replica": "r2", "kind": "cut", "start_s": 6, "end_s": 9, "cause": "planned 1"}


def test_a_folder_that_holds_something_is_left_alone(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("x")
    done = quorate("measure", "plan.toml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "run is not empty; nothing was changed. Name a new folder with --out." in done.stderr


def test_a_folder_that_cannot_be_one_is_told_in_a_sentence(plan: Path, tmp_path: Path) -> None:
    done = quorate("measure", "plan.toml", "--out", "plan.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "plan.toml cannot be used as a folder: it is a file. Name another with --out." in done.stderr


def test_a_plan_that_is_not_there_or_not_right_is_told_in_a_sentence(plan: Path, tmp_path: Path) -> None:
    done = quorate("measure", "none.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "The plan none.toml cannot be read: No such file or directory." in done.stderr
    plan.write_text(PLAN.replace('"r2"', '"r7"'))
    done = quorate("measure", "plan.toml", "--json", cwd=tmp_path)
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["error"] == "plan.toml: planned 1, replicas: there is no 'r7'; known are r1, r2, r3"


def test_outcomes_are_tabled_by_choice_and_operation() -> None:
    outcomes = Counter({("b", "Enq", "ok"): 3, ("a", "Enq", "unknown"): 1, ("b", "Enq", "unavailable"): 2})
    assert outcome_rows(outcomes) == [
        {"choice": "a", "operation": "Enq", "ok": 0, "unavailable": 0, "unknown": 1},
        {"choice": "b", "operation": "Enq", "ok": 3, "unavailable": 2, "unknown": 0},
    ]


def test_whoever_interrupts_the_start_can_use_the_folder_again(tmp_path: Path) -> None:
    """What fails otherwise keeps the replicas' logs."""
    story = Console(file=io.StringIO())
    plan = parse_plan(PLAN, "plan.toml")
    with pytest.raises(KeyboardInterrupt), _cluster(story, plan, tmp_path, keep=False):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="a reason"), _cluster(story, plan, tmp_path, keep=False):
        raise ValueError("a reason")
    assert len(list(tmp_path.iterdir())) == 1


def test_an_interrupt_while_the_command_is_read_in_ends_it_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
