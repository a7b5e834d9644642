"""Expressions of Spark that several jobs share, and a few rows of this process as a frame, without asking Python of any executor."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from ..model import contract

TEXT: Final = T.StringType()
TEXTS: Final = T.ArrayType(TEXT)
NUMBER: Final = T.DoubleType()
LONG: Final = T.LongType()
INT: Final = T.IntegerType()
FLAG: Final = T.BooleanType()

JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
"""How a line of JSON is read: strictly, and a bad one is no error."""


def schema(**columns: T.DataType) -> T.StructType:
    """A schema of these columns, in order."""
    return T.StructType([T.StructField(name, kind) for name, kind in columns.items()])


def small_table(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: T.StructType) -> DataFrame:
    """Give a frame of these rows, each in the order of the columns; there may be none.

    `SparkSession.createDataFrame` sends a list through a Python worker, on a cluster through one on the executors, which then
    need a Python like the driver's. Rows in the form of Arrow go straight to Java.
    """
    named = [dict(zip(columns.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(named, schema=to_arrow_schema(columns)), columns)


def json_rows(lines: DataFrame, row: T.StructType) -> DataFrame:
    """Parse the column `line` of each of `lines`: adds whether it is `well_formed`, one JSON object, and the fields of `row`."""
    # A line is wrapped into an array, because Spark reads the first object of a line and drops what follows without
    # a word: two records run together by a torn write would become one.
    wrapped = F.concat(F.lit('{"rows":['), F.col("line"), F.lit("]}"))
    parsed = lines.withColumn(
        "parsed", F.from_json(wrapped, schema(rows=T.ArrayType(row), corrupt=TEXT), JSON_OPTIONS)
    )
    one_object = (
        F.trim("line").startswith("{")
        & F.trim("line").endswith("}")
        & F.col("parsed.corrupt").isNull()
        & (F.size("parsed.rows") == 1)
    )
    return parsed.select(
        *lines.columns,
        F.coalesce(one_object, F.lit(False)).alias("well_formed"),
        F.get("parsed.rows", F.lit(0)).alias("row"),
    ).select(*lines.columns, "well_formed", "row.*")


def file_name() -> Column:
    """The name of the file that a row of Parquet comes from.

    Not `_metadata.file_name`: once asked for, Spark makes it for every row, also where nobody looks at it.
    """
    return F.element_at(F.split(F.input_file_name(), "/"), -1)


def microseconds(seconds: Column) -> Column:
    """Round seconds to whole microseconds exactly as `aggregates.microseconds` does."""
    return F.floor(seconds * F.lit(1e6) + F.lit(0.5)).cast("long")


def plausible(seconds: str) -> Column:
    """Whether a column holds times that can be meant."""
    return F.col(seconds).between(0.0, contract.TIME_S_MAX)


def first_reason(tests: Iterable[tuple[Column, str]]) -> Column:
    """The reason of the first test that holds, or null."""
    return F.coalesce(*[F.when(holds, F.lit(reason)) for holds, reason in tests])


def by_bin(intervals: DataFrame, name: str, origin_us: int, width_us: int) -> DataFrame:
    """Put each interval into every bin that it touches, whose number is in the column `name`."""
    first = bin_of(F.col("start_us"), origin_us, width_us)
    last = bin_of(F.col("end_us") - 1, origin_us, width_us)
    return intervals.withColumn(name, F.explode(F.sequence(first, last)))


def bin_of(time_us: Column, origin_us: int, width_us: int) -> Column:
    """Number the bin of a time; whole-number division, so that it is exact."""
    return F.call_function("div", time_us - F.lit(origin_us), F.lit(width_us)).cast("long")


def between_changes(intervals: DataFrame, keys: Sequence[str], amounts: Sequence[str]) -> DataFrame:
    """Give each stretch between two moments at which an interval starts or ends, with sums over the intervals that cover it.

    Each interval adds its amounts at its start and takes them away at its end; the sums are running sums over the sorted
    moments, which must all be in one partition for each value of the keys.

    Args:
        intervals: the keys, `start_us`, `end_us`, and the amounts.
        keys: intervals that differ in them have nothing to do with one another.
        amounts: the columns to sum.

    Returns:
        The keys, `start_us`, `end_us` and the sums, under the names of the amounts.
    """
    edges = [
        intervals.select(
            *keys,
            F.col(edge).alias("time_us"),
            *[(F.lit(sign) * F.col(name)).alias(name) for name in amounts],
        )
        for edge, sign in (("start_us", 1), ("end_us", -1))
    ]
    changes = [F.sum(name).alias(name) for name in amounts]
    moments = reduce(DataFrame.unionAll, edges).groupBy(*keys, "time_us").agg(*changes)
    in_time = Window.partitionBy(*keys).orderBy("time_us")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = moments.select(
        *keys,
        F.col("time_us").alias("start_us"),
        F.lead("time_us").over(in_time).alias("end_us"),
        *[F.sum(name).over(so_far).alias(name) for name in amounts],
    )
    return running.where(F.col("end_us").isNotNull())


def period_totals(length_us: str) -> list[Column]:
    """Number, sum and maximum of the lengths of periods, in the columns of `aggregates.Outage`."""
    return [
        F.count("*").alias("periods"),
        F.sum(length_us).alias("total_us"),
        F.max(length_us).alias("longest_us"),
    ]
