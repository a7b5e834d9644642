"""Runs the Spark jobs over one source, in order, and brings their small results to the driver.

Spark reads what may have many rows, operations and probes. The up and down intervals that probes come to are few: they are
brought here, and laid together by the code of the plain-Python engine (`reference.trace`).

The parsed rows are written to Parquet once and read back for every aggregate: the text is parsed a single time, and
whoever wants to ask further questions finds the same tables.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow.parquet
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader expects
from pyspark.sql.types import StructType

from ..input.probe_rows import intervals_of
from ..input.probes import Spacing
from ..input.rows import Interval
from ..input.sources import Source
from ..model import aggregates as tables
from ..model import contract
from ..model.days import days_of
from ..model.errors import ReportError
from ..model.period import EVERYTHING, Asked, ReportPeriod, nothing_within
from ..model.places import Place, uri_of
from ..model.questions import Questions
from ..model.run_document import Run
from ..reference import loading
from ..reference.seen_outages import Stretch
from ..reference.trace import (
    Input,
    UpSet,
    aggregate_trace,
    deciding_periods,
    enough_of,
    in_order,
    row_counts,
    up_sets_of,
)
from . import jobs, outcome_jobs, probe_files, probe_jobs, rollups
from .expressions import TEXT, arrow_table, json_rows, schema, small_table, within
from .rollups import Aside, Cell, Group

Row = TypeVar("Row", bound=NamedTuple)

JOIN_PIECES_MIN: Final = 256
JOIN_PIECES_MAX: Final = 1 << 20
STRETCH_ROWS: Final = 50_000
"""About so many attempts, 5 MB in memory, are put in order at once."""

STRETCHES_MAX: Final = 4096
"""For 200 million attempts; of each choice and operation so many rows come to the driver at most."""

REJECTED: Final = schema(kind=TEXT, source=TEXT, reason=TEXT, line=TEXT)
NAMES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Stored:
    """One source: what is known of its replicas, and its operations and rejected rows as tables, read back from Parquet."""

    spark: SparkSession
    source: Source
    trace: Input
    up_sets: Sequence[UpSet]
    up_set_table: DataFrame
    operations: DataFrame
    groups: Sequence[Group]
    rejected: DataFrame

    @property
    def run(self) -> Run:
        """What is known of the run."""
        return self.trace.run

    @property
    def linked(self) -> tuple[str, ...]:
        """The front ends of which any link is spoken of."""
        return self.trace.linked

    def attempted(self) -> set[tuple[str, str]]:
        """Each quorum choice and operation that was tried."""
        return {(group.choice, group.operation) for group in self.groups}


class _Folder:
    """Where the tables are kept."""

    def __init__(self, spark: SparkSession, folder: Place) -> None:
        self.spark = spark
        self.folder = folder

    def store(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a table, over a former one, and read it back."""
        frame.write.mode("overwrite").parquet(uri_of(self.folder / name))
        return self.spark.read.schema(frame.schema).parquet(jobs.literal_path(self.folder / name))

    def keep(self, name: str, rows: Iterable[object], columns: StructType) -> DataFrame:
        """Write the few rows of a table that are here, over a former one, and give it to Spark."""
        table = arrow_table(map(attrgetter(*columns.names), rows), columns)
        place = self.folder / name
        try:
            place.mkdir(parents=True, exist_ok=True)
            with (place / "part-0.parquet").open("wb") as file:
                pyarrow.parquet.write_table(table, file)
        except OSError as error:
            raise ReportError(f"{place} cannot be written ({error}); give another folder") from error
        return self.spark.createDataFrame(table, columns)


def store(
    spark: SparkSession,
    source: Source,
    run: Run | None,
    folder: Place,
    *,
    votes: Mapping[str, int],
    step_us: int | None,
    asked: Asked = EVERYTHING,
) -> Stored:
    """Parse a run, or a prober's samples alone, into `operations`, `intervals`, `seen`, `up_sets` and `rejected`.

    Args:
        spark: the session.
        source: what to read.
        run: what `run.json` says; None for probes alone.
        folder: where the tables are written.
        votes: votes by replica for probes alone; empty for one each.
        step_us: the usual distance of two probes; None for what they show.
        asked: of which time.

    Raises:
        ReportError: Spark could not read a file, there is nothing of that time, or the replicas are never all observed at the same
            time.
    """
    with spark_errors(source.place, source.files):
        reader = _Reader(spark, source, folder)
        if run is None:
            run, period = reader.probes_within(votes, asked)
        else:
            run, period = loading.run_and_period(run, asked)
        return reader.stored(run, period, step_us)


