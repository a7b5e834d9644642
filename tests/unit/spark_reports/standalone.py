"""A standalone Spark cluster on loopback: a master and a worker, from pyspark's own classes, ended by process id."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.spark_reports.spark.session import java_home

DEADLINE_S = 120.0
QUICKLY = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=400m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""The quick compiler, as `quorate report` has it for so small an input; the others as the shared session has them."""
LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def spark_program(name: str) -> str:
    """The path of `spark-class` or `spark-submit`."""
    import pyspark  # noqa: PLC0415 - collecting the tests must not need Spark

    return str(Path(pyspark.__file__).parent / "bin" / name)


@contextmanager
def cluster(folder: Path, *, python: str = "/bin/false") -> Iterator[str]:
    """Run a master and a worker with two cores and 1 GiB to give; give the master's address.

    Args:
        folder: for logs, and for the worker's files.
        python: what executors would run, did a job need Python there.
    """
    folder.mkdir()
    (folder / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    environment = kept | {
        "JAVA_HOME": str(java_home(folder)),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "JAVA_TOOL_OPTIONS": QUICKLY,  # executors inherit it
    }
    master = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    ]
    worker = [
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        "127.0.0.1",
        "--cores",
        "2",
        "--webui-port",
        "0",
    ]
    worker += ["--memory", "1g", "--work-dir", str(folder / "work")]
    with _running(master, environment, folder / "master.log") as first:
        address = _said(
            first, folder / "master.log", r"Starting Spark master at (spark://127\.0\.0\.1:[1-9]\d*)"
        )
        with _running([*worker, address], environment, folder / "worker.log") as second:
            _said(second, folder / "worker.log", r"(Successfully registered with master)")
            yield address


@contextmanager
def _running(
    arguments: list[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            [spark_program("spark-class"), *arguments], env=environment, stdout=file, stderr=file
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Wait until a log has a line of this form; give its group."""
    deadline = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{pattern} was not said:\n{log.read_text(errors='replace')[-3000:]}")


def bare_python(folder: Path) -> tuple[str, dict[str, str]]:
    """A Python with this one's packages, but without the checkout; and the environment that it needs."""
    program = folder / "python"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8"
    )  # no .pth file is read
    program.chmod(0o755)
    import pyspark  # noqa: PLC0415

    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    return str(program), kept | {"PYTHONPATH": str(Path(pyspark.__file__).parent.parent)}
