"""Marking duplicates on Spark: what is bad already does not gather in one task. `test_engine` holds the rest equal to plain Python."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_bad_rows_are_spread_however_alike_they_are(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from quorate.spark_reports.spark import jobs  # noqa: PLC0415

    torn = spark.range(200).select(
        F.lit("operations.jsonl").alias("source"),
        F.lit("{").alias("line"),
        F.lit("malformed JSON").alias("reason"),
        *[F.lit(None).cast(field.dataType).alias(field.name) for field in jobs.GOOD],
    )
    marked = jobs.mark_duplicates(torn)
    tasks = (
        marked.groupBy(F.spark_partition_id()).agg(F.count("*"), F.min("reason"), F.max("reason")).collect()
    )
    assert sum(task[1] for task in tasks) == 200
    assert max(task[1] for task in tasks) < 150
    assert {word for task in tasks for word in task[2:]} == {"malformed JSON"}, (
        "and none is called a duplicate"
    )
