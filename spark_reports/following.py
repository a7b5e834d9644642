"""Follows a folder into which whole files come: the report of the last stretch of its data, made anew whenever there are more.

Owns which files were taken, and of what time each is. The figures are those of `report`, of the files that have rows of that stretch: files
are a set, by name, so that no sample counts twice, however often a batch of Spark's comes again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

import msgspec

from .input.files import LOCAL
from .input.sources import Source, find_source
from .model.aggregates import Span
from .model.days import DAY_US
from .model.errors import ReportError, SparkMissing
from .model.period import EVERYTHING, Asked, ReportPeriod
from .model.places import Place
from .model.run_document import read_run
from .report import Options, Report, check, report_of
from .spark.session import EMBEDDED, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .spark.arrivals import Arrival

FOLDER: Final = "followed"
"""Within the folder of the report: what was taken, and Spark's checkpoint."""

LAST_US: Final = 3_600_000_000
LAST_US_MAX: Final = DAY_US
"""The rows of the time are read again for every card."""

PYTHON_ROWS_MAX: Final = 100_000
"""So many rows take plain Python 3 s and 150 MB, and Spark, which runs already, several times that; their files are many and small."""

EVERY_S_MAX: Final = 86_400.0
INSTEAD: Final = (
    "without it, let a timer run the report again and again: quorate report --engine python --last 1h"
)
BY_DAY: Final = "without --follow, --store keeps many days"


class TakenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as it was when it was taken, and its rows: how many, and their first and last time (microseconds)."""

    bytes: int
    rows: int
    first_us: int
    last_us: int


class Taken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files that were taken of a folder, by name; those that are older than the time that is reported on are forgotten."""

    input: str
    last_us: int
    files: dict[str, TakenFile] = {}
    schema_version: int = 1


@dataclass(frozen=True, slots=True)
class Card:
    """What a look at the folder came to: a report, or a sentence that says why there is none."""

    new_files: int
    report: Report | None
    sentence: str = ""


def follow(
    place: Path,
    output_dir: Path,
    options: Options,
    *,
    every_s: float,
    stopping: AbstractContextManager[Event],
    told: Callable[[Card], None],
) -> None:
    """Look for new files of `place` every `every_s` seconds, and make the report of the last `options.asked` (an hour) of its data anew.

    Args:
        place: a folder of probes, or of a measured run; of JSON lines, whose files do not change once they have their name.
        output_dir: as of `make_report`; its folder `followed` has what was taken. A later run goes on from there.
        options: as of `make_report`, but for `store`, plain Python, and `asked`, which is the last stretch or nothing.
        every_s: how long to wait between two looks.
        stopping: gives the event upon which to end, with the batch and the card that are under way; entered once Spark runs.
        told: is told every card.

    Raises:
        ReportError: as `make_report`, for the first card; a file changed or went away after it was taken; what was taken is of another folder or
            of another time.
        SparkMissing: Spark or its Java is not there.
    """
    _check(place, options, every_s)
    last_us = options.asked.last_us or LAST_US
    follower = _Follower(place, output_dir, replace(options, asked=Asked(last_us=last_us)), last_us)
    stops: list[Event] = []
    try:
        session = local_session(
            options.master or EMBEDDED, driver_memory=options.driver_memory, conf=options.conf
        )
        with session as spark, stopping as stop:
            stops.append(stop)
            while not stop.is_set():
                follower.look(spark, stop, told)
                stop.wait(every_s)
    except SparkMissing as error:
        raise SparkMissing(f"--follow learns of new files from Spark. {error}; {INSTEAD}") from error
    except Exception as error:
        # A signal to all processes of the group, as systemd and timeout send it, ends Java too, in the middle of whatever is under way.
        if not (any(stop.is_set() for stop in stops) and _is_of_java(error)):
            raise


