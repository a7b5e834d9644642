"""The Spark side of a report: from the up and down intervals of each replica to joint up-sets and outages.

Nothing is sampled at a fixed step: the unit is the interval between two changes, so the cost grows with the number of
changes and not with the length of the run.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql import types as T  # noqa: N812

from quorate.spark_reports import contract
from quorate.spark_reports.aggregates import Span
from quorate.spark_reports.jobs import bin_of, microseconds

REPLICA_SCHEMA: Final = T.StructType(
    [
        T.StructField("replica", T.StringType(), nullable=False),
        T.StructField("bit", T.LongType(), nullable=False),
        T.StructField("votes", T.LongType(), nullable=False),
    ]
)


def replica_table(spark: SparkSession, choices: contract.Choices) -> DataFrame:
    """Give one row per replica: its votes and its bit in an up-set."""
    rows = [(replica, 1 << index, votes) for index, (replica, votes) in enumerate(choices.votes.items())]
    return spark.createDataFrame(rows, REPLICA_SCHEMA)


def needed_table(spark: SparkSession, choices: contract.Choices) -> DataFrame:
    """Give the distinct numbers of votes that some event class needs, as column `needed`."""
    return spark.createDataFrame(
        [(needed,) for needed in sorted({c.needed for c in choices.classes})], "needed long"
    )


def parse_intervals(lines: DataFrame, replicas: DataFrame) -> DataFrame:
    """Parse and test lines of `replicas.csv`; the header is no row.

    Returns:
        `source`, `line`, `reason` (null for a good row), `replica`, `bit`, `votes`, `up` (0 or 1), `start_us`,
        `end_us`. An interval that overlaps an earlier one of its replica is kept aside, the earlier one stays.
    """
    part = F.split(F.trim("line"), ",", -1)
    named = ("replica", "start_text", "end_text", "up_text")
    fields = lines.where(F.trim("line") != contract.INTERVALS_HEADER).select(
        "source",
        "line",
        F.size(part).alias("parts"),
        *[F.trim(F.get(part, F.lit(i))).alias(n) for i, n in enumerate(named)],
    )
    numbers = fields.select("*", _number("start_text").alias("start_s"), _number("end_text").alias("end_s"))
    known = numbers.join(F.broadcast(replicas), "replica", "left").withColumn("reason", _interval_reason())
    good = F.col("reason").isNull()
    timed = known.select(
        "source",
        "line",
        "reason",
        "replica",
        "bit",
        "votes",
        F.when(good, F.col("up_text").cast("int")).alias("up"),
        F.when(good, microseconds(F.col("start_s"))).alias("start_us"),
        F.when(good, microseconds(F.col("end_s"))).alias("end_us"),
    )
    return _mark_overlaps(timed)


def _number(column: str) -> Column:
    return F.when(F.col(column).rlike(contract.NUMBER_PATTERN), F.col(column).cast("double"))


def _interval_reason() -> Column:
    plausible = F.col("start_s").between(0.0, contract.TIME_S_MAX) & F.col("end_s").between(
        0.0, contract.TIME_S_MAX
    )
    malformed = (F.col("parts") != 4) | F.col("start_s").isNull() | F.col("end_s").isNull()
    tests = [
        (malformed, contract.MALFORMED_CSV),
        (F.col("bit").isNull(), contract.UNKNOWN_REPLICA),
        (~plausible, contract.BAD_TIME),
        (~F.col("up_text").isin("0", "1"), contract.BAD_UP),
        (F.col("end_s") < F.col("start_s"), contract.ENDS_BEFORE_START),
    ]
    return F.coalesce(*[F.when(holds, F.lit(reason)) for holds, reason in tests])


def _mark_overlaps(timed: DataFrame) -> DataFrame:
    """Reject an interval that starts before some earlier good one of its replica has ended."""
    earlier = Window.partitionBy("replica", F.col("reason").isNull()).orderBy("start_us", "end_us", "up")
    ended_us = F.max("end_us").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
    overlap = F.when(F.col("reason").isNull() & (F.col("start_us") < ended_us), F.lit(contract.OVERLAPS))
    return timed.withColumn("reason", F.coalesce("reason", overlap))


def joint_up_sets(intervals: DataFrame, replica_count: int) -> DataFrame:
    """Turn the intervals of the replicas into joint up-sets as intervals.

    Each interval adds its replica's bit and votes at its start and takes them away at its end; running sums over the
    sorted moments give who is up between two of them. Example: r1 (bit 1) up 0-10, r2 (bit 2) up 0-4, down 4-10: at 0
    the sums become bits 3, at 4 bits 1; result 0-4 with up 3 and 4-10 with up 1.

    The running sum needs all moments in one partition. That is the number of changes, not of operations.

    Returns:
        `start_us`, `end_us`, `up` (sum of bits), `live_votes`; moments at which some replica's state is unknown are
        left out.
    """
    is_up = F.col("up").cast("long")
    edges = [
        intervals.select(
            F.col(f"{edge}_us").alias("time_us"),
            F.lit(sign).alias("known"),
            (sign * is_up * F.col("bit")).alias("bits"),
            (sign * is_up * F.col("votes")).alias("votes"),
        )
        for edge, sign in (("start", 1), ("end", -1))
    ]
    sums = [F.sum(name).alias(name) for name in ("known", "bits", "votes")]
    moments = edges[0].unionAll(edges[1]).groupBy("time_us").agg(*sums)
    in_time = Window.partitionBy().orderBy("time_us")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = moments.select(
        F.col("time_us").alias("start_us"),
        F.lead("time_us").over(in_time).alias("end_us"),
        F.sum("known").over(so_far).alias("known"),
        F.sum("bits").over(so_far).alias("up"),
        F.sum("votes").over(so_far).alias("live_votes"),
    )
    complete = running.where(F.col("end_us").isNotNull() & (F.col("known") == replica_count))
    return complete.select("start_us", "end_us", "up", "live_votes")


def up_set_times(up_sets: DataFrame) -> DataFrame:
    """Sum the time of each distinct up-set, in microseconds."""
    return up_sets.groupBy("up").agg(F.sum(F.col("end_us") - F.col("start_us")).alias("time_us"))


def replica_times(intervals: DataFrame) -> DataFrame:
    """Give observed time, up time, number of outages and longest outage of each replica."""
    length_us = F.col("end_us") - F.col("start_us")
    times = intervals.groupBy("replica").agg(
        F.sum(length_us).alias("observed_us"),
        F.sum(F.when(F.col("up") == 1, length_us).otherwise(0)).alias("up_us"),
    )
    lasting = intervals.where(F.col("end_us") > F.col("start_us"))
    down = _periods(lasting.withColumn("holds", F.col("up") == 0), "replica")
    outages = down.withColumnsRenamed({"periods": "outages", "longest_us": "longest_outage_us"})
    return times.join(outages, "replica", "left").fillna(0, ["outages", "longest_outage_us"])


def shortages(up_sets: DataFrame, needed: DataFrame) -> DataFrame:
    """Give number and longest of the periods with fewer than `needed` live votes, for each `needed`."""
    levels = up_sets.crossJoin(F.broadcast(needed))
    return _periods(levels.withColumn("holds", F.col("live_votes") < F.col("needed")), "needed")


def _periods(intervals: DataFrame, key: str) -> DataFrame:
    """Join neighbouring intervals for which `holds` is true; give `periods` and `longest_us` for each key.

    A period starts where the interval just before, touching this one, did not hold; counting the starts so far gives
    each period a number to group by.
    """
    in_time = Window.partitionBy(key).orderBy("start_us")
    holds = F.col("holds")
    continues = F.lag("holds").over(in_time) & (F.lag("end_us").over(in_time) == F.col("start_us"))
    starts = holds & ~F.coalesce(continues, F.lit(False))
    marked = intervals.withColumn("starts", starts.cast("long"))
    period = F.sum("starts").over(in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    numbered = marked.withColumn("period", period).where(holds)
    lengths = numbered.groupBy(key, "period").agg(
        F.sum(F.col("end_us") - F.col("start_us")).alias("length_us")
    )
    return lengths.groupBy(key).agg(F.count("*").alias("periods"), F.max("length_us").alias("longest_us"))


def down_bins(intervals: DataFrame, span: Span) -> DataFrame:
    """Give the down time of each replica within each timeline bin, in microseconds."""
    down = intervals.where((F.col("up") == 0) & (F.col("end_us") > F.col("start_us")))
    first = bin_of(F.col("start_us"), span.start_us, span.bin_us)
    last = bin_of(F.col("end_us") - 1, span.start_us, span.bin_us)
    pieces = down.withColumn("bin", F.explode(F.sequence(first, last)))
    bin_start_us = F.lit(span.start_us) + F.col("bin") * F.lit(span.bin_us)
    overlap_us = F.least("end_us", bin_start_us + F.lit(span.bin_us)) - F.greatest("start_us", bin_start_us)
    return pieces.groupBy("replica", "bin").agg(F.sum(overlap_us).alias("down_us"))
