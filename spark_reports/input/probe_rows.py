"""A prober's rows in plain Python: read from lines and from Parquet, parsed and tested in the words and the order of `probe_jobs`.

A file's rows are `Rows`, one text or one table of Arrow. Those of Parquet are tested column by column, and one by one only where
they are bad: a day of nine replicas that were probed every second is 777,600 rows, which take half a second so.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, isfinite, isnan
from typing import Any, Final, Protocol

from ..model import contract
from ..model.aggregates import Span, microseconds
from ..model.days import DAY_US
from ..model.period import ReportPeriod
from ..model.places import Place
from ..model.run_document import Run
from . import parquet_files, probes
from .rows import Interval, Reject, json_object, lines_of, parquet_tables, shown_time
from .sources import Source

_NUMBERS: Final = ("time_s", "up", "latency_s")
WHOLE_MAX: Final = 1e9
"""Of a larger number nobody asks for all digits."""


@dataclass(slots=True)
class Tested:
    """What the rows of a file come to: good samples (`probes.packed`) by replica, and rows kept aside as (reason, text)."""

    samples: dict[str, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    rejects: list[tuple[str, str]] = field(default_factory=list)


class Rows(Protocol):
    """Rows of one file. `source` is its name."""

    source: str

    def __len__(self) -> int:
        """How many there are."""
        ...

    def within(self, period: ReportPeriod) -> "Rows":
        """Those that say a time within a period."""
        ...

    def by_day(self) -> Mapping[int | None, "Rows"]:
        """Apart by the day of their time, by its number since 1970 (UTC); None for those that say no time."""
        ...

    def span(self) -> Span | None:
        """From the first time that they say to the last; None where they say none."""
        ...

    def replicas(self) -> set[str]:
        """The replicas that they name."""
        ...

    def tested(self, known: Container[str]) -> Tested:
        """Test them; `known` are the replicas that there are."""
        ...

    def lines_at(self, moments: Mapping[str, Container[int]]) -> Iterator[str]:
        """The texts of the good rows of some moments (microseconds), by replica; called once `tested`."""
        ...


def rows_of(
    source: Source,
    columns: Sequence[str] = probes.FIELDS,
    period: ReportPeriod | None = None,
    only: Collection[Place] | None = None,
) -> Iterator[tuple[Place, Rows]]:
    """The rows of each file of a source's probes; with a period, those within it; with `only`, those of such files.

    Of Parquet only `columns` are read, and all are as if they held nulls that are not.

    Raises:
        ReportError: a file cannot be read.
    """
    for path in source.probe_lines:
        if only is None or path in only:
            lines = LineRows(path.name, [(line, _parsed(line)) for line in lines_of(path)])
            yield path, lines if period is None else lines.within(period)
    if source.probe_parquet is not None:
        parquet_files.check(source.probe_parquet, parquet_files.PROBES, parquet_files.PROBES_OPTIONAL, only)
        for path, table in parquet_tables(source.probe_parquet, columns, period, "time_s", only):
            packed = PackedRows(path.name, table)
            yield path, packed if period is None else packed.within(period)


def _parsed(line: str) -> dict[str, Any] | None:
    return json_object(line, _NUMBERS, ("replica",))


def _day_of(time_s: Any) -> int | None:
    """The day (UTC) of a time as a row has it; None for what is no plausible time."""
    is_time = isinstance(time_s, int | float) and isfinite(time_s) and 0 <= time_s <= contract.TIME_S_MAX
    return microseconds(time_s) // DAY_US if is_time else None


class LineRows:
    """Rows as lines of JSON, each with what it was parsed to; None for what is not one object."""

    def __init__(self, source: str, rows: Sequence[tuple[str, dict[str, Any] | None]]) -> None:
        self.source = source
        self._rows = rows

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def within(self, period: ReportPeriod) -> "LineRows":
        """As `Rows`."""
        return LineRows(
            self.source, [each for each in self._rows if each[1] and period.holds(each[1].get("time_s"))]
        )

    def by_day(self) -> Mapping[int | None, "LineRows"]:
        """As `Rows`."""
        parts: dict[int | None, list[tuple[str, dict[str, Any] | None]]] = defaultdict(list)
        for line, row in self._rows:
            parts[_day_of(row.get("time_s")) if row else None].append((line, row))
        return {day: LineRows(self.source, own) for day, own in parts.items()}

    def span(self) -> Span | None:
        """As `Rows`."""
        times = [row["time_s"] for _, row in self._rows if row and _day_of(row.get("time_s")) is not None]
        return Span(microseconds(min(times)), microseconds(max(times)) + 1) if times else None

    def replicas(self) -> set[str]:
        """As `Rows`."""
        return {row["replica"] for _, row in self._rows if row and row.get("replica")}

    def tested(self, known: Container[str]) -> Tested:
        """As `Rows`."""
        found = Tested()
        for line, row in self._rows:
            reason = contract.MALFORMED_JSON if row is None else _reason(row, known)
            if row is None or reason:
                found.rejects.append((reason or "", line))
            else:
                found.samples[row["replica"]].append(
                    probes.packed(microseconds(row["time_s"]), int(row["up"]))
                )
        return found

    def lines_at(self, moments: Mapping[str, Container[int]]) -> Iterator[str]:
        """As `Rows`."""
        for line, row in self._rows:
            if row and not _reason(row, moments) and microseconds(row["time_s"]) in moments[row["replica"]]:
                yield line


class PackedRows:
    """Rows of Parquet, as a table of Arrow."""

    def __init__(self, source: str, table: Any) -> None:
        self.source = source
        self._table = table

    def __len__(self) -> int:
        """How many there are."""
        return int(self._table.num_rows)

    def within(self, period: ReportPeriod) -> "PackedRows":
        """As `Rows`."""
        import pyarrow.compute as pc  # noqa: PLC0415 - as in `rows`

        time_us = self._time_us()
        inside = pc.and_(pc.greater_equal(time_us, period.start_us), pc.less(time_us, period.end_us))
        return PackedRows(self.source, self._table.filter(inside))

    def by_day(self) -> Mapping[int | None, "PackedRows"]:
        """As `Rows`."""
        import pyarrow.compute as pc  # noqa: PLC0415

        days = pc.divide(self._time_us(), DAY_US)
        numbers = pc.unique(days).to_pylist()
        if len(numbers) == 1:
            return {numbers[0]: self}
        parts = {day: pc.is_null(days) if day is None else pc.equal(days, day) for day in numbers}
        return {day: PackedRows(self.source, self._table.filter(own)) for day, own in parts.items()}

    def span(self) -> Span | None:
        """As `Rows`."""
        import pyarrow.compute as pc  # noqa: PLC0415

        first_us, last_us = pc.min_max(self._time_us()).as_py().values()
        return None if first_us is None else Span(first_us, last_us + 1)

    def replicas(self) -> set[str]:
        """As `Rows`."""
        import pyarrow.compute as pc  # noqa: PLC0415

        return {name for name in pc.unique(self._column("replica", "string")).to_pylist() if name}

    def tested(self, known: Container[str]) -> Tested:
        """As `Rows`. Column by column; the reasons are those of the rows that are not good."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        found = Tested()
        names = [name for name in self.replicas() if name in known]
        replica, good = self._column("replica", "string"), self._good(names)
        sample = self._samples()
        for name in sorted(names):
            own = pc.filter(sample, pc.and_(good, pc.equal(replica, name)))
            for chunk in own.chunks if isinstance(own, pa.ChunkedArray) else [own]:
                found.samples[name].frombytes(chunk.to_numpy(zero_copy_only=False).tobytes())
        for row in self._table.filter(pc.invert(good)).to_pylist():
            found.rejects.append((_reason(row, known) or "", _shown(row)))
        return found

    def lines_at(self, moments: Mapping[str, Container[int]]) -> Iterator[str]:
        """As `Rows`."""

        for row in self._table.filter(self._good(list(moments))).to_pylist():
            if microseconds(row["time_s"]) in moments[row["replica"]]:
                yield _shown(row)

    def _column(self, name: str, form: str) -> Any:
        """A column in one form; nulls where the table has none of that name."""
        import pyarrow as pa  # noqa: PLC0415

        if name in self._table.column_names:
            return self._table.column(name).cast(form, safe=False)
        return pa.chunked_array([pa.nulls(len(self), form)])

    def _time_us(self) -> Any:
        """The times in microseconds, exactly as `aggregates.microseconds` rounds them; null for what is no plausible time."""
        import pyarrow.compute as pc  # noqa: PLC0415

        time_s = self._column("time_s", "double")
        told = pc.if_else(_between(time_s, 0.0, contract.TIME_S_MAX), time_s, None)
        return pc.floor(pc.add(pc.multiply(told, 1e6), 0.5)).cast("int64")

    def _good(self, names: Sequence[str]) -> Any:
        """Whether each row passes every test of `_reason`; never null."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        latency_s = self._column("latency_s", "double")
        tests = (
            pc.is_in(self._column("replica", "string"), value_set=pa.array(names, "string")),
            _between(self._column("time_s", "double"), 0.0, contract.TIME_S_MAX),
            pc.is_in(self._column("up", "double"), value_set=pa.array([0.0, 1.0])),
            pc.or_(pc.is_null(latency_s, nan_is_null=True), _between(latency_s, 0.0, contract.TIME_S_MAX)),
        )
        good = tests[0]
        for test in tests[1:]:
            good = pc.and_(good, test)
        return good

    def _samples(self) -> Any:
        """`probes.packed` of each row; whatever it be where it is not good."""
        import pyarrow.compute as pc  # noqa: PLC0415

        up = pc.equal(self._column("up", "double"), 1.0).cast("int64")
        return pc.bit_wise_or(pc.shift_left(self._time_us(), 1), up)


def _between(column: Any, low: float, high: float) -> Any:
    """Whether each value lies within; false for nulls, and for what is no number."""
    import pyarrow.compute as pc  # noqa: PLC0415

    return pc.fill_null(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)), False)


def _shown(row: Mapping[str, Any]) -> str:
    """A row of Parquet in words: the fields with commas between, times in whole microseconds; the same on Spark."""
    words = (
        row.get("replica"),
        shown_time(row.get("time_s")),
        _shown_state(row.get("up")),
        shown_time(row.get("latency_s")),
    )
    return ",".join("" if word is None else word for word in words)


def _shown_state(up: float | None) -> str:
    if up is None:
        return ""
    return str(floor(up)) if abs(up) <= WHOLE_MAX and up == floor(up) else "?"


def _reason(row: Mapping[str, Any], known: Container[str]) -> str | None:
    """Give the first reason to keep a probe aside; the order is that of `probe_jobs`."""
    for name in contract.PROBE_FIELDS:
        if row.get(name) is None:
            return contract.MISSING_FIELD + name
    latency_s = row.get("latency_s")
    # A frame library writes a missing number as NaN: a probe without an answer.
    told_s = 0.0 if latency_s is None or isnan(latency_s) else latency_s
    tests = (
        (row["replica"] not in known, contract.UNKNOWN_REPLICA),
        (not 0 <= row["time_s"] <= contract.TIME_S_MAX, contract.BAD_TIME),
        (row["up"] not in (0, 1), contract.BAD_UP),
        (not 0 <= told_s <= contract.TIME_S_MAX, contract.BAD_LATENCY),
    )
    return next((reason for holds, reason in tests if holds), None)


def names_in(source: Source, period: ReportPeriod | None = None) -> tuple[str, ...]:
    """The replicas that a source of probes alone speaks of, sorted."""
    columns = ("replica", "time_s")
    return tuple(sorted({name for _, rows in rows_of(source, columns, period) for name in rows.replicas()}))


def known(source: Source) -> Span | None:
    """From the first sample to the last; None where no time can be told."""
    spans = [span for _, rows in rows_of(source, ("time_s",)) if (span := rows.span()) is not None]
    return Span(min(each.start_us for each in spans), max(each.end_us for each in spans)) if spans else None


class Part:
    """The rows of one part of time, a day or all there is, gathered file by file."""

    def __init__(self, known: Container[str]) -> None:
        """Of these replicas."""
        self.read = 0
        self.replicas: set[str] = set()
        self.rejects: list[Reject] = []
        self._known = known
        self._samples: dict[str, array[int]] = {}
        self._rows: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Take the rows of one more file."""
        tested = rows.tested(self._known)
        self.read += len(rows)
        self.replicas |= rows.replicas()
        self._rows.append(rows)
        self._aside(rows, tested.rejects)
        for replica, samples in tested.samples.items():
            self._samples.setdefault(replica, array("q")).extend(samples)

    def usual_step_us(self) -> int:
        """As `probes.usual_step_us`."""
        earliest = {name: sorted(own)[: probes.FIRST_SAMPLES] for name, own in self._samples.items()}
        return probes.usual_step_us(
            (name, sample >> 1, sample & 1) for name, own in earliest.items() for sample in own
        )

    def edges(self, spacing: probes.Spacing) -> dict[str, list[probes.Edge]]:
        """What the samples come to, by replica, in order; keeps rows aside that contradict each other."""
        found = {name: probes.edges_of(self._samples[name], spacing) for name in sorted(self._samples)}
        moments = {name: set(own.contradicted) for name, own in found.items() if own.contradicted}
        if moments:
            for rows in self._rows:
                self._aside(rows, ((probes.CONTRADICTS, line) for line in rows.lines_at(moments)))
        return {name: own.edges for name, own in found.items()}

    def _aside(self, rows: Rows, rejects: Iterable[tuple[str, str]]) -> None:
        self.rejects += [Reject(contract.PROBES, rows.source, *each) for each in rejects]


def read_probes(
    source: Source, run: Run, step_us: int | None, rejects: list[Reject], period: ReportPeriod | None = None
) -> tuple[list[Interval], int]:
    """The intervals that the probes of a source speak for, and the number of rows read; with a period, of those sent within it.

    `step_us` is the usual distance of two probes of one replica; None for the median of the first ones.

    Raises:
        ReportError: a file cannot be read, or the probes do not show how often they were sent.
    """
    part = Part(run.votes)
    for _, rows in rows_of(source, period=period):
        part.add(rows)
    spacing = probes.Spacing(part.usual_step_us() if step_us is None else step_us)
    edges = part.edges(spacing)
    rejects += part.rejects
    return intervals_of(edges, spacing), part.read


def intervals_of(edges: Mapping[str, Iterable[probes.Edge]], spacing: probes.Spacing) -> list[Interval]:
    """The intervals that edges by replica come to, in order."""
    return [
        Interval("", *each) for name in sorted(edges) for each in probes.merged(name, edges[name], spacing)
    ]
