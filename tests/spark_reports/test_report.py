"""The whole report: made without Java from the reference, and once with Spark."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports.errors import ReportError
from quorate.spark_reports.report import make_report
from tests.spark_reports import measured_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Balance(HTMLParser):
    """Fails on a tag that is closed out of order, and gathers attributes that could load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.pictures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "svg" and ("role", "img") in attrs:
            self.pictures += 1
            assert dict(attrs)["aria-label"]
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(page: Path) -> Balance:
    html = page.read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(|<script", html), "the page must not load anything"
    parser = Balance()
    parser.feed(html)
    assert parser.open == []
    assert all(link.startswith("#") for link in parser.links)
    return parser


def test_a_report_without_java_is_whole(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=500)
    measured_run.write_bad_rows(folder)
    paths = make_report(folder, tmp_path / "out", engine="python")
    assert paths.parquet is None
    assert read(paths.html).pictures == 8, "four charts, each wide and narrow"
    assert json.loads(paths.figures.read_text())["format"] == 1


@pytest.mark.parametrize(
    ("replicas", "failing", "operations"), [(1, True, 100), (1, False, 1), (3, False, 60), (3, True, 0)]
)
def test_edges_give_an_honest_report(tmp_path: Path, replicas: int, failing: bool, operations: int) -> None:
    folder = measured_run.write_run(
        tmp_path / "run", replicas=replicas, failing=failing, operations=operations, duration_s=60
    )
    paths = make_report(folder, tmp_path / "out", engine="python")
    assert read(paths.html).pictures == (8 if operations else 4)
    figures = json.loads(paths.figures.read_text())
    assert sum(row["attempts"] for row in figures["operations"]) == operations
    if not failing:
        assert all(row["predicted_joint"] == 1 for row in figures["choices"])
        assert all(row["low"] < 1 for row in figures["operations"]), "no failure seen is not: none possible"


def test_a_run_in_which_nothing_was_answered_is_reported(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    failed = {**measured_run.good_enq(), "outcome": "unavailable", "event_class": None}
    (folder / "operations.jsonl").write_text(json.dumps(failed))
    paths = make_report(folder, tmp_path / "out", engine="python")
    assert read(paths.html).pictures == 6


def test_names_from_the_run_are_escaped(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    evil = "<b onclick='x()'>&\"</b>"
    document = json.loads((folder / "choices.json").read_text())
    document["choices"][evil] = document["choices"].pop("enq-1")
    (folder / "choices.json").write_text(json.dumps(document))
    line = json.dumps({**measured_run.good_enq(), "choice": evil})
    (folder / "operations.jsonl").write_text(f"{line}\n<img src=//evil/x>\n")
    html = make_report(folder, tmp_path / "out", engine="python").html
    read(html)
    text = html.read_text(encoding="utf-8")
    assert "<b onclick" not in text
    assert "<img" not in text
    assert "&lt;b onclick=" in text


def test_an_output_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=1)
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match="file cannot be made"):
        make_report(folder, tmp_path / "file", engine="python")
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(ReportError, match="out cannot be written"):
        make_report(folder, tmp_path / "out", engine="python")


@pytest.mark.spark
def test_spark_makes_the_same_report_and_keeps_the_tables(spark: "SparkSession", tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=400, compress=True)
    bad = measured_run.write_bad_rows(folder)
    paths = make_report(folder, tmp_path / "out")
    plain = make_report(folder, tmp_path / "plain", engine="python")
    read(paths.html)
    found, expected = (json.loads(made.figures.read_text()) for made in (paths, plain))
    assert set(found.pop("versions")) == {"quorate", "python", "spark", "java"}
    assert set(expected.pop("versions")) == {"quorate", "python"}
    assert found == expected
    assert paths.parquet is not None
    counts = {
        name: spark.read.parquet(str(paths.parquet / name)).count() for name in ("operations", "rejected")
    }
    assert counts == {"operations": 400, "rejected": bad}
    assert spark.range(1).count() == 1, "a session that was running is left running"
