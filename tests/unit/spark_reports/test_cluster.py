"""The report on a standalone cluster: with `--master`, and under `spark-submit` with a zip of the package; by the commands that
docs/how-to/report-on-a-cluster.md states.

The executors' Python is `/bin/false`, so that whatever needed Python, or this package, on an executor would fail.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.model.errors import JavaMissing
from quorate.spark_reports.report import Options, make_report
from tests.docs.pages import ROOT, blocks_of
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.standalone import QUICKLY, bare_python, cluster, spark_program

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RUN_S = 900
PAGE = "docs/how-to/report-on-a-cluster.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured run with bad rows, and a prober's samples."""
    folder = measured_run.write_run(tmp_path_factory.mktemp("cluster") / "run", operations=100)
    measured_run.write_bad_rows(folder)
    start = measured_run.START_S
    samples = [
        {"replica": f"r{1 + i % 3}", "time_s": start + i // 3, "up": int(i % 50 > 4), "latency_s": None}
        for i in range(180)
    ]
    (folder / "probes.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in samples), encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster for the tests here."""
    try:
        with cluster(tmp_path_factory.mktemp("standalone") / "spark") as address:
            yield address
    except JavaMissing as missing:
        pytest.skip(str(missing))


def figures(folder: Path) -> dict[str, Any]:
    """The figures of a report, without what made them."""
    document: dict[str, Any] = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    document.pop("versions")
    return document


def assert_near(found: Any, expected: Any, place: str = "figures") -> None:
    """Equal, floats to 1e-12."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            assert_near(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for index, pair in enumerate(zip(found, expected, strict=True)):
            assert_near(*pair, f"{place}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15), place
    else:
        assert found == expected, place


def stated(block: int, **given: object) -> list[list[str]]:
    """The commands of a block of the page as words, with what is given put in place of its names in capitals."""
    text = blocks_of(PAGE, (ROOT / PAGE).read_text(encoding="utf-8"))[block].text
    for name, value in given.items():
        text = text.replace({"MASTER": "spark://HOST:7077"}.get(name, name), str(value))
    return [shlex.split(line, comments=True) for line in text.splitlines()]


def finished(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command to its end; what it wrote."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def assert_same_figures(out: Path, place: Path, adt: str | None = None) -> None:
    """A report has the figures of plain Python, which names another engine."""
    plain = out.with_name(f"{out.name}-plain")
    make_report(place, plain, Options(engine="python", adt=adt))
    found, expected = figures(out), figures(plain)
    assert found["source"].pop("engine") == "spark"
    assert_near(found, expected | {"source": {k: v for k, v in expected["source"].items() if k != "engine"}})


def test_with_a_master_the_command_gives_the_same_figures(run: Path, master: str, tmp_path: Path) -> None:
    out = tmp_path / "report"
    [[program, *arguments]] = stated(0, RUN=run, OUT=out, MASTER=master)
    assert (program, arguments[:1]) == ("quorate", ["report"])
    code = "from quorate.cli.main import main; main()"
    environment = os.environ | {"PYSPARK_PYTHON": "/bin/false", "JAVA_TOOL_OPTIONS": QUICKLY}
    finished([sys.executable, "-c", code, *arguments], environment)
    assert_same_figures(out, run)


def test_spark_submit_takes_a_zip_of_the_package(master: str, tmp_path: Path) -> None:
    """Of a trace: that a cluster works through all of a run, the test above shows."""
    out, trace = tmp_path / "report", tmp_path / "up.csv"
    trace.write_text("start_s,end_s,up\n0,10,a|b|c\n10,12,a\n12,14,\n14,30,a|b|c\n")
    package, [submit, *arguments] = stated(1, DIR=tmp_path / "package", RUN=trace, OUT=out, MASTER=master)
    assert (package[0], submit) == ("python", "spark-submit")
    finished([sys.executable, *package[1:]])
    python, environment = bare_python(tmp_path)
    without = [python, "-c", "import quorate.cli"]
    assert subprocess.run(without, env=environment, capture_output=True, check=False).returncode, (
        "the driver's Python must not see the checkout"
    )
    finished(
        [
            spark_program(submit),
            *("--driver-memory", "512m", "--conf", "spark.pyspark.python=/bin/false"),
            *("--conf", f"spark.pyspark.driver.python={python}"),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"),
            *(
                "--conf",
                "spark.sql.codegen.wholeStage=false",
            ),  # plans that run once; the test above compiles them
            *(
                "--conf",
                "spark.sql.codegen.factoryMode=NO_CODEGEN",
                "--conf",
                "spark.sql.adaptive.enabled=false",
            ),
            *(*arguments, "--type", "register"),
        ],
        environment | {"JAVA_TOOL_OPTIONS": QUICKLY},
    )
    assert_same_figures(out, trace, "register")


def test_a_master_that_is_not_there_is_an_error_that_names_it(run: Path, tmp_path: Path) -> None:
    code = "from quorate.cli.main import main; main()"
    arguments = ["report", "--input", str(run), "--out", str(tmp_path), "--master", "nonsense:1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 2
    assert "Spark does not start at nonsense:1" in done.stderr
