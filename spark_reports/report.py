"""Makes a report: finds out what the input is, chooses an engine, and writes the page, the figures and the tables."""

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from .. import __version__
from ..adts.specification import Specification
from ..adts.types.called import Called
from ..adts.types.catalogue import known_types
from .figures import derive, derive_regimes, figure_tables
from .figures.derive import Origin
from .figures.derive_objectives import Wanted
from .figures.derive_regimes import Since
from .figures.keys import KEYS
from .figures.output_folders import SPARK_TABLES, OutputFolder
from .input import sources
from .input.files import files_of
from .input.foreign import LABEL
from .input.rows import Reject
from .input.sizes import Size, size_of
from .input.sources import Source, find_source
from .model import contract, objectives, questions
from .model.aggregates import Aggregates, microseconds
from .model.contract import LAG_S
from .model.errors import ReportError, SparkMissing
from .model.figures import Figures
from .model.period import EVERYTHING, Asked
from .model.places import Place, Where, is_uri
from .model.questions import Questions
from .model.run_document import Run, read_run
from .page import page
from .reference import loading, reference
from .reference.trace import Input, row_counts
from .spark.session import EMBEDDED, NOTHING, UNSEEN, local_session, parted
from .store.folder import ClusterFolder
from .store.kept import read_kept
from .store.updating import update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["auto", "spark", "python"]

PYTHON_ROWS_MAX: Final = 2_000_000
"""Input of more rows is not read into memory where Spark is missing: each takes 1.5 KB of it, and 30 us of processor time."""

