"""A report's figures as data frames are those of its figures.json."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports import load
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small one."""
    pytest.importorskip("pyarrow")
    root = tmp_path_factory.mktemp("report")
    make_report(measured_run.write_run(root / "run", operations=200), root / "out", Options(engine="python"))
    return root / "out"


def test_frames_have_the_figures(report: Path) -> None:
    pytest.importorskip("pandas")
    figures, frames = json.loads((report / "figures.json").read_text()), load(report)
    assert frames.keys() == {path.stem for path in (report / "tables").iterdir()}
    assert {name for name, each in figures.items() if isinstance(each, list)} <= frames.keys()
    for column in ("operation", "measured"):
        assert list(frames["operations"][column]) == [row[column] for row in figures["operations"]]
    assert frames["window"]["end_s"].item() == figures["window"]["end_s"]


@pytest.mark.spark
def test_spark_reads_the_same_tables(report: Path, spark: "SparkSession") -> None:
    frames, plain = load(report, spark), load(str(report))
    assert frames.keys() == plain.keys()
    found = [row["measured"] for row in frames["operations"].select("measured").collect()]
    assert found == list(plain["operations"]["measured"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "holds no report"),
        ("[", "figures.json is damaged"),
        ('{"format": 1}', "has format 1, and this release reads"),
        ('{"format": 2}', "has no tables"),
    ],
)
def test_what_is_no_report_is_told(tmp_path: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "figures.json").write_text(text)
    with pytest.raises(ReportError, match=sentence):
        load(tmp_path)
