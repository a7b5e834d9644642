"""Runs the Spark jobs over one source, in order, and brings their small results to the driver.

The parsed rows are written to Parquet once and read back for every aggregate: the text is parsed a single time, and
whoever wants to ask further questions finds the same tables.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects

from ..input import rows
from ..input.probes import Spacing
from ..input.sources import Source
from ..model import aggregates as tables
from ..model import contract
from ..model.aggregates import Span
from ..model.errors import ReportError
from ..model.questions import Questions, deciding
from ..model.run_document import Run
from ..reference import loading
from ..reference.reference import Input
from . import jobs, outcome_jobs, probe_files, probe_jobs, probing_jobs, trace_jobs
from .expressions import TEXT, json_rows, schema, small_table

Row = TypeVar("Row", bound=NamedTuple)

JOIN_BINS_MIN: Final = 256
JOIN_BINS_MAX: Final = 1 << 20
REJECTED: Final = schema(kind=TEXT, source=TEXT, reason=TEXT, line=TEXT)
NAMES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Tables:
    """Good rows of each kind, where there are any, and the rows kept aside."""

    operations: DataFrame
    intervals: DataFrame
    links: DataFrame | None
    seen: DataFrame | None
    rejected: DataFrame


@dataclass(frozen=True, slots=True)
class Stored:
    """The tables of one source, read back from Parquet, and what is known of them."""

    spark: SparkSession
    source: Source
    run: Run
    span: Span
    linked: tuple[str, ...]
    operations: DataFrame
    intervals: DataFrame
    links: DataFrame
    seen: DataFrame | None
    up_sets: DataFrame
    rejected: DataFrame
    rows: tuple[tables.RowCount, ...]

    def attempted(self) -> set[tuple[str, str]]:
        """Each quorum choice and operation that was tried."""
        return {
            (row[0], row[1]) for row in self.operations.select("choice", "operation").distinct().collect()
        }


class _Folder:
    """Where the tables are kept."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def store(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a table, over a former one, and read it back."""
        frame.write.mode("overwrite").parquet(f"file://{self.folder.absolute() / name}")
        return self.spark.read.schema(frame.schema).parquet(jobs.literal_path(self.folder / name))


def store(
    spark: SparkSession,
    source: Source,
    run: Run | None,
    folder: Path,
    *,
    votes: Mapping[str, int],
    step_us: int | None,
) -> Stored:
    """Parse a run, or a prober's samples alone, into `operations`, `intervals`, `seen`, `up_sets` and `rejected`.

    Args:
        spark: the session.
        source: what to read.
        run: what `run.json` says; None for probes alone.
        folder: where the tables are written.
        votes: votes by replica for probes alone; empty for one each.
        step_us: the usual distance of two probes; None for what they show.

    Raises:
        ReportError: Spark could not read a file, or the replicas are never all observed at the same time.
    """
    with _spark_errors(source):
        return _Reader(spark, source, folder, step_us).stored(run, votes)


