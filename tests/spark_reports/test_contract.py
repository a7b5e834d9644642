"""What of a run's files is refused before anything is computed, and with which sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.contract import find_run_files, read_choices
from quorate.spark_reports.errors import ReportError
from tests.spark_reports import measured_run


def written(folder: Path, document: Any) -> Path:
    path = folder / "choices.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def with_class(pair: Any, name: str = "Enq/Ok") -> dict[str, Any]:
    return {"replicas": {"r1": {"votes": 1}}, "choices": {"c": {"adt": "queue", "classes": {name: pair}}}}


def test_choices_are_read_in_file_order(tmp_path: Path) -> None:
    choices = read_choices(written(tmp_path, measured_run.choices()))
    assert dict(choices.votes) == {"r1": 1, "r2": 1, "r3": 1}
    deq = choices.normal_class("enq-1", "Deq")
    assert (deq.event_class, deq.needed) == ("Deq/Ok", 3)
    names = [(c.choice, c.operation) for c in choices.operations()]
    assert names[:3] == [("enq-1", "Enq"), ("enq-1", "Deq"), ("enq-2", "Enq")]


def test_without_an_ok_class_the_most_demanding_one_stands_for_the_operation(tmp_path: Path) -> None:
    document = with_class([0, 1], "Pop/Some")
    document["choices"]["c"]["classes"]["Pop/None"] = [0, 0]
    assert read_choices(written(tmp_path, document)).normal_class("c", "Pop").event_class == "Pop/Some"


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", 'must be an object with the keys "replicas" and "choices"'),
        ({"choices": {}}, '"replicas" must name at least one replica'),
        ({"replicas": {f"r{i}": {"votes": 1} for i in range(17)}}, "names 17 replicas; a report holds 16"),
        ({"replicas": {"a,b": {"votes": 1}}}, "'a,b' needs a name without commas"),
        ({"replicas": {"r1": {"votes": -1}}}, "votes of replica 'r1' are -1; give a whole number"),
        ({"replicas": {"r1": {"votes": True}}}, "votes of replica 'r1' are True"),
        ({"replicas": {"r1": 1}}, "votes of replica 'r1' are None"),
        ({"replicas": {"r1": {"votes": 1}}}, '"choices" must hold at least one'),
        (
            {"replicas": {"r1": {"votes": 1}}, "choices": {"c": {"adt": "queue"}}},
            "choice 'c' needs an \"adt\"",
        ),
        (with_class([0, 1], "Enq"), "class 'Enq': an event class is written operation/outcome"),
        (with_class([0, 1, 2]), r"has quorums \[0, 1, 2\]; give \[initial, final\]"),
        (with_class([0, 1.5]), r"has quorums \[0, 1.5\]"),
        (with_class([0, 2]), "class 'Enq/Ok' needs 2 votes, the replicas have 1; lower the quorum"),
    ],
)
def test_bad_choices_are_named(tmp_path: Path, document: Any, sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        read_choices(written(tmp_path, document))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="nowhere is no folder"):
        find_run_files(tmp_path / "nowhere")
    with pytest.raises(ReportError, match="holds no operations"):
        find_run_files(tmp_path)
    (tmp_path / "operations-1.jsonl.gz").touch()
    with pytest.raises(ReportError, match=r"replicas\.csv is missing"):
        find_run_files(tmp_path)
    (tmp_path / "replicas.csv").write_text("replica;start\n")
    with pytest.raises(ReportError, match=r"choices\.json is missing"):
        find_run_files(tmp_path)
    (tmp_path / "choices.json").touch()
    with pytest.raises(ReportError, match="begins with 'replica;start'; its first line must be"):
        find_run_files(tmp_path)
    (tmp_path / "replicas.csv").write_text("\ufeffreplica,start_s,end_s,up\n", encoding="utf-8")
    assert find_run_files(tmp_path).operations == (tmp_path / "operations-1.jsonl.gz",)
