"""What `quorate report --follow` says, and how it ends; what it makes: tests/unit/spark_reports/test_following.py."""

import os
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from quorate.cli.reports.follow import card_as_json, line, stopping
from quorate.spark_reports.following import Card
from quorate.spark_reports.report import Options, make_report
from tests.unit.cli.conftest import quorate_here
from tests.unit.spark_reports import measured_run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "--follow looks for new files in one --input: name a folder of probes, or of a measured run"),
        (("--input", "s3a://bucket/in"), "--follow reads and writes folders of this machine"),
        (("--input", "in", "--engine", "python"), "--follow learns of new files from Spark"),
        (("--input", "in", "--last", "2d"), "--follow is about a day at most: give a shorter --last"),
        (("--input", "in", "--every", "soon"), "--every: 'soon' is no duration"),
    ],
)
def test_what_cannot_be_followed_is_a_wrong_command_line(words: tuple[str, ...], sentence: str) -> None:
    done = quorate_here("report", "--follow", "--out", "out", *words)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_card_is_one_line(tmp_path: Path) -> None:
    place = measured_run.write_run(tmp_path / "run", operations=60)
    options = Options(engine="python", slo={"Enq": Fraction(999, 1000)})
    card = Card(2, make_report(place, tmp_path / "out", options))
    assert line(card).startswith(
        "2025-10-09 08:56:40 UTC, 2 new files. enq-2: Enq 90.54 %, Deq 90.54 %; enq-1: Enq 98.93 %, "
    )
    assert line(card).endswith(" Cas 90.54 %. enq-3 misses Enq. read-write misses Enq.")
    for slo, end in (({"Enq": Fraction(1, 2)}, "Cas 90.54 %. Every objective is met."), ({}, "Cas 90.54 %.")):
        made = make_report(place, tmp_path / "out", replace(options, slo=slo))
        assert line(Card(1, made)).endswith(end)
    shown = card_as_json(card)
    assert (shown["new_files"], shown["error"], shown["end_s"]) == (2, None, 1760000200.0)
    assert {"choice": "enq-2", "operation": "Enq"}.items() <= shown["present"][0].items()
    assert round(shown["present"][0]["available"], 4) == 0.9054
    missed = {row["choice"] for row in shown["objectives"] if not row["met"]}
    assert missed == {"enq-3", "read-write"} < {row["choice"] for row in shown["objectives"]}
    kept = Card(1, None, "r2 is silent")
    assert line(kept) == "1 new file, and the report stays as it was: r2 is silent"
    assert card_as_json(kept) == {"new_files": 1, "error": "r2 is silent"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_sets_the_event_and_the_second_one_ends(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stopping() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.is_set()
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.getsignal(number) is before
