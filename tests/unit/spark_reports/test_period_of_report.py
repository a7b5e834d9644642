"""A report of some time of its input is that of an input cut to it by hand, to the last bit, whichever engine makes it."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.period import Asked, ReportPeriod
from quorate.spark_reports.report import Engine, Options, make_report
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.input.test_foreign import answer, series

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = int(measured_run.START_S)
FROM_S = START_S + 0.55
TO_S = START_S + 120
ASKED = Asked(round(FROM_S * 1e6), TO_S * 1_000_000)
DAY_S = 86_400


def told(place: Path, out: Path, engine: Engine, asked: Asked, **options: Any) -> dict[str, Any]:
    """The figures, but for what must differ: versions, the engine, what was asked for, and the text of rows kept aside of CSV (it is cut) and
    of Parquet (there is none)."""
    made = make_report(place, out, Options(engine=engine, asked=asked, **options))
    found: dict[str, Any] = json.loads(made.json.read_text(encoding="utf-8"))
    del found["versions"], found["keys"]
    del found["source"]["engine"], found["source"]["files"], found["source"]["name"]
    for row in found["rejected"]:
        if not row["source"].endswith(".jsonl"):
            del row["example"]
    for key in ("from_s", "to_s"):
        del found["window"][key]
    return found


def cut_lines(folder: Path, name: str, time_of: str) -> None:
    """Take away the lines that do not say a time within."""
    for path in folder.glob(f"{name}*.jsonl"):
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                time_s = json.loads(line)[time_of]
                is_within = not isinstance(time_s, bool) and FROM_S <= time_s < TO_S
                wrong_form = isinstance(json.loads(line).get("latency_s"), str)
                wrong_form = wrong_form or isinstance(json.loads(line).get("answered"), str)
            except (ValueError, TypeError, KeyError):
                continue
            kept += [line] if is_within and not wrong_form else []
        path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def cut_intervals(path: Path) -> None:
    """Cut the lines of a file of up times; those without two times go."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    kept = [header]
    for line in lines:
        fields = line.split(",")
        try:
            start_s, end_s, _ = map(float, fields[-3:])
        except ValueError:
            continue
        if len(fields) == len(header.split(",")) and start_s < TO_S and max(start_s, end_s) > FROM_S:
            bounds = f"{max(start_s, FROM_S)}", f"{min(end_s, TO_S)}"
            kept.append(",".join([*fields[:-3], *bounds, fields[-1]]))
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def cut_run(folder: Path) -> Path:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    run["window"] = [FROM_S, TO_S]
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    cut_lines(folder, "operations", "start_s")
    cut_lines(folder, "probes", "time_s")
    for name in ("replicas.csv", "links.csv"):
        cut_intervals(folder / name)
    return folder


def write_run(folder: Path) -> Path:
    """A run with all parts and rows of every bad kind, most of them within."""
    measured_run.write_run(folder, operations=900)
    measured_run.write_links(folder)
    measured_run.write_probes(folder)
    measured_run.write_bad_rows(folder)
    return folder


def write_samples(folder: Path) -> Path:
    """A prober's samples alone."""
    measured_run.write_run(folder, operations=0)
    measured_run.write_probes(folder)
    for path in folder.iterdir():
        if path.name != "probes.jsonl":
            path.unlink()
    return folder


def cut_samples(folder: Path) -> Path:
    cut_lines(folder, "probes", "time_s")
    return folder


def assert_cut(
    tmp_path: Path, engine: Engine, write: Callable[[Path], Path], cut: Callable[[Path], Path], **options: Any
) -> dict[str, Any]:
    """See that an engine's report of a part is that which plain Python makes of the part cut out by hand."""
    by_hand = told(cut(write(tmp_path / "by hand" / "run")), tmp_path / "out", "python", Asked(), **options)
    whole = write(tmp_path / "whole" / "run")
    found = told(whole, tmp_path / "out", engine, ASKED, **options)
    assert found == by_hand
    return found


def test_python_of_a_run(tmp_path: Path) -> None:
    found = assert_cut(tmp_path, "python", write_run, cut_run)
    assert sum(row["rows"] for row in found["rejected"]) > 20, "bad rows within are kept aside as ever"
    assert found != told(tmp_path / "whole" / "run", tmp_path / "out", "python", Asked())


def test_python_of_samples(tmp_path: Path) -> None:
    assert_cut(tmp_path, "python", write_samples, cut_samples, adt="queue")