LAG_S_MAX: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Options:
    """How to make a report.

    Attributes:
        engine: `spark`; `python`, which needs no Java and reads everything into memory; or `auto`: Spark, or Python where there is no
            Spark or no Java.
        master: where Spark runs; None for `local[*]`, this process with all cores. A running session is used as it is.
        driver_memory: of Spark's own Java process on this machine, as `4g`; None for what fits the input.
        conf: further settings of Spark, over ours.
        adt: the data type to answer for where no operations were recorded: one of the catalogue by name, or one's own.
        votes: votes by replica, for data without `run.json`; those not named are left out; empty: one vote each.
        mix: how often each operation is asked for, relative to the others; empty: as tried, or each alike.
        label: the label of Prometheus that tells replicas apart.
        step_s: seconds between two samples; None for what the run says, or the data shows.
        lag_s: how near to a change an attempt counts as met by it, in seconds.
        asked: the time whose rows count; all, where nothing is asked.
        slo: service level objectives, each as a share, by the name of an operation or event class.
        present: the choice in force, by its name in the report or as a rule of a cluster; None for those that were run, or majorities.
        changes: when which other choice came into force, in the order of time; `present` is the one before the first of them.
        store: a folder, or a URI as text, that keeps what the probes of each day come to; only days that are new or changed are read of the input.
        cluster: the name under which the store keeps them.
        name: what the page calls the input; None for the name of its file or folder, or of the cluster in the store.
    """

    engine: Engine = "auto"
    master: str | None = None
    driver_memory: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    adt: str | Specification | None = None
    votes: Mapping[str, int] = field(default_factory=dict)
    mix: Mapping[str, float] = field(default_factory=dict)
    label: str = LABEL
    step_s: float | None = None
    lag_s: float = LAG_S
    asked: Asked = EVERYTHING
    slo: Mapping[str, Fraction] = field(default_factory=dict)
    present: objectives.Present = None
    changes: Sequence[Since] = ()
    store: Where | None = None
    cluster: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was made. `tables` and `parquet` are None without pyarrow; `notes` are sentences for whoever asked."""

    html: Place
    json: Place
    tables: Place | None
    parquet: Place | None
    figures: Figures
    notes: tuple[str, ...]

    @property
    def advice(self) -> str:
        """How commands that are run here name `figures.json`: where it lies by URI, a copy of it."""
        return self.json.name if is_uri(str(self.json)) else str(self.json)


def make_report(input_path: Where | None, output_dir: Where, options: Options | None = None) -> Report:
    """Make the report of what lies at `input_path`; with a store of what that keeps then, also without any input.

    Writes `report.html` (self-contained), `figures.json` (each key is explained in it under `keys`), the folder `tables`
    with the same figures as Parquet, and the folder `parquet` with the rows kept aside; on Spark also with the tables
    `operations`, `intervals` and `up_sets`. What is there already is replaced,
    tables that only an older report wrote too; a folder `tables` or `parquet` with other people's files is refused.

    What is a URI (text with `://`) is read and written by the file systems of a Spark session, with its settings `spark.hadoop.…`.

    Raises:
        ReportError: a file is missing or unusable, an option does not fit the input, or the output cannot be written.
        SparkMissing: Spark was asked for, or is needed for so much input, and it or its Java is not there.
    """
    wanted = options or Options()
    uris = [str(each) for each in (input_path, output_dir, wanted.store) if is_uri(each)]
    check(wanted, uris)
    with _places(wanted, input_path, uris) as places:
        folder = None
        if wanted.store is not None and wanted.cluster is not None:
            folder = ClusterFolder(places.place(wanted.store), wanted.cluster)
        if input_path is not None:
            source = find_source(places.place(input_path))
        elif folder is not None:
            source = Source(sources.PROBES, folder.place)
        else:
            raise ReportError("there is nothing to report on: give --input, or --store and --cluster")
        return _Maker(source, places.place(output_dir), wanted, folder, places.spark).make()


@dataclass(frozen=True, slots=True)
class _Places:
    """How paths and URIs are found; `spark` is the session that URIs need."""

    spark: "SparkSession | None" = None

    def place(self, where: Where) -> Place:
        if self.spark is None or not is_uri(where):
            return Path(where)
        from .spark.hadoop import HadoopFiles  # noqa: PLC0415 - the room works without Spark installed

        return HadoopFiles(self.spark).place(str(where))


@contextmanager
def _places(options: Options, input_path: Where | None, uris: Sequence[str]) -> Iterator[_Places]:
    """What finds the places of a report, while it is made."""
    if not uris:
        yield _Places()
        return
    size = UNSEEN if options.store is None and input_path is not None else NOTHING
    with _session(options, size) as spark:
        try:
            yield _Places(spark)
        except OSError as error:
            raise ReportError(
                f"{' or '.join(uris)} cannot be used ({error}); see that Spark can reach it, and that its settings, as --conf "
                "spark.hadoop.KEY=VALUE, let you in"
            ) from error


def _session(options: Options, size: Size) -> "AbstractContextManager[SparkSession]":
    return local_session(
        options.master or EMBEDDED, driver_memory=options.driver_memory, size=size, conf=options.conf
    )


def report_of(source: Source, output_dir: Place, options: Options, spark: "SparkSession") -> Report:
    """As `make_report`, of these files, in a session that runs."""
    return _Maker(source, output_dir, options, None, spark).make()


class _Maker:
    """The steps to one report."""

    def __init__(
        self,
        source: Source,
        output_dir: Place,
        options: Options,
        folder: ClusterFolder | None,
        spark: "SparkSession | None",
    ) -> None:
        self.source = source
        self.folder = folder
        self.spark = spark
        self.output_dir = output_dir
        self.options = options
        self.tables = OutputFolder(output_dir / "tables", figure_tables.table_names())
        self.parquet = OutputFolder(output_dir / "parquet", SPARK_TABLES)
        self.notes: list[str] = []
        self.types = dict(known_types())
        if options.adt is None or isinstance(options.adt, str):
            self.adt = options.adt
        else:
            self.adt = options.adt.name
            self.types[self.adt] = options.adt

    def make(self) -> Report:
        try:
            self.output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReportError(
                f"{self.output_dir} cannot be made ({error}); give a folder that can be written"
            ) from error
        for folder in (self.tables, self.parquet):
            folder.prepare()
        try:
            return self._made()
        finally:
            for folder in (self.tables, self.parquet):
                folder.discard()

    def _made(self) -> Report:
        if self.source.document is not None and self.options.changes:
            raise ReportError(
                f"--since says which choice was in force, and in {self.source.place} that is what run.json says of each object: leave it out"
            )
        if self.folder is not None:
            return self._of_days(self.folder)
        if self.options.engine != "python":
            try:
                return self._with_spark()
            except SparkMissing as error:
                if self.options.engine == "spark":
                    raise
                self._check_fits(error)
                self.notes.append(f"{error}. The report is made in plain Python instead.")
        return self._in_python()

    def _check_fits(self, missing: SparkMissing) -> None:
        rows = size_of(self.source).rows
        if rows > PYTHON_ROWS_MAX:
            raise SparkMissing(
                f"{missing}; {self.source.place} has about {rows} rows, too many for plain Python "
                f"(at most {PYTHON_ROWS_MAX}, unless asked for with --engine python)"
            )

    def _in_python(self) -> Report:
        found = self._loaded()
        asked = self._ask(found.run, found.attempted)
        counted = reference.aggregate(found, asked, microseconds(self.options.lag_s))
        loading.check_observed(self.source, found, counted.up_sets)
        figures = self._derive(counted, found, asked, "python")
        return self._write(figures, versions(), found.rejects)

    def _of_days(self, folder: ClusterFolder) -> Report:
        """The report of what a store keeps, once it has the days of the input."""
        step_us, votes = self._step_us(None), self.options.votes
        if self.source.kind != sources.PROBES:
            raise ReportError(
                f"{self.source.place} is no folder of probes, and a store keeps nothing else: leave --store out"
            )
        has_input = self.source.has_probes()
        with folder.written() if has_input else folder.read():
            if has_input:
                self.notes += update(folder, self.source, step_us, votes).sentences(str(folder.place))
            kept = read_kept(folder, self.options.asked, step_us, votes)
        asked = self._ask(kept.trace.run, set())
        counted = reference.aggregate(kept.trace, asked, microseconds(self.options.lag_s))
        loading.check_observed(self.source, kept.trace, counted.up_sets)
        aside = {contract.PROBES: sum(row.rows for row in kept.rejected)}
        counted = replace(counted, rows=row_counts(kept.trace.read, aside), rejected=kept.rejected)
        return self._write(self._derive(counted, kept.trace, asked, "python"), versions(), [])

    def _loaded(self) -> Input:
        options, source = self.options, self.source
        if source.kind in (sources.TRACE, sources.PROMETHEUS):
            found = loading.read_foreign(source, options.label, options.step_s, options.asked)
            return loading.load_foreign(found, options.votes, source)
        if source.document is None:
            run, period = loading.probes_within(source, options.votes, options.asked)
        else:
            run, period = loading.run_and_period(self._run(source.document), options.asked)
        return loading.load(source, run, self._step_us(run), period)

    def _run(self, document: Place) -> Run:
        run = read_run(document)
        if self.options.votes and dict(self.options.votes) != dict(run.votes):
            raise ReportError(f"--votes contradicts {document}, which has the votes; leave it out")
        return run

    def _with_spark(self) -> Report:
        options, source = self.options, self.source
        # What can be wrong is told before Spark has started: of traces and answers, which are short, all is read before.
        few = self._loaded() if source.kind in (sources.TRACE, sources.PROMETHEUS) else None
        if few is not None:
            self._ask(few.run, few.attempted)
        run = None if source.document is None else self._run(source.document)
        size = size_of(source)
        session = _session(options, size) if self.spark is None else nullcontext(self.spark)
        with session as spark, parted(spark, size):
            from .spark import engine  # noqa: PLC0415 - the room works without Spark installed

            if few is not None:
                stored = engine.take(spark, source, few, self.parquet.aside)
            else:
                stored = engine.store(
                    spark,
                    source,
                    run,
                    self.parquet.aside,
                    votes=options.votes,
                    step_us=self._step_us(run),
                    asked=options.asked,
                )
            asked = self._ask(stored.run, stored.attempted())
            counted = engine.aggregate(stored, asked, microseconds(options.lag_s))
            figures = self._derive(counted, stored.trace, asked, "spark")
            return self._write(figures, versions() | engine.versions(spark), None)

    def _step_us(self, run: Run | None) -> int | None:
        """The distance of two samples: as asked for, or as the run says; None where only they can tell."""
        step_s = self.options.step_s
        if step_s is None and run is not None:
            step_s = run.prober_step_s
        return None if step_s is None else microseconds(step_s)

    def _ask(self, run: Run, attempted: set[tuple[str, str]]) -> Questions:
        """Decide what to answer for: the choices of the run, or of the type that was named."""
        adts: dict[str, tuple[str, ...]] = {}
        if self.adt is not None:
            operations = self.types[self.adt].kinds
            mixed = tuple(name for name in operations if name in self.options.mix)
            adts[self.adt] = mixed if len(mixed) == len(self.options.mix) > 0 else tuple(operations)
        elif not run.choices:
            raise ReportError(
                f"{self.source.place} does not say what kind of object the replicas keep; name one with --type: "
                f"{', '.join(known_types())}, or FILE.py:NAME for your own"
            )
        types = {**_own_types(run), **self.types}
        asked = questions.ask(run.choices, adts, run.votes, attempted, self.options.mix, types)
        if self.options.mix and not any(set(self.options.mix) <= set(used) for used in asked.used.values()):
            known = "; ".join(f"{adt}: {', '.join(used)}" for adt, used in asked.used.items())
            raise ReportError(
                f"--mix names {', '.join(self.options.mix)}, which no type here has together ({known})"
            )
        objectives.check(asked, self.options.slo, self.options.present, run.votes)
        derive_regimes.check_choices(asked, self.options.changes)
        return asked

    def _derive(self, counted: Aggregates, found: Input, asked: Questions, engine: str) -> Figures:
        self.notes += derive_regimes.outside(counted.span, self.options.changes)
        return derive.derive(
            counted,
            found.run,
            asked,
            Origin(
                kind=self.source.kind,
                name=self.options.name
                or self.options.cluster
                or self.source.place.name
                or str(self.source.place),
                files=tuple(path.name for path in self.source.files),
                engine=engine,
                linked=found.linked,
                lag_us=microseconds(self.options.lag_s),
                mix=self.options.mix,
                period=found.period,
                wanted=Wanted(self.options.slo, self.options.present),
                changes=self.options.changes,
            ),
        )

    def _write(
        self, figures: Figures, made_by: Mapping[str, str], rejects: Sequence[Reject] | None
    ) -> Report:
        """Write everything; `rejects` are the rows kept aside that no one has written yet."""
        can_write = figure_tables.can_write()
        report = Report(
            html=self.output_dir / "report.html",
            json=self.output_dir / "figures.json",
            tables=self.tables.place if can_write else None,
            parquet=self.parquet.place if rejects is None or (rejects and can_write) else None,
            figures=figures,
            notes=(),
        )
        if can_write:
            figure_tables.write_tables(figures, self.tables.aside)
            if rejects:
                figure_tables.write_rejected(rejects, self.parquet.aside)
        else:
            self.notes.append(
                "No Parquet tables: they need pyarrow; run: pip install 'quorate[reports]'. figures.json has them all."
            )
        if report.advice != str(report.json):
            self.notes.append(f"The commands of the report read a copy of {report.json}, where they are run.")
        try:
            html = page.render(figures, made_by, parquet=report.parquet is not None, place=report.advice)
            put = files_of(self.output_dir).put
            put(report.html, html.encode())
            put(report.json, figures_json(figures, made_by).encode())
            self.tables.install()
            self.parquet.install()
        except OSError as error:
            raise ReportError(
                f"{self.output_dir} cannot be written ({error}); give another folder"
            ) from error
        return replace(report, notes=tuple(self.notes))


def _own_types(run: Run) -> dict[str, Called]:
    """The types of the run that are its users' own, as quorums see them; those of other systems have operations of their own."""
    own = {choice.adt: Called(choice.adt) for choice in run.choices}
    return {
        choice.adt: own[choice.adt]
        for choice in run.choices
        if set(choice.operations) <= own[choice.adt].kinds.keys()
    }


