"""Rows of Parquet, tested column by column, come to what the same rows in lines come to, tested one by one."""

import json
import random
from math import nan
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.input.probe_rows import LineRows, Part, Rows, rows_of
from quorate.spark_reports.input.probes import CONTRADICTS, Spacing
from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model import contract
from quorate.spark_reports.model.period import ReportPeriod

KNOWN = ("r1", "r2")
DAY_S = 86_400
VALUES: dict[str, list[Any]] = {
    "replica": ["r1", "r1", "r2", "r2", "r3", "", None],
    "time_s": [10.0, 10.0000004, 12.5, DAY_S - 0.0000001, DAY_S, 3.0 * DAY_S, -1.0, 1e11, 1.1e11, None],
    "up": [1.0, 1.0, 1.0, 0.0, 0.5, 2.0, -1e12, None],
    "latency_s": [0.1, 0.1, None, -0.5, 1e12],
}


def drawn(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [{name: rng.choice(values) for name, values in VALUES.items()} for _ in range(400)]


def in_lines(folder: Path, rows: list[dict[str, Any]]) -> Rows:
    folder.mkdir()
    (folder / "probes.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ((_, found),) = rows_of(find_source(folder))
    return found


def in_parquet(folder: Path, rows: list[dict[str, Any]], up: str = "double") -> Rows:
    import pyarrow  # noqa: PLC0415 - collecting the tests must not need it
    from pyarrow import parquet  # noqa: PLC0415

    (folder / "probes").mkdir(parents=True)
    columns = {name: pyarrow.array([row[name] for row in rows]) for name in VALUES}
    columns["up"] = columns["up"].cast(up)
    parquet.write_table(pyarrow.table(columns), folder / "probes" / "some.parquet", row_group_size=90)
    ((_, found),) = rows_of(find_source(folder))
    return found


def comes_to(rows: Rows) -> tuple[Any, ...]:
    """All that is asked of rows, but for their texts."""
    part = Part(KNOWN)
    part.add(rows)
    edges = part.edges(Spacing(1_000_000))
    reasons = sorted(each.reason for each in part.rejects)
    return len(rows), rows.replicas(), rows.span(), edges, reasons


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_of_parquet_are_those_of_lines(tmp_path: Path, seed: int) -> None:
    lines, packed = in_lines(tmp_path / "a", drawn(seed)), in_parquet(tmp_path / "b", drawn(seed))
    assert comes_to(packed) == comes_to(lines)
    assert {contract.BAD_UP, contract.BAD_TIME, contract.UNKNOWN_REPLICA, CONTRADICTS} <= set(
        comes_to(packed)[4]
    )
    for period in (ReportPeriod(10_000_001, DAY_S * 1_000_000), ReportPeriod(None, None)):
        assert comes_to(packed.within(period)) == comes_to(lines.within(period))
    apart = packed.by_day()
    assert apart.keys() == lines.by_day().keys() == {None, 0, 1, 3, 1_157_407}
    for day, own in lines.by_day().items():
        assert comes_to(apart[day]) == comes_to(own), day


def test_states_may_be_booleans_and_a_latency_that_is_no_number_is_none(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"replica": "r1", "time_s": 1.0 + i, "up": float(i < 2), "latency_s": nan} for i in range(4)
    ]
    part = Part(KNOWN)
    part.add(in_parquet(tmp_path, rows, up="bool"))
    assert part.edges(Spacing(1_000_000)).keys() == {"r1"}
    assert part.rejects == []


def test_the_text_of_a_row_of_parquet_is_its_fields(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"replica": "r9", "time_s": 1.5, "up": 1.0, "latency_s": None},
        {"replica": None, "time_s": None, "up": 0.5, "latency_s": -0.25},
        {"replica": "r1", "time_s": nan, "up": 3e9, "latency_s": nan},
        {"replica": "r1", "time_s": 2.0, "up": 1.0, "latency_s": 0.001},
        {"replica": "r1", "time_s": 2.0, "up": 0.0, "latency_s": None},
    ]
    part = Part(KNOWN)
    part.add(in_parquet(tmp_path, rows))
    part.edges(Spacing(1_000_000))
    assert sorted((each.reason, each.line) for each in part.rejects) == sorted(
        [
            (contract.UNKNOWN_REPLICA, "r9,1500000,1,"),
            (contract.MISSING_FIELD + "replica", ",,?,-250000"),
            (contract.BAD_TIME, "r1,?,?,?"),
            (CONTRADICTS, "r1,2000000,1,1000"),
            (CONTRADICTS, "r1,2000000,0,"),
        ]
    )


def test_no_row_at_all_is_no_day_and_no_time() -> None:
    rows = LineRows("probes.jsonl", [])
    assert (len(rows), rows.by_day(), rows.span(), rows.replicas()) == (0, {}, None, set())
