"""Which files of a folder are new, each exactly once, as Spark's Structured Streaming tells it; and of which time their rows are.

Spark writes down which files a batch has before anybody works on it, and that it is done after. A batch that was cut off comes again, with
the same files. Whoever takes a batch must therefore be able to take it twice.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..model.errors import ReportError
from .engine import spark_errors
from .expressions import NUMBER, json_rows, microseconds, plausible, schema
from .jobs import literal_path

NAMES: Final = "{operations,operations*[^~],probes,probes*[^~]}.jsonl{,.gz}"
"""The files that are taken: those that a report reads, but for one whose name ends in `~` before `.jsonl`, which is still written to."""

_NAME: Final = re.compile(r"(operations|probes)(.*[^~])?\.jsonl(\.gz)?")
"""The same for Python."""

FILES_MAX: Final = 1000
"""So many files are one batch at most."""

BATCH_S: Final = 600
"""Where no batch was done for so long, Spark is given up."""

TIMES: Final = schema(time_s=NUMBER, start_s=NUMBER)
"""When a probe was sent, and when an operation began."""


class Arrival(NamedTuple):
    """A new file: the rows that say a time, and the first and last time (microseconds) that they say."""

    name: str
    bytes: int
    rows: int
    first_us: int
    last_us: int


def whole_files(place: Path) -> dict[str, int]:
    """The files of a folder that are taken, with their sizes."""
    found: dict[str, int] = {}
    for path in place.iterdir():
        if _NAME.fullmatch(path.name):
            with suppress(FileNotFoundError):  # somebody moved it away meanwhile
                found[path.name] = path.stat().st_size
    return found


class _Stopped(Exception):
    """Nobody takes a further batch."""


class Round:
    """One look at a folder: all files that are new then, batch by batch. `folds` takes the files of a batch."""

    def __init__(
        self, spark: SparkSession, place: Path, checkpoint: Path, folds: Callable[[list[Arrival]], None]
    ) -> None:
        self._spark: Final = spark
        self._place: Final = place
        self._checkpoint: Final = checkpoint
        self._folds: Final = folds
        self._batches = 0
        self._error: Exception | None = None

    def run(self, stop: Event) -> None:
        """Take all batches; once `stop` is set, none but the one that is under way.

        Raises:
            ReportError: Spark could not read a file or write the checkpoint, or no batch was done for `BATCH_S`; or as `folds` does.
        """
        with spark_errors(self._place, self._place.glob("*.jsonl*")):
            try:
                self._run(stop)
            except Exception:
                if isinstance(self._error, _Stopped):
                    return
                if self._error is not None:  # Spark would only say that the function of ours failed
                    raise self._error from None
                raise

    def _run(self, stop: Event) -> None:
        lines = self._spark.readStream.options(pathGlobFilter=NAMES, maxFilesPerTrigger=FILES_MAX).text(
            literal_path(self._place)
        )
        named = lines.select("_metadata.file_name", "_metadata.file_size", F.col("value").alias("line"))
        writer = named.writeStream.trigger(availableNow=True).foreachBatch(
            lambda batch, _: self._fold(batch, stop)
        )
        query = writer.option("checkpointLocation", self._checkpoint.absolute().as_uri()).start()
        batches = -1
        while not query.awaitTermination(BATCH_S):
            if self._batches == batches:
                query.stop()
                raise ReportError(
                    f"{self._place}: a batch of at most {FILES_MAX} files took more than {BATCH_S} s; write smaller files, or give Spark "
                    "more with --master and --driver-memory"
                )
            batches = self._batches

    def _fold(self, batch: DataFrame, stop: Event) -> None:
        try:
            if stop.is_set():
                raise _Stopped
            self._folds(_arrivals(batch))
            self._batches += 1
        except Exception as error:
            self._error = error
            raise


def _arrivals(batch: DataFrame) -> list[Arrival]:
    """The files of a batch of lines; those without any time are left out, for no row of theirs is of any time."""
    rows = json_rows(batch, TIMES).withColumn("time", F.coalesce("time_s", "start_s"))
    time_us = microseconds(F.col("time"))
    files = rows.where(plausible("time")).groupBy("file_name", "file_size")
    spans = files.agg(F.count(F.lit(1)), F.min(time_us), F.max(time_us))
    return sorted(Arrival(*row) for row in spans.collect())
