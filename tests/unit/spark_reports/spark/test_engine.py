"""The Spark jobs against the plain-Python reference: counts equal exactly, floats to 1e-12."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.adts.types.catalogue import known_types
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

JOBS_MAX = 10
"""For a run without bad rows, in a session that plans once; one that plans as it goes, as shipped, makes more of the same."""


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
    asked = questions.ask(run.choices, {}, run.votes, loaded.attempted, {}, known_types())
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
    brought, store = engine._brought, engine._Folder.store

    def watched(frame: Any) -> Any:
        rows = brought(frame)
        found.append(frame._jdf.queryExecution().executedPlan().toString())
        return rows

    def stored(self: Any, name: str, frame: Any) -> Any:
        found.append(f"store {name}\n" + frame._jdf.queryExecution().executedPlan().toString())
        return store(self, name, frame)

    monkeypatch.setattr(engine, "_brought", watched)
    monkeypatch.setattr(engine._Folder, "store", stored)
    return found


def in_python(folder: Path) -> Aggregates:
    """The aggregates of a run from the reference alone."""
    source, run = find_source(folder), read_run(folder / "run.json")
    loaded = loading.load(source, run, None)
    return reference.aggregate(
        loaded, questions.ask(run.choices, {}, run.votes, loaded.attempted, {}, known_types()), LAG_US
    )


TWICE = 40
"""So many operations lie in lines and in Parquet."""


def write_all_parts(folder: Path, *, packed: bool) -> int:
    """Write a run with links, probes and rows of every bad kind; give how many rows are bad.

    Packed, the good rows lie in Parquet, and some still in lines: the writer was killed before it removed them.
    """
    measured_run.write_run(folder, operations=1500)
    measured_run.write_links(folder)
    measured_run.write_probes(folder)
    if packed:
        measured_run.pack(folder, "operations", keep=TWICE)
        measured_run.pack(folder, "probes", keep=7)
        measured_run.compress(folder / "operations.jsonl")
    return measured_run.write_bad_rows(folder)


def test_spark_equals_reference_on_a_run_with_all_parts_and_bad_rows(
    spark: "SparkSession", tmp_path: Path, plans: list[str]
) -> None:
    """Its rows lie in lines and in Parquet, some in both: it is the same run as that of the lines alone."""
    write_all_parts(tmp_path / "lines", packed=False)
    folder = tmp_path / "run [1] a*b"
    bad = write_all_parts(folder, packed=True)
    found, expected = both(spark, folder, tmp_path / "parquet {x}")
    assert_same(found, expected)
    plain = in_python(tmp_path / "lines")
    for name in ("bins", "classes", "starts", "latencies", "seen", "probed"):
        assert getattr(found, name) == getattr(plain, name), name
    assert sum(row.rows for row in found.rejected) == bad + TWICE
    again = [row.rows for row in found.rejected if row.reason == contract.DUPLICATE]
    assert sum(again) == TWICE + 1, "the others and one of the twins stay"
    assert sum(row.operations for row in found.classes) == 1501
    kinds = {row.reason.partition(": ")[0] for row in found.rejected}
    reasons = {kind.removesuffix(": ") for kind in REASONS}
    assert kinds >= reasons, "each kind of bad row must occur"
    assert {row.view for row in found.up_sets} == {"", "c2"}
    assert [row for row in found.starts if row.up is None], "some of c2 began while a link was unknown"
    assert any(row.near for row in found.starts)
    assert all(row.detected and row.recoveries for row in found.probed)
    assert len(plans) == 6, "two tables are stored by Spark, and four brought here"
    for plan in plans:
        assert plan.startswith("store ") or "Aggregate" in plan, "only what is grouped comes to the driver"
        assert not re.search("Python|Pandas|CartesianProduct|BroadcastNestedLoopJoin", plan), plan
        if plan.startswith("store operations") or "stretch#" in plan:
            shuffles = re.findall(r"hashpartitioning\(([^)]*)\)", plan)
            assert shuffles, "attempts are put in order where rows that matter to each other meet"
            assert all(re.search("alike#|stretch#", keys) for keys in shuffles), (
                "no task sorts all of a choice"
            )


def test_a_small_run_takes_few_jobs(spark: "SparkSession", tmp_path: Path, plans: list[str]) -> None:
    """Each job of a small report takes a tenth of a second, and each plan half of one, of which a report of few rows consists."""
    folder = measured_run.write_run(tmp_path / "run", operations=300)
    measured_run.pack(folder, "operations")
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    found, expected = both(spark, folder, tmp_path / "parquet")
    assert scheduler.numTotalJobs() - before <= JOBS_MAX
    assert len(plans) == 5, "where no row is kept aside Spark stores one table, and four are brought here"
    assert_same(found, expected)
    assert found.rejected == ()
    assert spark.read.parquet(str(tmp_path / "parquet" / "rejected")).count() == 0


def test_spark_equals_reference_where_nothing_was_tried(spark: "SparkSession", tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", replicas=2, operations=0, compress=True)
    assert_same(*both(spark, folder, tmp_path / "parquet"))


BEFORE_US = 10
WINDOW_US = 80
"""The made-up runs below last 80 microseconds: so that moments coincide in every way they can."""

SEEDS = (1, 109)
"""In the second, an outage that one view sees outlasts a later one of another: a rule that looks at the one before is wrong."""


def seconds(us: int) -> str:
    return f"{int(measured_run.START_S)}.{us:06d}"


def moment(rng: random.Random) -> int:
    return rng.randint(0, BEFORE_US + WINDOW_US + 10)


def stretches(rng: random.Random) -> Iterator[str]:
    """Stretches one after the other from before the window, some unknown or without length, and one that may lie anywhere."""
    start = 0
    for _ in range(16):
        end = start + rng.randint(0, 15)
        state = rng.choice(["0", "1", "1", "1", "1", "0", None])
        if state is not None:
            yield f"{seconds(start)},{seconds(end)},{state}"
        start = end
    yield f"{seconds(moment(rng))},{seconds(moment(rng))},{rng.randint(0, 1)}"


def attempt(rng: random.Random) -> dict[str, Any]:
    choice = rng.choice(["enq-1", "enq-2"])
    event_class = rng.choice(["Enq/Ok", "Deq/Ok", "Deq/Empty"])
    outcome = rng.choice(["ok", "unavailable", "unknown"])
    return {
        **measured_run.good_enq(),
        "object": f"queue/{choice}",
        "choice": choice,
        "operation": event_class.partition("/")[0],
        "event_class": event_class if outcome == "ok" else None,
        "front_end": rng.choice(["c1", "c2", "c3"]),
        "start_s": float(seconds(moment(rng))),
        "latency_s": rng.randint(0, 8) / 1e6,
        "outcome": outcome,
    }


def write_whatever(folder: Path, rng: random.Random) -> Path:
    folder.mkdir()
    window = [float(seconds(BEFORE_US)), float(seconds(BEFORE_US + WINDOW_US))]
    (folder / "run.json").write_text(json.dumps(measured_run.document(window=window)))
    rows = [f"{replica},{each}" for replica in ("r1", "r2", "r3") for each in stretches(rng)]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
    rows = [f"c2,r1,{each}" for each in stretches(rng)]
    (folder / "links.csv").write_text("\n".join(["front_end,replica,start_s,end_s,up", *rows]))
    tries = [json.dumps(attempt(rng)) for _ in range(120)]
    (folder / "operations.jsonl").write_text("\n".join(tries))
    return folder


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_equals_reference_on_whatever_there_may_be(
    spark: "SparkSession", tmp_path: Path, seed: int
) -> None:
    """Stretches that overlap, touch, have no length or lie outside; attempts that begin in the same microsecond."""
    folder = write_whatever(tmp_path / "run", random.Random(seed))
    found, expected = both(spark, folder, tmp_path / "parquet", lag_us=3)
    assert_same(found, expected)
    assert len(found.up_sets) > 5, "the replicas are known together for much of the time"
    assert [row for row in found.starts if row.up is None], "some attempts lie outside the known time"
    reasons = {contract.OUTSIDE_WINDOW, contract.DUPLICATE, contract.ENDS_BEFORE_START, contract.CONTRADICTS}
    assert reasons <= {row.reason for row in found.rejected}


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
