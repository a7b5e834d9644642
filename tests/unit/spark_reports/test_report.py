"""The whole report: made without Java from the reference, of every kind of input, and once with Spark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.api_specs.limits import REPLICAS_MAX
from quorate.spark_reports import report
from quorate.spark_reports.figures import figure_tables
from quorate.spark_reports.model.errors import JavaMissing, ReportError, SparkMissing
from quorate.spark_reports.model.places import Place
from quorate.spark_reports.report import Options, make_report
from quorate.spark_reports.spark import session
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.input.test_foreign import answer, series

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON = Options(engine="python")
TWENTY_FIVE = [f"r{number}" for number in range(1, 26)]


def figures_in(path: Place) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_a_report_without_java_is_whole(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    folder = measured_run.write_run(tmp_path / "run", operations=500)
    bad = measured_run.write_bad_rows(folder)
    made = make_report(folder, tmp_path / "out", PYTHON)
    assert made.html.read_text(encoding="utf-8").startswith("<!doctype html>")
    found = figures_in(made.json)
    assert (found["format"], found["source"]["engine"]) == (2, "python")
    assert found["rows"] == [
        {"kind": "intervals", "read": 59, "used": 49, "rejected": 10},
        {"kind": "operations", "read": 500 + bad - 9, "used": 501, "rejected": bad - 10},
    ]
    assert made.tables is not None
    assert {path.stem for path in made.tables.iterdir()} <= set(found)
    table = pq.read_table(made.tables / "operations.parquet").to_pylist()
    assert [row["measured"] for row in table] == [row["measured"] for row in found["operations"]]
    assert table[0]["wilson"] == found["operations"][0]["wilson"]
    assert table[0]["trace"] == found["operations"][0]["trace"]
    assert made.parquet is not None
    kept = pq.read_table(made.parquet / "rejected").to_pylist()
    assert len(kept) == bad
    assert set(kept[0]) == {"kind", "source", "reason", "line"}


def test_a_report_leaves_no_table_of_an_older_one(tmp_path: Path) -> None:
    """The older report was bigger: made on Spark, with more tables, and rows kept aside."""
    pq = pytest.importorskip("pyarrow.parquet")
    bigger = measured_run.write_run(tmp_path / "bigger", operations=300)
    measured_run.write_bad_rows(bigger)
    out = tmp_path / "out"
    older = make_report(bigger, out, PYTHON)
    assert older.parquet is not None
    for name in ("operations", "intervals", "up_sets"):  # what Spark leaves
        (older.parquet / name).mkdir()
        (out / "parquet" / name / "part-00000-x.snappy.parquet").write_bytes(b"older")
    (out / "tables" / "claim.parquet.of-older").touch()
    with pytest.raises(ReportError, match=r"tables holds claim.parquet.of-older, which no report wrote"):
        make_report(bigger, out, PYTHON)
    (out / "tables" / "claim.parquet.of-older").unlink()
    (out / "tables" / "prober.parquet").write_bytes(b"older")

    made = make_report(measured_run.write_run(tmp_path / "run", operations=60), out, PYTHON)
    assert {path.name for path in out.iterdir()} == {"report.html", "figures.json", "tables"}
    assert made.tables == out / "tables"
    assert sum(row["attempts"] for row in pq.read_table(made.tables / "operations.parquet").to_pylist()) == 60
    assert all(pq.read_metadata(path) for path in made.tables.iterdir())


def test_other_peoples_files_are_never_taken_away(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=60)
    theirs = tmp_path / "out" / "parquet" / "thesis.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"years of work")
    with pytest.raises(ReportError, match=r"parquet holds thesis.parquet, which no report wrote"):
        make_report(folder, tmp_path / "out", PYTHON)
    assert [path.name for path in (tmp_path / "out").rglob("*.*")] == ["thesis.parquet"]


def test_a_report_that_fails_leaves_the_former_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder, out = measured_run.write_run(tmp_path / "run", operations=60), tmp_path / "out"
    before = make_report(folder, out, PYTHON)
    assert before.tables is not None
    kept = {path: path.read_bytes() for path in before.tables.iterdir()}
    (tmp_path / "out" / "report.html").unlink()
    (tmp_path / "out" / "report.html").mkdir()  # the page cannot be put in its place
    with pytest.raises(ReportError, match="cannot be written"):
        make_report(measured_run.write_run(tmp_path / "other", operations=90), out, PYTHON)
    assert {path: path.read_bytes() for path in before.tables.iterdir()} == kept
    assert {path.name for path in out.iterdir()} == {"report.html", "figures.json", "tables"}


@pytest.mark.parametrize(
    ("replicas", "failing", "operations"), [(1, True, 100), (1, False, 1), (3, False, 60), (3, True, 0)]
)
def test_edges_give_an_honest_report(tmp_path: Path, replicas: int, failing: bool, operations: int) -> None:
    folder = measured_run.write_run(
        tmp_path / "run", replicas=replicas, failing=failing, operations=operations, duration_s=60
    )
    figures = make_report(folder, tmp_path / "out", PYTHON).figures
    assert sum(row.attempts for row in figures.operations) == operations
    assert figures.counterfactuals
    if not failing:
        assert all(row.predicted_joint == 1 for row in figures.counterfactuals)
        assert all(row.low is None for row in figures.counterfactuals), (
            "nothing varied: no interval is honest"
        )
        assert all(row.low < 1 for row in figures.operations), "no failure seen is not: none possible"
        assert figures.correlation.variance_ratio is None


def test_a_report_holds_as_many_replicas_as_a_cluster(tmp_path: Path) -> None:
    assert len(TWENTY_FIVE) == REPLICAS_MAX
    trace = tmp_path / "up.csv"
    trace.write_text(
        f"start_s,end_s,up\n0,900,{'|'.join(TWENTY_FIVE)}\n900,1000,{'|'.join(TWENTY_FIVE[:9])}\n"
    )
    options = replace(PYTHON, adt="queue", mix={"Enq": 1, "Deq": 1})
    figures = make_report(trace, tmp_path / "out", options).figures
    deq = {
        row.initial: row for row in figures.counterfactuals if row.operation == "Deq" and row.kind == "typed"
    }
    assert len(deq) == REPLICAS_MAX
    assert [deq[str(votes)].predicted_joint for votes in (17, 25)] == [0.9, 0.9]
    assert deq["25"].predicted_independent == pytest.approx(0.9**16)


def test_all_replicas_down_all_the_time(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=10)
    start = int(measured_run.START_S)
    rows = [f"{name},{start},{start + 10},0" for name in ("r1", "r2", "r3")]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
    failed = {**measured_run.good_enq(), "outcome": "unavailable", "event_class": None}
    (folder / "operations.jsonl").write_text(json.dumps(failed))
    figures = make_report(folder, tmp_path / "out", PYTHON).figures
    (enq,) = figures.operations
    assert (enq.measured, enq.predicted_joint, enq.predicted_independent) == (0.0, 0.0, 0.0)
    assert (enq.trace.outages, enq.trace.mean_s) == (1, 10.0)
    assert enq.joint_agrees
    assert [(row.mttf_s, row.mttr_s) for row in figures.replicas] == [(None, 10.0)] * 3
    best = next(row for row in figures.recommendations if row.adt == "queue")
    assert best.served == 0.0
    assert len(best.tied) == 3, "no choice is better than another, and none is called so"


def test_rows_out_of_order_are_the_same_run(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=200)
    before = make_report(folder, tmp_path / "out", PYTHON).figures
    for name in ("operations.jsonl", "replicas.csv"):
        lines = (folder / name).read_text().splitlines()
        head = lines[:1] if name.endswith(".csv") else []
        (folder / name).write_text("\n".join([*head, *reversed(lines[len(head) :])]))
    assert make_report(folder, tmp_path / "out", PYTHON).figures == before


def test_an_export_of_prometheus_is_answered_for(tmp_path: Path) -> None:
    up = [(15.0 * i, "1") for i in range(40)]
    down = [(time_s, "0" if 150 <= time_s < 300 else "1") for time_s, _ in up]
    path = answer(tmp_path, series("a", *up), series("b", *down), series("c", *down))
    options = Options(engine="python", adt="queue", mix={"Enq": 1, "Deq": 1})
    made = make_report(path, tmp_path / "out", options)
    figures = made.figures
    assert (figures.source.kind, figures.source.engine, made.notes) == ("prometheus", "python", ())
    assert not figures.operations
    assert not figures.claim
    joint = {(row.choice, row.operation): row.predicted_joint for row in figures.counterfactuals}
    assert joint["Enq (0, 1), Deq (3, 1)", "Enq"] == 1.0
    assert joint["Enq (0, 1), Deq (3, 1)", "Deq"] == joint["Enq (0, 2), Deq (2, 2)", "Enq"] == 0.75
    best = figures.recommendations[0]
    assert (best.choice, best.served, best.mix_from) == ("Enq (0, 1), Deq (3, 1)", 0.875, "given")
    weighted = make_report(
        path, tmp_path / "out", Options(engine="python", adt="queue", votes={"a": 2, "b": 1})
    ).figures
    assert [(row.replica, row.votes) for row in weighted.replicas] == [("a", 2), ("b", 1)]


def test_probes_alone_are_answered_for(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    measured_run.write_probes(folder)
    truth = make_report(folder, tmp_path / "out", PYTHON).figures
    for name in ("run.json", "replicas.csv", "operations.jsonl"):
        (folder / name).unlink()
    seen = make_report(folder, tmp_path / "out", Options(engine="python", adt="queue")).figures
    assert seen.source.kind == "probes"
    for mine, theirs in zip(seen.replicas, truth.replicas, strict=True):
        assert mine.up_share == pytest.approx(theirs.up_share, abs=0.03)
    with pytest.raises(
        ReportError, match="does not say what kind of object the replicas keep; name one with --type"
    ):
        make_report(folder, tmp_path / "out", PYTHON)


def test_the_prober_is_held_against_the_truth(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    measured_run.write_probes(folder, step_s=0.1, late_s=0.3)
    for row in make_report(folder, tmp_path / "out", PYTHON).figures.prober:
        assert row.outages == row.detected > 5
        assert (row.missed, row.false_alarms) == (0, 0)
        assert row.detection_mean_s is not None
        assert row.recovery_mean_s is not None
        assert 0.3 <= row.detection_mean_s <= 0.5
        assert 0.3 <= row.recovery_mean_s <= 0.5


def test_where_nobody_noted_the_truth_the_prober_stands_in_and_it_is_said(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=50)
    measured_run.write_probes(folder, step_s=0.1, late_s=0.3)
    sentence = "what a prober saw stands in for them"
    assert sentence not in make_report(folder, tmp_path / "out", PYTHON).html.read_text(encoding="utf-8")
    (folder / "replicas.csv").write_text("replica,start_s,end_s,up\n")
    made = make_report(folder, tmp_path / "out", PYTHON)
    assert made.figures.window.known_s > 0
    assert sentence in made.html.read_text(encoding="utf-8")


def test_without_java_what_fits_is_made_in_python_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No Java anywhere, and no session that another test left running.
    monkeypatch.setattr(session, "_candidates", lambda: iter(()))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    folder = measured_run.write_run(tmp_path / "run", operations=20)
    assert make_report(folder, tmp_path / "out", PYTHON).notes == ()
    made = make_report(folder, tmp_path / "out", Options())
    assert made.figures.source.engine == "python"
    assert made.notes[0].startswith("Spark needs Java 17")
    assert made.notes[0].endswith("The report is made in plain Python instead.")
    with pytest.raises(JavaMissing):
        make_report(folder, tmp_path / "out", Options(engine="spark"))
    monkeypatch.setattr(report, "PYTHON_ROWS_MAX", 10)
    with pytest.raises(SparkMissing, match=r"has about \d+ rows, too many for plain Python"):
        make_report(folder, tmp_path / "out", Options())


def test_uris_need_spark_which_gets_much_memory_for_what_it_is_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def started(master: str, **given: Any) -> Any:
        sizes.append(given["size"])
        return session.local_session(master, **given)

    monkeypatch.setattr(report, "local_session", started)
    monkeypatch.setattr(session, "_candidates", lambda: iter(()))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    for options in (Options(), Options(store="s3a://bucket/days", cluster="shop")):
        with pytest.raises(JavaMissing):
            make_report("s3a://bucket/probes", tmp_path, options)
    assert sizes == [session.UNSEEN, session.NOTHING]


def test_the_page_says_which_engine_computed_it(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=20)
    made = make_report(folder, tmp_path / "out", PYTHON)
    assert "Plain Python computed the figures" in made.html.read_text(encoding="utf-8")


def test_plain_python_has_no_master(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=1)
    for options in (
        Options(engine="python", master="local[2]"),
        Options(engine="python", conf={"spark.x": "1"}),
    ):
        with pytest.raises(
            ReportError, match="plain Python has no master, no driver memory and no settings of Spark"
        ):
            make_report(folder, tmp_path / "out", options)


def test_without_pyarrow_there_are_no_tables_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_tables, "can_write", lambda: False)
    folder = measured_run.write_run(tmp_path / "run", operations=20)
    made = make_report(folder, tmp_path / "out", PYTHON)
    assert (made.tables, made.parquet) == (None, None)
    assert "they need pyarrow" in made.notes[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"adt": "heap"}, "there is no data type 'heap'; use queue"),
        ({"lag_s": -1.0}, "a lag of -1.0 s is none"),
        ({"step_s": 0.0}, "a step of 0.0 s is none"),
        ({"mix": {"Enq": -1.0}}, "the mix needs shares of 0 or more"),
        ({"votes": {"r1": 2}}, "--votes contradicts .*run.json"),
    ],
)
def test_options_that_do_not_fit_are_named(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=1)
    with pytest.raises(ReportError, match=sentence):
        make_report(folder, tmp_path / "out", Options(engine="python", **options))


def test_a_mix_of_an_unknown_operation_names_all_that_there_are(tmp_path: Path) -> None:
    path = answer(tmp_path, series("a", (0, "1"), (15, "1")))
    with pytest.raises(ReportError, match=r"--mix names Enq, Pop, .* \(queue: Enq, Deq, Peek, Size\)"):
        make_report(
            path, tmp_path / "out", Options(engine="python", adt="queue", mix={"Enq": 1.0, "Pop": 1.0})
        )


def test_probes_that_name_no_replica_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "probes.jsonl").touch()
    with pytest.raises(ReportError, match="there is no probe that names a replica"):
        make_report(tmp_path, tmp_path / "out", Options(engine="python", adt="queue"))


def test_an_output_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=1)
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match="file cannot be made"):
        make_report(folder, tmp_path / "file", PYTHON)
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(ReportError, match="out cannot be written"):
        make_report(folder, tmp_path / "out", PYTHON)


@pytest.mark.spark
def test_spark_makes_the_same_report_and_keeps_the_tables(spark: "SparkSession", tmp_path: Path) -> None:
    """The run is the smallest: one replica that never fails. Its operations lie in Parquet, with whole numbers for times."""
    folder = measured_run.write_run(tmp_path / "run", replicas=1, failing=False, operations=200)
    measured_run.pack(folder, "operations")
    measured_run.start_on_whole_seconds(folder)
    measured_run.write_bad_rows(folder)
    on_spark = make_report(folder, tmp_path / "out")  # by default, however little there is
    plain = make_report(folder, tmp_path / "plain", PYTHON)
    found, expected = (figures_in(made.json) for made in (on_spark, plain))
    assert set(found.pop("versions")) == {"quorate", "python", "spark", "java"}
    assert set(expected.pop("versions")) == {"quorate", "python"}
    assert (found["source"].pop("engine"), expected["source"].pop("engine")) == ("spark", "python")
    assert found == expected
    assert on_spark.parquet is not None
    counts = {
        name: spark.read.parquet(str(on_spark.parquet / name)).count() for name in ("operations", "rejected")
    }
    assert counts == {
        "operations": sum(row["attempts"] for row in found["operations"]),
        "rejected": sum(row["rejected"] for row in found["rows"]),
    }
    assert counts["operations"] > 150
    assert spark.range(1).count() == 1, "a session that was running is left running"


@pytest.mark.spark
def test_spark_answers_for_a_trace_and_for_probes_alone_as_python_does(
    spark: "SparkSession", tmp_path: Path
) -> None:
    trace = tmp_path / "up.csv"
    trace.write_text("start_s,end_s,up\n0,10,a|b|c\n10,12,a\n12,14,\n14,30,a|b|c\n")
    probes = measured_run.write_run(tmp_path / "run", operations=0, duration_s=60)
    measured_run.write_probes(probes)
    for name in ("run.json", "replicas.csv", "operations.jsonl"):
        (probes / name).unlink()
    many = tmp_path / "many.csv"
    many.write_text(f"start_s,end_s,up\n0,60,{'|'.join(TWENTY_FIVE)}\n60,70,{'|'.join(TWENTY_FIVE[:9])}\n")
    for place in (trace, probes, many):
        found, expected = (
            figures_in(make_report(place, tmp_path / "out", Options(engine=engine, adt="register")).json)
            for engine in ("spark", "python")
        )
        for each in (found, expected):
            each.pop("versions")
            each["source"].pop("engine")
        assert found == expected


def test_of_a_type_of_ones_own_the_other_choices_are_answered_for_without_its_code(tmp_path: Path) -> None:
    """Where the classes are those by which quorums know such a type; of another system's type nothing is known."""
    choices = {
        "ours": {"adt": "seats", "classes": {"Call/Ok": [2, 2], "Blind/Ok": [0, 2]}},
        "theirs": {"adt": "tickets", "classes": {"Buy/Ok": [2, 2]}},
    }
    run = measured_run.document(choices=choices, objects={"seats/a": "ours", "tickets/a": "theirs"})
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    (folder / "run.json").write_text(json.dumps(run))
    found = figures_in(make_report(folder, tmp_path / "out", PYTHON).json)
    assert {row["choice"] for row in found["candidates"]} == {
        "ours",
        "theirs",
        "Call (1, 3), Blind (0, 3)",
        "Call (3, 1), Blind (0, 1)",
        "read/write Call (2, 2), Blind (2, 2)",
    }
