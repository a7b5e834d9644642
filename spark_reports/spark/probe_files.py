"""Reads a prober's samples from JSON lines, compressed or not, and from Parquet, into one form for Spark."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input import parquet_files
from .expressions import file_name, json_rows
from .jobs import literal_path, read_lines
from .probe_jobs import FIELDS


def read_samples(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Read samples (`probe_jobs.FIELDS`) from `.jsonl` files, also with `.gz`, and from files and folders of Parquet.

    Raises:
        ReportError: a Parquet file is not whole, or lacks a column.
    """
    lines = [path for path in paths if path.name.endswith((".jsonl", ".jsonl.gz"))]
    parts = [json_rows(read_lines(spark, lines), FIELDS)] if lines else []
    packed = [path for path in paths if path not in lines]
    return reduce(DataFrame.unionAll, parts + ([_read_parquet(spark, packed)] if packed else []))


def _read_parquet(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    for path in paths:
        parquet_files.check(path, parquet_files.PROBES, parquet_files.PROBES_OPTIONAL)
    rows = spark.read.parquet(*map(literal_path, paths))
    if "latency_s" not in rows.columns:
        rows = rows.withColumn("latency_s", F.lit(None))
    return rows.select(
        file_name().alias("source"),
        F.lit(None).cast("string").alias("line"),
        F.lit(True).alias("well_formed"),
        *[F.col(field.name).try_cast(field.dataType).alias(field.name) for field in FIELDS],
    )
