"""`quorate quorums choices|availability|plan` as a user types them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import quorate

QUEUE = ("--operations", "Enq,Deq")


def printed(*words: str) -> str:
    done = quorate("quorums", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*words: str) -> Any:
    return json.loads(printed(*words, "--json"))


def rows(text: str) -> list[list[str]]:
    """The cells of a table's lines, without its head."""
    return [line.replace(", ", ",").split() for line in text.splitlines() if line.strip().startswith("(")]


def test_the_lecture_table_of_three_is_one_command() -> None:
    assert rows(printed("choices", "queue", "-n", "3", *QUEUE)) == [
        ["(0,1)", "(3,1)", "(3,0)"],
        ["(0,2)", "(2,2)", "(2,0)"],
        ["(0,3)", "(1,3)", "(1,0)"],
    ]


def test_choices_as_json_have_the_documented_keys() -> None:
    found = as_json("choices", "queue", "--votes", "r1=2,r2=1,r3=0", *QUEUE, "--rule", "by-operation")
    assert found == {
        "type": "queue",
        "votes": {"r1": 2, "r2": 1, "r3": 0},
        "rule": "by-operation",
        "ordering": "clock",
        "replication": "typed",
        "classes": ["Enq/Ok", "Deq/Ok", "Deq/Empty"],
        "choices": [
            {"Enq/Ok": [0, 1], "Deq/Ok": [3, 1], "Deq/Empty": [3, 0]},
            {"Enq/Ok": [0, 2], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
        ],
    }


def test_gifford_second_example_is_one_command() -> None:
    found = as_json("availability", "file", "--votes", "a=2,b=1,c=1", "--p", "0.99", "--rule", "by-operation")
    of_label = {each["label"]: each for each in found["assignments"]}
    example = of_label["Write/Ok (0, 3)  Read/Ok (2, 0)"]["classes"]
    assert example["Read/Ok"]["unavailability"] == pytest.approx(1.99e-4)
    assert example["Write/Ok"]["unavailability"] == pytest.approx(1.0099e-2)
    assert example["Write/Ok"]["blocked_by"] == [["a"], ["b", "c"]]


def test_availability_says_what_blocks_and_shows_operations_of_several_outcomes() -> None:
    text = printed("availability", "queue", "-n", "3", "--p", "0.99", *QUEUE)
    assert "99.99990 %" in text
    assert "{r1, r2} {r1, r3} {r2, r3}" in text
    assert "Deq, whatever it is" in text


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("start_s,end_s,up\n0,9,r1|r2|r3\n9,10,r3\n10,12,r1|r2\n")
    return path


def test_a_trace_shows_outages_beside_what_independence_predicts(trace: Path) -> None:
    found = as_json("availability", "queue", "-n", "3", *QUEUE, "--trace", str(trace))
    middle = found["assignments"][1]["operations"]["Deq"]
    assert middle["availability"] == pytest.approx(11 / 12)
    assert middle["independent"] == pytest.approx(
        (11 / 12) ** 2 * (10 / 12) + 2 * 11 / 12 / 12 * 10 / 12 + (11 / 12) ** 2 * 2 / 12
    )
    assert (middle["outages"], middle["longest_outage_s"], middle["down_s"], middle["observed_s"]) == (
        1,
        1,
        1,
        12,
    )


def test_racks_and_systems_are_taken() -> None:
    found = as_json(
        "availability",
        "file",
        "--system",
        "a*b + c*d",
        "--p",
        "1",
        "--group",
        "west=0.9:a,b",
        "--group",
        "east=0.9:c,d",
    )
    classes = found["assignments"][0]["classes"]
    assert classes["Read/Ok"]["availability"] == pytest.approx(0.99)
    assert classes["Write/Ok"]["availability"] == pytest.approx(0.81)
    assert classes["Read/Ok"]["needs"] == "((a*b) + (c*d))"


def test_a_plan_as_json_has_the_documented_keys_and_keeps_its_targets() -> None:
    found = as_json(
        "plan", "queue", "-n", "3", *QUEUE, "--mix", "Enq=2,Deq=1,Deq/Empty=1", "--p", "0.99",
        "--latency", "r1=5,r2=10,r3=5:9/50:1", "--capacity", "1000", "--target", "Enq >= 99.9%", "--target", "Deq p50 <= 20ms",
    )  # fmt: skip
    assert found.keys() == {"type", "replicas", "dead", "mix", "found", "offers"}
    assert found["found"] == len(found["offers"]) > 0
    for offer in found["offers"]:
        assert offer["availability"]["Enq"] >= 0.999
        assert offer["p50_ms"]["Deq"] <= 20
        assert offer["capacity"] == pytest.approx(1 / offer["load"])
        assert sum(row["share"] for row in offer["strategy"] if row["of"] == "Enq/Ok") == pytest.approx(1)


def test_a_plan_shows_choices_and_whom_to_ask() -> None:
    text = printed("plan", "queue", "-n", "3", *QUEUE, "--mix", "Enq=1,Deq=1", "--votes-max", "1")
    assert "equal votes; Enq/Ok (0, 2)  Deq/Ok (2, 2)  Deq/Empty (2, 0)" in text
    assert "Deq initial: {r1" in text


def test_a_plan_that_nothing_meets_says_so() -> None:
    text = printed("plan", "queue", "-n", "3", "--mix", "Enq=1", "--target", "Enq >= 100%")
    assert "No candidate meets all targets" in text


BAD: list[tuple[Sequence[str], str]] = [
    (("choices", "queues"), "there is no data type 'queues': use queue"),
    (("choices", "queue", "--operations", "Push"), "a queue has no operation 'Push': use Enq"),
    (("choices", "queue", "--votes", "r1"), "--votes: 'r1' is not NAME=VALUE; write as r1=1,r2=2"),
    (("choices", "queue", "--votes", "r1=x"), "--votes: r1=x: write a whole number from 0 to 1000"),
    (("choices", "queue", "--votes", "r1=1,r1=1"), "--votes: r1 is given twice"),
    (("choices", "queue", "--votes", "r1=0"), "no votes at all"),
    (("availability", "queue"), "say how replicas fail: --p 0.99"),
    (("availability", "queue", "--p", "1.5"), "'r1' is 1.5; give a number from 0 to 1"),
    (("availability", "queue", "--p", "high"), "--p: 'high': write a number"),
    (("availability", "queue", "--p", "r1=0.9"), "--p: nothing is said about replica 'r2'"),
    (("availability", "queue", "--p", "r9=0.9"), "--p: unknown replica 'r9'; known are r1, r2, r3"),
    (("availability", "queue", "--group", "rack"), "--group: 'rack' is not NAME=P:r1,r2"),
    (("availability", "queue", "--group", "rack=0.9:r9"), "group 'rack' holds the unknown replica 'r9'"),
    (("availability", "queue", "--group", "rack=2:r1"), "group 'rack' is 2; give a number from 0 to 1"),
    (("availability", "queue", "--p", "0.9", "--trace", "TRACE"), "--trace says who was up; leave --p and --group out"),
    (("availability", "queue", "-n", "2", "--trace", "TRACE"), "trace.csv: line 2: unknown replica 'r3'; known are r1, r2"),
    (("availability", "file", "--system", "a*b|c", "--p", "0.9"), "Read depends on Write/Ok and can miss it: {a, b} and {c}"),
    (("availability", "file", "--system", "a*", "--p", "0.9"), "character 3 of 'a*': the end stands where"),
    (("plan", "queue", "--mix", "Foo=1"), "--mix: a queue has no event class 'Foo': use Enq/Ok"),
    (("plan", "queue", "--mix", "Enq=1", "--dead", "r9"), "--dead: unknown replica 'r9'"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "Enq p50 <= 5"), "needs answer times: give --latency"),
    (("plan", "queue", "--mix", "Enq=1", "--target", "fast"), "'fast' states no target"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "-5"), "-5.0 ms"),
    (("plan", "queue", "--mix", "Enq=1", "--capacity", "0"), "capacity of replica 'r1' is 0"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "1e999"), "--latency: '1e999': write a number"),
    (("plan", "queue", "--mix", "Enq=1", "--latency", "r1=5"), "--latency: nothing is said about replica 'r2'"),
    (("plan", "queue", "--mix", "Enq=1", "--names", "a,a,b"), "--names: a is given twice; give it once"),
    (("plan", "queue", "--mix", "Enq=1", "--system", "r1*r9"), "'r1*r9' names the unknown replica 'r9'; known are r1, r2"),
    (("availability", "queue", "--p", "1e-999999999"), "--p: '1e-999999999': write a number"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_named_with_its_place_and_the_remedy(
    words: Sequence[str], sentence: str, trace: Path
) -> None:
    done = quorate("quorums", *(str(trace) if word == "TRACE" else word for word in words))
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