@pytest.mark.spark
def test_spark_of_a_run(spark: "SparkSession", tmp_path: Path) -> None:
    """Its rows lie in Parquet, bad ones in lines."""

    def packed(folder: Path) -> Path:
        for name in ("operations", "probes"):
            bad = folder / f"{name}-bad.jsonl"
            lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            good = [line for line in lines if is_row(line)]
            if not bad.exists():
                bad.write_text("\n".join(line for line in lines if not is_row(line)) + "\n", encoding="utf-8")
            (folder / f"{name}.jsonl").write_text("\n".join(good) + "\n", encoding="utf-8")
            measured_run.pack(folder, name)
        return folder

    found = assert_cut(
        tmp_path,
        "spark",
        lambda folder: packed(write_run(folder)),
        lambda folder: packed(cut_run(write_run(folder.with_name("again")))),
        slo={"Enq": Fraction(99, 100), "Deq/Empty": Fraction(9, 10)},
    )
    assert {row["unit"] for row in found["objectives"]} == {"attempts", "seconds"}


def is_row(line: str) -> bool:
    try:
        row = json.loads(line)
        return (
            isinstance(row["time_s" if "time_s" in row else "start_s"], float)
            and row["replica" if "up" in row else "adt"] is not None
        )
    except (ValueError, KeyError):
        return False


@pytest.mark.spark
def test_spark_of_samples(spark: "SparkSession", tmp_path: Path) -> None:
    assert_cut(tmp_path, "spark", write_samples, cut_samples, adt="queue")


@pytest.mark.parametrize(
    ("whole", "by_hand"),
    [
        (
            "start_s,end_s,up\n0,10,a|b|c\n10,12,a\n12,14,\n14,30,a|b|c\n",
            "start_s,end_s,up\n5,10,a|b|c\n10,12,a\n12,13,\n",
        ),
        (
            "replica,start_s,end_s,up\na,0,30,1\nb,0,12,1\nb,12,30,0\n",
            "replica,start_s,end_s,up\na,5,13,1\nb,5,12,1\nb,12,13,0\n",
        ),
    ],
)
def test_of_a_trace(tmp_path: Path, whole: str, by_hand: str) -> None:
    asked = Asked(5_000_000, 13_000_000)
    (tmp_path / "whole.csv").write_text(whole)
    (tmp_path / "by_hand.csv").write_text(by_hand)
    found = told(tmp_path / "whole.csv", tmp_path / "out", "python", asked, adt="queue")
    assert found == told(tmp_path / "by_hand.csv", tmp_path / "out", "python", Asked(), adt="queue")
    assert found["window"]["known_s"] == 8.0


def test_of_an_answer_of_prometheus(tmp_path: Path) -> None:
    times = [15 * each for each in range(80)]
    up = [(time_s, "0" if time_s % 200 < 40 else "1") for time_s in times]
    whole = answer(tmp_path, series("a", *up), series("b", *up[3:], (9e12, "1")), series("gone", *up[:5]))
    within = [each for each in up if 150 <= each[0] < 900]
    by_hand = answer(tmp_path, series("a", *within), series("b", *within), name="by_hand.json")
    found = told(whole, tmp_path / "out", "python", Asked(150_000_000, 900_000_000), adt="queue")
    assert found == told(by_hand, tmp_path / "out", "python", Asked(), adt="queue")
    assert [row["replica"] for row in found["replicas"]] == ["a", "b"]


def test_the_last_stretch_is_that_before_the_last_sample(tmp_path: Path) -> None:
    up = [(15 * each, "1") for each in range(80)]
    path = answer(tmp_path, series("a", *up), series("b", *up))
    figures = make_report(
        path, tmp_path / "out", Options(engine="python", adt="queue", asked=Asked(last_us=150_000_000))
    ).figures
    assert (figures.window.to_s, figures.window.from_s) == (1185.000001, 1035.000001)
    assert figures.rows[0].read == 20, "ten samples of each"
    assert (figures.window.start_s, figures.window.end_s) == (1050.0, 1200.0)


