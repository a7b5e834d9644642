"""Makes a report of a measured run: the page, the figures and the tables."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from quorate.spark_reports import derive, page, reference
from quorate.spark_reports.aggregates import Aggregates
from quorate.spark_reports.contract import Choices, RunFiles, find_run_files, read_choices
from quorate.spark_reports.errors import ReportError
from quorate.spark_reports.figures import KEYS, Figures
from quorate.spark_reports.session import local_session


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where the parts of a report are; `parquet` is None if it was made without Spark."""

    html: Path
    figures: Path
    parquet: Path | None


def make_report(
    input_dir: Path,
    output_dir: Path,
    *,
    master: str = "local[2]",
    engine: Literal["spark", "python"] = "spark",
) -> ReportPaths:
    """Make the report of a measured run.

    Writes `report.html` (self-contained), `figures.json` (each key is explained in it under `keys`) and the folder
    `parquet` with the tables `operations`, `intervals`, `up_sets` and `rejected`. What is there already is replaced.

    Args:
        input_dir: a run as `quorate.spark_reports.contract` describes it.
        output_dir: made if missing.
        master: where Spark runs: `local[2]` is this process with two cores. A running session is used as it is.
        engine: `spark`, or `python` for small runs where there is no Java; both give the same figures.

    Raises:
        ReportError: a file of the run is missing or unusable, or the output cannot be written.
        JavaMissing: `engine` is `spark` and there is no Java runtime of version 17 or later.
    """
    run = find_run_files(input_dir)
    choices = read_choices(run.choices)
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"{output_dir} cannot be made ({error}); give a folder that can be written"
        ) from error
    if engine == "python":
        return _write(reference.aggregate(run, choices), choices, _versions(), output_dir, None)
    return _with_spark(run, choices, output_dir, master)


def _with_spark(run: RunFiles, choices: Choices, output_dir: Path, master: str) -> ReportPaths:
    with local_session(master) as spark:
        from quorate.spark_reports import engine  # noqa: PLC0415 - the room works without Spark installed

        parquet = output_dir / "parquet"
        found = engine.aggregate(spark, run, choices, parquet)
        versions = _versions() | engine.versions(spark)
    return _write(found, choices, versions, output_dir, parquet)


def _write(
    found: Aggregates, choices: Choices, versions: Mapping[str, str], output_dir: Path, parquet: Path | None
) -> ReportPaths:
    figures = derive.derive(found, choices)
    paths = ReportPaths(output_dir / "report.html", output_dir / "figures.json", parquet)
    try:
        paths.html.write_text(page.render(figures, versions, parquet=parquet is not None), encoding="utf-8")
        paths.figures.write_text(figures_json(figures, versions), encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{output_dir} cannot be written ({error}); give another folder") from error
    return paths


def figures_json(figures: Figures, versions: Mapping[str, str]) -> str:
    """Give the text of `figures.json`."""
    document = figures.as_dict() | {"versions": dict(versions), "keys": dict(KEYS)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _versions() -> dict[str, str]:
    try:
        quorate = version("quorate")
    except PackageNotFoundError:
        quorate = "from source"
    return {"quorate": quorate, "python": platform.python_version()}
