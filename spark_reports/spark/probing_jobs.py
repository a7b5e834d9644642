"""The Spark side of a report: what a prober made of each replica, against the truth; `probing` says what is meant."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from .expressions import between_changes


def segments(true: DataFrame, seen: DataFrame) -> DataFrame:
    """Lay truth and view side by side: `replica`, `start_us`, `end_us`, `true`, `seen` (1, 0 or null)."""
    amounts = ("true_known", "true_up", "seen_known", "seen_up")
    own = [
        rows.select(
            "replica", "start_us", "end_us", F.lit(1).alias(f"{name}_known"), F.col("up").alias(f"{name}_up")
        )
        for name, rows in (("true", true), ("seen", seen))
    ]
    both = own[0].unionByName(own[1], allowMissingColumns=True).fillna(0, amounts)
    states = [
        F.when(F.col(f"{name}_known") == 1, F.col(f"{name}_up")).alias(name) for name in ("true", "seen")
    ]
    return between_changes(both, ("replica",), amounts).select("replica", "start_us", "end_us", *states)


def probed(true: DataFrame, seen: DataFrame) -> DataFrame:
    """Compare truth and view of each replica that was probed, in the columns of `aggregates.Probed`."""
    found = _numbered(segments(true, seen))
    length_us = F.col("end_us") - F.col("start_us")
    watched = F.col("true").isNotNull() & F.col("seen").isNotNull()
    times = found.groupBy("replica").agg(
        F.sum(F.when(watched, length_us).otherwise(0)).alias("watched_us"),
        F.sum(F.when(watched & (F.col("true") == F.col("seen")), length_us).otherwise(0)).alias("agreed_us"),
    )
    probed_ones = seen.select("replica").distinct()
    whole = times.join(_outages(found), "replica", "left").join(_false_alarms(found), "replica", "left")
    return whole.join(F.broadcast(probed_ones), "replica", "left_semi").fillna(0)


def _numbered(found: DataFrame) -> DataFrame:
    """Number the stretches in which truth, and view, are down, and note what comes next."""
    in_time = Window.partitionBy("replica").orderBy("start_us")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    backwards = Window.partitionBy("replica").orderBy(F.desc("start_us"))
    ahead = backwards.rowsBetween(Window.unboundedPreceding, -1)
    seen_up_us = F.last(F.when(F.col("seen") == 1, F.col("start_us")), ignorenulls=True).over(ahead)
    marked = found.withColumns(
        {
            "true_starts": _starts("true", in_time),
            "seen_starts": _starts("seen", in_time),
            "next_true": F.lead("true").over(in_time),
            "seen_up_us": seen_up_us,
        }
    )
    return marked.withColumns(
        {"outage": F.sum("true_starts").over(so_far), "alarm": F.sum("seen_starts").over(so_far)}
    )


def _starts(column: str, in_time: WindowSpec) -> Column:
    is_down = F.coalesce(F.col(column) == 0, F.lit(False))
    before = F.coalesce(F.lag(column).over(in_time) == 0, F.lit(False))
    return (is_down & ~before).cast("long")


def _outages(found: DataFrame) -> DataFrame:
    """Give the true outages that were watched from their start, and what became of them."""
    down = found.where(F.col("true") == 0)
    seen_down_us = F.min(F.when(F.col("seen") == 0, F.col("start_us")))
    each = down.groupBy("replica", "outage").agg(
        F.min("start_us").alias("start_us"),
        F.max("end_us").alias("end_us"),
        F.min_by("seen", "start_us").alias("first_seen"),
        seen_down_us.alias("seen_down_us"),
        F.max_by("next_true", "start_us").alias("next_true"),
        F.max_by("seen_up_us", "start_us").alias("seen_up_us"),
    )
    watched = each.where(F.col("first_seen").isNotNull())
    detected = F.col("seen_down_us").isNotNull()
    delay_us = F.col("seen_down_us") - F.col("start_us")
    recovered = detected & (F.col("next_true") == 1) & F.col("seen_up_us").isNotNull()
    recovery_us = F.col("seen_up_us") - F.col("end_us")
    return watched.groupBy("replica").agg(
        F.count("*").alias("outages"),
        F.count_if(detected).alias("detected"),
        F.sum(delay_us).alias("detection_us"),
        F.max(delay_us).alias("detection_max_us"),
        F.count_if(recovered).alias("recoveries"),
        F.sum(F.when(recovered, recovery_us)).alias("recovery_us"),
    )


def _false_alarms(found: DataFrame) -> DataFrame:
    """Count the stretches in which the prober saw a replica down that was up all along."""
    is_up = F.coalesce(F.col("true") == 1, F.lit(False))
    each = found.where(F.col("seen") == 0).groupBy("replica", "alarm").agg(F.bool_and(is_up).alias("was_up"))
    return each.where("was_up").groupBy("replica").agg(F.count("*").alias("false_alarms"))
