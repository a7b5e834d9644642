"""Outages as operations saw them, on Spark: in stretches of time they are those of the whole, and no task holds all attempts."""

import random
import re
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports.input.rows import Operation
from quorate.spark_reports.reference import reference
from quorate.spark_reports.reference.seen_outages import Stretch
from quorate.spark_reports.reference.trace import in_order
from quorate.spark_reports.spark import rollups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OUTCOMES = ("ok", "unavailable", "unknown")


def attempts(rng: random.Random, choice: str, number: int) -> list[Operation]:
    """Attempts of one choice, of which many begin in the same microsecond."""
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    return [
        Operation(
            object="queue/q",
            choice=choice,
            operation=rng.choice(["Enq", "Deq"]),
            event_class=None,
            front_end="c1",
            outcome="ok" if rng.random() < share else rng.choice(OUTCOMES),
            start_us=rng.randint(100, 160),
            latency_us=rng.randint(0, 12),
            latency_s=0.0,
        )
        for _ in range(number)
    ]


def table(spark: "SparkSession", operations: list[Operation]) -> "DataFrame":
    from quorate.spark_reports.spark import expressions as ex  # noqa: PLC0415

    columns = ex.schema(choice=ex.TEXT, operation=ex.TEXT, outcome=ex.TEXT, start_us=ex.LONG, end_us=ex.LONG)
    rows = [(op.choice, op.operation, op.outcome, op.start_us, op.end_us) for op in operations]
    return ex.small_table(spark, rows, columns)


def test_outages_from_stretches_are_those_that_plain_python_sees(spark: "SparkSession") -> None:
    """Each choice is an example of its own. Stretches of 7 us, so that outages reach over many, and answers lie at edges."""
    from quorate.spark_reports.spark.outcome_jobs import Pieces, stretches, walked  # noqa: PLC0415

    rng = random.Random(5)
    every = [op for i in range(120) for op in attempts(rng, f"choice-{i}", rng.randint(1, 24))]
    found = stretches(walked(table(spark, every), Pieces(100, 7))).collect()
    assert len(found) > 500
    seen = in_order(rollups.seen((*row[:3], Stretch(*row[3:])) for row in found))
    assert seen == in_order(reference._seen(every))
    assert len(seen) > 100


def test_no_task_holds_all_attempts_of_a_choice(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from quorate.spark_reports.spark.outcome_jobs import Pieces, stretches, walked  # noqa: PLC0415

    every = [op for op in attempts(random.Random(1), "only", 400) if op.operation == "Enq"]
    in_place = walked(table(spark, every).repartition(3), Pieces(100, 2))
    tasks = in_place.groupBy(F.spark_partition_id()).agg(F.count("*"), F.max("since_us")).collect()
    rows = [task[1] for task in tasks]
    assert sum(rows) == len(every)
    assert max(rows) < 0.7 * len(every)
    plan = stretches(in_place)._jdf.queryExecution().executedPlan().toString()
    shuffles = re.findall(r"hashpartitioning\(([^)]*)\)", plan)
    assert len(shuffles) == 1, "what leaves a stretch is not handed round again"
    assert "stretch#" in shuffles[0]
