"""The Spark jobs against the plain-Python reference: counts equal exactly, floats to 1e-12."""

import json
import re
import tempfile
from dataclasses import fields
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model import contract, questions
from quorate.spark_reports.model.aggregates import Aggregates
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.run_document import read_run
from quorate.spark_reports.reference import loading, reference
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.report_page import REASONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LAG_US = 1_000_000


def both(
    spark: "SparkSession", folder: Path, parquet_dir: Path, *, lag_us: int = LAG_US
) -> tuple[Aggregates, Aggregates]:
    """The aggregates of a run from Spark and from the reference, for the same questions."""
    from quorate.spark_reports.spark import engine  # noqa: PLC0415 - collecting the tests must not need Spark

    source = find_source(folder)
    run = read_run(folder / "run.json")
    stored = engine.store(spark, source, run, parquet_dir, votes={}, step_us=None)
    loaded = loading.load(source, run, None)
    assert stored.attempted() == loaded.attempted
    asked = questions.ask(run.choices, {}, run.votes, loaded.attempted, {})
    return engine.aggregate(stored, asked, lag_us), reference.aggregate(loaded, asked, lag_us)


def assert_same(found: Aggregates, expected: Aggregates) -> None:
    for field in fields(Aggregates):
        if field.name != "latencies":
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
    assert [row[:5] for row in found.latencies] == [row[:5] for row in expected.latencies]
    for mine, theirs in zip(found.latencies, expected.latencies, strict=True):
        assert mine[5:] == pytest.approx(theirs[5:], rel=1e-12, abs=0)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans of everything that is written, and the executed ones of all that is brought to the driver."""
    from quorate.spark_reports.spark import engine  # noqa: PLC0415

    found: list[str] = []
    collect, store = engine._collect, engine._Folder.store

    def watched(frame: Any, row_type: Any) -> Any:
        rows = collect(frame, row_type)
        found.append(frame._jdf.queryExecution().executedPlan().toString())
        return rows

    def stored(self: Any, name: str, frame: Any) -> Any:
        found.append(f"store {name}\n" + frame._jdf.queryExecution().executedPlan().toString())
        return store(self, name, frame)

    monkeypatch.setattr(engine, "_collect", watched)
    monkeypatch.setattr(engine._Folder, "store", stored)
    return found


def test_spark_equals_reference_on_a_run_with_all_parts_and_bad_rows(
    spark: "SparkSession", tmp_path: Path, plans: list[str]
) -> None:
    folder = measured_run.write_run(tmp_path / "run [1] a*b", operations=1500)
    measured_run.write_links(folder)
    measured_run.write_probes(folder)
    bad = measured_run.write_bad_rows(folder)
    found, expected = both(spark, folder, tmp_path / "parquet {x}")
    assert_same(found, expected)
    assert sum(row.rows for row in found.rejected) == bad
    assert sum(row.operations for row in found.classes) == 1501, "one of the twins stays"
    kinds = {row.reason.partition(": ")[0] for row in found.rejected}
    reasons = {kind.removesuffix(": ") for kind in REASONS}
    assert kinds >= reasons, "each kind of bad row must occur"
    assert {row.view for row in found.up_sets} == {"", "c2"}
    assert [row for row in found.starts if row.up is None], "some of c2 began while a link was unknown"
    assert any(row.near for row in found.starts)
    assert all(row.detected and row.recoveries for row in found.probed)
    assert len(plans) >= 11
    for plan in plans:
        assert plan.startswith("store ") or "Aggregate" in plan, "only what is grouped comes to the driver"
        assert not re.search("Python|Pandas|CartesianProduct|BroadcastNestedLoopJoin", plan), plan


def test_parquet_lines_and_both_at_once_are_the_same_run(spark: "SparkSession", tmp_path: Path) -> None:
    """A writer that was killed between writing Parquet and removing its lines leaves rows in both."""
    lines = measured_run.write_run(tmp_path / "lines", operations=300)
    measured_run.write_probes(lines)
    _, plain = both(spark, lines, tmp_path / "parquet-1")
    packed = measured_run.write_run(tmp_path / "packed", operations=300)
    measured_run.write_probes(packed)
    measured_run.pack(packed, "operations", keep=40)
    measured_run.pack(packed, "probes", keep=7)
    found, expected = both(spark, packed, tmp_path / "parquet-2")
    assert_same(found, expected)
    assert [(row.reason, row.rows) for row in found.rejected] == [(contract.DUPLICATE, 40)]
    for name in ("bins", "classes", "starts", "latencies", "seen", "probed"):
        assert getattr(found, name) == getattr(plain, name), name


@pytest.mark.parametrize(("replicas", "failing", "operations"), [(1, False, 200), (2, True, 0)])
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
        f"r1,{start - 5},{start + 10},1",
        f"r1,{start + 10},{start + 10},0",
        f"r1,{start + 10},{start + 30},1",
    ]
    lines += [f"r2,{start},{start + 4},0", f"r2,{start + 4},{start + 9},0", f"r2,{start + 12},{start + 60},0"]
    lines += [f"r3,{start + 1},{start + 29},1", f"r3,{start + 100},{start + 101},0"]
    (folder / "replicas.csv").write_text("\n".join(lines), encoding="utf-8")
    found, expected = both(spark, folder, tmp_path / "parquet")
    assert_same(found, expected)
    r1, r2, r3 = found.replicas
    assert r1.observed_us == 30_000_000, "what lies before the window does not count"
    assert (r2.observed_us, r2.outages, r2.longest_outage_us) == (27_000_000, 2, 18_000_000)
    assert (r3.observed_us, r3.failures) == (28_000_000, 0)
    assert [row for row in found.starts if row.up is None], "some operations lie outside the known time"


WINDOW_US = 40
"""The made-up runs below last 40 microseconds: so that moments coincide in every way they can."""


def seconds(us: int) -> str:
    return f"{int(measured_run.START_S)}.{us:06d}"


MOMENTS = st.integers(0, WINDOW_US + 10)
PIECES = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from([0, 1, 1, 1, 1, 0, None])), min_size=8, max_size=9
)
"""What follows what, each for so many microseconds: down, up, or nothing known."""

STRAYS = st.lists(st.tuples(MOMENTS, MOMENTS, st.integers(0, 1)), max_size=1)
"""Stretches that overlap others, have no length, or end before they start."""

TRIES = st.tuples(
    st.sampled_from(["enq-1", "enq-2"]),
    st.sampled_from(["Enq/Ok", "Deq/Ok", "Deq/Empty"]),
    st.sampled_from(["c1", "c2", "c3"]),
    MOMENTS,
    st.integers(0, 8),
    st.sampled_from(["ok", "unavailable", "unknown"]),
)


def laid_out(
    pieces: list[tuple[int, int | None]], strays: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Stretches one after the other from the start of the window, and the strays."""
    ends = list(accumulate(length for length, _ in pieces))
    starts = [0, *ends]
    own = [
        (start, end, up) for start, end, (_, up) in zip(starts, ends, pieces, strict=False) if up is not None
    ]
    return [*own, *strays]


