"""A report of the days that a store keeps is that of all samples at once, to the last bit, however the days came into it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.spark_reports.figures.derive_regimes import Since
from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.period import Asked
from quorate.spark_reports.report import Options, make_report
from quorate.spark_reports.store.folder import ClusterFolder
from quorate.spark_reports.store.updating import update
from tests.unit.spark_reports.store.probe_days import (
    DAY_S,
    FIRST_S,
    REPLICAS,
    STEP_S,
    UNDATED,
    bad_rows,
    date,
    samples,
    write_lines,
    write_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = Options(engine="python", adt="queue", step_s=STEP_S)


def days(first: int, end: int) -> Asked:
    return Asked((FIRST_S + first * DAY_S) * 1_000_000, (FIRST_S + end * DAY_S) * 1_000_000)


def figures(place: Path | None, out: Path, options: Options) -> tuple[dict[str, Any], Sequence[str]]:
    """Figures, but for what names the input and the engine; and what was told."""
    made = make_report(place, out, options)
    found: dict[str, Any] = json.loads(made.json.read_text(encoding="utf-8"))
    del found["versions"], found["keys"]
    del found["source"]["engine"], found["source"]["files"], found["source"]["name"]
    return found, made.notes


class Increments:
    """One input, and a store that takes its days."""

    def __init__(self, folder: Path) -> None:
        self.input, self.out, self.store = folder / "in", folder / "out", folder / "store"
        self.options = Options(adt="queue", store=self.store, cluster="shop")

    @property
    def place(self) -> Path:
        return self.store / "cluster=shop"

    def take(self, step_s: int | None = None, votes: Mapping[str, int] | None = None) -> Sequence[str]:
        """Take what is new, and make no report; gives what is told."""
        folder = ClusterFolder(self.store, "shop")
        with folder.written():
            step_us = None if step_s is None else step_s * 1_000_000
            return tuple(
                update(folder, find_source(self.input), step_us, votes or {}).sentences(str(folder.place))
            )

    def take_and_compare(self, **options: Any) -> Sequence[str]:
        """As a report does, and see that it is the full one."""
        found, notes = figures(self.input, self.out, replace(self.options, **options))
        assert found == figures(self.input, self.out, FULL)[0]
        return notes

    def told(self, **options: Any) -> dict[str, Any]:
        """The report of what is kept."""
        return figures(None, self.out, replace(self.options, **options))[0]

    def edges(self) -> dict[str, int]:
        """The files of the days that are kept, and when they were written."""
        return {str(path): path.stat().st_mtime_ns for path in self.place.glob("day=*/*")}


def begin(folder: Path) -> Increments:
    """Three days: of lines, of Parquet, and of both; the second has rows of the first and of the third."""
    kept = Increments(folder)
    write_lines(kept.input, 0, samples(0) + bad_rows(0), UNDATED)
    write_parquet(kept.input, 1, samples(1) + bad_rows(1))
    write_parquet(kept.input, 2, samples(2)[:300])
    write_lines(kept.input, 2, samples(2)[300:], UNDATED[:1])
    return kept


def test_days_one_after_the_other_come_to_the_full_report(tmp_path: Path) -> None:
    whole = begin(tmp_path / "whole")
    kept = Increments(tmp_path / "kept")
    for day, told in (
        (0, "3 days new (2026-10-31 to 2026-11-02), 0 kept."),
        (1, "1 day new (2026-11-03), 2 repeated, as their input changed (2026-11-01 to 2026-11-02), 1 kept."),
        (2, "1 day new (2026-11-04), 2 repeated, as their input changed (2026-11-02 to 2026-11-03), 2 kept."),
    ):
        for path in sorted(whole.input.rglob(f"*{date(day)}*")):
            target = kept.input / path.relative_to(whole.input)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        assert kept.take_and_compare(step_s=STEP_S) == (f"{kept.place}: {told}",)
    found = kept.told()
    assert {row["reason"] for row in found["rejected"]} >= {
        "contradicts another probe of the same replica at the same moment",
        "not one JSON object with fields of the right type",
        "up is neither 0 nor 1",
    }
    assert sum(row["outages"] for row in found["replicas"]) > 5
    assert found["window"]["known_s"] < 0.9 * 3 * DAY_S, "there are gaps"
    before = kept.edges()
    (kept.place / f"day={date(1)}" / "edges-of-a-run-that-was-cut-off.parquet").touch()
    assert kept.take() == (f"{kept.place}: 0 days new, 5 kept.",)
    assert kept.edges() == before, "nothing is made twice, and nothing is left over"


def test_a_day_whose_input_changed_is_repeated(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    path = write_parquet(kept.input, 1, samples(1, seed=2))
    assert kept.take_and_compare() == (
        f"{kept.place}: 0 days new, 3 repeated, as their input changed (2026-11-01 to 2026-11-03), 2 kept.",
    )
    os.utime(path)
    assert kept.take() == (f"{kept.place}: 0 days new, 5 kept.",), "what was only touched is no change"
    write_parquet(kept.input, 1, samples(3)[:9], name="late.parquet")
    assert "1 repeated, as their input changed (2026-11-04)" in kept.take_and_compare()[0], (
        "late samples go to their own day"
    )


def test_a_day_of_which_its_files_have_no_row_any_more_goes(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    write_parquet(kept.input, 2, samples(1)[:300])
    write_lines(kept.input, 2, samples(1)[300:], UNDATED[:1])
    told = "3 repeated, as their input changed (2026-11-01 to 2026-11-03), 1 without any row by now (2026-11-04), 1 kept."
    assert kept.take_and_compare() == (f"{kept.place}: 0 days new, {told}",)


def test_a_change_that_leaves_size_and_name_is_noticed(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    path = write_lines(kept.input, 0, samples(0))
    kept.take(step_s=STEP_S)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"up": 1', '"up": 0', 1), encoding="utf-8")
    assert path.stat().st_size == len(text)
    assert "3 repeated" in kept.take_and_compare()[0]


def test_a_time_reads_the_days_within_and_no_others(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    for name in kept.edges():
        if date(1) not in name:
            Path(name).write_bytes(b"never read")
    expected = figures(kept.input, kept.out, replace(FULL, asked=days(1, 2)))[0]
    assert kept.told(asked=days(1, 2)) == expected
    last = Asked(to_us=days(1, 2).to_us, last_us=DAY_S * 1_000_000)
    assert kept.told(asked=last) == expected
    with pytest.raises(ReportError, match=r"edges-.* cannot be read .* take it away and run with --input"):
        kept.told()
    for name in kept.edges():
        if date(1) not in name:
            Path(name).unlink()
    assert "4 repeated" in kept.take()[0]


def test_the_last_days_end_with_the_last_one_that_is_kept(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    found = kept.told(asked=Asked(last_us=2 * DAY_S * 1_000_000))
    assert (found["window"]["from_s"], found["window"]["to_s"]) == (FIRST_S + 2 * DAY_S, FIRST_S + 4 * DAY_S)
    with pytest.raises(ReportError, match=r"keeps whole days \(UTC\), and the report is asked for from"):
        kept.told(asked=Asked(last_us=3_600_000_000))
    with pytest.raises(
        ReportError, match="has nothing from 2026-11-07 00:00:00 UTC: it speaks of the time from"
    ):
        kept.told(asked=replace(days(6, 7), to_us=None))


CHANGED: dict[str, Any] = {
    "present": "Enq (0, 2), Deq (2, 2), Peek (2, 0), Size (2, 0)",
    "changes": (
        Since((FIRST_S + DAY_S + 40_000) * 1_000_000, "Enq (0, 1), Deq (3, 1), Peek (3, 0), Size (3, 0)"),
        Since((FIRST_S + 2 * DAY_S) * 1_000_000, "Enq (0, 2), Deq (2, 2), Peek (2, 0), Size (2, 0)"),
    ),
}


def test_regimes_that_begin_within_a_day_are_those_of_all_samples(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    found = kept.told(**CHANGED)
    assert found == figures(kept.input, kept.out, replace(FULL, **CHANGED))[0]
    assert {row["regime"] for row in found["regimes"]} == {1, 2, 3}
    assert any(row["downtime_s"] for row in found["regimes"])


@pytest.mark.spark
def test_spark_finds_the_same_regimes(spark: "SparkSession", tmp_path: Path) -> None:
    kept = begin(tmp_path)
    by_spark, by_python = (
        figures(kept.input, kept.out, replace(FULL, engine=engine, **CHANGED))[0]
        for engine in ("spark", "python")
    )
    assert by_spark == by_python
    assert len(by_spark["as_it_was"]) == 5


@pytest.mark.spark
def test_spark_makes_the_same_report_of_all_samples_at_once(spark: "SparkSession", tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    assert kept.told() == figures(kept.input, kept.out, replace(FULL, engine="spark"))[0]
    table = spark.read.parquet(str(kept.store))
    assert {row[0] for row in table.where("cluster = 'shop'").select("replica").collect()} == set(REPLICAS)
    assert {"cluster", "day"} < set(table.columns), "anybody reads the edges as one table of partitions"


def test_votes_are_those_that_the_store_began_with(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    votes = {"r1": 2, "r3": 1}
    make_report(kept.input, kept.out, replace(kept.options, step_s=STEP_S, votes=votes))
    full = figures(kept.input, kept.out, replace(FULL, votes=votes))[0]
    assert kept.told() == full
    assert kept.told(votes={"r1": 1, "r3": 1}) != full
    with pytest.raises(ReportError, match="was made of the replicas r1, r3"):
        kept.told(votes={"r1": 1})
    make_report(kept.input, kept.out, replace(kept.options, step_s=STEP_S, cluster="other"))
    with pytest.raises(ReportError, match="keeps samples of r2, which --votes leaves out"):
        kept.told(votes=votes, cluster="other")


def test_a_replica_that_is_misspelt_begins_no_store(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    with pytest.raises(ReportError, match="--votes names 'r4', of which the data says nothing"):
        kept.take(step_s=STEP_S, votes={"r1": 1, "r4": 1})
    assert not (kept.place / "_manifest.json").exists()


def test_days_outlive_their_input_and_are_never_made_smaller_for_want_of_it(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    before = kept.told()
    archived = (kept.input / "probes" / f"day={date(1)}").rename(tmp_path / "archived")
    notes = kept.take()
    assert notes[0] == f"{kept.place}: 0 days new, 5 kept."
    stays = f"stays as it was kept, with [0-9]+ rows: probes/day={date(1)}/part-0.parquet is gone from the input, which has"
    for note, day in zip(notes[1:], ("2026-11-01", "2026-11-02", "2026-11-03"), strict=True):
        assert re.match(f"{day} {stays}", note)
    assert kept.told() == before
    archived.rename(kept.input / "probes" / f"day={date(1)}")
    packed = write_parquet(kept.input, 1, samples(1) + bad_rows(1), name="packed.parquet")
    packed.with_name("part-0.parquet").unlink()
    assert "3 repeated" in kept.take_and_compare()[0], "what was written anew under another name is whole"
    (kept.input / f"probes-{date(0)}.jsonl").unlink()
    notes = kept.take()
    assert "The input no longer has any file of 1 kept day (2026-10-31)." in notes


KILLED_AT = """
import os, signal, sys
from pathlib import Path
from quorate.spark_reports.report import Options, make_report