def test_the_page_and_the_figures_say_the_period(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    made = make_report(folder, tmp_path / "out", Options(engine="python", asked=Asked(from_us=ASKED.from_us)))
    assert "Only what lies in the time from 2025-10-09 08:53:20 UTC counts." in made.html.read_text(
        encoding="utf-8"
    )
    assert (made.figures.window.from_s, made.figures.window.to_s) == (FROM_S, None)
    made = make_report(folder, tmp_path / "out", Options(engine="python"))
    assert "Only what lies" not in made.html.read_text(encoding="utf-8")
    assert (made.figures.window.from_s, made.figures.window.to_s) == (None, None)


LATER = Asked(from_us=(START_S + DAY_S) * 1_000_000)
THERE = "it speaks of the time from 2025-10-09 08:53:20 UTC to 2025-10-09 08:56:"


def test_a_time_without_data_names_the_time_that_there_is(tmp_path: Path) -> None:
    run, samples = write_run(tmp_path / "run"), write_samples(tmp_path / "samples")
    trace = tmp_path / "up.csv"
    trace.write_text(f"start_s,end_s,up\n{START_S},{START_S + 200},a|b\n")
    up = [(START_S + each, "1") for each in range(0, 195, 15)]
    places: dict[Path, dict[str, Any]] = {
        run: {},
        samples: {"adt": "queue"},
        trace: {"adt": "queue"},
        answer(tmp_path, series("a", *up)): {"adt": "queue"},
    }
    for place, options in places.items():
        with pytest.raises(ReportError, match=f"has nothing from 2025-10-10 08:53:20 UTC: {THERE}"):
            make_report(place, tmp_path / "out", Options(engine="python", asked=LATER, **options))


@pytest.mark.spark
def test_on_spark_a_time_without_data_names_the_time_that_there_is(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with pytest.raises(ReportError, match=f"has nothing from 2025-10-10 08:53:20 UTC: {THERE}"):
        make_report(
            write_samples(tmp_path / "run"),
            tmp_path / "out",
            Options(engine="spark", adt="queue", asked=LATER),
        )


def test_a_window_of_which_no_up_time_is_known_names_those_that_are(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=100)
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**run, "window": [START_S, START_S + 900]}))
    asked = Asked(from_us=(START_S + 500) * 1_000_000)
    with pytest.raises(
        ReportError,
        match=r"replicas.csv has nothing .* from 2025-10-09 08:53:20 UTC to 2025-10-09 08:55:00 UTC",
    ):
        make_report(folder, tmp_path / "out", Options(engine="python", asked=asked))


def test_where_a_prober_stands_in_the_window_of_the_run_is_named(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=100)
    measured_run.write_probes(folder)
    (folder / "replicas.csv").unlink()
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    window = {"window": [START_S, START_S + 900], "prober": {"step_s": 0.5}}
    (folder / "run.json").write_text(json.dumps(run | window))
    asked = Asked(from_us=(START_S + 500) * 1_000_000)
    with pytest.raises(
        ReportError, match=r"run has nothing .* from 2025-10-09 08:53:20 UTC to 2025-10-09 09:08:20 UTC"
    ):
        make_report(folder, tmp_path / "out", Options(engine="python", asked=asked))


def write_days(folder: Path) -> None:
    """Packed operations and samples of four days, a thousand seconds each, with a row group for each hundred rows."""
    from pyarrow import Table, dataset  # noqa: PLC0415

    for name, time_of in (("operations", "start_s"), ("probes", "time_s")):
        rows: list[dict[str, Any]] = []
        for day in range(4):
            for second in range(1000):
                at = {time_of: float(1_793_491_200 + day * DAY_S + second), "day": f"2026-11-0{day + 1}"}
                other = (
                    {"replica": "r1", "up": 1, "latency_s": 0.1}
                    if name == "probes"
                    else {**measured_run.good_enq(), "answered": ["r1"]}
                )
                rows.append({**other, **at})
        dataset.write_dataset(
            Table.from_pylist(rows),
            folder / name,
            format="parquet",
            partitioning=["day"],
            partitioning_flavor="hive",
            max_rows_per_group=100,
        )


SECOND_DAY = ReportPeriod((1_793_491_200 + DAY_S) * 1_000_000, (1_793_491_200 + DAY_S + 100) * 1_000_000)


def test_python_opens_files_of_the_days_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quorate.spark_reports.input import rows  # noqa: PLC0415

    write_days(tmp_path)
    (tmp_path / "operations" / "day=2026-11-04" / "part-0.parquet").write_bytes(b"torn")
    found = [row["start_s"] for _, row in rows.parquet_rows(tmp_path / "operations", ["start_s"], SECOND_DAY)]
    assert len(found) < 110, "of the row groups of other times nothing is read"
    assert sum(map(SECOND_DAY.holds, found)) == 100


@pytest.mark.spark
def test_spark_is_told_which_folders_and_row_groups_to_read(spark: "SparkSession", tmp_path: Path) -> None:
    from quorate.spark_reports.spark import jobs, probe_files  # noqa: PLC0415

    write_days(tmp_path)
    read = {
        "start_s": jobs.read_packed_operations(spark, tmp_path / "operations", SECOND_DAY),
        "time_s": probe_files.read_samples(spark, [tmp_path / "probes"], SECOND_DAY),
    }
    for column, frame in read.items():
        plan = frame._jdf.queryExecution().executedPlan().toString()
        scan = next(line for line in plan.splitlines() if "FileScan parquet" in line)
        assert "PartitionFilters: [isnotnull(day" in scan, "other days are not listed"
        assert f"GreaterThanOrEqual({column}," in scan, "other row groups are not read"
        assert len(frame.inputFiles()) == 4, "the folder is read as one table"
    assert read["time_s"].count() == 100