def take(spark: SparkSession, source: Source, found: Input, folder: Place) -> Stored:
    """Store what was read elsewhere: other people's replicas, without operations.

    Raises:
        ReportError: Spark could not write the tables, or the replicas are never all observed at the same time.
    """
    with spark_errors(source.place, source.files):
        reader = _Reader(spark, source, folder)
        reader.store_intervals("intervals", found.intervals)
        return reader.with_trace(found, reader.folder.store("operations", small_table(spark, [], jobs.GOOD)))


class _Reader:
    """Parses the files of one source, gathering what is kept aside."""

    def __init__(self, spark: SparkSession, source: Source, folder: Place) -> None:
        self.spark = spark
        self.source = source
        self.folder = _Folder(spark, folder)
        self.rejected: list[DataFrame] = []
        self.read: dict[str, int] = {}

    def probes_within(self, votes: Mapping[str, int], asked: Asked) -> tuple[Run, ReportPeriod | None]:
        """As `loading.probes_within`, for a source without run.json."""
        every = self._samples(None)
        period = asked.period(lambda: probe_files.known(every))
        samples = every if period is None else self._samples(period)
        named = samples.select("replica").where("replica != ''").distinct().limit(NAMES_MAX).collect()
        if period is not None and not named:
            raise nothing_within(self.source.place, period, probe_files.known(every))
        return loading.run_of_probes(Run({}), tuple(sorted(row[0] for row in named)), votes), period

    def stored(self, run: Run, period: ReportPeriod | None, step_us: int | None) -> Stored:
        operations = self._operations(run, period)
        seen = self._seen(self._samples(period), run, step_us) if self.source.has_probes() else []
        part = loading.Part(run, period, (), seen, self.read, [])
        trace = loading.with_up_times(self.source, part)
        if self.source.replicas is not None:
            self.store_intervals("intervals", trace.intervals)
        if self.source.links is not None:
            self.store_intervals("links", trace.links)
        return self.with_trace(trace, operations)

    def with_trace(self, trace: Input, operations: DataFrame) -> Stored:
        """Lay replicas and links together, and store what is left to store."""
        rejected = self.folder.keep("rejected", trace.rejects, REJECTED)
        if self.rejected:
            rejected = self.folder.store("rejected", reduce(DataFrame.unionByName, self.rejected, rejected))
        up_sets = up_sets_of(trace)
        stored = self.folder.keep("up_sets", up_sets, outcome_jobs.UP_SET)
        groups = _collect(jobs.groups_of(operations), Group)
        return Stored(self.spark, self.source, trace, up_sets, stored, operations, groups, rejected)

    def _operations(self, run: Run, period: ReportPeriod | None) -> DataFrame:
        parts = []
        if self.source.operation_lines:
            lines = jobs.read_lines(self.spark, self.source.operation_lines)
            parts.append(json_rows(lines, jobs.OPERATION))
        if self.source.operation_parquet is not None:
            parts.append(jobs.read_packed_operations(self.spark, self.source.operation_parquet, period))
        every = reduce(DataFrame.unionByName, parts, small_table(self.spark, [], jobs.READ))
        tested = jobs.test_operations(
            within(every, period, "start_s"),
            jobs.choice_table(self.spark, run.choices),
            jobs.object_table(self.spark, run),
            run,
        )
        marked = jobs.mark_duplicates(tested)
        rows = Observation()
        counted = marked.observe(rows, F.count(F.lit(1)).alias("read"), F.count("reason").alias("aside"))
        operations = self.folder.store("operations", jobs.good_rows(counted))
        self.read[contract.OPERATIONS] = rows.get["read"]
        if rows.get["aside"]:  # few, if any: to find them again costs less than to keep all rows at hand
            self.rejected.append(jobs.rejected_operations(marked))
        return operations

    def store_intervals(self, name: str, intervals: Sequence[Interval]) -> None:
        self.folder.keep(name, intervals, outcome_jobs.INTERVAL)

    def _samples(self, period: ReportPeriod | None) -> DataFrame:
        paths = [*self.source.probe_lines, self.source.probe_parquet]
        return probe_files.read_samples(self.spark, [path for path in paths if path is not None], period)

    def _seen(self, samples: DataFrame, run: Run, step_us: int | None) -> list[Interval]:
        """The intervals that a prober's samples speak for."""
        replicas = list(run.votes)
        found = probe_jobs.find_edges(
            probe_jobs.tested_samples(samples, replicas),
            None if step_us is None else Spacing(step_us),
            parts=probe_jobs.parts_of(self.source.size_bytes()),
        )
        self.rejected.append(
            found.rejected.select(F.lit(contract.PROBES).alias("kind"), "source", "reason", "line")
        )
        self.read[contract.PROBES] = found.samples
        seen = intervals_of(probe_jobs.edges_by_replica(found.edges, replicas), found.spacing)
        self.store_intervals("seen", seen)
        return seen


