"""Finds what a report can be made of: a measured run, a prober's samples alone, a trace, or an answer of Prometheus.

Owns which files belong to which, and nothing of what stands in their rows.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..model import contract
from ..model.errors import ReportError
from ..model.places import Place
from .files import opened_text

RUN: Final = "run"
PROBES: Final = "probes"
TRACE: Final = "trace"
PROMETHEUS: Final = "prometheus"

ENDINGS: Final = (".json", ".json.gz", ".csv")

HINT: Final = (
    "give the folder of a measured run (run.json), a folder of probes (probes*.jsonl or probes/), a CSV trace of up times, "
    "or the saved JSON answer of a Prometheus range query (.gz too)"
)


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one report; `lines` are JSON lines, plain or compressed, `parquet` folders of Parquet files."""

    kind: str
    place: Place
    document: Place | None = None
    replicas: Place | None = None
    links: Place | None = None
    operation_lines: tuple[Place, ...] = ()
    operation_parquet: Place | None = None
    probe_lines: tuple[Place, ...] = ()
    probe_parquet: Place | None = None
    foreign: tuple[Place, ...] = ()

    @property
    def files(self) -> tuple[Place, ...]:
        """Every file and folder that is read, in order of name."""
        single = (self.document, self.replicas, self.links, self.operation_parquet, self.probe_parquet)
        found = [path for path in single if path is not None]
        return tuple(sorted([*found, *self.operation_lines, *self.probe_lines, *self.foreign]))

    def size_bytes(self) -> int:
        """The size of all files together, as they lie on disk."""
        return sum(
            path.stat().st_size if path.is_file() else sum(map(_size, path.rglob("*"))) for path in self.files
        )

    def has_probes(self) -> bool:
        """Whether there is any file of probes."""
        return bool(self.probe_lines) or self.probe_parquet is not None


def _size(path: Place) -> int:
    return path.stat().st_size if path.is_file() else 0


def find_source(place: Place) -> Source:
    """Find out what `place` holds.

    Raises:
        ReportError: it does not exist, holds nothing that a report can be made of, or a file is missing.
    """
    if place.is_file():
        return _of_files(place, [place])
    if not place.is_dir():
        raise ReportError(f"{place} does not exist; {HINT}")
    if (place / "run.json").is_file():
        return _run_folder(place)
    if (place / "choices.json").is_file():
        raise ReportError(
            f"{place} is a run of an older form (choices.json and no run.json); measure it anew"
        )
    lines, parquet = _rows(place, "probes")
    if lines or parquet:
        return Source(PROBES, place, probe_lines=lines, probe_parquet=parquet)
    return _of_files(place, sorted(path for ending in ENDINGS for path in place.glob(f"*{ending}")))


def _run_folder(place: Place) -> Source:
    operation_lines, operation_parquet = _rows(place, "operations")
    probe_lines, probe_parquet = _rows(place, "probes")
    replicas, links = place / "replicas.csv", place / "links.csv"
    has_probes = bool(probe_lines) or probe_parquet is not None
    if not replicas.is_file() and not has_probes:
        raise ReportError(
            f"{replicas} is missing, and there are no probes that could stand in for it; "
            "measure the run anew, or write when each replica was up"
        )
    return Source(
        RUN,
        place,
        document=place / "run.json",
        # A run on a cluster that others start and stop has a header alone: there the prober's view is all there is.
        replicas=None if has_probes and _has_no_row(replicas) else replicas,
        links=links if links.is_file() else None,
        operation_lines=operation_lines,
        operation_parquet=operation_parquet,
        probe_lines=probe_lines,
        probe_parquet=probe_parquet,
    )


def _has_no_row(replicas: Place) -> bool:
    """Whether the file of up times is missing, or holds its header and nothing else."""
    if not replicas.is_file():
        return True
    try:
        with replicas.open("r", encoding="utf-8-sig", errors="replace") as lines:
            first = list(islice((line.strip() for line in lines if line.strip()), 2))
    except OSError:
        return False
    return first == [",".join(contract.REPLICA_COLUMNS)]


def _rows(place: Place, name: str) -> tuple[tuple[Place, ...], Place | None]:
    """Files of JSON lines and the folder of Parquet files, where it holds any."""
    found = {*place.glob(f"{name}*.jsonl"), *place.glob(f"{name}*.jsonl.gz")}
    lines = tuple(sorted(path for path in found if path.is_file()))
    folder = place / name
    return lines, folder if next(folder.rglob("*.parquet"), None) is not None else None


def _of_files(place: Place, paths: Sequence[Place]) -> Source:
    if not paths:
        raise ReportError(f"{place} holds nothing to report on; {HINT}")
    traces = [path for path in paths if path.suffix.lower() == ".csv"]
    if traces and (len(traces) > 1 or len(paths) > 1):
        names = ", ".join(path.name for path in paths[:4])
        raise ReportError(f"{place} holds several files ({names}); give the one trace, or only JSON answers")
    if traces:
        return Source(TRACE, place, foreign=(traces[0],))
    for path in paths:
        start = _start_of(path)
        if start == "":
            raise ReportError(f"{path} is empty; {HINT}")
        if start is None or not start.startswith(("{", "[")):
            raise ReportError(f"{path} is neither JSON nor a CSV trace (*.csv); {HINT}")
    return Source(PROMETHEUS, place, foreign=tuple(paths))


def _start_of(path: Place) -> str | None:
    """The first characters of a text but for blanks; None if it is no text."""
    try:
        with opened_text(path) as text:
            return text.read(1000).lstrip()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return None


def read_json(path: Place) -> object:
    """Read a whole JSON file.

    Raises:
        ReportError: it cannot be read, or is no JSON.
    """
    try:
        with opened_text(path) as text:
            return json.load(text)
    except (
        OSError,
        EOFError,
        zlib.error,
        UnicodeDecodeError,
        json.JSONDecodeError,
        RecursionError,
    ) as error:
        raise ReportError(
            f"{path} cannot be read as JSON ({error}); save the whole answer of the query"
        ) from error
