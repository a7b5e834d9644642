"""Reads a prober's samples from JSON lines, compressed or not, and from Parquet, into one form for Spark."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input import parquet_files
from ..model.aggregates import Span, microseconds
from ..model.period import ReportPeriod
from ..model.places import Place
from .expressions import file_name, json_rows, near, plausible, within
from .jobs import literal_path, read_lines
from .probe_jobs import FIELDS


def read_samples(
    spark: SparkSession, paths: Sequence[Place], period: ReportPeriod | None = None
) -> DataFrame:
    """Read samples (`probe_jobs.FIELDS`) from `.jsonl` files, also with `.gz`, and from files and folders of Parquet.

    With a period, those that were sent within it.

    Raises:
        ReportError: a Parquet file is not whole, or lacks a column.
    """
    lines = [path for path in paths if path.name.endswith((".jsonl", ".jsonl.gz"))]
    parts = [json_rows(read_lines(spark, lines), FIELDS)] if lines else []
    packed = [path for path in paths if path not in lines]
    every = reduce(DataFrame.unionAll, parts + ([_read_parquet(spark, packed, period)] if packed else []))
    return within(every, period, "time_s")


def _read_parquet(spark: SparkSession, paths: Sequence[Place], period: ReportPeriod | None) -> DataFrame:
    for path in paths:
        parquet_files.check(path, parquet_files.PROBES, parquet_files.PROBES_OPTIONAL)
    rows = near(spark.read.parquet(*map(literal_path, paths)), period, "time_s")
    if "latency_s" not in rows.columns:
        rows = rows.withColumn("latency_s", F.lit(None))
    return rows.select(
        file_name().alias("source"),
        F.lit(None).cast("string").alias("line"),
        F.lit(True).alias("well_formed"),
        *[F.col(field.name).try_cast(field.dataType).alias(field.name) for field in FIELDS],
    )


def known(samples: DataFrame) -> Span | None:
    """From the first sample to the last; None where no time can be told."""
    timed = samples.where(F.col("well_formed") & plausible("time_s"))
    row = timed.agg(F.min("time_s"), F.max("time_s")).first()
    if row is None or row[0] is None:
        return None
    return Span(microseconds(row[0]), microseconds(row[1]) + 1)
