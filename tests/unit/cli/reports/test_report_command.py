"""`quorate report`, run as a user runs it who has an export, and is in a hurry."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli import conftest
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.input.test_foreign import answer, series


def quorate(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command, in a hurry: `tests/unit/spark_reports/test_cluster.py` runs it with Spark."""
    return conftest.quorate(*words, cwd=cwd, QUORATE_REPORT_ENGINE="python")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Three replicas over an hour; two of them fail together for a quarter of it."""
    times = [60.0 * i for i in range(60)]
    down = [(time_s, "0" if 900 <= time_s < 1800 else "1") for time_s in times]
    up = [(time_s, "1") for time_s in times]
    return answer(tmp_path, series("a", *up), series("b", *down), series("c", *down))


def test_an_export_gives_a_report_with_one_command(export: Path, tmp_path: Path) -> None:
    done = quorate(
        "report",
        "--input",
        str(export),
        "--type",
        "queue",
        "--mix",
        "Enq=1,Deq=1",
        "--out",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Most of this mix is served by Enq (0, 1), Deq (3, 1): 87.50 %." in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "Enq (0, 1), Deq (3, 1) 100 % 75.00 % 87.50 %" in lines
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert done.stdout.endswith("  quorate choice set queue/NAME --advice out/figures.json\n")


def test_a_class_of_ones_own_is_answered_for(export: Path, tmp_path: Path) -> None:
    (tmp_path / "visits.py").write_text(
        "class Visits:\n"
        "    def __init__(self) -> None:\n"
        "        self.count = 0\n"
        "    def add(self, by: int) -> None:\n"
        "        self.count += by\n"
        "    def total(self) -> int:\n"
        "        return self.count\n"
    )
    words = ("report", "--input", str(export), "--type", "visits.py:Visits", "--mix", "add=9,total=1")
    done = quorate(*words, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "add (0, 1), total (3, 0) 100 % 75.00 % 97.50 %" in lines
    assert "Most of this mix is served by add (0, 1), total (3, 0): 97.50 %." in done.stdout
    assert "choice set" not in done.stdout, (
        "the service keeps objects of a class by quorums of Call and Blind"
    )


def test_programs_get_one_line(export: Path, tmp_path: Path) -> None:
    done = quorate(
        "report", "--input", str(export), "--type", "register", "--out", "out", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["figures"]).is_file()
    assert told["recommendations"][0]["adt"] == "register"
    assert told["notes"] == []
    assert told["commands"] == ["quorate choice set register/NAME --advice out/figures.json"]


def test_of_the_last_minutes(export: Path, tmp_path: Path) -> None:
    """The two replicas came up again in the 31st minute, which is the first of the last thirty."""
    words = ("report", "--input", str(export), "--type", "queue", "--mix", "Deq=1", "--out", "out")
    done = quorate(*words, "--last", "30m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert (figures["window"]["from_s"], figures["window"]["start_s"]) == (1740.000001, 1800)
    assert {row["up_share"] for row in figures["replicas"]} == {1}


MAJORITIES, OF_ALL = "Enq (0, 2), Deq (2, 2)", "Enq (0, 1), Deq (3, 1)"
WANTED = ("--input", "up.json", "--type", "queue", "--mix", "Enq=1,Deq=1")
OF_ONE = (*WANTED, "--present", OF_ALL)
"""A choice with which one replica stores an Enq, and all are asked for a Deq."""


def test_a_choice_in_force_that_changed_is_told_as_it_was(export: Path, tmp_path: Path) -> None:
    """Two of three replicas were down from 900 s to 1,800 s: with all asked for, and from 1,350 s on with two."""
    since = ("--since", f"1350={MAJORITIES}", "--since", f"9999={OF_ALL}")
    done = quorate("report", *OF_ONE, *since, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "The choice in force from 9999 s on is not in this report: the data ends at 3600 s."
        in done.stdout.splitlines()
    )
    assert (
        'For the queue, the choice in force changed once in this time: "Enq (0, 1), Deq (3, 1)" at first and "Enq (0, 2), Deq (2, 2)" from '
        "1350 s on." in done.stdout.splitlines()
    )
    rows = json.loads((tmp_path / "out" / "figures.json").read_text())["regimes"]
    assert [(row["choice"], row["to_s"], row["operation"], row["downtime_s"]) for row in rows] == [
        (OF_ALL, 1350, "Enq", 0),
        (OF_ALL, 1350, "Deq", 450),
        (MAJORITIES, 3600, "Enq", 450),
        (MAJORITIES, 3600, "Deq", 450),
    ]


def test_objectives_are_judged_by_each_choice_while_it_was_in_force(export: Path, tmp_path: Path) -> None:
    since = ("--since", f"1350={MAJORITIES}", "--slo", "Enq=80", "--slo", "Deq=80")
    done = quorate("report", *OF_ONE, *since, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    told = [line for line in done.stdout.splitlines() if line.startswith("SLO")]
    assert told == [
        "SLO Enq 80 % met: as it was, Enq would have been available 87.5 %; 62 % of the error budget of 12 min is spent, 4.5 min left.",
        "SLO Deq 80 % missed: as it was, Deq would have been available 75.0 %; 125 % of the error budget of 12 min is spent, overspent by 3 min.",
    ]


def test_of_a_measured_run_changes_cannot_be_told(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=10)
    words = ("--input", str(folder), "--present", "enq-1", "--since", "900=enq-2", "--out", "out")
    done = quorate("report", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "that is what run.json says of each object: leave it out" in done.stderr


@pytest.mark.parametrize(
    ("slo", "code", "line"),
    [
        (
            ("--slo", "Enq=75"),
            0,
            'SLO Enq 75 % met: with "Enq (0, 2), Deq (2, 2)", Enq would have been available 75.0 %; 100 % of the error budget of 15 min is spent, 0 s left.',
        ),
        (
            ("--slo", "Enq=90,Deq/Empty=70", "--slo", "Deq=75.1"),
            1,
            'SLO Enq 90 % missed: with "Enq (0, 2), Deq (2, 2)", Enq would have been available 75.0 %; 250 % of the error budget of 6 min is spent, overspent by 9 min.',
        ),
        (
            ("--slo", "Enq=90", "--present", "Enq (0, 1), Deq (3, 1)"),
            0,
            'For the queue, "Enq (0, 1), Deq (3, 1)" meets the objective, of 4 looked at.',
        ),
    ],
)
def test_the_exit_code_tells_whether_objectives_are_met(
    export: Path, tmp_path: Path, slo: tuple[str, ...], code: int, line: str
) -> None:
    words = ("report", "--input", str(export), "--type", "queue", "--mix", "Enq=1,Deq=1", "--out", "out")
    done = quorate(*words, *slo, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    assert line in done.stdout.splitlines()
    told = quorate(*words, *slo, "--json", cwd=tmp_path)
    assert told.returncode == code
    assert all(each["met"] for each in json.loads(told.stdout)["objectives"]) == (code == 0)


def test_a_measured_run_is_told_choice_by_choice(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=200)
    done = quorate("report", "--input", str(folder), "--engine", "python", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Making the report in plain Python" in done.stdout
    assert "enq-2 (run)" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--input", "nowhere"), "nowhere does not exist; give the folder of a measured run"),
        (
            ("--type", "queue"),
            "there is nothing to report on: give --input, --cluster, or --store and --cluster",
        ),
        (
            ("--store", "days", "--cluster", "shop", "--type", "queue"),
            "days keeps no day of the cluster shop; it has none yet",
        ),
        (("--input", "up.json"), "name one with --type: queue, register"),
        (("--input", "up.json", "--type", "heap"), "there is no data type 'heap'"),
        (("--input", "up.json", "--type", "heap.py:Heap"), "'heap.py' is not a file"),
        (("--input", "up.json", "--type", "queue", "--engine", "x"), "--engine x: use auto, spark, python"),
        (
            ("--input", "s3a://bucket/probes", "--type", "queue", "--engine", "python"),
            "s3a://bucket/probes is of a file system of Spark, which plain Python does not have: leave --engine python out",
        ),
        (("--input", "up.json", "--type", "queue", "--conf", "spark.x"), "--conf spark.x: write KEY=VALUE"),
        (
            ("--input", "up.json", "--type", "queue", "--engine", "auto", "--conf", "executor.memory=8g"),
            "--conf executor.memory is no setting of Spark; their names begin with spark.",
        ),
        (("--input", "up.json", "--type", "queue", "--votes", "a"), "--votes: 'a' is not NAME=VALUE"),
        (
            ("--input", "up.json", "--type", "queue", "--votes", "z=1"),
            "names 'z', of which the data says nothing",
        ),
        (("--input", "up.json", "--type", "queue", "--mix", "Pop=1"), "--mix names Pop"),
        (("--input", "up.json", "--type", "queue", "--mix", "Enq"), "write as Enq=1,Deq=1"),
        (
            ("--input", "up.json", "--type", "queue", "--label", "pod"),
            "has no label 'pod' (it has: instance, job)",
        ),
        (
            ("--input", "up.json", "--type", "queue", "--from", "monday"),
            "--from monday: write a date or time (UTC), as 2026-11-01 or 2026-11-30T12:00Z",
        ),
        (
            ("--input", "up.json", "--type", "queue", "--slo", "Pop=99"),
            "--slo names Pop, which nobody measured; there are queue: Enq, Deq, Peek, Size, Enq/Ok, Deq/Ok, Deq/Empty",
        ),
        (
            ("--input", "up.json", "--type", "queue", "--slo", "Enq=100"),
            "--slo: Enq=100: write a percentage above 0 and below 100",
        ),
        (("--input", "up.json", "--type", "queue", "--slo", "99.9"), "write as Enq=99.9,Deq=99"),
        (("--input", "up.json", "--type", "queue", "--slo", "Enq=9,Enq=8"), "Enq is given twice"),
        (
            ("--input", "up.json", "--type", "queue", "--present", "mine"),
            "--present names 'mine', which was not looked at; there are ",
        ),
        (
            (*OF_ONE, "--since", "monday=Enq (0, 2), Deq (2, 2)"),
            "--since monday=Enq (0, 2), Deq (2, 2): before the = write a date or time (UTC), as 2026-11-01",
        ),
        (
            (*OF_ONE, "--since", "900"),
            "--since 900: write TIME=CHOICE, as '2026-11-30T12:00Z=Enq (0, 3), Deq (3, 3)'",
        ),
        (
            (*OF_ONE, "--since", "900=mine"),
            "--since 900 s names 'mine', which was not looked at; there are Enq (0, 1), Deq (3, 1); ",
        ),
        (
            (*OF_ONE, "--since", "900=Enq (0, 2), Deq (2, 2)", "--since", "60=Enq (0, 1), Deq (3, 1)"),
            "--since 60 s comes after --since 900 s: give them in the order of time, each moment once",
        ),
        (
            ("--input", "up.json", "--type", "queue", "--since", "900=Enq (0, 2), Deq (2, 2)"),
            "--since 900 s says what was in force from then on: name the choice before it with --present",
        ),
        (("--input", "up.json", "--type", "queue", "--last", "30"), "--last: '30' is no duration"),
        (
            ("--input", "up.json", "--type", "queue", "--from", "0", "--last", "1h"),
            "leave one of them out",
        ),
        (
            ("--input", "up.json", "--type", "queue", "--from", "2026-11-01"),
            "up.json has nothing from 2026-11-01 00:00:00 UTC: it speaks of the time from 0 s to 3540.000001 s",
        ),
    ],
)
def test_a_wrong_command_line_gets_a_sentence(
    export: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    done = quorate("report", *words, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_report_that_finds_no_room_leaves_the_former_one_whole(export: Path, tmp_path: Path) -> None:
    words = ("report", "--input", str(export), "--type", "queue", "--out", "out")
    assert quorate(*words, cwd=tmp_path).returncode == 0
    files = [tmp_path / "out" / name for name in ("report.html", "figures.json")]
    before = [path.read_bytes() for path in files]
    # No file of more than 20 KiB can be written: tables are smaller, the page is not.
    limited = [
        "sh",
        "-c",
        'ulimit -f 40 && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "quorate.cli.main",
        *words,
    ]
    done = subprocess.run(
        limited,
        cwd=tmp_path,
        env=os.environ | {"QUORATE_REPORT_ENGINE": "python"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "out cannot be written" in done.stderr
    assert [path.read_bytes() for path in files] == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "figures.json", "tables"}
