"""The Spark side of a report: from the up and down intervals of replicas and links to joint up-sets and outages.

Nothing is sampled at a fixed step: the unit is the interval between two changes, so the cost grows with the number of
changes and not with the length of the run.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input.rows import Interval
from ..model import contract
from ..model.aggregates import Span
from ..model.run_document import Run
from .expressions import (
    FLAG,
    INT,
    LONG,
    TEXT,
    between_changes,
    by_bin,
    first_reason,
    microseconds,
    period_totals,
    plausible,
    schema,
    small_table,
)

INTERVAL: Final = schema(front_end=TEXT, replica=TEXT, start_us=LONG, end_us=LONG, up=INT)
"""One good interval of a replica (`front_end` empty), or of the way from a front end to it."""


def interval_table(spark: SparkSession, intervals: Sequence[Interval]) -> DataFrame:
    """Give intervals that were read elsewhere the form of `INTERVAL`."""
    rows = [(each.front_end, each.replica, each.start_us, each.end_us, each.up) for each in intervals]
    return small_table(spark, rows, INTERVAL)


def deciding_table(spark: SparkSession, decided: Mapping[tuple[int, int], bool]) -> DataFrame:
    """Give one row for each quorum system and up-set: whether it is enough."""
    rows = [(*pair, enough) for pair, enough in decided.items()]
    return small_table(spark, rows, schema(system=INT, up=LONG, enough=FLAG))


def parse_intervals(lines: DataFrame, columns: Sequence[str], run: Run) -> DataFrame:
    """Parse and test lines of `replicas.csv` or `links.csv`; the header is no row.

    Returns:
        `source`, `line`, `reason` (null for a good row) and `INTERVAL`; `settled` makes disjoint intervals of them.
    """
    part = F.split(F.trim("line"), ",", -1)
    count = len(columns)
    named = {"replica": count - 4, "start_text": count - 3, "end_text": count - 2, "up_text": count - 1}
    has_front_end = count == len(contract.LINK_COLUMNS)
    front_end = F.trim(F.get(part, F.lit(0))) if has_front_end else F.lit("")
    fields = lines.where(F.trim("line") != ",".join(columns)).select(
        "source",
        "line",
        F.size(part).alias("parts"),
        front_end.alias("front_end"),
        *[F.trim(F.get(part, F.lit(index))).alias(name) for name, index in named.items()],
    )
    numbers = fields.select("*", _number("start_text").alias("start_s"), _number("end_text").alias("end_s"))
    tested = numbers.withColumn("reason", _interval_reason(count, run))
    good = F.col("reason").isNull()
    timed = tested.select(
        "source",
        "line",
        "reason",
        "front_end",
        "replica",
        F.when(good, microseconds(F.col("start_s"))).alias("start_us"),
        F.when(good, microseconds(F.col("end_s"))).alias("end_us"),
        F.when(good, F.col("up_text").cast("int")).alias("up"),
    )
    return _mark_overlaps(timed)


def _number(column: str) -> Column:
    return F.when(F.col(column).rlike(contract.NUMBER_PATTERN), F.col(column).cast("double"))


def _interval_reason(columns: int, run: Run) -> Column:
    malformed = (F.col("parts") != columns) | F.col("start_s").isNull() | F.col("end_s").isNull()
    tests = [
        (malformed, contract.MALFORMED_CSV),
        (~F.col("replica").isin(*run.votes), contract.UNKNOWN_REPLICA),
        (~(plausible("start_s") & plausible("end_s")), contract.BAD_TIME),
        (~F.col("up_text").isin("0", "1"), contract.BAD_UP),
        (F.col("end_s") < F.col("start_s"), contract.ENDS_BEFORE_START),
    ]
    if columns == len(contract.LINK_COLUMNS):
        tests.insert(1, (~F.col("front_end").isin(*run.front_ends), contract.UNKNOWN_FRONT_END))
    return first_reason(tests)


def _mark_overlaps(timed: DataFrame) -> DataFrame:
    """Mark the good intervals that are kept aside beside others: `overlaps` says which, and why."""
    good = F.col("reason").isNull()
    whose = ("front_end", "replica", good)
    alike = Window.partitionBy(*whose, "start_us", "end_us", "up").orderBy("line")
    twin = F.when(good & (F.row_number().over(alike) > 1), F.lit(contract.SAME_INTERVAL))
    in_time = Window.partitionBy(*whose).orderBy("start_us")
    so_far = in_time.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    later = in_time.rangeBetween(1, Window.unboundedFollowing)
    has_length = F.col("end_us") > F.col("start_us")
    contradicted = F.lit(False)
    for up in (0, 1):
        other = has_length & (F.col("up") != up)
        still_on = F.max(F.when(other, F.col("end_us"))).over(so_far) > F.col("start_us")
        before_end = F.min(F.when(other, F.col("start_us"))).over(later) < F.col("end_us")
        met = F.coalesce(still_on, F.lit(False)) | F.coalesce(before_end, F.lit(False))
        contradicted = contradicted | ((F.col("up") == up) & met)
    contradicts = F.when(good & has_length & contradicted, F.lit(contract.CONTRADICTS))
    marked = timed.withColumns({"twin": twin, "contradicts": contradicts})
    return marked.withColumn("reason", F.coalesce("reason", "twin", "contradicts")).drop(
        "twin", "contradicts"
    )


def settled(parsed: DataFrame) -> DataFrame:
    """Give the disjoint intervals that parsed lines come to (`INTERVAL`), as `overlaps.settled` does.

    At every moment the intervals that say up, and those that say down, are counted; where both speak, nothing is known.
    """
    kept = F.col("reason").isNull() | (F.col("reason") == contract.CONTRADICTS)
    whose = ("front_end", "replica")
    said = parsed.where(kept).select(
        *whose, "start_us", "end_us", F.col("up").alias("ups"), (1 - F.col("up")).alias("downs")
    )
    counted = between_changes(said, whose, ("ups", "downs"))
    known = counted.where((F.col("ups") > 0) != (F.col("downs") > 0))
    joined = stretches(known.withColumn("holds", F.col("ups") > 0), whose)
    return joined.select(*whose, "start_us", "end_us", F.col("holds").cast("int").alias("up"))


def clipped(intervals: DataFrame, span: Span) -> DataFrame:
    """The parts of the intervals that lie within the window; what has no length there is left out."""
    cut = intervals.withColumns(
        {
            "start_us": F.greatest("start_us", F.lit(span.start_us)),
            "end_us": F.least("end_us", F.lit(span.end_us)),
        }
    )
    return cut.where(F.col("start_us") < F.col("end_us"))


def links_spoken_of(links: DataFrame) -> DataFrame:
    """Give each pair of `front_end` and `replica` of which there is any interval."""
    return links.select("front_end", "replica").distinct()


def joint_up_sets(
    intervals: DataFrame, links: DataFrame, replicas: Sequence[str], views: Mapping[str, Sequence[str]]
) -> DataFrame:
    """Turn the intervals of the replicas, and of the links to them, into joint up-sets as intervals, one row each.

    Each interval that says up adds its replica's bit while it lasts. Example: r1 (bit 1) up 0-10, r2 (bit 2) up 0-4, down
    4-10: at 0 the sum becomes 3, at 4 it is 1; result 0-4 with up 3 and 4-10 with up 1. Links have sums of their own; both
    bits must be set.

    Args:
        intervals: of the replicas, within the window.
        links: of the ways to them.
        replicas: their names; the i-th has bit i.
        views: for each view the replicas whose link is spoken of; the others' links were up.

    Returns:
        `view`, `start_us`, `end_us`, `up` (sum of bits); moments at which the state of some replica or link is unknown are
        left out.
    """
    bit = F.lit(0).cast("long")
    for index, name in enumerate(replicas):
        bit = F.when(F.col("replica") == name, F.lit(1 << index).cast("long")).otherwise(bit)
    amounts = {"known": F.lit(1), "bits": F.col("up") * bit}
    of_links = {f"link_{name}": amount for name, amount in amounts.items()}
    nothing = F.lit(0).cast("long")
    every_view = F.explode(F.array(*[F.lit(view) for view in views]))
    viewed = intervals.select(every_view.alias("view"), "start_us", "end_us", *_named(amounts)).withColumns(
        dict.fromkeys(of_links, nothing)
    )
    linked = links.where(F.col("front_end").isin(*views)).select(
        F.col("front_end").alias("view"), "start_us", "end_us", *_named(of_links)
    )
    every = viewed.unionByName(linked.withColumns(dict.fromkeys(amounts, nothing)))
    summed = between_changes(every, ("view",), (*amounts, *of_links))
    wanted, free = F.lit(0), nothing
    for view, own in views.items():
        mask = sum(1 << index for index, name in enumerate(replicas) if name not in own)
        wanted = F.when(F.col("view") == view, F.lit(len(own))).otherwise(wanted)
        free = F.when(F.col("view") == view, F.lit(mask).cast("long")).otherwise(free)
    complete = (F.col("known") == len(replicas)) & (F.col("link_known") == wanted)
    up = F.col("bits").bitwiseAND(F.col("link_bits").bitwiseOR(free))
    return summed.where(complete).select("view", "start_us", "end_us", up.alias("up"))


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


def up_set_times(up_sets: DataFrame, span: Span) -> DataFrame:
    """Sum the time of each distinct up-set within each bin of each view, in microseconds."""
    pieces = in_timeline(up_sets, span)
    return pieces.groupBy("view", "bin", "up").agg(F.sum("piece_us").alias("time_us"))


def in_timeline(intervals: DataFrame, span: Span) -> DataFrame:
    """Cut intervals at the bins of the timeline: a row for each `bin` that one touches, and how long, `piece_us`."""
    pieces = by_bin(intervals, "bin", span.start_us, span.bin_us)
    bin_start_us = F.lit(span.start_us) + F.col("bin") * F.lit(span.bin_us)
    overlap_us = F.least("end_us", bin_start_us + F.lit(span.bin_us)) - F.greatest("start_us", bin_start_us)
    return pieces.withColumn("piece_us", overlap_us)


def replica_times(intervals: DataFrame) -> DataFrame:
    """Give observed time, up time, outages, the longest of them and failures of each replica."""
    length_us = F.col("end_us") - F.col("start_us")
    in_time = Window.partitionBy("replica").orderBy("start_us")
    touches = F.lag("end_us").over(in_time) == F.col("start_us")
    falls = touches & (F.lag("up").over(in_time) > F.col("up"))
    times = (
        intervals.withColumn("falls", falls)
        .groupBy("replica")
        .agg(
            F.sum(length_us).alias("observed_us"),
            F.sum(F.when(F.col("up") == 1, length_us).otherwise(0)).alias("up_us"),
            F.count_if("falls").alias("failures"),
        )
    )
    down = stretches(intervals.withColumn("holds", F.col("up") == 0), ["replica"]).where("holds")
    outages = down.groupBy("replica").agg(
        F.count("*").alias("outages"),
        F.max(length_us).alias("longest_outage_us"),
    )
    return times.join(outages, "replica", "left").fillna(0, ["outages", "longest_outage_us"])


def stretches(intervals: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Join neighbouring intervals that touch and agree in `holds`.

    A stretch starts where the interval before does not touch this one or disagrees; counting the starts so far gives each
    stretch a number to group by.

    Returns:
        The keys, `holds`, `start_us`, `end_us`; `changed_before` and `changed_after`, whether it touches a neighbour.
    """
    in_time = Window.partitionBy(*keys).orderBy("start_us")
    touches = F.coalesce(F.lag("end_us").over(in_time) == F.col("start_us"), F.lit(False))
    starts = ~(touches & F.coalesce(F.lag("holds").over(in_time) == F.col("holds"), F.lit(False)))
    marked = intervals.withColumns({"starts": starts.cast("long"), "touches": touches})
    number = F.sum("starts").over(in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    joined = (
        marked.withColumn("stretch", number)
        .groupBy(*keys, "stretch", "holds")
        .agg(
            F.min("start_us").alias("start_us"),
            F.max("end_us").alias("end_us"),
            F.min_by("touches", "start_us").alias("changed_before"),
        )
    )
    after = F.lead("changed_before").over(in_time)
    return joined.withColumn("changed_after", F.coalesce(after, F.lit(False))).drop("stretch")


def decided(up_sets: DataFrame, deciding: DataFrame) -> DataFrame:
    """Give the stretches with (`holds`) and without enough, for each view and quorum system (`deciding_table`)."""
    asked = up_sets.join(F.broadcast(deciding), "up").withColumnRenamed("enough", "holds")
    return stretches(asked.select("view", "system", "start_us", "end_us", "holds"), ["view", "system"])


def outages(stretches_of_systems: DataFrame) -> DataFrame:
    """Give number, total and longest of the outages of each system: the stretches without enough, joined over all views.

    A stretch begins an outage if all that began before it have ended by then; those that begin meanwhile belong to it.
    """
    short = stretches_of_systems.where(~F.col("holds"))
    in_time = Window.partitionBy("system").orderBy("start_us", "end_us")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    begins = F.coalesce(F.max("end_us").over(before) < F.col("start_us"), F.lit(True))
    number = F.sum("begins").over(in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    numbered = short.withColumn("begins", begins.cast("long")).withColumn("outage", number)
    joined = numbered.groupBy("system", "outage").agg(
        (F.max("end_us") - F.min("start_us")).alias("length_us")
    )
    return joined.groupBy("system").agg(*period_totals("length_us"))


def down_bins(intervals: DataFrame, span: Span) -> DataFrame:
    """Give the down time of each replica within each timeline bin, in microseconds."""
    down = in_timeline(intervals.where(F.col("up") == 0), span)
    return down.groupBy("replica", "bin").agg(F.sum("piece_us").alias("down_us"))
