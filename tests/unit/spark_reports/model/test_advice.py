"""A `figures.json` read back: what it advises as a rule, and what a choice would have given by it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_struct

from quorate.adts.types.catalogue import SPECIFICATIONS, known_types
from quorate.api_specs.cluster import Fallback
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.system_choice import choice_of_pair
from quorate.spark_reports.model.advice import (
    available,
    choice_of,
    is_kept,
    read_told,
    rule_of,
    standing_rule_of,
)
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.figures import QuorumFigures, UpSetFigures
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.text.test_answer import TRACE

QUEUE = SPECIFICATIONS["queue"]
VOTES = {"r1": 1, "r2": 1, "r3": 1}
SAME = {name: name for name in VOTES}
EAGER = (
    QuorumFigures("Enq/Ok", "0", "1", 1),
    QuorumFigures("Deq/Ok", "3", "1", 3),
    QuorumFigures("Deq/Empty", "3", "0", 3),
)
GRID = (
    QuorumFigures("Enq/Ok", "0", "(r1*r2)", None),
    QuorumFigures("Deq/Ok", "(r1 + r2)", "(r1*r2)", None),
    QuorumFigures("Deq/Empty", "(r1 + r2)", "0", None),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    run = measured_run.write_run(folder / "run", operations=600)
    make_report(run, folder / "out", Options(engine="python"))
    return folder / "out" / "figures.json"


def test_any_choice_is_as_available_as_the_report_has_it(made: Path) -> None:
    """The shares of the up-sets say of every choice what the report's own table says of those in it."""
    told, found = read_told(made.read_bytes()), json.loads(made.read_text())
    rows = [row for row in found["counterfactuals"] if row["adt"] == "queue" and row["kind"] == "typed"]
    assert {row["choice"] for row in rows} >= {"enq-1", "enq-2", "enq-3"}
    for row in rows:
        sizes = int(row["initial"]), int(row["final"])
        given = available(told, QuorumChoice(QUEUE, VOTES, {row["normal_class"]: sizes}), SAME)
        assert given[row["normal_class"]] == pytest.approx(row["predicted_joint"], abs=1e-12)
    shares = {row.up: row.share for row in told.up_sets}
    pair = available(told, choice_of_pair(QUEUE, VOTES, "r1 + r2"), SAME)
    assert pair["Enq/Ok"] == pytest.approx(
        sum(share for up, share in shares.items() if {"r1", "r2"} <= {*up})
    )


def test_without_every_up_set_nothing_is_said_of_a_choice(made: Path) -> None:
    told = read_told(made.read_bytes())
    cut = replace_struct(told, up_sets=told.up_sets[1:])
    assert available(cut, QuorumChoice(QUEUE, VOTES), SAME) == {}


def test_replicas_may_have_other_names_in_the_cluster(made: Path) -> None:
    told = read_told(made.read_bytes())
    ups = tuple(UpSetFigures(tuple(f"host-{name}:1" for name in row.up), row.share) for row in told.up_sets)
    moved = replace_struct(told, up_sets=ups)
    choice = QuorumChoice(QUEUE, VOTES)
    names = {f"host-{name}:1": name for name in VOTES}
    assert available(moved, choice, names) == available(told, choice, SAME)


def test_what_reads_by_outcome_is_no_choice_in_force() -> None:
    """As a dequeue with `exact_empty` does: it reads on where it finds nothing."""
    exact = (
        QuorumFigures("Enq/Ok", "0", "1", 1),
        QuorumFigures("Deq/Ok", "2", "2", 2),
        QuorumFigures("Deq/Empty", "3", "0", 3),
    )
    semiqueue = known_types()["semiqueue"]
    assert choice_of(semiqueue, exact, VOTES) is None
    assert choice_of(semiqueue, EAGER, VOTES) is not None
    assert not is_kept("semiqueue", EAGER, VOTES)


def test_quorums_become_a_rule() -> None:
    rule = rule_of("queue/jobs", EAGER)
    assert (rule.objects, rule.classes) == (
        "queue/jobs",
        {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)},
    )
    rule = rule_of("queue/jobs", GRID)
    assert (rule.classes, rule.initials) == ({}, {"Deq": "(r1 + r2)"})
    assert rule.finals == {"Enq/Ok": "(r1*r2)", "Deq/Ok": "(r1*r2)"}


def test_a_standing_rule_names_members_and_what_the_condition_leaves() -> None:
    (row,) = TRACE.adaptive
    row = replace(row, normal_quorums=EAGER, down=("host-3:1", "host-4:1"), after_s=20.0)
    names = {f"host-{number}:1": f"r{number}" for number in (1, 2, 3, 4, 5)}
    rule = standing_rule_of("queue/jobs", row, names, dict.fromkeys(names.values(), 1))
    assert (rule.objects, rule.classes) == ("queue/jobs", rule_of("queue/jobs", EAGER).classes)
    of_three = "choose(2; r1, r2, r5)"
    assert rule.standing == Fallback(down=("r3", "r4"), after_s=20.0, reads=of_three, writes=of_three)
    rule = standing_rule_of("queue/jobs", row, names, dict.fromkeys(names.values(), 1) | {"r1": 2})
    assert rule.standing is not None
    assert rule.standing.reads == rule.standing.writes == "votes(3; r1:2, r2:1, r5:1)"


def test_a_standing_rule_may_fall_back_to_any_choice() -> None:
    (row,) = TRACE.adaptive
    row = replace(row, down=(), live_below=3, fallback_quorums=EAGER)
    given = rule_of("queue/jobs", EAGER)
    assert standing_rule_of("queue/jobs", row, SAME, VOTES).standing == Fallback(given.classes, live_below=3)
    row = replace(row, fallback_quorums=GRID)
    given = rule_of("queue/jobs", GRID)
    assert standing_rule_of("queue/jobs", row, SAME, VOTES).standing == Fallback(
        live_below=3, initials=given.initials, finals=given.finals
    )


def test_only_what_the_service_keeps_is_advice() -> None:
    assert is_kept("queue", EAGER, VOTES)
    assert is_kept("queue", GRID, VOTES)
    assert not is_kept("semiqueue", EAGER, VOTES), "a type for planning"
    assert not is_kept("visits", (QuorumFigures("add/Ok", "0", "1", 1),), VOTES), (
        "of a class, as Python has it"
    )
    assert is_kept("visits", (QuorumFigures("Call/Ok", "2", "2", 2),), VOTES), "as the service has it"
    reads_nobody = (QuorumFigures("Read/Ok", "0", "0", 0),)
    assert not is_kept("register", reads_nobody, VOTES), "no write could be seen"
    assert not is_kept("queue", (replace(EAGER[1], initial="1"), EAGER[0]), VOTES), "they miss each other"


def test_another_file_is_refused_with_what_to_do(made: Path) -> None:
    document = json.loads(made.read_text())
    for text, words in (
        (b"", "is damaged, or of an earlier release"),
        (made.read_bytes()[:-100], "is damaged"),
        (
            b'{"name": "local"}',
            "is damaged, or of an earlier release (Object missing required field `format`)",
        ),
        (b"\xff\xfe", "is damaged"),
        (json.dumps(document | {"format": 1}).encode(), "has format 1, and this release reads 2"),
    ):
        with pytest.raises(ReportError) as caught:
            read_told(text)
        assert words in str(caught.value)
    del document["recommendations"][0]["quorums"]
    with pytest.raises(ReportError, match=r"of an earlier release .*`quorums`.*: make the report again"):
        read_told(json.dumps(document).encode())
