"""Rows in plain Python: which of two is kept, and what Parquet rows are called."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.input import rows
from quorate.spark_reports.input.rows import Interval, OperationRows, Reject
from quorate.spark_reports.model import contract
from quorate.spark_reports.model.aggregates import Span
from quorate.spark_reports.model.run_document import Run, read_run
from tests.unit.spark_reports import measured_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(measured_run.write_run(tmp_path / "run", operations=0) / "run.json")


def operations_of(
    run: Run, folder: Path, *changes: dict[str, Any]
) -> tuple[list[rows.Operation], list[Reject]]:
    path = folder / "operations.jsonl"
    lines = [json.dumps({**measured_run.good_enq(), **change}) for change in changes]
    path.write_text("\n".join(lines) + "\n")
    rejects: list[Reject] = []
    return rows.without_duplicates(OperationRows(run, rejects).from_lines([path]), rejects), rejects


def test_of_two_rows_of_one_operation_the_quicker_stays(run: Run, tmp_path: Path) -> None:
    quick: dict[str, Any] = {"latency_s": 0.05, "outcome": "unknown", "event_class": None}
    good, aside = operations_of(run, tmp_path, {"latency_s": 0.1}, quick, {"latency_s": 0.1})
    assert [(each.outcome, each.latency_us) for each in good] == [("unknown", 50_000)]
    assert [each.reason for each in aside] == [contract.DUPLICATE] * 2


def test_another_front_end_object_operation_or_microsecond_is_another_operation(
    run: Run, tmp_path: Path
) -> None:
    start_s = measured_run.START_S + 1
    others: list[dict[str, Any]] = [
        {"front_end": "c2"},
        {"object": "queue/enq-2", "choice": "enq-2"},
        {"operation": "Deq", "event_class": "Deq/Ok"},
        {"start_s": start_s + 1e-6},
    ]
    good, aside = operations_of(run, tmp_path, {}, *others)
    assert (len(good), aside) == (5, [])


def test_parquet_rows_are_called_by_their_fields() -> None:
    good = rows.shown_operation({**measured_run.good_enq(), "answered": ["r1", None]})
    assert good == "queue/enq-1,queue,Enq,Enq/Ok,enq-1,c1,ok,1760000001000000,1000,r1|"
    odd = {"object": None, "start_s": float("nan"), "latency_s": 1e300, "answered": None}
    assert rows.shown_operation(odd) == ",,,,,,,?,?,"


def test_a_number_too_large_is_kept_aside(run: Run, tmp_path: Path) -> None:
    changes = [{field: number} for field in ("start_s", "latency_s") for number in (10**400, -(10**400))]
    good, aside = operations_of(run, tmp_path, *changes)
    assert good == []
    assert [each.reason for each in aside] == [contract.BAD_START] * 2 + [contract.BAD_LATENCY] * 2


def test_intervals_are_cut_at_the_window() -> None:
    found = [
        Interval("", "a", start, end, 1) for start, end in ((0, 5), (5, 20), (20, 20), (25, 40), (40, 50))
    ]
    cut = rows.clipped(found, Span(10, 30))
    assert [(each.start_us, each.end_us) for each in cut] == [(10, 20), (25, 30)]