@given(
    up=st.lists(st.tuples(PIECES, STRAYS), min_size=3, max_size=3),
    links=st.tuples(PIECES, STRAYS),
    tries=st.lists(TRIES, min_size=40, max_size=80),
)
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
def test_spark_equals_reference_on_whatever_there_may_be(
    spark: "SparkSession", up: list[Any], links: Any, tries: list[Any]
) -> None:
    """Stretches that overlap, touch, have no length or lie outside; attempts that begin in the same microsecond."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        document = measured_run.document(window=[float(seconds(0)), float(seconds(WINDOW_US))])
        (folder / "run.json").write_text(json.dumps(document))
        rows = [
            f"r{index + 1},{seconds(start)},{seconds(end)},{state}"
            for index, own in enumerate(up)
            for start, end, state in laid_out(*own)
        ]
        (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
        rows = [f"c2,r1,{seconds(start)},{seconds(end)},{state}" for start, end, state in laid_out(*links)]
        (folder / "links.csv").write_text("\n".join(["front_end,replica,start_s,end_s,up", *rows]))
        lines = [
            {
                **measured_run.good_enq(),
                "object": f"queue/{choice}",
                "choice": choice,
                "operation": event_class.partition("/")[0],
                "event_class": event_class if outcome == "ok" else None,
                "front_end": front_end,
                "start_s": float(seconds(start)),
                "latency_s": latency / 1e6,
                "outcome": outcome,
            }
            for choice, event_class, front_end, start, latency, outcome in tries
        ]
        (folder / "operations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        source, run = find_source(folder), read_run(folder / "run.json")
        loaded = loading.load(source, run, None)
        asked = questions.ask(run.choices, {}, run.votes, loaded.attempted, {})
        expected = reference.aggregate(loaded, asked, 3)
        if expected.up_sets:
            assert_same(both(spark, folder, folder / "parquet", lag_us=3)[0], expected)


def unusable(folder: Path, spark: Any, parquet_dir: Path) -> list[str]:
    """The sentences with which Spark and the reference refuse a run."""
    sentences = []
    for engine in ("spark", "python"):
        with pytest.raises(ReportError) as refused:
            make_with(engine, folder, spark, parquet_dir)
        sentences.append(str(refused.value))
    return sentences


def make_with(engine: Any, folder: Path, spark: Any, parquet_dir: Path) -> None:
    from quorate.spark_reports.report import Options, make_report  # noqa: PLC0415

    make_report(folder, parquet_dir, Options(engine=engine))


def test_replicas_never_observed_together_are_refused(spark: "SparkSession", tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=10)
    (folder / "replicas.csv").write_text("replica,start_s,end_s,up\nr1,1,2,1\nr2,3,4,1\nr3,5,6,1\n")
    for sentence in unusable(folder, spark, tmp_path / "out"):
        assert "at no moment is the state of every replica known" in sentence
        assert "nothing good is known of r1, r2 and r3; give good intervals" in sentence, (
            "none lies in the window"
        )
    start = int(measured_run.START_S)
    spoken = [f"r1,{start},{start + 9},1", f"r2,{start + 8},{start + 20},1", f"r3,{start + 9},{start + 20},0"]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *spoken]))
    one, other = unusable(folder, spark, tmp_path / "out")
    assert one == other
    assert "r1 is known until 2025-10-09 08:53:29 UTC only, r3 from 2025-10-09 08:53:29 UTC on only" in one


def test_a_torn_gzip_file_and_a_wrong_header_are_named(spark: "SparkSession", tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=500, compress=True)
    packed = folder / "operations.jsonl.gz"
    whole = packed.read_bytes()
    packed.write_bytes(whole[:-40])
    on_spark, in_python = unusable(folder, spark, tmp_path / "out")
    assert "run: operations.jsonl.gz (" in on_spark
    assert "check that its files are whole" in on_spark
    assert "cannot be read to its end" in in_python
    assert "gzip -dc operations.jsonl.gz > operations.jsonl, then take operations.jsonl.gz away" in in_python
    packed.write_bytes(whole)
    (folder / "replicas.csv").write_text("replica;start_s\n")
    for sentence in unusable(folder, spark, tmp_path / "out"):
        assert (
            "replicas.csv begins with 'replica;start_s'; its first line must be replica,start_s" in sentence
        )
