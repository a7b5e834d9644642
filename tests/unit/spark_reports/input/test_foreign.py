"""Other people's data: saved answers of Prometheus, and traces."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.input import probes
from quorate.spark_reports.input.foreign import Foreign, read_prometheus, read_trace_file, select
from quorate.spark_reports.input.rows import Interval
from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model import contract
from quorate.spark_reports.model.errors import ReportError

S = 1_000_000


def series(instance: str, *values: tuple[float, Any], **labels: str) -> dict[str, Any]:
    metric = {"__name__": "up", "instance": instance, "job": "quorate", **labels}
    return {"metric": metric, "values": [[time_s, value] for time_s, value in values]}


def answer(folder: Path, *result: dict[str, Any], name: str = "up.json") -> Path:
    """A saved answer in the form of the HTTP API."""
    path = folder / name
    document = {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_samples_become_intervals_and_a_gap_is_unknown(tmp_path: Path) -> None:
    path = answer(
        tmp_path,
        series("a:1", (0, "1"), (15, "1"), (30, "0"), (45, "0"), (60, "1")),
        series("b:1", (0, "1"), (15, "1"), (60, "1")),
    )
    found = read_prometheus([path])
    assert found.replicas == ("a:1", "b:1")
    assert found.intervals == [
        Interval("", "a:1", 0, 30 * S, 1),
        Interval("", "a:1", 30 * S, 60 * S, 0),
        Interval("", "a:1", 60 * S, 75 * S, 1),
        Interval("", "b:1", 0, 30 * S, 1),
        Interval("", "b:1", 60 * S, 75 * S, 1),
    ]
    assert found.read == {contract.PROBES: 8}


def test_a_step_that_is_given_says_how_long_a_sample_speaks(tmp_path: Path) -> None:
    path = answer(tmp_path, series("a", (0, "1"), (60, "1"), (120, "0")))
    assert [each.end_us for each in read_prometheus([path]).intervals] == [120 * S, 180 * S]
    apart = read_prometheus([path], step_s=15).intervals
    assert [(each.start_us, each.end_us) for each in apart] == [
        (0, 15 * S),
        (60 * S, 75 * S),
        (120 * S, 135 * S),
    ]


def test_several_answers_are_one_time_and_the_label_is_free(tmp_path: Path) -> None:
    first = answer(tmp_path, series("x", (0, "1"), (15, "1"), pod="p1"), name="1.json")
    second = answer(tmp_path, series("x", (15, "1"), (30, "0"), pod="p1"), name="2.json")
    found = read_prometheus([second, first], label="pod")
    assert found.replicas == ("p1",)
    assert [(each.start_us, each.end_us, each.up) for each in found.intervals] == [
        (0, 30 * S, 1),
        (30 * S, 45 * S, 0),
    ]


def test_series_of_two_jobs_in_two_files_are_not_one_replica(tmp_path: Path) -> None:
    files = [
        answer(tmp_path, series("a", (time_s, "1"), (time_s + 15, "1"), job=job), name=f"{job}.json")
        for time_s, job in ((0, "db"), (30, "node"))
    ]
    sentence = (
        r"db.json and .*node.json hold different series with instance='a' \(job is 'db' and 'node'\); narrow"
    )
    with pytest.raises(ReportError, match=sentence):
        read_prometheus(files)


def test_answers_of_different_steps_need_the_step(tmp_path: Path) -> None:
    """By the median of all, 15 s, each sample of the coarse answer would speak for a quarter of its time."""
    coarse = answer(tmp_path, series("a", *((60 * index, "0") for index in range(4))), name="coarse.json")
    fine = answer(tmp_path, series("a", *((240 + 15 * index, "1") for index in range(16))), name="fine.json")
    alone = answer(tmp_path, series("a", (480, "1")), name="one.json")
    sentence = "fine.json has samples 15 s apart, .*coarse.json 60 s; .* give the longer: --step 60"
    with pytest.raises(ReportError, match=sentence):
        read_prometheus([coarse, fine, alone])
    found = read_prometheus([coarse, fine, alone], step_s=60).intervals
    assert [(each.start_us, each.end_us, each.up) for each in found] == [
        (0, 240 * S, 0),
        (240 * S, 540 * S, 1),
    ]
    assert [each.end_us for each in read_prometheus([fine, alone]).intervals] == [495 * S]


def test_where_no_sample_can_be_used_the_first_is_shown(tmp_path: Path) -> None:
    path = answer(tmp_path, series("a", *((str(time_s), "1") for time_s in (0, 15))))  # type: ignore[arg-type]
    with pytest.raises(
        ReportError, match=r"none of 2 samples can be used; the first, a: \['0', '1'\]: not a"
    ):
        read_prometheus([path])


def test_what_is_no_sample_is_kept_aside_and_counted(tmp_path: Path) -> None:
    good = [(time_s, "1") for time_s in (0, 15, 30)]
    bad: list[tuple[Any, Any]] = [(45, "NaN"), (60, "0.5"), (-1, "1"), (75, None), ("90", "1"), (1e15, "1")]
    bad += [(10**400, "1"), (105, 10**400)]
    path = answer(tmp_path, series("a", *good, *bad))
    path.write_text(path.read_text().replace("[75, null]", "[75]"))
    found = read_prometheus([path])
    assert found.read == {contract.PROBES: 11}
    reasons = sorted(each.reason for each in found.rejects)
    assert len(reasons) == 8
    assert reasons.count("value is neither 0 nor 1") == 3
    assert reasons.count("not a [time, value] pair") == 2
    assert reasons.count(contract.BAD_TIME) == 3
    assert [(each.start_us, each.end_us) for each in found.intervals] == [(0, 45 * S)]


def test_samples_that_contradict_each_other_are_kept_aside(tmp_path: Path) -> None:
    files = [
        answer(tmp_path, series("a", (0, "1"), (15, value), (30, "1")), name=f"{value}.json")
        for value in ("0", "1")
    ]
    found = read_prometheus(files)
    assert {each.reason for each in found.rejects} == {probes.CONTRADICTS}
    assert len(found.rejects) == 2


REFUSED: list[tuple[Any, str]] = [
    ("{", "cannot be read as JSON"),
    ({"status": "error", "error": "parse error"}, r"holds an error of Prometheus \(parse error\)"),
    ({"data": {"resultType": "vector", "result": []}}, "holds a vector; save the answer of a range query"),
    ({"x": 1}, "holds no answer of Prometheus"),
    ([1], "holds no answer of Prometheus"),
    ({"data": {"resultType": "matrix", "result": []}}, "there is no sample that says 0 or 1"),
    ({"data": {"resultType": "matrix", "result": [1]}}, "series 1 lacks its metric"),
    (
        {"data": {"resultType": "matrix", "result": [{"metric": {"job": "a"}, "values": []}]}},
        r"series 1 has no label 'instance' \(it has: job\); name one with --label",
    ),
    (
        {"data": {"resultType": "matrix", "result": [series("a", (0, "1")), series("a", (0, "1"))]}},
        "two series with instance='a'; narrow the query",
    ),
    (
        {"data": {"resultType": "matrix", "result": [series("a", (0, "1"))]}},
        "no replica has two; give the step",
    ),
]


@pytest.mark.parametrize(("document", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_a_bad_answer_is_named(tmp_path: Path, document: Any, sentence: str) -> None:
    path = tmp_path / "up.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(ReportError, match=sentence):
        read_prometheus([path])


def test_traces_of_both_formats_say_the_same(tmp_path: Path) -> None:
    sets, replicas = tmp_path / "sets.csv", tmp_path / "replicas.csv"
    sets.write_text("start_s,end_s,up\n0,10,a|b\n10,12,a\n12,20,a|b\n")
    replicas.write_text("replica,start_s,end_s,up\na,0,20,1\nb,0,10,1\nb,10,12,0\nb,12,20,1\n")
    expected = [
        Interval("", "a", 0, 20 * S, 1),
        Interval("", "b", 0, 10 * S, 1),
        Interval("", "b", 10 * S, 12 * S, 0),
        Interval("", "b", 12 * S, 20 * S, 1),
    ]
    assert read_trace_file(sets).intervals == read_trace_file(replicas).intervals == expected


def test_a_bad_trace_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("start_s,end_s,up\n0,10,a\n11,12,a\n")
    with pytest.raises(ReportError, match=r"t\.csv: line 3: nothing is said"):
        read_trace_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ReportError, match="cannot be read as text in UTF-8"):
        read_trace_file(path)


def test_votes_choose_the_replicas_that_count() -> None:
    rows = [Interval("", name, 0, S, 1) for name in ("a", "b", "c")]
    found = Foreign(("a", "b", "c"), rows, {})
    chosen, votes = select(found, {"c": 2, "a": 1})
    assert (chosen.replicas, votes) == (("c", "a"), {"c": 2, "a": 1})
    assert [each.replica for each in chosen.intervals] == ["a", "c"]
    assert select(found, {})[1] == {"a": 1, "b": 1, "c": 1}
    with pytest.raises(ReportError, match="names 'x', of which the data says nothing; it has a, b, c"):
        select(found, {"x": 1})
    with pytest.raises(ReportError, match="gives no replica a vote"):
        select(found, {"a": 0})
    many = Foreign(tuple(f"r{i}" for i in range(26)), [], {})
    with pytest.raises(ReportError, match="has 26 replicas, a report holds 25"):
        select(many, {})


def test_a_packed_answer_is_read_as_it_is(tmp_path: Path) -> None:
    path = answer(tmp_path, series("a", (0, "1"), (15, "0"), (30, "1")))
    packed = tmp_path / "packed" / "up.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert find_source(packed.parent).foreign == (packed,)
    assert read_prometheus([packed]) == read_prometheus([path])
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ReportError, match="cannot be read as JSON"):
        read_prometheus([packed])