class _Reader:
    """Parses the files of one source, gathering what is kept aside."""

    def __init__(self, spark: SparkSession, source: Source, folder: Path, step_us: int | None) -> None:
        self.spark = spark
        self.source = source
        self.folder = _Folder(spark, folder)
        self.step_us = step_us
        self.rejected = [small_table(spark, [], REJECTED)]
        self.rows: dict[str, tables.RowCount] = {}
        self.cached: list[DataFrame] = []

    def stored(self, run: Run | None, votes: Mapping[str, int]) -> Stored:
        samples = self._samples()
        if run is None:
            assert samples is not None, "a source without run.json has probes"
            names = (
                samples.select("replica").where("replica IS NOT NULL").distinct().limit(NAMES_MAX).collect()
            )
            run = loading.run_of_probes(Run({}), tuple(sorted(row[0] for row in names)), votes)
        operations = self.folder.store("operations", self._operations(run))
        seen = None if samples is None else self.folder.store("seen", self._seen(samples, run))
        replicas, links = self.source.replicas, self.source.links
        if replicas is None:
            intervals = seen
        else:
            rows.check_header(replicas, contract.REPLICA_COLUMNS)
            intervals = self._intervals(replicas, contract.REPLICA_COLUMNS, run)
        assert intervals is not None, "a source has up times or probes"
        linked = None
        if links is not None:
            rows.check_header(links, contract.LINK_COLUMNS)
            linked = self._intervals(links, contract.LINK_COLUMNS, run)
        rejected = self.folder.store("rejected", reduce(DataFrame.unionByName, self.rejected))
        self._count_probes(rejected)
        for frame in self.cached:
            frame.unpersist()
        found = _Tables(operations, intervals, linked, seen if replicas else None, rejected)
        return _joined(self.folder, self.source, run, found, self.rows)

    def _operations(self, run: Run) -> DataFrame:
        parts = []
        if self.source.operation_lines:
            lines = jobs.read_lines(self.spark, self.source.operation_lines)
            parts.append(json_rows(lines, jobs.OPERATION))
        if self.source.operation_parquet is not None:
            parts.append(jobs.read_packed_operations(self.spark, self.source.operation_parquet))
        read = reduce(DataFrame.unionByName, parts, small_table(self.spark, [], jobs.READ))
        tested = jobs.test_operations(
            read, jobs.choice_table(self.spark, run.choices), jobs.object_table(self.spark, run), run
        )
        return self._kept(jobs.mark_duplicates(tested.persist()), contract.OPERATIONS, tested)

    def _intervals(self, path: Path, columns: tuple[str, ...], run: Run) -> DataFrame:
        kind = contract.LINKS if len(columns) == len(contract.LINK_COLUMNS) else contract.INTERVALS
        parsed = trace_jobs.parse_intervals(jobs.read_lines(self.spark, [path]), columns, run)
        self._kept(parsed, kind)
        return self.folder.store(kind, trace_jobs.settled(parsed))

    def _kept(self, parsed: DataFrame, kind: str, *cached: DataFrame) -> DataFrame:
        """Give the good rows; the others are put aside, and both are counted."""
        parsed = parsed.persist()
        self.cached += [parsed, *cached]
        self.rejected.append(jobs.rejected_rows(parsed, kind))
        self.rows[kind] = _collect(jobs.row_counts(parsed, kind), tables.RowCount)[0]
        return jobs.good_rows(parsed)

    def _samples(self) -> DataFrame | None:
        paths = [*self.source.probe_lines, self.source.probe_parquet]
        found = [path for path in paths if path is not None]
        return probe_files.read_samples(self.spark, found) if found else None

    def _seen(self, samples: DataFrame, run: Run) -> DataFrame:
        """The intervals that a prober's samples speak for."""
        replicas = list(run.votes)
        spacing = None if self.step_us is None else Spacing(self.step_us)
        found = probe_jobs.find_intervals(
            probe_jobs.tested_samples(samples, replicas),
            replicas,
            spacing,
            parts=probe_jobs.parts_of(self.source.size_bytes()),
        )
        self.rejected.append(
            found.rejected.select(F.lit(contract.PROBES).alias("kind"), "source", "reason", "line")
        )
        self.rows[contract.PROBES] = tables.RowCount(contract.PROBES, found.samples, found.samples)
        return found.intervals.select(F.lit("").alias("front_end"), "replica", "start_us", "end_us", "up")

    def _count_probes(self, rejected: DataFrame) -> None:
        row = self.rows.get(contract.PROBES)
        if row is not None:
            aside = rejected.where(F.col("kind") == contract.PROBES).count()
            self.rows[contract.PROBES] = row._replace(used=row.read - aside)


def take(spark: SparkSession, source: Source, found: Input, folder: Path) -> Stored:
    """Store what was read elsewhere: other people's replicas, without operations.

    Raises:
        ReportError: Spark could not write the tables, or the replicas are never all observed at the same time.
    """
    with _spark_errors(source):
        place = _Folder(spark, folder)
        aside = [(each.kind, each.source, each.reason, each.line) for each in found.rejects]
        counts = {
            kind: tables.RowCount(kind, read, read - sum(each.kind == kind for each in found.rejects))
            for kind, read in found.read.items()
        }
        no_operations = jobs.test_operations(
            small_table(spark, [], jobs.READ),
            jobs.choice_table(spark, ()),
            jobs.object_table(spark, found.run),
            found.run,
        )
        operations = place.store("operations", jobs.good_rows(no_operations))
        intervals = place.store("intervals", trace_jobs.interval_table(spark, found.intervals))
        rejected = place.store("rejected", small_table(spark, aside, REJECTED))
        return _joined(place, source, found.run, _Tables(operations, intervals, None, None, rejected), counts)


def _joined(
    folder: _Folder,
    source: Source,
    run: Run,
    found: _Tables,
    counts: Mapping[str, tables.RowCount],
) -> Stored:
    """Find the window and lay replicas and links together."""
    span = run.window
    if span is None:
        range_us = _first(jobs.time_range(found.intervals))
        if not range_us["rows"]:
            raise loading.never_observed_together(source, run.votes, {})
        span = Span(range_us["start_us"], range_us["end_us"])
    links = trace_jobs.interval_table(folder.spark, []) if found.links is None else found.links
    linked = tuple(sorted(row[0] for row in links.select("front_end").distinct().collect()))
    cut, cut_links = trace_jobs.clipped(found.intervals, span), trace_jobs.clipped(links, span)
    spoken: dict[str, list[str]] = {view: [] for view in run.members(linked)}
    for row in trace_jobs.links_spoken_of(cut_links).collect():
        spoken[row[0]].append(row[1])
    up_sets = trace_jobs.joint_up_sets(cut, cut_links, list(run.votes), spoken)
    return Stored(
        spark=folder.spark,
        source=source,
        run=run,
        span=span,
        linked=linked,
        operations=found.operations,
        intervals=cut,
        links=cut_links,
        seen=None if found.seen is None else trace_jobs.clipped(found.seen, span),
        up_sets=folder.store("up_sets", up_sets),
        rejected=found.rejected,
        rows=tuple(sorted(counts.values(), key=tables.sort_key)),
    )


