"""The Spark side of probes: from one row per sample to the few that matter to the up and down intervals of each replica.

`quorate.spark_reports.input.probes` states the rule, and merges what comes out of here. A year of 1-second probes of nine replicas is 284 million rows, so:

* Built-in expressions only: no Python runs beside the executors.
* A sample is one whole number (`KEY_LAYOUT`), so that little is shuffled and sorted.
* Samples are sorted in chunks of some thousands of steps of one replica, and of each chunk only the rows that matter
  leave it: its first, its last, and those where a run breaks, as `probes.edges_of` does. These few are brought to the driver.

`docs/decisions/0035-probes-are-sorted.md` says what the other way, run lengths per Arrow batch, would have saved and cost.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input import probes
from ..input.probe_rows import WHOLE_MAX
from ..input.probes import Edge, Spacing
from ..model import contract
from .expressions import NUMBER, TEXT, first_reason, microseconds, plausible, schema, shown_time

FIELDS: Final = schema(replica=TEXT, time_s=NUMBER, up=NUMBER, latency_s=NUMBER)
"""What a sample says; as read, it also has its `source` (the name of its file), its `line` (null in Parquet), and `well_formed`."""

UP_BITS: Final = 1
TIME_BITS: Final = 57
REPLICA_SHIFT: Final = UP_BITS + TIME_BITS
KEY_LAYOUT: Final = "replica number (5 bits) | time_us (57 bits) | up (1 bit)"
assert contract.REPLICAS_MAX <= 1 << (63 - REPLICA_SHIFT), KEY_LAYOUT
assert contract.TIME_S_MAX * 1e6 < 1 << TIME_BITS, KEY_LAYOUT

CHUNK_STEPS: Final = 8192
"""A chunk spans at least so many steps of one replica."""

BYTES_PER_PART: Final = 16 << 20
"""So much input on disk, about three million samples of packed Parquet, is sorted at once: 150 MB in memory."""

PARTS_MIN: Final = 4
BROADCAST_MAX: Final = 1_000_000
"""Up to so many contradicted moments are sent to every task; more are met by a shuffle."""


class Found(NamedTuple):
    """What `find_edges` found.

    Args:
        edges: `run_edges`, of which no two contradict each other.
        rejected: the rows kept aside, `source`, `reason`, `line`; known to be empty if there are none.
        samples: rows read, good and bad.
        spacing: the one given, or the usual one.
    """

    edges: DataFrame
    rejected: DataFrame
    samples: int
    spacing: Spacing


def parts_of(input_bytes: int) -> int:
    """Give the number of parts to sort so much input in."""
    return max(PARTS_MIN, input_bytes // BYTES_PER_PART)


def tested_samples(samples: DataFrame, replicas: Sequence[str]) -> DataFrame:
    """Add `reason`, null for a good sample, and its `key` (`KEY_LAYOUT`), null for a bad one."""
    number = F.coalesce(*[F.when(F.col("replica") == name, F.lit(i)) for i, name in enumerate(replicas)])
    latency_s = F.col("latency_s")
    # Data frame libraries write a missing number as NaN: a probe without an answer.
    answered = latency_s.isNotNull() & ~F.isnan(latency_s)
    tests = [
        (~F.col("well_formed"), contract.MALFORMED_JSON),
        *((F.col(name).isNull(), contract.MISSING_FIELD + name) for name in contract.PROBE_FIELDS),
        (number.isNull(), contract.UNKNOWN_REPLICA),
        (~plausible("time_s"), contract.BAD_TIME),
        (~F.col("up").isin(0.0, 1.0), contract.BAD_UP),
        (answered & ~plausible("latency_s"), contract.BAD_LATENCY),
    ]
    tested = samples.withColumn("reason", first_reason(tests))
    time = F.shiftleft(microseconds(F.col("time_s")), UP_BITS)
    up = F.when(F.col("up") == 1.0, F.lit(1)).otherwise(F.lit(0)).cast("long")
    key = F.shiftleft(number.cast("long"), REPLICA_SHIFT).bitwiseOR(time).bitwiseOR(up)
    return tested.withColumn("key", F.when(F.col("reason").isNull(), key))


def usual_step(tested: DataFrame) -> DataFrame:
    """Give `step_us` as `probes.usual_step_us` does, in one row; null if no replica has two samples."""
    good = tested.where(F.col("key").isNotNull())
    timed = good.select(_number(F.col("key")).alias("number"), _time_us(F.col("key")).alias("time_us"))
    first = timed.orderBy("time_us", "number").limit(probes.FIRST_SAMPLES)
    before = F.lag("time_us").over(Window.partitionBy("number").orderBy("time_us"))
    distances = first.select((F.col("time_us") - before).alias("distance_us"))
    apart = distances.where(F.col("distance_us") > 0)
    return apart.agg(F.floor(F.median("distance_us")).alias("step_us"))


def find_edges(tested: DataFrame, spacing: Spacing | None = None, *, parts: int = PARTS_MIN) -> Found:
    """Boil tested samples down to edges.

    Runs Spark over the samples once; once more for the usual step, if no spacing is given; and once more where moments
    contradict themselves, over the chunks that hold them.

    Args:
        tested: what `tested_samples` gave.
        spacing: how far apart samples are.
        parts: in how many parts to sort (`parts_of`).

    Raises:
        ReportError: no spacing is given and the samples show none.
    """
    if spacing is None:
        row = usual_step(tested).first()
        if row is None or row.step_us is None:
            raise probes.no_step()
        spacing = Spacing(int(row.step_us))
    edges = run_edges(chunked(tested, spacing), spacing, parts).persist()
    moments = contradicted(edges).persist()
    contradictions = moments.count()
    # Rows are counted without reading a column of Parquet, so this is no third pass.
    rows = tested.count()
    rejected = tested.where(F.col("reason").isNotNull() if rows > _good(edges) else F.lit(False))
    if contradictions:
        moments = F.broadcast(moments) if contradictions <= BROADCAST_MAX else moments
        edges = without(edges, chunked(tested, spacing), moments, spacing, parts)
        rejected = rejected.unionAll(at_moments(tested, moments))
    aside = rejected.select("source", "reason", _text().alias("line"))
    return Found(edges, aside, rows, spacing)


def _good(edges: DataFrame) -> int:
    """Give the number of samples that the edges were made of."""
    chunks = edges.groupBy("chunk").agg(F.max("place").alias("samples"))
    row = chunks.agg(F.sum("samples")).first()
    return 0 if row is None or row[0] is None else int(row[0])


def chunked(tested: DataFrame, spacing: Spacing) -> DataFrame:
    """Give the `key` of each good sample and its `chunk`: the replica and the upper bits of the time."""
    low_bits = min(REPLICA_SHIFT, UP_BITS + (spacing.step_us * CHUNK_STEPS).bit_length())
    return tested.where(F.col("key").isNotNull()).select(F.shiftright("key", low_bits).alias("chunk"), "key")


def run_edges(samples: DataFrame, spacing: Spacing, parts: int) -> DataFrame:
    """Give the samples that a run begins with, and the first and last of each chunk.

    Gives `chunk`, `key`, `before` and `place`, the number of the sample in its chunk.

    A run is a stretch of samples that say the same, none too far from the next. `before` is the key of the sample before
    in the chunk, the last one of the run before; null for the first of a chunk.
    """
    in_time = Window.partitionBy("chunk").orderBy("key")
    neighbours = samples.repartition(parts, "chunk").select(
        "chunk",
        "key",
        F.lag("key").over(in_time).alias("before"),
        F.lead("key").over(in_time).alias("after"),
        F.row_number().over(in_time).alias("place"),
    )
    outer = F.col("before").isNull() | F.col("after").isNull()
    return neighbours.where(outer | _breaks(spacing)).drop("after")


def contradicted(edges: DataFrame) -> DataFrame:
    """Give each `moment` (a key without its last bit) at which samples of a replica contradict each other, and its `chunk`.

    Sorted by key, the samples of one moment that say down stand just before those that say up, so that a run begins
    between them.
    """
    clash = F.col("before").bitwiseXOR(F.col("key")) == 1
    return edges.where(clash).select("chunk", F.shiftright("key", UP_BITS).alias("moment"))


def without(
    edges: DataFrame, samples: DataFrame, moments: DataFrame, spacing: Spacing, parts: int
) -> DataFrame:
    """Give the edges as they are without the samples of contradicted moments; only chunks that hold one are sorted again."""
    kept = edges.join(moments, "chunk", "left_anti")
    timed = samples.join(moments, "chunk", "left_semi").withColumn("moment", F.shiftright("key", UP_BITS))
    clear = timed.join(moments.select("moment"), "moment", "left_anti").select("chunk", "key")
    return kept.unionAll(run_edges(clear, spacing, parts))


def at_moments(tested: DataFrame, moments: DataFrame) -> DataFrame:
    """Give the tested samples of contradicted moments, with the reason."""
    timed = tested.withColumn("moment", F.shiftright("key", UP_BITS))
    found = timed.join(moments.select("moment"), "moment", "left_semi")
    return found.withColumn("reason", F.lit(probes.CONTRADICTS)).select(*tested.columns)


def edges_by_replica(edges: DataFrame, replicas: Sequence[str]) -> dict[str, list[Edge]]:
    """Bring edges to this process, for `probes.merged`: they are few. `replicas` are those of `tested_samples`."""
    packed = edges.select(
        _number(F.col("key")).alias("number"), _sample(F.col("key")), _sample(F.col("before"))
    )
    found: dict[str, list[Edge]] = {}
    for number, sample, before in zip(*packed.toArrow().to_pydict().values(), strict=True):
        found.setdefault(replicas[number], []).append(Edge(sample, before))
    return found


def _number(key: Column) -> Column:
    return F.shiftright(key, REPLICA_SHIFT)


def _sample(key: Column) -> Column:
    """A key without its replica: `probes.packed`."""
    return key.bitwiseAND(F.lit((1 << REPLICA_SHIFT) - 1))


def _time_us(key: Column) -> Column:
    return F.shiftright(key, UP_BITS).bitwiseAND(F.lit((1 << TIME_BITS) - 1))


def _breaks(spacing: Spacing) -> Column:
    """Whether a run ends with the sample `before` and another begins with `key`, both of one replica."""
    agrees = F.col("before").bitwiseXOR(F.col("key")).bitwiseAND(F.lit(1)) == 0
    distance_us = _time_us(F.col("key")) - _time_us(F.col("before"))
    return ~agrees | (distance_us > spacing.same_us)


def _text() -> Column:
    """The text of a sample; where it came from Parquet, its fields in the words of `probe_rows`."""
    whole = F.col("up").between(-WHOLE_MAX, WHOLE_MAX) & (F.col("up") == F.floor("up"))
    words = (
        F.col("replica"),
        shown_time("time_s"),
        F.when(
            F.col("up").isNotNull(), F.when(whole, F.col("up").cast("long").cast("string")).otherwise("?")
        ),
        shown_time("latency_s"),
    )
    return F.coalesce("line", F.concat_ws(",", *[F.coalesce(word, F.lit("")) for word in words]))
