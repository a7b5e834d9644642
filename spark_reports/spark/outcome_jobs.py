"""The Spark side of a report: operations laid over what their front ends saw, and outages as operations saw them."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input.rows import Interval
from ..reference.trace import Period, UpSet
from .expressions import FLAG, INT, LONG, TEXT, bin_of, schema, small_table

INTERVAL: Final = schema(front_end=TEXT, replica=TEXT, start_us=LONG, end_us=LONG, up=INT)
"""One good interval of a replica (`front_end` empty), or of the way from a front end to it."""

UP_SET: Final = schema(view=TEXT, start_us=LONG, end_us=LONG, up=LONG)
PERIOD: Final = schema(
    view=TEXT, system=INT, start_us=LONG, end_us=LONG, changed_before=FLAG, changed_after=FLAG
)


def interval_table(spark: SparkSession, intervals: Iterable[Interval]) -> DataFrame:
    """Give intervals the form of a table (`INTERVAL`)."""
    return small_table(spark, map(attrgetter(*INTERVAL.names), intervals), INTERVAL)


def up_set_table(spark: SparkSession, up_sets: Iterable[UpSet]) -> DataFrame:
    """Give up-sets the form of a table (`UP_SET`)."""
    return small_table(spark, map(attrgetter(*UP_SET.names), up_sets), UP_SET)


def period_table(spark: SparkSession, deciders: Mapping[int, Mapping[str, Sequence[Period]]]) -> DataFrame:
    """Give the periods of each view and system that decides (`PERIOD`)."""
    rows = (
        (view, system, each.start_us, each.end_us, each.changed_before, each.changed_after)
        for system, views in deciders.items()
        for view, periods in views.items()
        for each in periods
    )
    return small_table(spark, rows, PERIOD)


def view_table(spark: SparkSession, views: Mapping[str, str]) -> DataFrame:
    """Give the view of each front end."""
    return small_table(spark, views.items(), schema(front_end=TEXT, view=TEXT))


def decider_table(spark: SparkSession, run_systems: Mapping[tuple[str, str], int]) -> DataFrame:
    """Give the quorum system that decides about each operation that was tried."""
    rows = [(*pair, system) for pair, system in run_systems.items()]
    return small_table(spark, rows, schema(choice=TEXT, operation=TEXT, system=INT))


def with_view(operations: DataFrame, views: DataFrame, deciders: DataFrame) -> DataFrame:
    """Add to each operation the `view` of its front end and the `system` that decides about it."""
    return operations.join(F.broadcast(views), "front_end").join(
        F.broadcast(deciders), ["choice", "operation"]
    )


def count_starts(
    operations: DataFrame,
    up_sets: DataFrame,
    periods: DataFrame,
    *,
    lag_us: int,
    origin_us: int,
    width_us: int,
) -> DataFrame:
    """Count operations by choice, operation, outcome, the up-set at their start, and whether a change was near.

    A join on "start lies within the interval" alone would compare every operation with every interval. Both sides are
    therefore cut into bins of equal width first, so that only neighbours meet; an interval stands in each bin that it
    touches.

    Args:
        operations: `with_view`.
        up_sets: `UP_SET`, disjoint within a view.
        periods: `PERIOD`.
        lag_us: how near a change must be.
        origin_us: where bins begin, at or before the first interval.
        width_us: width of a bin, about the mean length of an interval.
    """
    started = operations.select(
        "choice",
        "operation",
        "outcome",
        "view",
        "system",
        F.col("start_us").alias("at_us"),
        F.col("end_us").alias("done_us"),
        bin_of(F.col("start_us"), origin_us, width_us).alias("piece"),
    )
    sets, states = _pieces(up_sets, origin_us, width_us), _pieces(periods, origin_us, width_us)
    within = (F.col("at_us") >= F.col("start_us")) & (F.col("at_us") < F.col("end_us"))
    placed = _left(started, sets, ["view", "piece"], within).drop("start_us", "end_us")
    decided = _left(placed, states, ["view", "system", "piece"], within)
    near = (F.col("changed_before") & (F.col("at_us") - F.col("start_us") < lag_us)) | (
        F.col("changed_after") & (F.col("done_us") + lag_us > F.col("end_us"))
    )
    counted = decided.withColumn("near", F.coalesce(near, F.lit(False)))
    return counted.groupBy("choice", "operation", "outcome", "up", "near").agg(
        F.count("*").alias("operations")
    )


def _pieces(intervals: DataFrame, origin_us: int, width_us: int) -> DataFrame:
    """Put each interval into every bin that it touches."""
    first = bin_of(F.col("start_us"), origin_us, width_us)
    last = bin_of(F.col("end_us") - 1, origin_us, width_us)
    return intervals.withColumn("piece", F.explode(F.sequence(first, last)))


def _left(left: DataFrame, right: DataFrame, keys: list[str], within: Column) -> DataFrame:
    """Join on equal keys and a condition besides, keeping every row of the left side once."""
    renamed = right.withColumnsRenamed({key: f"right_{key}" for key in keys})
    condition = within
    for key in keys:
        condition = condition & (F.col(key) == F.col(f"right_{key}"))
    return left.join(renamed, condition, "left").drop(*[f"right_{key}" for key in keys])


def seen_outages(operations: DataFrame) -> DataFrame:
    """Give the runs of attempts that were not answered, of each choice and operation, whoever made them.

    Only the rows at which the outcome turns are kept; a run lasts from its first failed attempt to the next answered one,
    or to the end of the last failed one. Where attempts of one moment ended differently, somebody was answered.
    """
    keys = ("choice", "operation")
    ok = F.col("outcome") == "ok"
    in_time = Window.partitionBy(*keys).orderBy("start_us", ok)
    turns = F.coalesce(F.lag(ok).over(in_time) != ok, F.lit(True))
    ended_us = F.max(F.when(~ok, F.col("end_us"))).over(Window.partitionBy(*keys))
    marked = operations.select(
        *keys, "start_us", ok.alias("ok"), turns.alias("turns"), ended_us.alias("ended_us")
    )
    turned = marked.where("turns")
    next_us = F.lead("start_us").over(Window.partitionBy(*keys).orderBy("start_us", "ok"))
    runs = (
        turned.withColumn("next_us", next_us)
        .where("NOT ok AND coalesce(next_us > start_us, true)")
        .withColumn("length_us", F.coalesce("next_us", "ended_us") - F.col("start_us"))
    )
    return runs.groupBy(*keys).agg(
        F.count("*").alias("periods"),
        F.sum("length_us").alias("total_us"),
        F.max("length_us").alias("longest_us"),
    )
