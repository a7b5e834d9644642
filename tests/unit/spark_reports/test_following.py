"""A folder is followed: each file counts once, whatever happens to who follows it, and the figures are those of a report of all files."""

import errno
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Final

import pytest

from quorate.cli.reports.follow import stopping
from quorate.spark_reports import following
from quorate.spark_reports.following import FOLDER, Card, follow
from quorate.spark_reports.model.errors import JavaMissing, ReportError
from quorate.spark_reports.model.period import Asked
from quorate.spark_reports.model.places import Place
from quorate.spark_reports.report import Options, make_report
from quorate.spark_reports.spark import arrivals, session
from tests.docs.pages import blocks_run_by
from tests.unit.spark_reports import measured_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST: Final = Asked(last_us=60_000_000)
TIMEOUT_S: Final = 400
"""For a machine that is busy with other tests."""


def told(path: Place) -> dict[str, Any]:
    """Figures, but for what names the engine and the files."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del found["versions"], found["keys"]
    del found["source"]["engine"], found["source"]["files"], found["source"]["name"]
    return found


def of_all(place: Path, out: Path, options: Options) -> dict[str, Any]:
    """The figures of a report of all files of a folder."""
    return told(make_report(place, out, replace(options, engine="python")).json)


class Arriving:
    """A run of 200 s whose rows come in files of 50 s each, bad ones with the first; and what is known of it by then."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "in"
        self._whole = measured_run.write_run(folder / "whole", operations=600)
        measured_run.write_probes(self._whole)
        shutil.copytree(self._whole, self.place, ignore=shutil.ignore_patterns("*.jsonl"))

    def bring(self, part: int) -> None:
        for name, key in (("operations", "start_s"), ("probes", "time_s")):
            lines = (self._whole / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            own = [line for line in lines if (json.loads(line)[key] - measured_run.START_S) // 50 == part]
            own += [] if part else ['{"torn']
            if part == 3:  # the load drains after the window
                own.append(json.dumps(measured_run.good_enq() | {"start_s": measured_run.START_S + 400}))
            packed = gzip.compress("\n".join([*own, ""]).encode())
            (self.place / f"{name}-1-{part}.jsonl.gz").write_bytes(packed)
        document = json.loads((self._whole / "run.json").read_text(encoding="utf-8"))
        document["window"][1] = measured_run.START_S + 50 * (part + 1)
        (self.place / "run.json").write_text(json.dumps(document), encoding="utf-8")


KILLED = """
import os, signal, sys
from pathlib import Path
from quorate.cli.main import main

place, noted = Path.replace, []

def until(path, target):
    place(path, target)
    noted.extend([target] if target.name == "files.json" else [])
    if len(noted) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

Path.replace = until
main()
"""


@pytest.mark.spark
def test_a_follower_that_is_killed_goes_on_and_counts_nothing_twice(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Killed once it has noted the files of a batch, and before Spark knows that the batch is done."""
    arriving, out = Arriving(tmp_path), tmp_path / "out"
    arriving.bring(0)
    arriving.bring(1)
    [block] = blocks_run_by("tests/unit/spark_reports/test_following.py")
    places = {"probes": str(arriving.place), "live": str(out)}
    words = [places.get(word, word) for word in block.text.split()[1:]] + ["--last", "60s"]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], timeout=TIMEOUT_S, check=False)
    assert done.returncode == -signal.SIGKILL
    assert sorted(noted(out)) == [
        f"{name}-1-{part}.jsonl.gz" for name in ("operations", "probes") for part in (0, 1)
    ]
    assert not (out / "figures.json").exists()
    assert not commits(out)
    arriving.bring(2)
    arriving.bring(3)
    cards: list[Card] = []

    def end(card: Card) -> None:
        cards.append(card)
        os.kill(os.getpid(), signal.SIGTERM)

    options = Options(asked=LAST)
    follow(arriving.place, out, options, every_s=60, stopping=stopping(), told=end)
    assert [card.new_files for card in cards] == [8], "the files of the batch that was cut off came again"
    assert commits(out) == ["0", "1"]
    whole = of_all(arriving.place, tmp_path / "all", options)
    assert told(out / "figures.json") == whole
    assert {row["kind"]: row["used"] for row in whole["rows"]}["operations"] > 100
    assert sorted(noted(out)) == [
        f"{name}-1-{part}.jsonl.gz" for name in ("operations", "probes") for part in (2, 3)
    ], "older files are forgotten, and may be taken away"


@pytest.mark.spark
def test_a_signal_to_all_processes_of_the_command_ends_it_as_one_to_itself(tmp_path: Path) -> None:
    """As systemd and `timeout` send it: Java ends with it, and before Python could tell it to."""
    arriving, out = Arriving(tmp_path), tmp_path / "out"
    arriving.bring(0)
    words = [
        "-m",
        "quorate.cli.main",
        "report",
        "--follow",
        "--input",
        str(arriving.place),
        "--out",
        str(out),
    ]
    with subprocess.Popen(
        [sys.executable, *words, "--last", "60s", "--every", "600s", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            assert command.stdout is not None
            assert json.loads(command.stdout.readline())["new_files"] == 2
            os.killpg(command.pid, signal.SIGTERM)
            _, said = command.communicate(timeout=TIMEOUT_S)
            assert command.returncode == 0, said
            assert "refused" not in said
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)


def commits(out: Path) -> list[str]:
    """The batches that Spark knows to be done."""
    return sorted(path.name for path in (out / FOLDER / "spark" / "commits").glob("[0-9]*"))


def noted(out: Path) -> list[str]:
    """The files that are known to be taken."""
    return list(json.loads((out / FOLDER / "files.json").read_bytes())["files"])


def write_probes(folder: Path, name: str, start_s: int, replicas: tuple[str, ...] = ("r1", "r2")) -> Path:
    """A minute of probes, one a second."""
    rows = [
        {"replica": replica, "time_s": 1_793_491_200 + start_s + second, "up": int(second % 20 > 2)}
        for second in range(60)
        for replica in replicas
    ]
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


class Followed:
    """A folder whose files hold a minute each, followed into the report of its last 90 s."""

    def __init__(self, folder: Path) -> None:
        self.place, self.out, self._folder = folder / "in [1]", folder / "out", folder
        self.options = Options(adt="queue", asked=Asked(last_us=90_000_000), votes={"r1": 1, "r2": 1})
        self.stop = Event()

    def go_on(self, *steps: Callable[[], object], **options: Any) -> list[Card]:
        """Follow until each step is done, one after each card; give the cards."""
        cards, left = list[Card](), [*steps]
        wanted = replace(self.options, **options)

        def then(card: Card) -> None:
            if card.report is not None:
                self.assert_whole(card.report.json, wanted)
            cards.append(card)
            if left:
                left.pop(0)()
            if not left and steps:
                self.stop.set()

        self.stop.clear()
        late = Timer(TIMEOUT_S, self.stop.set)
        late.start()
        try:
            follow(
                self.place,
                self.out,
                wanted,
                every_s=0.01,
                stopping=nullcontext(self.stop),
                told=then,
            )
        finally:
            late.cancel()
        return cards

    def assert_whole(self, figures: Place, options: Options) -> None:
        """They are those of a report of all files that are taken, and of no other."""
        copied = self._folder / "copied"
        shutil.rmtree(copied, ignore_errors=True)
        copied.mkdir()
        for name in noted(self.out):
            shutil.copy(self.place / name, copied)
        assert told(figures) == of_all(copied, self._folder / "all", options)


def assert_changes_are_refused(it: Followed) -> None:
    """Of files that are taken, and of those that Spark took without a row."""
    for name, words in (
        ("probes-4.jsonl", "has 6 bytes, and had 0 when"),
        ("probes-5.jsonl", "was not taken"),
    ):
        path = it.place / name
        if name == "probes-4.jsonl":
            path.touch()
        with pytest.raises(ReportError, match=f"{re.escape(name)} {words}"):
            it.go_on(partial(path.write_text, '{"torn', encoding="utf-8"), lambda: None, votes={})
        path.unlink()
    (it.place / "probes-3.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(ReportError, match=r"probes-3.jsonl has 0 bytes, and had \d+ when it was taken"):
        it.go_on()
    (it.place / "probes-3.jsonl").unlink()
    with pytest.raises(ReportError, match=r"probes-3.jsonl is gone, .*: leave files there for so long"):
        it.go_on()
    (it.place / "probes").mkdir()
    (it.place / "probes" / "part-0.parquet").touch()
    with pytest.raises(ReportError, match=r"holds Parquet, which is not followed: .* --rotate"):
        it.go_on()


@pytest.mark.spark
def test_files_count_once_they_are_whole_and_must_not_change_then(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Followed(tmp_path)
    first = write_probes(it.place, "probes.jsonl", 0)
    torn = it.place / "probes-1.jsonl.gz"
    torn.write_bytes(b"\x1f\x8btorn")
    for age, path in enumerate((torn, first)):
        os.utime(path, (age, age))
    write_probes(it.place, "probes-2.jsonl", 60)
    open_ = write_probes(it.place, "probes-3~.jsonl", 180, replicas=("r1",))
    monkeypatch.setattr(arrivals, "FILES_MAX", 1)
    with pytest.raises(ReportError, match=r"could not work through .*: probes-1.jsonl.gz"):
        it.go_on()
    torn.unlink()
    synced: list[int] = []

    def noted_on_a_disk(number: int) -> None:
        synced.append(number)
        if len(synced) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        it.stop.set()

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noted_on_a_disk)
        with pytest.raises(ReportError, match=r"files.json cannot be written \(.*No space.*make room for it"):
            it.go_on()
        assert noted(it.out) == []
        assert [card.new_files for card in it.go_on()] == [1]
        assert (noted(it.out), commits(it.out)) == (["probes.jsonl"], ["0", "1"]), "it ends with the batch"
    monkeypatch.setattr(following, "PYTHON_ROWS_MAX", 239)

    def a_replica_falls_silent() -> None:
        open_.rename(it.place / "probes-3.jsonl")
        assert noted(it.out) == ["probes-2.jsonl", "probes.jsonl"]

    of_two, of_three = it.go_on(a_replica_falls_silent, lambda: None)
    assert of_two.report is not None
    assert of_two.report.figures.source.engine == "spark", "there are 240 rows"
    assert (of_three.new_files, of_three.report) == (1, None)
    assert "--votes names 'r2', of which the data says nothing" in of_three.sentence
    first.unlink()
    with pytest.raises(ReportError, match="--votes names 'r2', of which the data says nothing"):
        it.go_on()
    (kept,) = it.go_on(lambda: None, votes={})
    assert kept.new_files == 0, "the first report is made, whether anything is new or not"
    with pytest.raises(
        ReportError, match=r"is of .*in \[1\] and of a --last of 90 s: give both as they were"
    ):
        it.go_on(asked=Asked())
    assert_changes_are_refused(it)
    monkeypatch.setattr(arrivals, "BATCH_S", 0.001)
    with pytest.raises(ReportError, match="a batch of at most 1 files took more than"):
        it.go_on()
    (it.out / FOLDER / "files.json").unlink()
    with pytest.raises(ReportError, match=r"files.json cannot be read .*; take .*followed away, to take all"):
        it.go_on()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"engine": "python"}, r"--engine is python; .* let a timer run the report again and again: quorate"),
        ({"store": Path("store"), "cluster": "shop"}, "a store keeps whole days, which nobody follows"),
        ({"asked": Asked(from_us=1)}, "--follow is about the last stretch of the data: give --last alone"),
        ({"asked": Asked(last_us=86_400_000_001)}, "--follow is about a day at most"),
        ({"adt": "heap"}, "there is no data type 'heap'"),
        ({}, "in is no folder; make it"),
        ({"every_s": 0}, "--every 0 s is none"),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    every_s = options.pop("every_s", 60)
    if options or not every_s:
        (tmp_path / "in").mkdir()
    with pytest.raises(ReportError, match=sentence):
        follow(
            tmp_path / "in",
            tmp_path / "out",
            Options(**options),
            every_s=every_s,
            stopping=nullcontext(Event()),
            told=print,
        )
    assert not (tmp_path / "out").exists()


def test_without_java_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No Java anywhere, and no session that another test left running.
    monkeypatch.setattr(session, "_candidates", lambda: iter(()))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(
        ReportError, match=r"Spark needs Java 17 .*let a timer run .* --engine python"
    ) as refused:
        follow(
            tmp_path,
            tmp_path / "out",
            Options(adt="queue"),
            every_s=60,
            stopping=nullcontext(Event()),
            told=print,
        )
    assert isinstance(refused.value.__cause__, JavaMissing)
