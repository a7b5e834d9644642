"""The demo's records and its short table."""

import json
from pathlib import Path

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, parse
from quorate.cli.demo_record import Recorder, UpTimes, operation_name, write_run
from quorate.cli.demo_table import needed_votes, outcome_rows
from quorate.cli.document import new_document
from quorate.client_sdk.effects import Dequeue, Done, Failed, Read, Write
from quorate.quorums.expressions import parse_system
from quorate.quorums.systems import is_quorum

DOCUMENT = parse(new_document({f"r{number}": f"http://127.0.0.1:{8000 + number}" for number in (1, 2, 3)}))
CHOICES = {"jobs": "queue/jobs", "register": "register/x"}


def test_operations_are_named_as_in_their_specification() -> None:
    assert operation_name(Read("register/x")) == "Read"
    assert operation_name(Read("dictionary/d/k")) == "Get"
    assert operation_name(Write("register/x", Value("1"))) == "Write"
    assert operation_name(Write("dictionary/d/k", Value("1"))) == "Put"
    assert operation_name(Write("dictionary/d/k", None)) == "Delete"


def test_up_times_cover_the_whole_run() -> None:
    up_times = UpTimes(["r1", "r2"], 0.0)
    up_times.mark("r2", 2.0, up=False)
    up_times.mark("r2", 3.0, up=True)
    up_times.end(5.0)
    assert sorted(up_times.intervals()) == [
        ("r1", 0.0, 5.0, True),
        ("r2", 0.0, 2.0, True),
        ("r2", 2.0, 3.0, False),
        ("r2", 3.0, 5.0, True),
    ]
    assert up_times.were_all_up(0.5, 1.9)
    assert not up_times.were_all_up(1.9, 2.1)
    assert up_times.were_all_up(3.1, 4.0)


def test_table_tells_apart_what_was_begun_with_a_replica_down() -> None:
    recorder = Recorder(CHOICES)
    observe = recorder.observer("one")
    observe(Dequeue("queue/jobs"), 0.5, 0.1, Done((), "Deq/Empty", frozenset({"r1", "r2"})))
    observe(Dequeue("queue/jobs"), 2.5, 0.1, Failed("unavailable", "", definite=True))
    observe(Dequeue("queue/jobs"), 2.6, 0.1, Failed("unknown", "", definite=False))
    observe(Read("register/y"), 0.6, 0.1, Done(None, "Read/Ok", frozenset()))
    assert [each["outcome"] for each in recorder.records] == ["ok", "unavailable", "unknown", "ok"]
    assert recorder.records[0]["answered"] == ["r1", "r2"]
    assert recorder.records[3]["choice"] == "register"
    up_times = UpTimes(["r1", "r2"], 0.0)
    up_times.mark("r2", 2.0, up=False)
    up_times.end(5.0)
    deq, read = outcome_rows(recorder.records, up_times, DOCUMENT, CHOICES)
    assert (deq["begun"], deq["answered_all_up"], deq["answered_some_down"], deq["unknown"]) == (
        3,
        1.0,
        0.0,
        1,
    )
    assert (read["answered_all_up"], read["answered_some_down"]) == (1.0, None)


def test_choices_are_written_as_what_they_are(tmp_path: Path) -> None:
    rules = [
        ChoiceRule("queue/fast", finals={"Enq": "r1 + r2*r3", "Deq": "r1 + r2 + r3"}),
        ChoiceRule("queue/counted", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),
    ]
    document = parse(new_document({f"r{n}": f"http://127.0.0.1:{n}" for n in (1, 2, 3)}, rules=rules))
    write_run(tmp_path, [], [], document, {"fast": "queue/fast", "counted": "queue/counted"})
    written = json.loads((tmp_path / "choices.json").read_text())["choices"]
    assert written["counted"]["classes"]["Deq/Ok"] == [3, 1]
    assert "classes" not in written["fast"]
    assert written["fast"]["finals"]["Enq/Ok"] == "(r1 + (r2*r3))"
    initials = {name: parse_system(text) for name, text in written["fast"]["initials"].items()}
    assert is_quorum(initials["Enq"], ())
    assert not is_quorum(initials["Deq"], {"r1", "r2"})
    assert is_quorum(initials["Deq"], {"r1", "r2", "r3"})


def test_votes_needed_are_those_of_the_normal_class() -> None:
    assert needed_votes(DOCUMENT, "queue/jobs", "Deq") == 2
    assert needed_votes(DOCUMENT, "queue/jobs", "Enq") == 2
