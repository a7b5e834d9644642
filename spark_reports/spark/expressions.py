"""Expressions of Spark that several jobs share, and a few rows of this process as a frame, without asking Python of any executor."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from ..model import contract
from ..model.period import ReportPeriod

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
    return spark.createDataFrame(arrow_table(rows, columns), columns)


def arrow_table(rows: Iterable[Sequence[Any]], columns: T.StructType) -> pyarrow.Table:
    """Give these rows the form of Arrow."""
    form = to_arrow_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(form)
    arrays = [pyarrow.array(own, field.type) for own, field in zip(values, form, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=form)


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


def shown_time(seconds: str) -> Column:
    """A time as `rows.shown_time` writes it: null for none."""
    shown = F.when(
        F.col(seconds).between(-contract.TIME_S_MAX, contract.TIME_S_MAX),
        microseconds(F.col(seconds)).cast("string"),
    )
    return F.when(F.col(seconds).isNotNull(), F.coalesce(shown, F.lit("?")))


def within(rows: DataFrame, period: ReportPeriod | None, seconds: str) -> DataFrame:
    """Give the rows whose time, in the column `seconds`, lies within the period; exactly those that `ReportPeriod.holds` lets pass."""
    if period is None:
        return rows
    time_us = microseconds(F.col(seconds))
    held = (time_us >= F.lit(period.start_us)) & (time_us < F.lit(period.end_us))
    return rows.where(F.col("well_formed") & plausible(seconds) & held)


def near(packed: DataFrame, period: ReportPeriod | None, seconds: str) -> DataFrame:
    """Give the rows of Parquet files that may lie within the period, by what Spark compares before it reads a row.

    Folders named `day=...` and row groups of other times are not read: the filter is on the columns as they are stored.
    """
    if period is None:
        return packed
    first_s, last_s = period.around_s
    found = packed.where(F.col(seconds).between(first_s, last_s))
    if ("day", "date") not in packed.dtypes:
        return found
    first, last = period.around_days
    return found.where(F.col("day").between(F.lit(first), F.lit(last)))


def first_reason(tests: Iterable[tuple[Column, str]]) -> Column:
    """The reason of the first test that holds, or null."""
    return F.coalesce(*[F.when(holds, F.lit(reason)) for holds, reason in tests])


def bin_of(time_us: Column, origin_us: int, width_us: int) -> Column:
    """Number the bin of a time; whole-number division, so that it is exact."""
    return F.call_function("div", time_us - F.lit(origin_us), F.lit(width_us)).cast("long")
