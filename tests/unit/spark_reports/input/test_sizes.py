"""How much an input holds: of what is compressed, as much as of what is not."""

import gzip
from pathlib import Path

import pytest

from quorate.spark_reports.input import sizes
from quorate.spark_reports.input.sizes import size_of
from quorate.spark_reports.input.sources import find_source
from tests.unit.spark_reports import measured_run


def written(folder: Path, form: str) -> Path:
    measured_run.write_run(folder, operations=300, compress=form == "gz", failing=False, replicas=1)
    if form == "packed":
        measured_run.pack(folder, "operations")
    return folder


@pytest.mark.parametrize("form", ["lines", "gz", "packed"])
def test_rows_are_counted_in_every_form(tmp_path: Path, form: str) -> None:
    found = size_of(find_source(written(tmp_path / "run", form)))
    assert found.rows == 300 + 2
    if form != "packed":  # whose columns say each thing once
        assert found.text_bytes == size_of(find_source(written(tmp_path / "plain", "lines"))).text_bytes


def test_what_is_not_looked_at_is_estimated_from_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "run", "gz")
    text = gzip.decompress((folder / "operations.jsonl.gz").read_bytes())
    (folder / "operations.jsonl.gz").write_bytes(gzip.compress(text) * 40)  # one member after the other
    for index in range(20):
        (folder / f"operations-{index}.jsonl").write_bytes(text)
    whole = size_of(find_source(folder))
    assert whole.rows == 60 * 300 + 2
    monkeypatch.setattr(sizes, "SAMPLE_BYTES", 30_000)
    monkeypatch.setattr(sizes, "FILES_MAX", 5)
    assert size_of(find_source(folder)).rows == pytest.approx(whole.rows, rel=0.1)
    monkeypatch.setattr(sizes, "TEXT_BYTES_MAX", 10_000)
    found = size_of(find_source(folder))
    assert found.rows == pytest.approx(whole.rows, rel=0.3)
    assert found.text_bytes == pytest.approx(whole.text_bytes, rel=0.3)


def test_a_file_that_cannot_be_read_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", "gz")
    packed = folder / "operations.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-50])
    assert 200 < size_of(find_source(folder)).rows < 302
    packed.write_bytes(b"no gzip")
    (folder / "operations").mkdir()
    (folder / "operations" / "a.parquet").write_bytes(b"no parquet")
    assert size_of(find_source(folder)).rows == 2
