"""Puts a few rows of this process into Spark, without asking Python of any executor.

`SparkSession.createDataFrame` sends a list through a Python worker, on a cluster through one on the executors, which then
need a Python like the driver's. Rows in the form of Arrow go straight to Java.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark reader expects
from pyspark.sql.pandas.types import to_arrow_schema


def small_table(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: T.StructType) -> DataFrame:
    """Give a frame of these rows, each in the order of the schema's columns; there may be none."""
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(named, schema=to_arrow_schema(schema)), schema)