def aggregate(stored: Stored, questions: Questions, lag_us: int) -> tables.Aggregates:
    """Boil a source down.

    Raises:
        ReportError: Spark failed, or the replicas are never all observed at the same time.
    """
    trace, up_sets, operations = stored.trace, stored.up_sets, stored.operations
    loading.check_observed(stored.source, trace, up_sets)
    enough = enough_of(up_sets, questions, trace.run)
    with spark_errors(stored.source.place, stored.source.files):
        placed = outcome_jobs.with_view(
            operations,
            outcome_jobs.view_table(stored.spark, trace.run.views(trace.linked)),
            outcome_jobs.decider_table(stored.spark, questions.run_systems),
        )
        periods = outcome_jobs.period_table(stored.spark, deciding_periods(up_sets, questions, enough))
        pieces = max(JOIN_PIECES_MIN, min(JOIN_PIECES_MAX, len(up_sets)))
        span_us = min(each.start_us for each in up_sets), max(each.end_us for each in up_sets)
        counted = outcome_jobs.count_attempts(
            placed,
            stored.up_set_table,
            periods,
            lag_us=lag_us,
            pieces=outcome_jobs.pieces_of(*span_us, pieces),
            span=trace.span,
            days=days_of(trace.span, trace.run.time_scale),
        )
        cells = _collect(counted, Cell)
        aside = _collect(jobs.rejected_counts(stored.rejected), Aside)
        return replace(
            aggregate_trace(trace, up_sets, questions, enough),
            bins=in_order(rollups.bins(cells)),
            days=in_order(rollups.days(cells)),
            classes=in_order(rollups.classes(stored.groups)),
            starts=in_order(rollups.starts(cells)),
            latencies=in_order(rollups.latencies(stored.groups)),
            seen=_seen_outages(stored),
            rows=row_counts(trace.read, rollups.kinds(aside)),
            rejected=in_order(rollups.rejected(aside)),
        )


def _seen_outages(stored: Stored) -> tuple[tables.SeenOutage, ...]:
    """The outages as operations saw them, from stretches of about `STRETCH_ROWS` attempts."""
    if not stored.groups:
        return ()
    number = sum(group.operations for group in stored.groups) // STRETCH_ROWS + 1
    pieces = outcome_jobs.pieces_of(
        min(group.first_us for group in stored.groups),
        max(group.last_us for group in stored.groups),
        min(STRETCHES_MAX, number),
    )
    rows = _brought(outcome_jobs.stretches(outcome_jobs.walked(stored.operations, pieces)))
    return in_order(rollups.seen((*row[:3], Stretch(*row[3:])) for row in rows))


def versions(spark: SparkSession) -> dict[str, str]:
    """Give the versions of Spark and of the Java it runs on."""
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
    return {"spark": spark.version, "java": str(java)}


def _collect(frame: DataFrame, row_type: type[Row]) -> tuple[Row, ...]:
    """Bring a grouped result to the driver, in the order of its columns (None first)."""
    found = [row_type(*row) for row in _brought(frame.select(*row_type._fields))]
    return tuple(sorted(found, key=tables.sort_key))


def _brought(frame: DataFrame) -> Sequence[Sequence[Any]]:
    """Bring the few rows of a grouped result to the driver."""
    return frame.collect()


@contextmanager
def spark_errors(where: Place, files: Iterable[Place]) -> Iterator[None]:
    """Turn what Spark raises over `files` into a sentence; its own message, many pages long, stays the cause."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error).strip() or type(error).__name__
        named = sorted(path.name for path in files if path.name in text)
        place = f"{where}: {', '.join(named)}" if named else str(where)
        raise ReportError(
            f"Spark could not work through {place} ({text.splitlines()[0][:300]}); check that its files are whole, and "
            "that the output folder can be written"
        ) from error
