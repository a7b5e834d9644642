"""What lies at a place, and what is said where nothing of use does."""

from pathlib import Path

import pytest

from quorate.spark_reports.input import sources
from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model.errors import ReportError
from tests.unit.spark_reports import measured_run


def test_a_run_has_all_its_files_whatever_their_form(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=3, compress=True)
    (folder / "operations-2.jsonl").touch()
    packed = folder / "operations" / "day=2026-11-20" / "adt=queue"
    packed.mkdir(parents=True)
    (packed / "part-0.parquet").touch()
    (folder / "links.csv").touch()
    (folder / "probes").mkdir()
    (folder / "probes-1.jsonl").touch()
    found = find_source(folder)
    assert found.kind == sources.RUN
    assert [path.name for path in found.operation_lines] == ["operations-2.jsonl", "operations.jsonl.gz"]
    assert found.operation_parquet == folder / "operations"
    assert found.probe_parquet is None, "the folder holds no Parquet"
    assert [path.name for path in found.probe_lines] == ["probes-1.jsonl"]
    assert found.links == folder / "links.csv"
    assert found.size_bytes() > 0


def test_without_up_times_the_probes_of_a_run_stand_in(tmp_path: Path) -> None:
    """As `quorate measure` leaves a run on a cluster that others start and stop: a header, and the prober's view."""
    folder = measured_run.write_run(tmp_path / "run", operations=3)
    replicas = folder / "replicas.csv"
    assert find_source(folder).replicas == replicas
    header = "replica,start_s,end_s,up\n"
    replicas.write_text(header)
    assert find_source(folder).replicas == replicas, "nothing could stand in for them"
    (folder / "probes.jsonl").touch()
    assert find_source(folder).replicas is None
    for text in (f"{header}r1,0,1,1\n", "another,header\n", ""):
        replicas.write_text(text)
        assert find_source(folder).replicas == replicas


def test_probes_alone_traces_and_answers_are_told_apart(tmp_path: Path) -> None:
    probes = tmp_path / "probes-only"
    probes.mkdir()
    (probes / "probes.jsonl.gz").touch()
    assert find_source(probes).kind == sources.PROBES
    trace = tmp_path / "up.csv"
    trace.write_text("start_s,end_s,up\n")
    assert find_source(trace).kind == sources.TRACE
    answers = tmp_path / "answers"
    answers.mkdir()
    for name in ("b.json", "a.json"):
        (answers / name).write_text("\ufeff {}", encoding="utf-8")
    found = find_source(answers)
    assert (found.kind, [path.name for path in found.foreign]) == (sources.PROMETHEUS, ["a.json", "b.json"])


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="nowhere does not exist; give the folder of a measured run"):
        find_source(tmp_path / "nowhere")
    with pytest.raises(ReportError, match="holds nothing to report on"):
        find_source(tmp_path)
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.csv").touch()
    with pytest.raises(ReportError, match=r"several files \(a.csv, b.csv\); give the one trace"):
        find_source(tmp_path)
    (tmp_path / "noise.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReportError, match="is neither JSON nor a CSV trace"):
        find_source(tmp_path / "noise.bin")
    (tmp_path / "choices.json").touch()
    with pytest.raises(ReportError, match="is a run of an older form"):
        find_source(tmp_path)
    (tmp_path / "run.json").touch()
    with pytest.raises(ReportError, match=r"replicas\.csv is missing, and there are no probes"):
        find_source(tmp_path)


def test_an_empty_file_and_one_that_is_no_text_are_told_apart(tmp_path: Path) -> None:
    for name, content, sentence in (
        ("a.json", b"", "is empty"),
        ("b.json", b"  \n", "is empty"),
        ("c.json", b"\xff\xfe", "is neither JSON nor a CSV trace"),
        ("d.json.gz", b"{", "is neither JSON nor a CSV trace"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ReportError, match=f"{name} {sentence}"):
            find_source(tmp_path / name)
