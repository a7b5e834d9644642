"""Parquet that lacks a column, has one of another form, or was not written to its end is named, by both engines alike."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.spark_reports.input import parquet_files
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.report import Engine, Options, make_report
from tests.unit.spark_reports import measured_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def packed_run(folder: Path) -> Path:
    """A run whose operations and probes lie in Parquet."""
    measured_run.write_run(folder, operations=40, duration_s=60)
    measured_run.write_probes(folder)
    for name in ("operations", "probes"):
        measured_run.pack(folder, name)
    return folder


def one_file(folder: Path) -> Path:
    return min(folder.rglob("*.parquet"))


def without(path: Path, column: str) -> None:
    table = parquet.ParquetFile(path).read()
    parquet.write_table(table.drop_columns([column]), path)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        *(("operations", name) for name in parquet_files.OPERATIONS if name != "adt"),
        *(("probes", name) for name in parquet_files.PROBES),
    ],
)
def test_a_missing_column_is_named_with_its_file_and_the_remedy(
    tmp_path: Path, kind: str, column: str
) -> None:
    folder = packed_run(tmp_path / "run")
    path = one_file(folder / kind)
    without(path, column)
    with pytest.raises(ReportError) as refused:
        make_report(folder, tmp_path / "out", Options(engine="python"))
    assert str(refused.value).startswith(f"{path} has no column {column}; write it with all of ")
    assert "null where there is no value" in str(refused.value)


def test_the_type_may_stand_in_the_path_or_in_the_file_but_must_stand_somewhere(tmp_path: Path) -> None:
    folder = packed_run(tmp_path / "run")
    assert parquet_files.check(folder / "operations", parquet_files.OPERATIONS) == frozenset()
    path = one_file(folder / "operations")
    path.rename(folder / "operations" / "part.parquet")
    with pytest.raises(ReportError, match=r"part\.parquet has no column adt; "):
        parquet_files.check(folder / "operations", parquet_files.OPERATIONS)


def test_probes_may_lack_how_long_they_took(tmp_path: Path) -> None:
    folder = packed_run(tmp_path / "run")
    without(one_file(folder / "probes"), "latency_s")
    assert make_report(folder, tmp_path / "out", Options(engine="python")).figures.prober


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("start_s", "1.5", "column 'start_s' is of type string; write it as a double"),
        ("latency_s", [1.5], "column 'latency_s' is of type list"),
        ("choice", 7, "column 'choice' is of type int64; write it as a string"),
        ("answered", "r1", "column 'answered' is of type string; write it as a list of strings"),
    ],
)
def test_a_column_of_another_form_is_named(tmp_path: Path, column: str, value: Any, sentence: str) -> None:
    rows = [{**measured_run.good_enq(), column: value}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "part.parquet")
    with pytest.raises(ReportError, match=sentence):
        parquet_files.check(tmp_path, parquet_files.OPERATIONS)


def test_whole_numbers_are_told_and_must_be_so_in_every_file(tmp_path: Path) -> None:
    for name, start_s in (("a", 5), ("b", 5.5)):
        rows = [{**measured_run.good_enq(), "start_s": start_s}]
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    one = parquet_files.check(tmp_path / "a.parquet", parquet_files.OPERATIONS)
    assert one == {"start_s"}
    with pytest.raises(ReportError, match="holds whole numbers in one and doubles in the other"):
        parquet_files.check(tmp_path, parquet_files.OPERATIONS)


def test_hidden_files_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "_temporary").mkdir()
    for name in ("_SUCCESS", ".part.crc", "_temporary/part.parquet"):
        (tmp_path / name).write_text("no")
    assert parquet_files.check(tmp_path, parquet_files.OPERATIONS) == frozenset()


@pytest.mark.spark
def test_both_engines_refuse_the_same_files(spark: "SparkSession", tmp_path: Path) -> None:
    """A file cut short, and one without a column: one sentence for each. Good files are read alike in `test_report`."""
    folder = packed_run(tmp_path / "run")
    path = one_file(folder / "operations")
    good = path.read_bytes()

    def said() -> set[str]:
        sentences = set()
        engines: tuple[Engine, ...] = ("spark", "python")
        for engine in engines:
            with pytest.raises(ReportError) as refused:
                make_report(folder, tmp_path / "out", Options(engine=engine))
            sentences.add(str(refused.value))
        return sentences

    path.write_bytes(good[:-10])
    (sentence,) = said()
    assert f"{path} cannot be read as Parquet" in sentence
    path.write_bytes(good)
    without(path, "event_class")
    (sentence,) = said()
    assert "has no column event_class" in sentence