def aggregate(stored: Stored, questions: Questions, lag_us: int) -> tables.Aggregates:
    """Boil a source down on Spark.

    Raises:
        ReportError: Spark failed, or the replicas are never all observed at the same time.
    """
    with _spark_errors(stored.source):
        trace = _first(jobs.time_range(stored.up_sets))
        if not trace["rows"]:
            raise loading.never_observed_together(stored.source, stored.run.votes, _known(stored))
        operations, intervals, span = stored.operations, stored.intervals, stored.span
        times = _collect(trace_jobs.up_set_times(stored.up_sets, span), tables.UpSetTime)
        decided = deciding(questions.systems, {row.up for row in times}, list(stored.run.votes))
        stretches = trace_jobs.decided(
            stored.up_sets, trace_jobs.deciding_table(stored.spark, decided)
        ).persist()
        placed = outcome_jobs.with_view(
            operations,
            outcome_jobs.view_table(stored.spark, stored.run.views(stored.linked)),
            outcome_jobs.decider_table(stored.spark, questions.run_systems),
        )
        found = tables.Aggregates(
            span=span,
            up_changes=trace["rows"],
            bins=_collect(jobs.count_bins(operations, span), tables.BinCount),
            classes=_collect(jobs.count_classes(operations), tables.ClassCount),
            starts=_starts(placed, stored.up_sets, stretches, questions, trace, lag_us),
            latencies=_collect(jobs.latency_quantiles(operations), tables.Latency),
            replicas=_collect(trace_jobs.replica_times(intervals), tables.ReplicaTime),
            up_sets=times,
            outages=_collect(trace_jobs.outages(stretches), tables.Outage),
            seen=_collect(outcome_jobs.seen_outages(placed), tables.SeenOutage),
            down_bins=_collect(trace_jobs.down_bins(intervals, span), tables.DownBin),
            probed=()
            if stored.seen is None
            else _collect(probing_jobs.probed(intervals, stored.seen), tables.Probed),
            rows=stored.rows,
            rejected=_collect(jobs.rejected_counts(stored.rejected), tables.Rejected),
        )
        stretches.unpersist()
        return found


def _known(stored: Stored) -> dict[tuple[str, str], tuple[int, int]]:
    """For each replica and link, the first and last moment that its intervals speak of."""
    spoken = stored.intervals.select("front_end", "replica", "start_us", "end_us").unionByName(
        stored.links.select("front_end", "replica", "start_us", "end_us")
    )
    found = spoken.groupBy("front_end", "replica").agg(F.min("start_us"), F.max("end_us"))
    return {(row[0], row[1]): (row[2], row[3]) for row in found.collect()}


def _starts(
    placed: DataFrame,
    up_sets: DataFrame,
    stretches: DataFrame,
    questions: Questions,
    trace: Mapping[str, Any],
    lag_us: int,
) -> tuple[tables.StartCount, ...]:
    bins = max(JOIN_BINS_MIN, min(JOIN_BINS_MAX, trace["rows"]))
    asked = set(questions.run_systems.values())
    counted = outcome_jobs.count_starts(
        placed,
        up_sets,
        stretches.where(F.col("system").isin(*asked)),
        lag_us=lag_us,
        origin_us=trace["start_us"],
        width_us=(trace["end_us"] - trace["start_us"]) // bins + 1,
    )
    return _collect(counted, tables.StartCount)


def versions(spark: SparkSession) -> dict[str, str]:
    """Give the versions of Spark and of the Java it runs on."""
    java = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()
    return {"spark": spark.version, "java": str(java[0]) if java else "unknown"}


def _first(frame: DataFrame) -> dict[str, Any]:
    row = frame.first()
    assert row is not None, "an aggregate without groups has one row"
    return row.asDict()


def _collect(frame: DataFrame, row_type: type[Row]) -> tuple[Row, ...]:
    """Bring a grouped result to the driver, in the order of its columns (None first)."""
    names = row_type._fields
    found = [row_type(*row) for row in frame.select(*names).collect()]
    return tuple(sorted(found, key=tables.sort_key))


@contextmanager
def _spark_errors(source: Source) -> Iterator[None]:
    """Turn what Spark raises into a sentence; its own message, many pages long, stays the cause."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error).strip() or type(error).__name__
        named = sorted(path.name for path in source.files if path.name in text)
        place = f"{source.place}: {', '.join(named)}" if named else str(source.place)
        raise ReportError(
            f"Spark could not work through {place} ({text.splitlines()[0][:300]}); check that its files are whole, and "
            "that the output folder can be written"
        ) from error