place = Path.replace

def until(path, target):
    if target.name.startswith(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return place(path, target)

Path.replace = until
store = Path(sys.argv[3])
make_report(Path(sys.argv[2]), store.parent / "out", Options(adt="queue", store=store, cluster="shop"))
"""


def test_a_process_that_is_killed_leaves_what_was_kept(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    before, files = kept.told(), kept.edges()
    write_parquet(kept.input, 1, samples(1, seed=2))
    write_parquet(kept.input, 5, samples(5))
    for moment in ("edges-", "_manifest.json"):
        command = [sys.executable, "-c", KILLED_AT, moment, str(kept.input), str(kept.store)]
        done = subprocess.run(command, timeout=300, check=False)
        assert done.returncode == -signal.SIGKILL
        assert kept.edges().keys() > files.keys(), "it had begun to write"
        assert kept.told() == before
    assert "3 days new (2026-11-05 to 2026-11-07), 3 repeated" in kept.take_and_compare()[0]
    assert len(kept.edges()) == 8, "what it left is taken away"


def test_two_reports_do_not_write_one_store(tmp_path: Path) -> None:
    import fcntl  # noqa: PLC0415

    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    with (kept.place / "_lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        kept.told()
        with pytest.raises(ReportError, match=r"another report is at work in .*cluster=shop"):
            kept.take()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ReportError, match="another report is at work"):
            kept.told()
    kept.take()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"step_s": None}, "has no day yet: say how far apart the probes are, with --step SECONDS"),
        ({"cluster": None}, "keeps days by cluster: name it with --cluster"),
        ({"cluster": "a/b"}, "--cluster 'a/b' cannot name a partition"),
        ({"store": None}, "--cluster names a part of a store"),
        ({"engine": "spark"}, "days are taken into a store in plain Python"),
        ({"master": "local[2]"}, "days are taken into a store in plain Python"),
    ],
)
def test_what_cannot_begin_a_store_is_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    kept = begin(tmp_path)
    with pytest.raises(ReportError) as refused:
        make_report(kept.input, kept.out, replace(kept.options, **{"step_s": STEP_S, **options}))
    assert sentence in str(refused.value)


def test_a_store_has_one_step_and_says_which_clusters_it_has(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    with pytest.raises(ReportError, match="was made with a step of 300 s: leave --step out"):
        make_report(kept.input, kept.out, replace(kept.options, step_s=30))
    with pytest.raises(ReportError, match="keeps no day of the cluster mall; it has shop: give another"):
        kept.told(cluster="mall")
    with pytest.raises(ReportError, match="give --input, or --store and --cluster"):
        make_report(None, kept.out, Options(adt="queue"))
    (tmp_path / "up.csv").write_text("start_s,end_s,up\n0,10,a|b\n")
    with pytest.raises(ReportError, match="is no folder of probes, and a store keeps nothing else"):
        make_report(tmp_path / "up.csv", kept.out, kept.options)


def test_a_store_of_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    kept = begin(tmp_path)
    kept.take(step_s=STEP_S)
    path = kept.place / "_manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert (manifest["schema_version"], manifest["cluster"]) == (1, "shop")
    path.write_text(json.dumps(manifest | {"schema_version": 2, "more": []}), encoding="utf-8")
    text = path.read_bytes()
    for place in (kept.input, None):
        with pytest.raises(
            ReportError, match="is of schema version 2, and this release knows 1: use the release"
        ):
            make_report(place, kept.out, kept.options)
    assert path.read_bytes() == text


def test_days_of_a_file_that_is_written_to_meanwhile_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = begin(tmp_path)
    write = ClusterFolder.write_edges
    path = kept.input / f"probes-{date(0)}.jsonl"

    def meanwhile(*arguments: Any) -> str:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(samples(0)[0]) + "\n")
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ClusterFolder, "write_edges", meanwhile)
        assert kept.take(step_s=STEP_S) == (
            f"{kept.place}: 2 days new (2026-11-03 to 2026-11-04), 0 kept.",
            f"1 file of the input changed while being read ({path.name}): days with rows there wait for a later run.",
        )
    assert len(kept.edges()) == 2
    assert "3 days new" in kept.take_and_compare()[0]
