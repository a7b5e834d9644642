"""The Spark side of a report: from the lines of a measured run to small aggregates.

All functions but `read_lines` and the two `*_table` ones take and give DataFrames and know no session. Every row is
parsed, tested and aggregated by Spark's built-in expressions; no Python runs per row and only grouped results reach
the driver. `quorate.spark_reports.trace_jobs` does the same for the up and down intervals.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812

from quorate.spark_reports import contract
from quorate.spark_reports.aggregates import EXAMPLE_CHARS, QUANTILE_ACCURACY, QUANTILES, Span

OPERATION_SCHEMA: Final = T.StructType(
    [
        T.StructField("object", T.StringType()),
        T.StructField("adt", T.StringType()),
        T.StructField("operation", T.StringType()),
        T.StructField("event_class", T.StringType()),
        T.StructField("choice", T.StringType()),
        T.StructField("front_end", T.StringType()),
        T.StructField("start_s", T.DoubleType()),
        T.StructField("latency_s", T.DoubleType()),
        T.StructField("outcome", T.StringType()),
        T.StructField("answered", T.ArrayType(T.StringType())),
    ]
)
"""One operation as it stands in `operations.jsonl`."""

CHOICE_SCHEMA: Final = T.StructType(
    [
        T.StructField("choice", T.StringType(), nullable=False),
        T.StructField("choice_adt", T.StringType(), nullable=False),
        T.StructField("choice_operations", T.ArrayType(T.StringType()), nullable=False),
        T.StructField("choice_classes", T.ArrayType(T.StringType()), nullable=False),
    ]
)

_WRAPPED_SCHEMA: Final = T.StructType(
    [T.StructField("rows", T.ArrayType(OPERATION_SCHEMA)), T.StructField("corrupt", T.StringType())]
)
JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
"""How a line of JSON is read: strictly, and a bad one is no error."""


def read_lines(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Read text files (`.gz` too) as columns `source` (name of the file) and `line`; blank lines are no rows."""
    lines = spark.read.text([literal_path(path) for path in paths])
    named = lines.select(F.col("_metadata.file_name").alias("source"), F.col("value").alias("line"))
    return named.where(F.trim("line") != "")


def literal_path(path: Path) -> str:
    """Write a path so that Spark does not take its characters for a pattern."""
    special = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})
    return "file://" + str(path.absolute()).translate(special)


def choice_table(spark: SparkSession, choices: contract.Choices) -> DataFrame:
    """Give one row per quorum choice (`CHOICE_SCHEMA`)."""
    rows = []
    for name in dict.fromkeys(c.choice for c in choices.classes):
        own = [c for c in choices.classes if c.choice == name]
        rows.append((name, own[0].adt, [c.operation for c in own], [c.event_class for c in own]))
    return spark.createDataFrame(rows, CHOICE_SCHEMA)


def parse_operations(lines: DataFrame, choices: DataFrame, replicas: Sequence[str]) -> DataFrame:
    """Parse and test lines of operations.

    Args:
        lines: `source` and `line`.
        choices: `CHOICE_SCHEMA`.
        replicas: the known ones.

    Returns:
        The lines with `OPERATION_SCHEMA`, `reason` (null for a good row), `start_us` and `end_us` (null for a bad
        row), in microseconds.
    """
    # A line is wrapped into an array, because Spark reads the first object of a line and drops what follows without
    # a word: two records run together by a torn write would become one.
    wrapped = F.concat(F.lit('{"rows":['), F.col("line"), F.lit("]}"))
    parsed = lines.withColumn("parsed", F.from_json(wrapped, _WRAPPED_SCHEMA, JSON_OPTIONS))
    one_object = (
        F.trim("line").startswith("{")
        & F.trim("line").endswith("}")
        & F.col("parsed.corrupt").isNull()
        & (F.size("parsed.rows") == 1)
    )
    flat = parsed.select(
        "source",
        "line",
        F.coalesce(one_object, F.lit(False)).alias("well_formed"),
        F.get("parsed.rows", F.lit(0)).alias("row"),
    ).select("source", "line", "well_formed", "row.*")
    tested = flat.join(F.broadcast(choices), "choice", "left").withColumn(
        "reason", _operation_reason(replicas)
    )
    good = F.col("reason").isNull()
    start_us = F.when(good, microseconds(F.col("start_s")))
    return tested.select(
        "source",
        "line",
        "reason",
        *OPERATION_SCHEMA.fieldNames(),
        start_us.alias("start_us"),
        (start_us + F.when(good, microseconds(F.col("latency_s")))).alias("end_us"),
    )


