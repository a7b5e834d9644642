"""What of `run.json` is refused before anything is computed, and with which sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.quorums.systems.systems import is_quorum
from quorate.spark_reports.model.aggregates import Span
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.run_document import read_run
from tests.unit.spark_reports import measured_run


def written(folder: Path, document: Any) -> Path:
    path = folder / "run.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def with_class(pair: Any, name: str = "Enq/Ok") -> dict[str, Any]:
    choices = {"c": {"adt": "queue", "classes": {name: pair}}}
    return measured_run.document(replicas=1, choices=choices, objects={})


def with_systems(**parts: Any) -> dict[str, Any]:
    choices = {"s": {"adt": "queue", "ordering": "clock", **parts}}
    return measured_run.document(choices=choices, objects={"queue/a": "s"})


def test_a_run_is_read_in_file_order(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, measured_run.document()))
    assert dict(run.votes) == {"r1": 1, "r2": 1, "r3": 1}
    assert dict(run.racks) == {"r1": "a", "r2": "a", "r3": "b"}
    start_us = int(measured_run.START_S * 1e6)
    assert run.window == Span(start_us, start_us + 200_000_000)
    assert (run.time_scale, run.plan, run.prober_step_s) == (40.0, "a made-up plan", None)
    names = [(choice.name, name) for choice in run.choices for name in choice.operations]
    assert names[:3] == [("enq-1", "Enq"), ("enq-1", "Deq"), ("enq-2", "Enq")]
    deq = run.choices[0].normal_class("Deq")
    assert (deq.event_class, deq.needed_votes, deq.shown) == ("Deq/Ok", 3, ("3", "1"))


def test_without_an_ok_class_the_most_demanding_one_stands_for_the_operation(tmp_path: Path) -> None:
    document = with_class([0, 1], "Pop/Some")
    document["choices"]["c"]["classes"]["Pop/None"] = [0, 0]
    (choice,) = read_run(written(tmp_path, document)).choices
    assert choice.normal_class("Pop").event_class == "Pop/Some"


def test_quorum_systems_are_read_for_every_class_of_their_operations(tmp_path: Path) -> None:
    document = with_systems(
        initials={"Deq": "r1 + r2*r3", "Enq": "choose(0; )"},
        finals={"Enq/Ok": "r1*r2 + r1*r3", "Deq/Ok": "r1*r2 + r1*r3"},
    )
    (choice,) = read_run(written(tmp_path, document)).choices
    by_class = {each.event_class: each for each in choice.classes}
    assert list(by_class) == ["Enq/Ok", "Deq/Ok", "Deq/Empty"]
    assert by_class["Deq/Ok"].needed_votes is None
    assert by_class["Deq/Empty"].shown[1] == "0"
    assert is_quorum(by_class["Deq/Empty"].needed, {"r2", "r3"})
    assert not is_quorum(by_class["Deq/Ok"].needed, {"r2", "r3"})
    assert is_quorum(by_class["Enq/Ok"].needed, {"r1", "r3"})


def test_an_outcome_may_read_another_quorum_than_others_of_its_operation(tmp_path: Path) -> None:
    document = with_systems(initials={"Deq": "r1 + r2", "Deq/Empty": "r1*r2*r3"}, finals={"Enq/Ok": "r1"})
    (choice,) = read_run(written(tmp_path, document)).choices
    by_class = {each.event_class: each for each in choice.classes}
    assert list(by_class) == ["Enq/Ok", "Deq/Ok", "Deq/Empty"]
    assert is_quorum(by_class["Deq/Ok"].initial, {"r2"})
    assert not is_quorum(by_class["Deq/Empty"].initial, {"r1", "r2"})
    document["choices"]["s"] = {"adt": "heap", "initials": {"Pop": "r1", "Pop/Empty": "r2", "Top": "r1"}}
    (choice,) = read_run(written(tmp_path, document)).choices
    assert [(each.event_class, each.shown[0]) for each in choice.classes] == [
        ("Pop/Empty", "r2"),
        ("Top/Ok", "r1"),
    ]


def test_an_entry_of_a_dictionary_is_run_with_the_choice_of_the_dictionary(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, measured_run.document(objects={"queue/jobs": "enq-1"})))
    assert run.choice_of("queue/jobs") == run.choice_of("queue/jobs/key") == "enq-1"
    assert run.choice_of("queue/other") is None


REFUSED: list[tuple[Any, str]] = [
    ("{", "cannot be read as JSON"),
    ("[" * 100_000, "cannot be read as JSON"),
    ("[]", "must be an object"),
    (measured_run.document(format=1), '"format" is 1; this report reads 2'),
    (measured_run.document(replicas=0), '"replicas" must name at least one'),
    (
        {**measured_run.document(), "replicas": {f"r{i}": {"votes": 1} for i in range(26)}},
        "names 26 replicas",
    ),
    ({**measured_run.document(), "replicas": {"a,b": {"votes": 1}}}, "'a,b' needs a name"),
    ({**measured_run.document(), "replicas": {"r1": {"votes": -1}}}, "votes of replica 'r1' are -1"),
    ({**measured_run.document(), "replicas": {"r1": {"votes": True}}}, "votes of replica 'r1' are True"),
    ({**measured_run.document(), "replicas": {"r1": {"votes": 0}}}, "no votes at all"),
    (measured_run.document(front_ends="c1"), '"front_ends" must be a list'),
    (measured_run.document(front_ends=["c1", "c1"]), "names one front end twice"),
    (measured_run.document(front_ends=[""]), "front end '' needs a name"),
    (measured_run.document(window=[2, 1]), r'"window" is \[2, 1\]'),
    (measured_run.document(window=None), '"window" is None'),
    (measured_run.document(time_scale=0), '"time_scale" is 0; give a number above 0'),
    (measured_run.document(prober={"step_s": -1}), '"prober.step_s" is -1'),
    (measured_run.document(prober=1), '"prober" must be an object'),
    (measured_run.document(plan=1), '"plan" must be the text'),
    (measured_run.document(notes="late"), '"notes" must be a list of sentences'),
    (measured_run.document(notes=[1]), '"notes" must be a list of sentences'),
    (measured_run.document(objects={"queue/a": "nix"}), "'queue/a' is run with 'nix'"),
    (measured_run.document(choices={"c": {"classes": {}}}, objects={}), "choice 'c' needs an \"adt\""),
    (measured_run.document(choices={"c": {"adt": "queue"}}, objects={}), "choice 'c' needs \"classes\""),
    (with_systems(ordering="vote", finals={"Enq/Ok": "r1"}), "has ordering 'vote'; use clock or quorum"),
    (with_systems(finals={"Enq/Ok": 1}), "has the quorums 1; write them as text"),
    (with_systems(finals={"Enq/Ok": "r1*"}), "character 4 of 'r1\\*'"),
    (with_systems(finals={"Enq/Ok": "r9"}), "names the unknown replica 'r9'"),
    (with_class([0, 1], "Enq"), "class 'Enq': an event class is written operation/outcome"),
    (with_class([0, 1, 2]), r"has quorums \[0, 1, 2\]; give \[initial, final\]"),
    (with_class([0, 1.5]), r"has quorums \[0, 1.5\]"),
    (with_class([0, 2]), "class 'Enq/Ok' needs 2 votes, the replicas have 1; lower the quorum"),
]


@pytest.mark.parametrize(("document", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_a_bad_run_document_is_named(tmp_path: Path, document: Any, sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        read_run(written(tmp_path, document))
