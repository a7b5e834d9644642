"""Reads a prober's samples from Parquet, JSON lines or CSV, compressed or not, into one form for Spark."""

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812

from ..input import parquet_files, probes
from ..model import contract
from ..model.errors import ReportError
from .jobs import JSON_OPTIONS, literal_path, read_lines
from .probe_jobs import SAMPLE_SCHEMA

_FIELDS: Final = T.StructType([SAMPLE_SCHEMA[name] for name in probes.FIELDS])
_WRAPPED_SCHEMA: Final = T.StructType(
    [T.StructField("rows", T.ArrayType(_FIELDS)), T.StructField("corrupt", T.StringType())]
)


def read_samples(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Read samples (`SAMPLE_SCHEMA`) from files and folders in any order and mixture.

    Args:
        spark: the session to read with.
        paths: `.jsonl` and `.csv` files, each also with `.gz`; `.parquet` files, and folders of them.

    Raises:
        ReportError: there is no path, one has another ending, or a Parquet file lacks a column.
    """
    kinds: dict[Callable[[SparkSession, list[Path]], DataFrame], list[Path]] = {}
    for path in paths:
        kinds.setdefault(_reader_of(path), []).append(path)
    if not kinds:
        raise ReportError("no file of probes was given; name at least one")
    return reduce(DataFrame.unionAll, [read(spark, own) for read, own in kinds.items()])


def _reader_of(path: Path) -> Callable[[SparkSession, list[Path]], DataFrame]:
    name = path.name.removesuffix(".gz")
    if path.is_dir() or name.endswith(".parquet"):
        return _read_parquet
    if name.endswith(".jsonl"):
        return _read_json
    if name.endswith(".csv"):
        return _read_csv
    raise ReportError(f"{path} is no file of probes; they end in .jsonl, .csv (both also .gz) or .parquet")


def _read_parquet(spark: SparkSession, paths: list[Path]) -> DataFrame:
    for path in paths:
        parquet_files.check(path, parquet_files.PROBES, parquet_files.PROBES_OPTIONAL)
    rows = spark.read.parquet(*map(literal_path, paths))
    # Not `_metadata.file_name`: once asked for, Spark makes it for every row, also where nobody looks at it.
    source = F.element_at(F.split(F.input_file_name(), "/"), -1)
    latency_s = F.col("latency_s") if "latency_s" in rows.columns else F.lit(None)
    return rows.select(
        source.alias("source"),
        F.lit(None).cast("string").alias("line"),
        F.lit(None).cast("string").alias("malformed"),
        F.col("replica").cast("string").alias("replica"),
        F.col("time_s").try_cast("double").alias("time_s"),
        F.col("up").try_cast("double").alias("up"),
        latency_s.try_cast("double").alias("latency_s"),
    )


def _read_json(spark: SparkSession, paths: list[Path]) -> DataFrame:
    # Wrapped into an array: Spark reads the first object of a line, and drops what follows without a word.
    wrapped = F.concat(F.lit('{"rows":['), F.col("line"), F.lit("]}"))
    lines = read_lines(spark, paths).withColumn("parsed", F.from_json(wrapped, _WRAPPED_SCHEMA, JSON_OPTIONS))
    one_object = (
        F.trim("line").startswith("{")
        & F.trim("line").endswith("}")
        & F.col("parsed.corrupt").isNull()
        & (F.size("parsed.rows") == 1)
    )
    malformed = F.when(F.coalesce(one_object, F.lit(False)), F.lit(None)).otherwise(contract.MALFORMED_JSON)
    row = F.get("parsed.rows", F.lit(0))
    return lines.select(
        "source", "line", malformed.alias("malformed"), *[row[name].alias(name) for name in probes.FIELDS]
    )


def _read_csv(spark: SparkSession, paths: list[Path]) -> DataFrame:
    headers = [",".join(probes.FIELDS[:count]) for count in (3, 4)]
    part = F.split(F.trim("line"), ",", -1)
    text = {name: F.trim(F.get(part, F.lit(index))) for index, name in enumerate(probes.FIELDS)}
    lines = read_lines(spark, paths).where(~F.trim("line").isin(headers))
    fields = lines.select(
        "source", "line", F.size(part).alias("parts"), *[each.alias(name) for name, each in text.items()]
    )
    numbers = {name: _number(name) for name in probes.FIELDS[1:]}
    no_latency = F.coalesce(F.col("latency_s"), F.lit("")) == ""
    good = (
        F.col("parts").isin(3, 4)
        & numbers["time_s"].isNotNull()
        & numbers["up"].isNotNull()
        & (no_latency | numbers["latency_s"].isNotNull())
    )
    malformed = F.when(good, F.lit(None)).otherwise(contract.MALFORMED_CSV)
    return fields.select(
        "source",
        "line",
        malformed.alias("malformed"),
        "replica",
        *[each.alias(name) for name, each in numbers.items()],
    )


def _number(column: str) -> Column:
    return F.when(F.col(column).rlike(contract.NUMBER_PATTERN), F.col(column).cast("double"))