def check(options: Options, uris: Sequence[str] = ()) -> None:
    """See that options fit each other, and the URIs; ReportError where they do not."""
    _check_store(options, uris)
    derive_regimes.check_order(options.present, options.changes)
    if uris and options.engine == "python":
        raise ReportError(
            f"{uris[0]} is of a file system of Spark, which plain Python does not have: leave --engine python out, or copy the files to a "
            "folder of this machine and name that"
        )
    if options.engine == "python" and (options.master or options.driver_memory or options.conf):
        raise ReportError(
            "plain Python has no master, no driver memory and no settings of Spark: leave these out, or the engine"
        )
    if isinstance(options.adt, str) and options.adt not in known_types():
        raise ReportError(f"there is no data type {options.adt!r}; use {', '.join(known_types())}")
    if not 0 <= options.lag_s <= LAG_S_MAX:
        raise ReportError(f"a lag of {options.lag_s} s is none; give 0 to {LAG_S_MAX:g} s")
    if options.step_s is not None and not 0 < options.step_s <= LAG_S_MAX:
        raise ReportError(
            f"a step of {options.step_s} s is none; give more than 0 and at most {LAG_S_MAX:g} s"
        )
    for name, share in options.slo.items():
        if not 0 < share < 1:
            raise ReportError(
                f"an objective of {float(share * 100):g} % for {name} is none: give more than 0 and less than 100, which would leave no "
                "error budget"
            )
    if options.mix and not (
        all(share >= 0 for share in options.mix.values()) and sum(options.mix.values()) > 0
    ):
        raise ReportError("the mix needs shares of 0 or more, one of them above 0")


def _check_store(options: Options, uris: Sequence[str]) -> None:
    if options.store is None:
        if options.cluster is not None:
            raise ReportError("--cluster names a part of a store: give the --store too, or leave it out")
        return
    if options.cluster is None:
        raise ReportError(f"{options.store} keeps days by cluster: name it with --cluster")
    if not figure_tables.can_write():
        raise ReportError(
            "a store is kept in Parquet, which needs pyarrow; run: pip install 'quorate[reports]'"
        )
    if not uris and (options.engine == "spark" or options.master or options.driver_memory or options.conf):
        raise ReportError(
            "days are taken into a store in plain Python: leave --engine, --master, --driver-memory and --conf out"
        )


def figures_json(figures: Figures, made_by: Mapping[str, str]) -> str:
    """Give the text of `figures.json`."""
    document = figures.as_dict() | {"versions": dict(made_by), "keys": dict(KEYS)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def versions() -> dict[str, str]:
    """What makes the report, without Spark."""
    return {"quorate": __version__, "python": platform.python_version()}
