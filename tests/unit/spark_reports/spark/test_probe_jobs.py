"""Samples to intervals on Spark against the plain rule, from files of every form; and what its plan holds."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.spark_reports.input import probes
from quorate.spark_reports.input.probes import Interval, Spacing, read_samples
from quorate.spark_reports.model import contract
from quorate.spark_reports.model.errors import ReportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.spark_reports.spark.probe_jobs import Found

pytestmark = pytest.mark.spark

Sample = tuple[str, int, int]
STEP_US = 1000
SPACING = Spacing(STEP_US, lost_max=2)
REPLICAS = [f"r{index + 1}" for index in range(contract.REPLICAS_MAX)]
CHUNK_US = 1 << (STEP_US * 8192).bit_length()
START_US = 1_760_000_000_000_000 // CHUNK_US * CHUNK_US - 5 * STEP_US  # a chunk ends five steps on

DISTANCES = [
    0,
    1,
    STEP_US - 1,
    STEP_US,
    STEP_US + 1,
    1500,
    1501,
    2000,
    3500,
    3501,
    9000,
    CHUNK_US,
    3 * CHUNK_US + 7,
]


def walks(rng: random.Random) -> list[Sample]:
    """The samples of every replica, each at some distance from the one before."""
    samples = []
    for replica in REPLICAS:
        time_us = START_US
        for _ in range(rng.randint(0, 25)):
            time_us += rng.choice(DISTANCES)
            samples.append((replica, time_us, rng.choice([0, 1, 1, 1])))
    return samples


def row(sample: Sample) -> dict[str, Any]:
    """A sample as a file holds it."""
    replica, time_us, up = sample
    return {"replica": replica, "time_s": time_us / 1e6, "up": up, "latency_s": 0.001 if up else None}


def write_json(path: Path, samples: list[Sample]) -> None:
    text = "".join(json.dumps(row(each)) + "\n" for each in samples).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_parquet(path: Path, samples: list[Sample]) -> None:
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    rows = [row(each) for each in samples]
    columns = {
        "replica": pyarrow.array([each["replica"] for each in rows], pyarrow.string()),
        "time_s": pyarrow.array([each["time_s"] for each in rows], pyarrow.float64()),
        "up": pyarrow.array([bool(each["up"]) for each in rows], pyarrow.bool_()),
        "latency_s": pyarrow.array([each["latency_s"] for each in rows], pyarrow.float64()),
    }
    parquet.write_table(pyarrow.table(columns), path)


WRITERS = {
    "a.parquet": write_parquet,
    "b.parquet": write_parquet,
    "c.jsonl": write_json,
    "d.jsonl.gz": write_json,
}


def write(folder: Path, samples: list[Sample], rng: random.Random) -> list[Path]:
    """Split samples over files of every form, in any order."""
    folder.mkdir()
    shuffled = rng.sample(samples, len(samples))
    for index, (name, writer) in enumerate(WRITERS.items()):
        writer(folder / name, shuffled[index :: len(WRITERS)])
    return [folder / name for name in WRITERS]


def found_in(
    spark: "SparkSession", paths: list[Path], replicas: list[str], spacing: Spacing | None
) -> "Found":
    from quorate.spark_reports.spark import probe_files, probe_jobs  # noqa: PLC0415

    tested = probe_jobs.tested_samples(probe_files.read_samples(spark, paths), replicas)
    return probe_jobs.find_edges(tested, spacing)


def intervals_of(found: "Found", replicas: list[str] = REPLICAS) -> list[Interval]:
    """What the edges come to, by the merge that every part of samples goes through."""
    from quorate.spark_reports.spark import probe_jobs  # noqa: PLC0415

    edges = probe_jobs.edges_by_replica(found.edges, replicas)
    return [each for name in sorted(edges) for each in probes.merged(name, edges[name], found.spacing)]


def assert_as_the_rule_says(spark: "SparkSession", paths: list[Path], samples: list[Sample]) -> None:
    expected = read_samples(samples, SPACING)
    found = found_in(spark, paths, REPLICAS, SPACING)
    assert sorted(intervals_of(found)) == sorted(expected.intervals)
    assert found.samples == len(samples)
    moments = set(expected.contradicted)
    aside = sum((replica, time_us) in moments for replica, time_us, _ in samples)
    counts = Counter(each.reason for each in found.rejected.collect())
    assert counts == ({probes.CONTRADICTS: aside} if aside else {})


@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_are_those_of_the_rule_however_samples_are_spread(
    spark: "SparkSession", tmp_path: Path, seed: int
) -> None:
    """Each replica is an example of its own."""
    rng = random.Random(seed)
    samples = walks(rng)
    assert_as_the_rule_says(spark, write(tmp_path / "files", samples, rng), samples)


def test_chunks_losses_duplicates_and_contradictions_all_occur_and_agree(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Ten thousand samples of two probers, with what a year has: the cases must be there, or the test proves little."""
    rng = random.Random(5)
    samples: list[Sample] = []
    for replica in REPLICAS[:3]:
        time_us, up = START_US - 1500 * STEP_US, 1
        for _ in range(3000):
            time_us += (
                STEP_US + rng.randint(-200, 200) + (rng.random() < 0.03) * rng.choice([1, 3, 8]) * STEP_US
            )
            up = 1 - up if rng.random() < 0.02 else up
            samples += [(replica, time_us, up)] * rng.choice([1, 1, 1, 2])
            if rng.random() < 0.01:
                samples += [(replica, time_us, 1 - up)] * rng.choice([1, 2])
    expected = read_samples(samples, SPACING)
    chunks = {time_us // CHUNK_US for _, time_us, _ in samples}
    gaps = sum(
        one.end_us != two.start_us
        for one, two in zip(expected.intervals, expected.intervals[1:], strict=False)
    )
    assert len(chunks) > 1
    assert gaps > 50
    assert len(expected.contradicted) > 20
    assert len(set(samples)) < len(samples)
    assert_as_the_rule_says(spark, write(tmp_path / "files", samples, rng), samples)


def test_one_sample_shows_no_step(spark: "SparkSession", tmp_path: Path) -> None:
    write_json(tmp_path / "one.jsonl", [("r1", START_US, 1)])
    with pytest.raises(ReportError, match="give the step"):
        found_in(spark, [tmp_path / "one.jsonl"], REPLICAS, None)


BAD_JSON = {
    '{"replica":"r1","time_s":1760000000,"up":1': contract.MALFORMED_JSON,
    '{"replica":"r1","time_s":1,"up":1}{"replica":"r1","time_s":2,"up":1}': contract.MALFORMED_JSON,
    '{"replica":"r1","time_s":NaN,"up":1}': contract.MALFORMED_JSON,
    '{"time_s":1760000000,"up":1}': contract.MISSING_FIELD + "replica",
    '{"replica":"r1","up":1}': contract.MISSING_FIELD + "time_s",
    '{"replica":"r1","time_s":1760000000,"up":null}': contract.MISSING_FIELD + "up",
    '{"replica":"r99","time_s":1760000000,"up":1}': contract.UNKNOWN_REPLICA,
    '{"replica":"r1","time_s":-1,"up":1}': contract.BAD_TIME,
    '{"replica":"r1","time_s":1760000000000,"up":1}': contract.BAD_TIME,
    '{"replica":"r1","time_s":1760000000,"up":0.5}': contract.BAD_UP,
    '{"replica":"r1","time_s":1760000000,"up":1,"latency_s":-0.1}': contract.BAD_LATENCY,
}


def test_bad_rows_are_kept_aside_with_the_reason_and_their_text(
    spark: "SparkSession", tmp_path: Path
) -> None:
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    (tmp_path / "bad.jsonl").write_text("\n\n".join(BAD_JSON) + "\n", encoding="utf-8")
    nan = float("nan")
    columns = {"replica": ["r1", "r1", "r1"], "time_s": [nan, 1760000000.0, 1760000001.0]}
    table = pyarrow.table(columns | {"up": [1, 1, 1], "latency_s": [0.1, nan, None]})
    parquet.write_table(table, tmp_path / "bad rows.parquet")
    paths = [tmp_path / name for name in ("bad.jsonl", "bad rows.parquet")]
    found = found_in(spark, paths, REPLICAS, Spacing(1_000_000))
    aside = {(each.source, each.reason, each.line) for each in found.rejected.collect()}
    assert {each[1:] for each in aside if each[0] == "bad.jsonl"} == {(v, k) for k, v in BAD_JSON.items()}
    (packed,) = (each for each in aside if each[0].endswith(".parquet"))
    assert packed[1] == contract.BAD_TIME
    assert packed[2] == "r1,?,1,100000", "as plain Python says it"
    assert [each[:3] for each in intervals_of(found)] == [("r1", 1760000000000000, 1760000002000000)]
    assert found.samples == len(BAD_JSON) + 3


def test_files_that_hold_no_probes_are_refused(spark: "SparkSession", tmp_path: Path) -> None:
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    from quorate.spark_reports.spark.probe_files import read_samples as read  # noqa: PLC0415

    parquet.write_table(pyarrow.table({"replica": ["r1"], "up": [1]}), tmp_path / "some.parquet")
    with pytest.raises(ReportError, match=r"some\.parquet has no column time_s"):
        read(spark, [tmp_path / "some.parquet"])


def test_the_usual_step_is_that_of_the_rule_and_no_rows_come_to_the_driver_nor_to_python(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.classic.dataframe import DataFrame as Classic  # noqa: PLC0415

    rng = random.Random(6)
    replicas = REPLICAS[:3]
    samples = [
        (replica, START_US + 700 * index + rng.randint(0, 90), 1)
        for index in range(170)
        for replica in replicas
    ]
    samples += [(*samples[1][:2], 0)]
    paths = write(tmp_path / "files", samples, rng)
    brought: list[int] = []
    collect = Classic.collect

    def counted(frame: Any) -> Any:
        rows = collect(frame)
        brought.append(len(rows))
        return rows

    monkeypatch.setattr(Classic, "collect", counted)
    found = found_in(spark, paths, replicas, None)
    assert found.spacing == Spacing(probes.usual_step_us(samples))
    assert max(brought) <= 1, "one number at a time comes to the driver"
    plan = found.edges._jdf.queryExecution().toString() + found.rejected._jdf.queryExecution().toString()
    assert "FileScan parquet" in plan
    for word in ("Python", "InArrow", "InPandas", "CartesianProduct", "BroadcastNestedLoopJoin"):
        assert word not in plan, word
    assert "_metadata" not in plan.partition("FileScan parquet")[2].partition("\n")[0]
