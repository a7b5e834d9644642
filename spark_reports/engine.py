"""Runs the Spark jobs over a measured run, in order, and brings their small results to the driver.

The parsed rows are written to Parquet once and read back for every aggregate: the text is parsed a single time, and
whoever wants to ask further questions finds the same tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from quorate.spark_reports import aggregates as tables
from quorate.spark_reports import jobs, trace_jobs
from quorate.spark_reports.contract import Choices, RunFiles, never_observed_together
from quorate.spark_reports.errors import ReportError

Row = TypeVar("Row", bound=NamedTuple)

JOIN_BINS_MIN = 256
JOIN_BINS_MAX = 1 << 20


def aggregate(spark: SparkSession, files: RunFiles, choices: Choices, parquet_dir: Path) -> tables.Aggregates:
    """Boil a run down on Spark, leaving `operations`, `intervals`, `up_sets` and `rejected` in `parquet_dir`.

    Raises:
        ReportError: Spark could not read a file, or the replicas are never all observed at the same time.
    """
    with _spark_errors(files):
        stored = _store(spark, files, choices, parquet_dir)
        operations, intervals, up_sets, rejected = stored
        trace = _first(jobs.time_range(up_sets))
        if not trace["rows"]:
            raise never_observed_together(files)
        seen = [_first(jobs.time_range(part)) for part in (operations, intervals)]
        span = tables.Span(
            min(row["start_us"] for row in seen if row["rows"]),
            max(row["end_us"] for row in seen if row["rows"]),
        )
        bins = max(JOIN_BINS_MIN, min(JOIN_BINS_MAX, trace["rows"]))
        live = jobs.count_live(
            operations,
            up_sets,
            origin_us=trace["start_us"],
            width_us=(trace["end_us"] - trace["start_us"]) // bins + 1,
        )
        return tables.Aggregates(
            span=span,
            up_changes=trace["rows"],
            bins=_collect(jobs.count_bins(operations, span), tables.BinCount),
            classes=_collect(jobs.count_classes(operations), tables.ClassCount),
            live=_collect(live, tables.LiveCount),
            latencies=_collect(jobs.latency_quantiles(operations), tables.Latency),
            replicas=_collect(trace_jobs.replica_times(intervals), tables.ReplicaTime),
            up_sets=_collect(trace_jobs.up_set_times(up_sets), tables.UpSetTime),
            shortages=_collect(
                trace_jobs.shortages(up_sets, trace_jobs.needed_table(spark, choices)), tables.Shortage
            ),
            down_bins=_collect(trace_jobs.down_bins(intervals, span), tables.DownBin),
            rejected=_collect(jobs.rejected_counts(rejected), tables.Rejected),
        )


def _store(
    spark: SparkSession, files: RunFiles, choices: Choices, parquet_dir: Path
) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    operation_lines = jobs.read_lines(spark, files.operations)
    parsed = jobs.parse_operations(
        operation_lines, jobs.choice_table(spark, choices), list(choices.votes)
    ).persist()
    interval_lines = jobs.read_lines(spark, [files.replicas])
    timed = trace_jobs.parse_intervals(interval_lines, trace_jobs.replica_table(spark, choices)).persist()
    intervals = jobs.good_rows(timed)
    contents = {
        "operations": jobs.good_rows(parsed),
        "intervals": intervals,
        "up_sets": trace_jobs.joint_up_sets(intervals, len(choices.votes)),
        "rejected": jobs.rejected_rows(parsed).unionAll(jobs.rejected_rows(timed)),
    }
    for name, frame in contents.items():
        frame.write.mode("overwrite").parquet(f"file://{parquet_dir.absolute() / name}")
    parsed.unpersist()
    timed.unpersist()
    back = [
        spark.read.schema(frame.schema).parquet(jobs.literal_path(parquet_dir / name))
        for name, frame in contents.items()
    ]
    return back[0], back[1], back[2], back[3]


def versions(spark: SparkSession) -> dict[str, str]:
    """Give the versions of Spark and of the Java it runs on."""
    java = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()
    return {"spark": spark.version, "java": str(java[0]) if java else "unknown"}


def _first(frame: DataFrame) -> dict[str, Any]:
    row = frame.first()
    assert row is not None, "an aggregate without groups has one row"
    return row.asDict()


def _collect(frame: DataFrame, row_type: type[Row]) -> tuple[Row, ...]:
    """Bring a grouped result to the driver, in the order of its columns (None first)."""
    names = row_type._fields
    rows = [row_type(*row) for row in frame.select(*names).collect()]
    return tuple(sorted(rows, key=tables.sort_key))


@contextmanager
def _spark_errors(files: RunFiles) -> Iterator[None]:
    """Turn what Spark raises into a sentence; its own message, many pages long, stays the cause."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        summary = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        raise ReportError(
            f"Spark could not work through {files.replicas.parent} ({summary}); check that its files are whole, and "
            "that the output folder can be written"
        ) from error
