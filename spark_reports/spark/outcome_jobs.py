"""The Spark side of a report: operations laid over what their front ends saw, and outages as operations saw them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..model.aggregates import Span
from ..model.days import Days
from ..reference.seen_outages import Stretch
from ..reference.trace import Period
from .expressions import FLAG, INT, LONG, TEXT, bin_of, schema, small_table

INTERVAL: Final = schema(front_end=TEXT, replica=TEXT, start_us=LONG, end_us=LONG, up=INT)
"""One good interval of a replica (`front_end` empty), or of the way from a front end to it."""

UP_SET: Final = schema(view=TEXT, start_us=LONG, end_us=LONG, up=LONG)
PERIOD: Final = schema(
    view=TEXT, system=INT, start_us=LONG, end_us=LONG, changed_before=FLAG, changed_after=FLAG
)


class Pieces(NamedTuple):
    """Time cut into pieces of equal width, from before all of it on."""

    origin_us: int
    width_us: int


def pieces_of(start_us: int, end_us: int, number: int) -> Pieces:
    """Cut a time, with both its ends, into so many pieces."""
    return Pieces(start_us, (end_us - start_us) // number + 1)


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


def count_attempts(
    operations: DataFrame,
    up_sets: DataFrame,
    periods: DataFrame,
    *,
    lag_us: int,
    pieces: Pieces,
    span: Span,
    days: Days,
) -> DataFrame:
    """Count operations by choice, operation and outcome: by bin of the timeline and day of their start, and by `up` and `near`.

    `up` is the up-set at the start, and `near` whether a change was. Of each row either bin and day are null, or `near` is: one pass
    over the operations gives both tables, and `rollups` what is made of them.

    A join on "start lies within the interval" alone would compare every operation with every interval. Both sides are
    therefore cut into pieces of equal width first, so that only neighbours meet; an interval stands in each piece that it
    touches.

    Args:
        operations: `with_view`.
        up_sets: `UP_SET`, disjoint within a view.
        periods: `PERIOD`.
        lag_us: how near a change must be.
        pieces: where pieces begin and how wide they are.
        span: the window, with its bins.
        days: the days.
    """
    started = operations.select(
        "choice",
        "operation",
        "outcome",
        "view",
        "system",
        F.col("start_us").alias("at_us"),
        F.col("end_us").alias("done_us"),
        bin_of(F.col("start_us"), span.start_us, span.bin_us).alias("bin"),
        bin_of(F.col("start_us"), days.origin_us, days.length_us).alias("day"),
        bin_of(F.col("start_us"), *pieces).alias("piece"),
    )
    sets, states = _pieces(up_sets, pieces), _pieces(periods, pieces)
    within = (F.col("at_us") >= F.col("start_us")) & (F.col("at_us") < F.col("end_us"))
    placed = _left(started, sets, ["view", "piece"], within).drop("start_us", "end_us")
    decided = _left(placed, states, ["view", "system", "piece"], within)
    near = (F.col("changed_before") & (F.col("at_us") - F.col("start_us") < lag_us)) | (
        F.col("changed_after") & (F.col("done_us") + lag_us > F.col("end_us"))
    )
    counted = decided.withColumn("near", F.coalesce(near, F.lit(False)))
    keys = ["choice", "operation", "outcome"]
    by_time, by_state = [*keys, "bin", "day"], [*keys, "up", "near"]
    return counted.groupingSets([by_time, by_state], *keys, "bin", "day", "up", "near").agg(
        F.count("*").alias("operations")
    )


def _pieces(intervals: DataFrame, pieces: Pieces) -> DataFrame:
    """Put each interval into every piece that it touches."""
    first, last = bin_of(F.col("start_us"), *pieces), bin_of(F.col("end_us") - 1, *pieces)
    return intervals.withColumn("piece", F.explode(F.sequence(first, last)))


def _left(left: DataFrame, right: DataFrame, keys: list[str], within: Column) -> DataFrame:
    """Join on equal keys and a condition besides, keeping every row of the left side once."""
    renamed = right.withColumnsRenamed({key: f"right_{key}" for key in keys})
    condition = within
    for key in keys:
        condition = condition & (F.col(key) == F.col(f"right_{key}"))
    return left.join(renamed, condition, "left").drop(*[f"right_{key}" for key in keys])


STRETCH: Final = ("choice", "operation", "stretch")


def walked(operations: DataFrame, pieces: Pieces) -> DataFrame:
    """Go through the attempts of each choice and operation in the order of time, a stretch at a time.

    Gives `STRETCH`, `start_us`, `end_us`, `ok`, and by what came before in the stretch: `before`, whether the attempt before was
    answered; `after_answer`, whether any was; `begins`, the start of an attempt that an outage begins with; `since_us`, the last
    of these up to here.

    Attempts are never put in order all in one place: a task holds one stretch of one choice and operation at a time.

    Args:
        operations: `GOOD`.
        pieces: the stretches.
    """
    rows = operations.select(
        "choice",
        "operation",
        bin_of(F.col("start_us"), *pieces).alias("stretch"),
        "start_us",
        "end_us",
        (F.col("outcome") == "ok").alias("ok"),
    )
    in_time = Window.partitionBy(*STRETCH).orderBy("start_us", "ok")
    answered = F.max("ok").over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    placed = rows.withColumns(
        {"before": F.lag("ok").over(in_time), "after_answer": F.coalesce(answered, F.lit(False))}
    )
    begins = F.when(~F.col("ok") & F.coalesce("before", F.lit(True)), F.col("start_us"))
    return placed.withColumns({"begins": begins, "since_us": F.last(begins, ignorenulls=True).over(in_time)})


def stretches(walked: DataFrame) -> DataFrame:
    """Boil each stretch down to one row (`STRETCH` and `seen_outages.Stretch`), for `rollups.seen` to join."""
    ok, start_us, since_us = F.col("ok"), F.col("start_us"), F.col("since_us")
    closes = ok & ~F.col("before") & F.col("after_answer") & (since_us < start_us)
    length_us = F.when(closes, start_us - since_us)
    told = walked.groupBy(*STRETCH).agg(
        F.min(F.when(F.col("before").isNull(), F.col("begins"))).alias("leading_us"),
        F.min(F.when(ok, start_us)).alias("answered_us"),
        F.count(length_us).alias("periods"),
        F.coalesce(F.sum(length_us), F.lit(0)).alias("total_us"),
        F.coalesce(F.max(length_us), F.lit(0)).alias("longest_us"),
        F.max("begins").alias("begun_us"),
        F.max(F.when(ok, start_us)).alias("last_ok_us"),
        F.max(F.when(~ok, F.col("end_us"))).alias("ended_us"),
    )
    is_open = F.col("last_ok_us").isNull() | (F.col("begun_us") > F.col("last_ok_us"))
    return told.withColumn("open_us", F.when(is_open, F.col("begun_us"))).select(*STRETCH, *Stretch._fields)
