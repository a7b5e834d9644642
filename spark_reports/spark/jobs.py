"""The Spark side of a report: from the lines of a measured run to small aggregates.

All functions but `read_*` and `*_table` take and give DataFrames and know no session. Every row is parsed, tested and
aggregated by Spark's built-in expressions; no Python runs per row, and only grouped results reach the driver.
`probe_jobs` finds up and down intervals in probes, `outcome_jobs` lays operations over what replicas did.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812

from ..input import parquet_files
from ..model import contract
from ..model.aggregates import EXAMPLE_CHARS, QUANTILE_ACCURACY, QUANTILES
from ..model.period import ReportPeriod
from ..model.places import Place, uri_of
from ..model.quorum_choices import Choice
from ..model.run_document import Run
from .expressions import (
    FLAG,
    LONG,
    NUMBER,
    TEXT,
    TEXTS,
    file_name,
    first_reason,
    microseconds,
    near,
    plausible,
    schema,
    shown_time,
    small_table,
)

OPERATION: Final = schema(
    object=TEXT,
    adt=TEXT,
    operation=TEXT,
    event_class=TEXT,
    choice=TEXT,
    front_end=TEXT,
    start_s=NUMBER,
    latency_s=NUMBER,
    outcome=TEXT,
    answered=TEXTS,
)
"""One operation as it stands in `operations.jsonl`."""

READ: Final = T.StructType([*schema(source=TEXT, line=TEXT, well_formed=FLAG), *OPERATION])
"""An operation as read, before it is tested: from JSON lines or from Parquet."""

GOOD: Final = T.StructType([*OPERATION, *schema(start_us=LONG, latency_us=LONG, end_us=LONG)])
"""A good operation."""


def read_lines(spark: SparkSession, paths: Sequence[Place]) -> DataFrame:
    """Read text files (`.gz` too) as columns `source` (name of the file) and `line`; blank lines are no rows."""
    lines = spark.read.text([literal_path(path) for path in paths])
    named = lines.select(F.col("_metadata.file_name").alias("source"), F.col("value").alias("line"))
    return named.where(F.trim("line") != "")


def literal_path(path: Place) -> str:
    """Write a path so that Spark does not take its characters for a pattern."""
    special = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})
    return uri_of(path).translate(special)


def choice_table(spark: SparkSession, choices: Sequence[Choice]) -> DataFrame:
    """Give one row per quorum choice that was run."""
    columns = schema(choice=TEXT, choice_adt=TEXT, choice_operations=TEXTS, choice_classes=TEXTS)
    rows = [
        (each.name, each.adt, list(each.operations), [cls.event_class for cls in each.classes])
        for each in choices
    ]
    return small_table(spark, rows, columns)


def object_table(spark: SparkSession, run: Run) -> DataFrame:
    """Give one row per object of run.json."""
    return small_table(spark, run.objects_by_key.items(), schema(object_key=TEXT, object_choice=TEXT))


def read_packed_operations(
    spark: SparkSession, folder: Place, period: ReportPeriod | None = None
) -> DataFrame:
    """Read a folder of Parquet files as `READ`; with a period, those rows that may lie within it.

    Raises:
        ReportError: a file is not whole, lacks a column or has one of another form.
    """
    whole = parquet_files.check(folder, parquet_files.OPERATIONS)
    stored = {field.name: LONG if field.name in whole else field.dataType for field in OPERATION}
    packed = near(spark.read.schema(schema(**stored)).parquet(literal_path(folder)), period, "start_s")
    return operations_from_parquet(packed.select([F.col(f.name).cast(f.dataType) for f in OPERATION]))


def operations_from_parquet(rows: DataFrame) -> DataFrame:
    """Give rows of Parquet (`OPERATION`) the form of parsed lines; they have no text (`_text`)."""
    return rows.select(
        file_name().alias("source"),
        F.lit(None).cast("string").alias("line"),
        F.lit(True).alias("well_formed"),
        *OPERATION.names,
    )


def _text() -> Column:
    """The text of an operation; where it came from Parquet, its fields in words."""
    texts = [field.name for field in OPERATION if field.dataType == TEXT]
    words = [F.coalesce(F.col(name), F.lit("")) for name in texts]
    words += [F.coalesce(shown_time(name), F.lit("")) for name in ("start_s", "latency_s")]
    return F.coalesce("line", F.concat_ws(",", *words, _answered()))


def _answered() -> Column:
    """The replicas that answered, in words: all in which the texts of two rows of Parquet that are otherwise alike can differ."""
    return F.coalesce(F.array_join("answered", "|", null_replacement=""), F.lit(""))


def test_operations(read: DataFrame, choices: DataFrame, objects: DataFrame, run: Run) -> DataFrame:
    """Test operations as read.

    Args:
        read: `READ`.
        choices: `choice_table`.
        objects: `object_table`.
        run: whose replicas, front ends and window there are.

    Returns:
        The rows with `reason` (null for a good row), `start_us`, `end_us` and `latency_us` (null for a bad row).
    """
    keyed = read.withColumn("object_key", F.substring_index("object", "/", 2))
    known = keyed.join(F.broadcast(choices), "choice", "left").join(
        F.broadcast(objects), "object_key", "left"
    )
    tested = known.withColumn("reason", _operation_reason(run))
    good = F.col("reason").isNull()
    start_us = F.when(good, microseconds(F.col("start_s")))
    latency_us = F.when(good, microseconds(F.col("latency_s")))
    return tested.select(
        "source",
        "line",
        "reason",
        *OPERATION.names,
        start_us.alias("start_us"),
        latency_us.alias("latency_us"),
        (start_us + latency_us).alias("end_us"),
    )


def mark_duplicates(tested: DataFrame) -> DataFrame:
    """Keep one row of each front end, object, operation and start, as `rows.without_duplicates` says; bad rows are like no other."""
    alike = F.coalesce("start_us", -1 - F.monotonically_increasing_id())
    event_class = F.coalesce("event_class", F.lit(""))
    preference = ("latency_us", "outcome", event_class, "choice", "source", "line", _answered())
    same = Window.partitionBy("front_end", "object", "operation", "alike").orderBy(*preference)
    ranked = tested.withColumn("alike", alike).withColumn("rank", F.row_number().over(same))
    duplicate = F.when(F.col("rank") > 1, F.lit(contract.DUPLICATE))
    return ranked.withColumn("reason", F.coalesce("reason", duplicate)).drop("alike", "rank")


def _operation_reason(run: Run) -> Column:
    """Give the first reason to keep a row aside, or null."""
    is_ok = F.col("outcome") == "ok"
    event_class = F.col("event_class")
    known = F.array(*[F.lit(replica) for replica in run.votes])
    foreign_class = ~F.array_contains("choice_classes", event_class) | (
        F.substring_index(event_class, "/", 1) != F.col("operation")
    )
    tests = [
        (~F.col("well_formed"), contract.MALFORMED_JSON),
        *((F.col(name).isNull(), contract.MISSING_FIELD + name) for name in contract.OPERATION_FIELDS),
        (~F.col("outcome").isin(*contract.OUTCOMES), contract.UNKNOWN_OUTCOME),
        (F.col("choice_adt").isNull(), contract.UNKNOWN_CHOICE),
        (F.col("choice_adt") != F.col("adt"), contract.OTHER_ADT),
        (F.col("object_choice").isNull(), contract.UNKNOWN_OBJECT),
        (F.col("object_choice") != F.col("choice"), contract.OTHER_CHOICE),
        (~F.col("front_end").isin(*run.front_ends), contract.UNKNOWN_FRONT_END),
        (~F.array_contains("choice_operations", F.col("operation")), contract.UNKNOWN_OPERATION),
        (~is_ok & event_class.isNotNull(), contract.CLASS_WITHOUT_OK),
        (is_ok & event_class.isNull(), contract.CLASS_MISSING),
        (event_class.isNotNull() & foreign_class, contract.UNKNOWN_CLASS),
        (~plausible("start_s"), contract.BAD_START),
        (~plausible("latency_s"), contract.BAD_LATENCY),
        (F.size(F.array_except("answered", known)) > 0, contract.UNKNOWN_ANSWER),
    ]
    if run.window is not None:
        start_us = microseconds(F.col("start_s"))
        within = (start_us >= run.window.start_us) & (start_us < run.window.end_us)
        tests.append((~within, contract.OUTSIDE_WINDOW))
    return first_reason(tests)


def good_rows(parsed: DataFrame) -> DataFrame:
    """Give the rows without a reason, without the text they came from (`GOOD`)."""
    return parsed.where(F.col("reason").isNull()).drop("reason", "line", "source")


def rejected_operations(parsed: DataFrame) -> DataFrame:
    """Give the rows kept aside: `kind`, `source`, `reason`, `line`."""
    return parsed.where(F.col("reason").isNotNull()).select(
        F.lit(contract.OPERATIONS).alias("kind"), "source", "reason", _text().alias("line")
    )


def rejected_counts(rejected: DataFrame) -> DataFrame:
    """Count rows kept aside by `kind`, `source` and `reason`, each with an example (`rollups.Aside`)."""
    example = F.substring(F.min("line"), 1, EXAMPLE_CHARS)
    return rejected.groupBy("kind", "source", "reason").agg(
        F.count("*").alias("rows"), example.alias("example")
    )


def groups_of(operations: DataFrame) -> DataFrame:
    """Sum up operations by choice, operation, event class and outcome (`rollups.Group`): latency quantiles, first and last start."""
    quantiles = F.percentile_approx("latency_s", list(QUANTILES), QUANTILE_ACCURACY)
    grouped = operations.groupBy("choice", "operation", "event_class", "outcome").agg(
        F.count("*").alias("operations"),
        quantiles.alias("quantiles"),
        F.min("start_us").alias("first_us"),
        F.max("start_us").alias("last_us"),
    )
    names = ("p50_s", "p90_s", "p99_s", "max_s")
    return grouped.select("*", *[F.col("quantiles")[index].alias(name) for index, name in enumerate(names)])