def _is_of_java(error: Exception) -> bool:
    """Whether it may come of Spark's Java process having ended."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415 - the room works without Spark installed

    return isinstance(error, (ConnectionError, Py4JError))


def _check(place: Path, options: Options, every_s: float) -> None:
    check(options)
    asked = options.asked
    if options.engine == "python":
        raise ReportError(f"--follow learns of new files from Spark, and --engine is python; {INSTEAD}")
    if options.store is not None:
        raise ReportError("a store keeps whole days, which nobody follows: leave --store out, or --follow")
    if asked != EVERYTHING and asked != Asked(last_us=asked.last_us):
        raise ReportError("--follow is about the last stretch of the data: give --last alone, as 1h")
    if not 0 < (asked.last_us or LAST_US) <= LAST_US_MAX:
        raise ReportError(f"--follow is about a day at most: give a shorter --last; {BY_DAY}")
    if not 0 < every_s <= EVERY_S_MAX:
        raise ReportError(f"--every {every_s:g} s is none; give more than 0 and at most a day")
    if not place.is_dir():
        raise ReportError(f"{place} is no folder; make it, and have files of probes come into it")


class _Follower:
    """One folder that is followed into one report."""

    def __init__(self, place: Path, output_dir: Path, options: Options, last_us: int) -> None:
        self.place: Final = place
        self.output_dir: Final = output_dir
        self.options: Final = options
        self.checkpoint: Final = output_dir / FOLDER / "spark"
        self.path: Final = output_dir / FOLDER / "files.json"
        self.taken = self._begun(Taken(str(place.resolve()), last_us))
        self.made = False
        self._known: dict[str, int] | None = None
        """The files that were there at the look before, with their sizes."""

    def _begun(self, wanted: Taken) -> Taken:
        """What was taken before; noted before Spark begins, so that its checkpoint never stands alone."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists() and not self.checkpoint.exists():
                LOCAL.put(self.path, msgspec.json.encode(wanted))
            taken = msgspec.json.decode(self.path.read_bytes(), type=Taken)
        except (OSError, msgspec.DecodeError) as error:
            raise ReportError(
                f"{self.path} cannot be read or written ({error}); take {self.path.parent} away, to take all files anew, or give another --out"
            ) from error
        if msgspec.structs.replace(taken, files={}) != wanted:
            raise ReportError(
                f"{self.path} is of {taken.input} and of a --last of {taken.last_us / 1e6:g} s: give both as they were, another --out, or take "
                f"{self.path.parent} away, to take all files anew"
            )
        return taken

    def look(self, spark: "SparkSession", stop: Event, told: Callable[[Card], None]) -> None:
        """Take what is new, and make the report of it; once, whether anything is new or not."""
        from .spark.arrivals import Round, whole_files  # noqa: PLC0415 - the room works without Spark installed

        new: dict[str, int] = {}

        def fold(arrivals: "list[Arrival]") -> None:
            new.update((each.name, each.bytes) for each in arrivals)
            self._take(self.taken.files | {each.name: TakenFile(*each[1:]) for each in arrivals})

        before = whole_files(self.place)
        Round(spark, self.place, self.checkpoint, fold).run(stop)
        source = self._source()
        self._check_same(whole_files(self.place))
        if not stop.is_set():
            self._check_taken(before, new)
        self._known = before | new
        if source is not None and (new or not self.made):
            told(self._card(spark, source, len(new)))

    def _take(self, files: Mapping[str, TakenFile]) -> None:
        """Note files; those are left out that no later report can be about, as time goes on."""
        period = self._period(files)
        start_us = 0 if period is None else period.start_us
        recent = {name: each for name, each in sorted(files.items()) if each.last_us >= start_us}
        if recent == self.taken.files:
            return
        self.taken = msgspec.structs.replace(self.taken, files=recent)
        try:
            LOCAL.put(self.path, msgspec.json.encode(self.taken))
        except OSError as error:
            raise ReportError(f"{self.path} cannot be written ({error}); make room for it") from error

    def _period(self, files: Mapping[str, TakenFile]) -> ReportPeriod | None:
        """The time that a report of these files is about; the end of a run is that of its window."""
        document = self.place / "run.json"
        known = Span(
            min((each.first_us for each in files.values()), default=0),
            max((each.last_us for each in files.values()), default=0) + 1,
        )
        return self.options.asked.period(lambda: read_run(document).window if document.is_file() else known)

    def _source(self) -> Source | None:
        """The files that were taken, as they were taken; None as long as there is none."""
        if not self.taken.files:
            return None
        source = find_source(self.place)
        if source.operation_parquet is not None or source.probe_parquet is not None:
            raise ReportError(
                f"{self.place} holds Parquet, which is not followed: make its report without --follow; quorate measure leaves lines with --rotate"
            )
        return replace(
            source,
            operation_lines=self._taken_of(source.operation_lines),
            probe_lines=self._taken_of(source.probe_lines),
        )

    def _taken_of(self, paths: Sequence[Place]) -> tuple[Place, ...]:
        return tuple(path for path in paths if path.name in self.taken.files)

    def _check_same(self, there: Mapping[str, int]) -> None:
        """See that files are as they were when Spark found them, also those in which it found no row."""
        taken = {name: each.bytes for name, each in self.taken.files.items()}
        for name, size in ((self._known or {}) | taken).items():
            if name not in there and name in taken:
                raise ReportError(
                    f"{self.place / name} is gone, and its rows are of the time that is followed: leave files there for so long, and a little longer"
                )
            if there.get(name, size) != size:
                raise ReportError(
                    f"{self.place / name} has {there[name]} bytes, and had {size} when it was taken: a file is taken once. Have it end in ~ before "
                    f".jsonl as long as it is written to (quorate measure --rotate does), and take {self.path.parent} away, to take all files anew"
                )

    def _check_taken(self, before: Mapping[str, int], new: Mapping[str, int]) -> None:
        """See that each file that came since the look before was taken; whatever was there at the first look may have been taken long ago."""
        if self._known is None:
            return
        for name in sorted(before.keys() - self._known.keys() - new.keys() - self.taken.files.keys()):
            if before[name]:
                raise ReportError(
                    f"{self.place / name} was not taken: no row of it says a time, it was empty when it was found, or it was last changed a week "
                    f"before others; take it away, or take {self.path.parent} away, to take all files anew"
                )

    def _card(self, spark: "SparkSession", source: Source, new_files: int) -> Card:
        """The report; once there was one, a sentence where there cannot be another yet: the data may mend that."""
        rows = sum(each.rows for each in self.taken.files.values())
        is_small = self.options.engine == "auto" and rows <= PYTHON_ROWS_MAX
        options = replace(self.options, engine="python" if is_small else "spark")
        try:
            report = report_of(source, self.output_dir, options, spark)
        except ReportError as error:
            if not self.made:
                raise
            return Card(new_files, None, str(error))
        self.made = True
        return Card(new_files, report)
