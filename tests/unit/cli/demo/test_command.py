"""The demo, smaller: the whole way on real processes, twice killed, and the files that it leaves."""

import json
from pathlib import Path

import pytest

from quorate.cli.demo.load import OBJECTS
from quorate.spark_reports.report import Options, make_report
from tests.unit.cli.conftest import quorate

TIMEOUT_S = 400
"""Spark alone takes a minute or two where other tests keep the cores busy."""


@pytest.mark.slow
@pytest.mark.spark
def test_demo_loses_nothing_and_leaves_a_report(tmp_path: Path) -> None:
    done = quorate("demo", "--out", "run", "--operations", "400", "--json", cwd=tmp_path, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert told["problems"] == []
    assert '[Deq(); Ok("y")]' in done.stderr
    assert "r2 is killed" in done.stderr
    assert "r3 is back" in done.stderr
    assert {row["choice"] for row in told["outcomes"]} == set(OBJECTS.values())
    # With one of three down, nobody can reach all three.
    all_three = next(
        row for row in told["outcomes"] if (row["choice"], row["operation"]) == ("enq3-deq1", "Enq")
    )
    assert all_three["answered_some_down"] < 1
    run = tmp_path / "run"
    assert Path(told["report"]).read_text().startswith("<!")
    assert not list(run.glob("cluster-*"))
    again = make_report(run, tmp_path / "again", Options(engine="python"))
    assert json.loads(again.json.read_text())["rejected"] == []
