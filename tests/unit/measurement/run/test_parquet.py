"""Lines become Parquet, and no row is lost on the way."""

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from quorate.api_specs.messages import ProbeRow
from quorate.measurement.rows import OperationRow
from quorate.measurement.run import parquet as module
from quorate.measurement.run.parquet import convert
from quorate.measurement.run.recorder import Recorder
from tests.unit.measurement.runs import read_rows

DAY_S = 86_400.0
NOON_S = 1_700_000_000 - 1_700_000_000 % DAY_S + DAY_S / 2


def operation(number: int, start_s: float = NOON_S, adt: str = "queue") -> OperationRow:
    """One of many different rows."""
    outcome: Any = ("ok", "unavailable", "unknown")[number % 3]
    return OperationRow(
        f"{adt}/x",
        adt,
        "Deq",
        "Deq/Ok" if number % 3 == 0 else None,
        "c",
        "f1",
        start_s + number,
        0.5,
        outcome,
        ("r1", "r2"),
    )


def record(folder: Path, rows: list[OperationRow], probes: list[ProbeRow] | None = None) -> None:
    """Write the lines of a run."""
    for name, each in (("operations-1", rows), ("probes-1", probes or [])):
        recorder = Recorder(folder / f"{name}.jsonl.gz")
        for row in each:
            recorder.add(row)
        recorder.close()


def as_read(row: OperationRow) -> dict[str, Any]:
    """A row as a reader of Parquet finds it."""
    return msgspec.structs.asdict(row) | {"answered": list(row.answered)}


def operations_in(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run without the day of their folder, in order of their start."""
    rows = (
        {name: value for name, value in row.items() if name != "day"}
        for row in read_rows(folder, "operations")
    )
    return sorted(rows, key=lambda row: row["start_s"])


def test_rows_come_back_the_same_partitioned_by_day_and_type(tmp_path: Path) -> None:
    rows = [operation(1), operation(2, NOON_S + DAY_S), operation(3, adt="register")]
    probes = [ProbeRow("r1", NOON_S, 1, 0.01), ProbeRow("r2", NOON_S, 0, None)]
    record(tmp_path, rows, probes)
    assert convert(tmp_path) == module.Converted(is_parquet=True, rows=5, left=0)
    assert operations_in(tmp_path) == sorted(map(as_read, rows), key=lambda row: row["start_s"])
    parts = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    assert parts == {
        "operations/day=2023-11-14/adt=queue/part-0.parquet",
        "operations/day=2023-11-14/adt=register/part-0.parquet",
        "operations/day=2023-11-15/adt=queue/part-0.parquet",
        "probes/day=2023-11-14/part-0.parquet",
    }
    assert not list(tmp_path.glob("*.jsonl*"))
    assert not list(tmp_path.glob(".*"))
    schema = parquet.read_schema(tmp_path / "operations/day=2023-11-14/adt=queue/part-0.parquet")
    assert "adt" not in schema.names
    assert str(schema.field("answered").type).startswith("list<")
    found = [
        {name: row[name] for name in ("replica", "up", "latency_s")} for row in read_rows(tmp_path, "probes")
    ]
    assert found == [
        {"replica": "r1", "up": 1, "latency_s": 0.01},
        {"replica": "r2", "up": 0, "latency_s": None},
    ]


@given(st.lists(st.floats(0, 4 * DAY_S), max_size=25))
@settings(max_examples=25, deadline=None)
def test_any_number_of_rows_in_any_batches_comes_back(
    tmp_path_factory: pytest.TempPathFactory, starts_s: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    rows = [operation(number, start_s) for number, start_s in enumerate(starts_s)]
    record(folder, rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "BATCH_ROWS", 4)
        convert(folder)
    by_start = sorted(map(as_read, rows), key=lambda row: (row["start_s"], row["outcome"]))
    assert sorted(operations_in(folder), key=lambda row: (row["start_s"], row["outcome"])) == by_start


def test_lines_that_are_no_rows_stay_as_lines_and_are_counted(tmp_path: Path) -> None:
    record(tmp_path, [operation(1)])
    good = msgspec.json.encode(operation(2))
    bad = [
        b'{"object": 3}',
        b"not json",
        msgspec.json.encode({"replica": "r1"}),
        good.replace(b'"ok"', b'"maybe"'),
    ]
    bad[3] = good.replace(b'"unknown"', b'"maybe"')
    far = msgspec.json.encode(operation(3, 1e15))
    (tmp_path / "operations-2.jsonl.gz").write_bytes(_gzip([*bad, good, far]))
    converted = convert(tmp_path)
    assert (converted.rows, converted.left) == (2, 5)
    assert "5 lines could not be read" in converted.sentence
    assert (tmp_path / "operations-left.jsonl").read_bytes().splitlines() == [*bad, far]


def test_converting_again_leaves_a_finished_run_as_it_is(tmp_path: Path) -> None:
    record(tmp_path, [operation(1)])
    convert(tmp_path)
    before = operations_in(tmp_path)
    assert convert(tmp_path).rows == 0
    assert operations_in(tmp_path) == before


def test_parquet_of_another_run_is_not_written_over(tmp_path: Path) -> None:
    record(tmp_path, [operation(1)])
    convert(tmp_path)
    record(tmp_path, [operation(2)])
    with pytest.raises(
        FileExistsError, match=r"both operations/ and operations-1\.jsonl\.gz: one is of another run"
    ):
        convert(tmp_path)
    assert len(operations_in(tmp_path)) == 2


def test_an_interrupted_conversion_is_done_again_from_its_lines(tmp_path: Path) -> None:
    record(tmp_path, [operation(1), operation(2)])
    (tmp_path / ".operations.new" / "day=2023-11-14").mkdir(parents=True)
    (tmp_path / ".operations.new" / "day=2023-11-14" / "half.parquet").write_bytes(b"PAR1")
    assert convert(tmp_path).rows == 2
    assert len(operations_in(tmp_path)) == 2
    assert not list(tmp_path.glob(".*"))


def test_without_pyarrow_the_lines_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, [operation(1)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    converted = convert(tmp_path)
    assert not converted.is_parquet
    assert "pip install 'quorate[reports]'" in converted.sentence
    monkeypatch.undo()
    assert operations_in(tmp_path) == [as_read(operation(1))]


def _gzip(lines: list[bytes]) -> bytes:
    import gzip  # noqa: PLC0415

    return gzip.compress(b"\n".join([*lines, b""]))
