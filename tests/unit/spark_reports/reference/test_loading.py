"""Who is to blame where replicas are never known at the same time."""

from pathlib import Path

import pytest

from quorate.spark_reports.input.rows import Interval
from quorate.spark_reports.input.sources import PROMETHEUS, Source
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.reference import loading
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.input.test_foreign import answer, series

SOURCE = Source(PROMETHEUS, Path("up.json"))


def blamed(*intervals: Interval) -> str:
    known = loading.known_of(intervals)
    return str(loading.never_observed_together(SOURCE, ("r1", "r2"), known))


def test_the_replica_of_which_nothing_is_known_is_named() -> None:
    sentence = blamed(Interval("", "r1", 0, 5, 1))
    assert "nothing good is known of r2; give good intervals or samples" in sentence


def test_the_two_that_miss_each_other_are_named_with_their_times() -> None:
    day_us = 1_760_000_000_000_000
    sentence = blamed(
        Interval("", "r1", day_us, day_us + 5_000_000, 1),
        Interval("", "r1", day_us + 7_000_000, day_us + 9_000_000, 1),
        Interval("", "r2", day_us + 9_000_000, day_us + 10_000_000, 1),
    )
    assert (
        "r1 is known until 2025-10-09 08:53:29 UTC only, r2 from 2025-10-09 08:53:29 UTC on only" in sentence
    )
    assert "r1 is known until 5 s only, the link from f1 to r2 from 6 s on only" in blamed(
        Interval("", "r1", 0, 5_000_000, 1),
        Interval("", "r2", 0, 9_000_000, 1),
        Interval("f1", "r2", 6_000_000, 9_000_000, 1),
    )


def test_where_gaps_alternate_all_are_named() -> None:
    sentence = blamed(*(Interval("", f"r{i % 2 + 1}", i, i + 1, 1) for i in range(4)))
    assert "whenever the others are known, one of r1 and r2 is not" in sentence


def test_targets_of_prometheus_that_were_never_scraped_together_are_named(tmp_path: Path) -> None:
    early = [(15.0 * i, "1") for i in range(10)]
    late = [(15.0 * i, "1") for i in range(20, 30)]
    path = answer(tmp_path, series("a", *early), series("b", *late))
    with pytest.raises(ReportError, match="a is known until 150 s only, b from 300 s on only"):
        make_report(path, tmp_path / "out", Options(engine="python", adt="queue"))


def test_what_lies_outside_the_window_is_not_known(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=10)
    (folder / "replicas.csv").write_text("replica,start_s,end_s,up\nr1,1,2,1\nr2,3,4,1\nr3,5,6,1\n")
    with pytest.raises(ReportError, match="nothing good is known of r1, r2 and r3; give good intervals"):
        make_report(folder, tmp_path / "out", Options(engine="python"))