def _operation_reason(replicas: Sequence[str]) -> Column:
    """Give the first reason to keep a row aside, or null."""
    is_ok = F.col("outcome") == "ok"
    event_class = F.col("event_class")
    known = F.array(*[F.lit(replica) for replica in replicas])
    foreign_class = ~F.array_contains("choice_classes", event_class) | (
        F.substring_index(event_class, "/", 1) != F.col("operation")
    )
    tests = [
        (~F.col("well_formed"), contract.MALFORMED_JSON),
        *((F.col(name).isNull(), contract.MISSING_FIELD + name) for name in contract.OPERATION_FIELDS),
        (~F.col("outcome").isin(*contract.OUTCOMES), contract.UNKNOWN_OUTCOME),
        (F.col("choice_adt").isNull(), contract.UNKNOWN_CHOICE),
        (F.col("choice_adt") != F.col("adt"), contract.OTHER_ADT),
        (~F.array_contains("choice_operations", F.col("operation")), contract.UNKNOWN_OPERATION),
        (~is_ok & event_class.isNotNull(), contract.CLASS_WITHOUT_OK),
        (is_ok & event_class.isNull(), contract.CLASS_MISSING),
        (event_class.isNotNull() & foreign_class, contract.UNKNOWN_CLASS),
        (~F.col("start_s").between(0.0, contract.TIME_S_MAX), contract.BAD_START),
        (~F.col("latency_s").between(0.0, contract.TIME_S_MAX), contract.BAD_LATENCY),
        (F.size(F.array_except("answered", known)) > 0, contract.UNKNOWN_ANSWER),
    ]
    return F.coalesce(*[F.when(holds, F.lit(reason)) for holds, reason in tests])


def microseconds(seconds: Column) -> Column:
    """Round seconds to whole microseconds exactly as `aggregates.microseconds` does."""
    return F.floor(seconds * F.lit(1e6) + F.lit(0.5)).cast("long")


def good_rows(parsed: DataFrame) -> DataFrame:
    """Give the rows without a reason, without the text they came from."""
    return parsed.where(F.col("reason").isNull()).drop("reason", "line", "source")


def rejected_rows(parsed: DataFrame) -> DataFrame:
    """Give the rows kept aside: `source`, `reason`, `line`."""
    return parsed.where(F.col("reason").isNotNull()).select("source", "reason", "line")


def rejected_counts(rejected: DataFrame) -> DataFrame:
    """Count rows kept aside by `source` and `reason`, each with an example."""
    example = F.substring(F.min("line"), 1, EXAMPLE_CHARS)
    return rejected.groupBy("source", "reason").agg(F.count("*").alias("rows"), example.alias("example"))


def time_range(intervals: DataFrame) -> DataFrame:
    """Give `start_us` and `end_us`, the first start and last end, and the number of `rows`, in one row."""
    return intervals.agg(
        F.min("start_us").alias("start_us"), F.max("end_us").alias("end_us"), F.count("*").alias("rows")
    )


def bin_of(time_us: Column, origin_us: int, width_us: int) -> Column:
    """Number the bin of a time; whole-number division, so that it is exact."""
    return F.call_function("div", time_us - F.lit(origin_us), F.lit(width_us)).cast("long")


def count_bins(operations: DataFrame, span: Span) -> DataFrame:
    """Count outcomes by choice, operation and timeline bin of the start."""
    started = operations.withColumn("bin", bin_of(F.col("start_us"), span.start_us, span.bin_us))
    counts = [F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in contract.OUTCOMES]
    return started.groupBy("choice", "operation", "bin").agg(*counts)


def count_classes(operations: DataFrame) -> DataFrame:
    """Count by choice, operation, outcome and event class."""
    return operations.groupBy("choice", "operation", "outcome", "event_class").agg(
        F.count("*").alias("operations")
    )


def latency_quantiles(operations: DataFrame) -> DataFrame:
    """Give latency quantiles in seconds, by choice, operation and outcome."""
    quantiles = F.percentile_approx("latency_s", list(QUANTILES), QUANTILE_ACCURACY)
    grouped = operations.groupBy("choice", "operation", "outcome").agg(
        F.count("*").alias("operations"), quantiles.alias("quantiles")
    )
    names = ("p50_s", "p90_s", "p99_s", "max_s")
    columns = [F.col("quantiles")[index].alias(name) for index, name in enumerate(names)]
    return grouped.select("choice", "operation", "outcome", "operations", *columns)


def count_live(operations: DataFrame, up_sets: DataFrame, *, origin_us: int, width_us: int) -> DataFrame:
    """Count operations by choice, operation, whether they were ok, and the votes live when they started.

    A join on "start lies within the interval" alone would compare every operation with every interval. Both sides are
    therefore cut into bins of equal width first, so that only neighbours meet; an interval stands in each bin that it
    touches.

    Args:
        operations: with `start_us`.
        up_sets: disjoint intervals `start_us`, `end_us`, `live_votes`.
        origin_us: where bins begin, at or before the first interval.
        width_us: width of a bin, about the mean length of an interval.
    """
    last_us = F.greatest(F.col("end_us") - 1, F.col("start_us"))
    touched = F.sequence(bin_of(F.col("start_us"), origin_us, width_us), bin_of(last_us, origin_us, width_us))
    pieces = up_sets.select(
        F.explode(touched).alias("piece"),
        F.col("start_us").alias("from_us"),
        F.col("end_us").alias("until_us"),
        "live_votes",
    )
    started = operations.select(
        "choice",
        "operation",
        (F.col("outcome") == "ok").alias("ok"),
        "start_us",
        bin_of(F.col("start_us"), origin_us, width_us).alias("piece"),
    )
    within = (F.col("start_us") >= F.col("from_us")) & (F.col("start_us") < F.col("until_us"))
    joined = started.join(pieces, (started["piece"] == pieces["piece"]) & within, "left")
    return joined.groupBy("choice", "operation", "ok", "live_votes").agg(F.count("*").alias("operations"))
