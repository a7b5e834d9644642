"""The Spark jobs against the plain-Python reference: counts equal exactly, floats to 1e-12."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports import contract, reference
from quorate.spark_reports.aggregates import Aggregates
from quorate.spark_reports.contract import find_run_files, read_choices
from quorate.spark_reports.errors import ReportError
from tests.spark_reports import measured_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def both(spark: "SparkSession", folder: Path, parquet_dir: Path) -> tuple[Aggregates, Aggregates]:
    from quorate.spark_reports import engine  # noqa: PLC0415 - collecting the tests must not need Spark

    files = find_run_files(folder)
    choices = read_choices(files.choices)
    return engine.aggregate(spark, files, choices, parquet_dir), reference.aggregate(files, choices)


def assert_same(found: Aggregates, expected: Aggregates) -> None:
    assert found.span == expected.span
    assert found.up_changes == expected.up_changes
    for table in ("bins", "classes", "live", "replicas", "up_sets", "shortages", "down_bins", "rejected"):
        assert getattr(found, table) == getattr(expected, table), table
    assert [row[:4] for row in found.latencies] == [row[:4] for row in expected.latencies]
    for mine, theirs in zip(found.latencies, expected.latencies, strict=True):
        assert mine[4:] == pytest.approx(theirs[4:], rel=1e-12, abs=0)


def test_spark_equals_reference_on_a_run_with_bad_rows(spark: "SparkSession", tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run [1] a*b", operations=1500)
    bad = measured_run.write_bad_rows(folder)
    found, expected = both(spark, folder, tmp_path / "parquet {x}")
    assert_same(found, expected)
    assert sum(row.rows for row in found.rejected) == bad
    assert sum(row.operations for row in found.classes) == 1500
    kinds = {row.reason.partition(": ")[0] for row in found.rejected}
    assert kinds == {kind.removesuffix(": ") for kind in contract.REASONS}, "each kind of bad row must occur"


@pytest.mark.parametrize(
    ("replicas", "failing", "operations"), [(1, True, 200), (3, False, 300), (2, True, 0)]
)
def test_spark_equals_reference_at_the_edges(
    spark: "SparkSession", tmp_path: Path, replicas: int, failing: bool, operations: int
) -> None:
    folder = measured_run.write_run(
        tmp_path / "run", replicas=replicas, failing=failing, operations=operations, compress=True
    )
    assert_same(*both(spark, folder, tmp_path / "parquet"))


def test_gaps_and_moments_without_length_count_as_in_the_reference(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=100, duration_s=30)
    start = int(measured_run.START_S)
    lines = ["replica,start_s,end_s,up"]
    lines += [
        f"r1,{start},{start + 10},1",
        f"r1,{start + 10},{start + 10},0",
        f"r1,{start + 10},{start + 30},1",
    ]
    lines += [f"r2,{start},{start + 4},0", f"r2,{start + 4},{start + 9},0", f"r2,{start + 12},{start + 30},0"]
    lines += [f"r3,{start + 1},{start + 29},1"]
    (folder / "replicas.csv").write_text("\n".join(lines), encoding="utf-8")
    found, expected = both(spark, folder, tmp_path / "parquet")
    assert_same(found, expected)
    r2 = next(row for row in found.replicas if row.replica == "r2")
    assert (r2.observed_us, r2.outages, r2.longest_outage_us) == (27_000_000, 2, 18_000_000)
    assert [row for row in found.live if row.live_votes is None], "some operations lie outside the known time"


def test_replicas_never_observed_together_are_refused(spark: "SparkSession", tmp_path: Path) -> None:
    from quorate.spark_reports import engine  # noqa: PLC0415

    folder = measured_run.write_run(tmp_path / "run", operations=10)
    (folder / "replicas.csv").write_text("replica,start_s,end_s,up\nr1,1,2,1\nr2,3,4,1\nr3,5,6,1\n")
    files = find_run_files(folder)
    with pytest.raises(ReportError, match="at no moment is the state of every replica known"):
        engine.aggregate(spark, files, read_choices(files.choices), tmp_path / "parquet")
    with pytest.raises(ReportError, match="at no moment is the state of every replica known"):
        reference.aggregate(files, read_choices(files.choices))


def test_a_torn_gzip_file_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    from quorate.spark_reports import engine  # noqa: PLC0415

    folder = measured_run.write_run(tmp_path / "run", operations=500, compress=True)
    packed = folder / "operations.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-40])
    files = find_run_files(folder)
    with pytest.raises(ReportError, match="check that its files are whole"):
        engine.aggregate(spark, files, read_choices(files.choices), tmp_path / "parquet")
    with pytest.raises(ReportError, match="cannot be read to its end"):
        reference.aggregate(files, read_choices(files.choices))
