"""`quorate quorums types|depends`, run as a user runs them; no replica is there."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.adts.dependency import Bound, dependencies
from quorate.adts.types.catalogue import known_types
from quorate.cli.failure import Usage
from quorate.cli.quorums.data_types import type_named
from tests.unit.adts.types_page import OWN_TYPE
from tests.unit.cli.conftest import quorate


def told(*words: str, cwd: Path | None = None) -> Any:
    """The JSON answer of a command that goes well."""
    done = quorate("quorums", *words, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_types_lists_what_the_calculus_knows() -> None:
    listed = {each["type"]: each for each in told("types")["types"]}
    assert list(listed) == list(known_types())
    assert {name for name, each in listed.items() if each["offered"]} == {"queue", "register", "dictionary"}
    assert listed["account"]["operations"][1] == {
        "operation": "Debit",
        "arguments": ["amount"],
        "kind": "decide",
        "classes": ["Debit/Ok", "Debit/Overdraft"],
    }
    shown = quorate("quorums", "types").stdout.splitlines()
    assert any(line.split() == ["semiqueue", "Enq(item)", "blind", "Ok"] for line in shown)
    assert any(line.split() == ["queue", "*", "Enq(item)", "blind", "Ok"] for line in shown)


def test_depends_shows_a_witness_for_each_pair() -> None:
    lines = [" ".join(line.split()) for line in quorate("quorums", "depends", "queue").stdout.splitlines()]
    for line in (
        "Enq/Ok nothing",
        "Deq/Ok Enq/Ok item ≠ item' +[Enq(a); Ok()] [Enq(b); Ok()] ![Deq(); Ok(b)]",
        "Deq/Ok item = item' [Enq(a); Ok()] +[Deq(); Ok(a)] ![Deq(); Ok(a)]",
        "This is the table that the type declares.",
    ):
        assert line in lines


@pytest.mark.parametrize("adt", ["dictionary", "semiqueue"])
def test_depends_tells_programs_the_whole_relation(adt: str) -> None:
    answer, relation = told("depends", adt), dependencies(known_types()[adt])
    assert answer["type"] == adt
    assert [(pair["class"], pair["depends_on"]) for pair in answer["pairs"]] == list(relation.pairs)
    for pair, witness in zip(answer["pairs"], relation.pairs.values(), strict=True):
        shown = pair["witness"]
        assert str(witness) == " ".join(
            [*shown["before"], f"+{shown['inserted']}", *shown["between"], f"!{shown['illegal']}"]
        )
        assert pair["conditions"] == [
            str(each) for each in relation.conditions[pair["class"], pair["depends_on"]]
        ]
    assert (answer["split_by"], answer["split"]) == (relation.split_by, list(relation.split))
    assert answer["kinds"] == {operation: kind.value for operation, kind in known_types()[adt].kinds.items()}
    assert answer["classes"] == list(relation.classes)
    assert answer["changes"] == sorted(relation.changes)
    assert (answer["events_max"], answer["complete"]) == (relation.events_max, relation.complete)
    assert answer["declared"] is True


def test_a_search_that_is_too_short_says_what_it_missed() -> None:
    assert told("depends", "queue", "--events", "1")["declared"] is False
    shown = " ".join(quorate("quorums", "depends", "queue", "--events", "1").stdout.split())
    assert "Declared, but not found by so short a search: Deq/Ok on Deq/Ok, Deq/Ok on Enq/Ok" in shown


def test_a_type_of_ones_own_is_searched_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "seats.py").write_text(OWN_TYPE)
    answer = told("depends", "seats.py:Seats", cwd=tmp_path)
    pairs = {(each["class"], each["depends_on"]): each["conditions"] for each in answer["pairs"]}
    assert pairs["Book/Ok", "Book/Ok"] == ["seat = seat'"]
    assert pairs["Book/Taken", "Free/Ok"] == ["seat = seat'"]
    assert (answer["split_by"], answer["split"]) == ("seat", ["Book", "Free"])
    assert answer["kinds"] == {"Book": "decide", "Free": "blind", "Count": "observe"}
    assert answer["declared"] is None
    shown = quorate("quorums", "depends", "seats.py:Seats", cwd=tmp_path)
    assert "Each seat is an object of its own for Book, Free." in shown.stdout
    assert "declares" not in shown.stdout


BAD_FILES = {
    "import nonsense_that_is_not_there": "Bad.py cannot be read: ModuleNotFoundError",
    "class Other: pass": "Bad.py has no data type 'Bad': AttributeError",
    "class Bad:\n    step = None\n    def __init__(self): raise ValueError('no')": "has no data type 'Bad': ValueError: no",
    "class Bad:\n    def __init__(self): raise ValueError('no')\n    def op(self): pass": "Bad() raised ValueError: no",
    "class Bad:\n    def op(self): {}['a']": "op() in the state {}: raised KeyError: 'a'",
    "class Bad:\n    name = 'bad'\n    def step(self, state, invocation): pass": (
        "Bad.py:Bad lacks arguments, results, initial: a data type has name, arguments"
    ),
    OWN_TYPE.replace("Seats", "Bad").replace("return frozenset()", "return set()"): (
        "Bad.py:Bad cannot be searched: TypeError: unhashable type"
    ),
    OWN_TYPE.replace("Seats", "Bad").replace("len(booked)", "booked.nonsense"): (
        "Bad.py:Bad cannot be searched: AttributeError"
    ),
}


@pytest.mark.parametrize("text", BAD_FILES, ids=list(BAD_FILES.values()))
def test_a_file_that_is_no_type_is_refused_with_the_reason(text: str, tmp_path: Path) -> None:
    file = tmp_path / "Bad.py"
    file.write_text(text)
    with pytest.raises(Usage) as caught:
        type_named(f"{file}:Bad")
    assert BAD_FILES[text] in str(caught.value)


def test_a_type_that_grows_too_fast_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    file.write_text(OWN_TYPE.replace('("1a", "1b")', "range(60)").replace("(len(booked),)", "(sum(booked),)"))
    with pytest.raises(Usage, match=r"'seats' looks at more than \d+ pairs of positions: declare fewer"):
        type_named(f"{file}:Seats", Bound(4, nodes_max=1000))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pile", "there is no data type 'pile': use queue, register"),
        ("nowhere.py:Pile", "'nowhere.py' is not a file"),
        (__file__.removesuffix(".py") + ":Pile", "is not a file"),
    ],
)
def test_a_type_that_is_not_there_is_told_with_those_there_are(name: str, sentence: str) -> None:
    done = quorate("quorums", "depends", name, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["kind"], answer["definite"]) == (2, "Usage", True)
    assert sentence in answer["error"]


def test_depends_shows_what_eventual_consistency_may_miss() -> None:
    shown = quorate("quorums", "depends", "register", "--consistency", "eventual")
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "Read/Ok Write/Ok [Write(a); Ok()] [Read(); Ok(null)]" in lines
    assert {
        (each["class"], each["misses"])
        for each in told("depends", "queue", "--consistency", "eventual")["anomalies"]
    } == {
        ("Peek/Ok", "Enq/Ok"),
        ("Peek/Ok", "Deq/Ok"),
        ("Peek/Empty", "Enq/Ok"),
        ("Size/Ok", "Enq/Ok"),
        ("Size/Ok", "Deq/Ok"),
    }


@pytest.mark.parametrize(
    ("observing", "words"),
    [
        ("('size', 'put')", "Bag.observing names put, which may change something"),
        ("()", "No operation is weak: a class of your own names those that may miss changes"),
        ("('size',)", "With eventual consistency any one replica answers size."),
        ("('nothing',)", "Bag.observing names 'nothing', which is no operation"),
    ],
)
def test_a_class_says_which_of_its_operations_only_observe(
    tmp_path: Path, observing: str, words: str
) -> None:
    (tmp_path / "bag.py").write_text(
        f"class Bag:\n    observing = {observing}\n    def __init__(self) -> None:\n        self.items: list[str] = []\n"
        "    def put(self, item: str) -> int:\n        self.items.append(item)\n        return len(self.items)\n"
        "    def size(self) -> int:\n        return len(self.items)\n"
    )
    told = quorate(
        "quorums", "depends", "bag.py:Bag", "--consistency", "eventual", "--events", "3", cwd=tmp_path
    )
    assert words in " ".join((told.stdout + told.stderr).split())
