"""Measured runs on real replicas: what was recorded of operations, of replicas and of ways to them fits together."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.systems import is_quorum
from tests.unit.cli.conftest import quorate
from tests.unit.measurement.runs import RunRead

TIMEOUT_S = 150
PLAN = """
[time]
duration = "14s"
[types]
seats = "shop:Seats"
[cluster]
racks = { a = ["r1"], b = ["r2", "r3"] }
front_ends = ["east", "west"]
[prober]
step = "200ms"

[[planned]] # frozen first, killed then, and back only after both
at = "1s"
for = "7s"
replicas = ["r1"]
kind = "stop"
[[planned]]
at = "2s"
for = "500ms"
replicas = ["r1"]

[[planned]] # one after the other, which together leave a single one
at = "9s"
for = "2500ms" # so long before r2 stands still that it is seen to be back
stagger = "500ms"
replicas = ["r2", "r3"]
kind = "cut"

[[planned]]
at = "13s"
for = "9s"
replicas = ["r2"]
kind = "stop"

[[partitions]]
front_ends = ["east"]
replicas = ["r2", "r1"]
at = "6s"
for = "3500ms" # r2 is cut for all before it is over

[[partitions]] # of replicas alone
replicas = ["r1"]
other_replicas = ["r3"]
at = "2s"
for = "3s"

[[workloads]]
type = "queue"
rates = { Enq = 5, Deq = 10 } # so that the queues would run empty without what they hold at first
deadline = "500ms"
[[workloads.choices]]
name = "one"
classes = { "Enq/Ok" = [0, 1], "Deq/Ok" = [3, 1], "Deq/Empty" = [3, 0] }
[[workloads.choices]]
name = "ordered"
ordering = "quorum"
classes = { "Enq/Ok" = [2, 2], "Deq/Ok" = [2, 2], "Deq/Empty" = [2, 0] }

[[workloads]]
type = "queue"
rates = { Enq = 5, Deq = 1 }
deadline = "500ms"
[[workloads.choices]]
name = "kept"
outbox = true
classes = { "Enq/Ok" = [0, 2], "Deq/Ok" = [3, 2], "Deq/Empty" = [3, 0] }
[[workloads.choices]]
name = "sure"
outbox = true
exact_empty = true

[[workloads]]
type = "register"
rates = { Write = 2, Read = 2, Cas = 2 }
deadline = "500ms"
[[workloads.choices]]
name = "by-systems"
reads = "r1*r2 + r3"
writes = "r1*r3 + r2*r3"

[[workloads]]
type = "register"
rates = { Write = 3, Read = 6 }
deadline = "500ms"
[[workloads.choices]]
name = "anyone"
classes = { "Write/Ok" = [0, 1] }
consistency = "eventual"

[[workloads]]
type = "seats"
rates = { reserve = 2, free = 2 }
deadline = "500ms"
[[workloads.choices]]
name = "seats"
classes = { "Call/Ok" = [3, 1], "Blind/Ok" = [0, 1] }
"""
SHOP = """
class Taken(Exception):
    pass


class Seats:
    blind = ("free",)

    def __init__(self) -> None:
        self.taken: list[int] = []

    def reserve(self, seat: int) -> None:
        if seat in self.taken:
            raise Taken
        self.taken = sorted([*self.taken, seat])

    def free(self, seat: int) -> None:
        self.taken = [each for each in self.taken if each != seat]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRead:
    """One run with every kind of fault."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "plan.toml").write_text(PLAN)
    (folder / "shop.py").write_text(SHOP)
    done = quorate("measure", "plan.toml", "--out", "run", "--json", cwd=folder, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["whole"]
    assert told["parquet"]
    assert told["rows_left_as_lines"] == 0
    assert not list((folder / "run").glob("cluster-*"))
    return RunRead(folder / "run")


pytestmark = pytest.mark.slow


def test_every_appointed_operation_has_a_row_whatever_failed(run: RunRead) -> None:
    counted = Counter((row["object"], row["operation"]) for row in run.operations)
    assert counted == {
        ("queue/one", "Enq"): 70,
        ("queue/one", "Deq"): 140,
        ("queue/ordered", "Enq"): 70,
        ("queue/ordered", "Deq"): 140,
        ("queue/kept", "Enq"): 70,
        ("queue/kept", "Deq"): 14,
        ("queue/sure", "Enq"): 70,
        ("queue/sure", "Deq"): 14,
        ("register/by-systems", "Write"): 28,
        ("register/by-systems", "Read"): 28,
        ("register/by-systems", "Cas"): 28,
        ("register/anyone", "Write"): 42,
        ("register/anyone", "Read"): 84,
        ("seats/seats", "Call"): 28,
        ("seats/seats", "Blind"): 28,
    }
    assert {row["outcome"] for row in run.operations} == {"ok", "unavailable", "unknown"}
    assert {row["front_end"] for row in run.operations} == {"east", "west"}


FINAL_QUORUMS: dict[str, Callable[[set[str]], bool]] = {
    "one": lambda up: len(up) >= 1,
    "ordered": lambda up: len(up) >= 2,
    "kept": lambda up: len(up) >= 1,
    "sure": lambda up: len(up) >= 1,
    "by-systems": lambda up: up >= {"r1", "r3"} or up >= {"r2", "r3"},
    "seats": lambda up: len(up) >= 1,
    "anyone": lambda up: len(up) >= 1,
}


def test_no_operation_succeeded_through_replicas_that_were_down_for_its_whole_life(run: RunRead) -> None:
    checked = 0
    for row in run.operations:
        down = down_for_life(run, row)
        if row["outcome"] == "ok":
            assert FINAL_QUORUMS[row["choice"]]({"r1", "r2", "r3"} - down) or row["operation"] == "Read", row
        # Of a decision the SDK names those who promised to it, and they may have done so with the decision before.
        if row["operation"] not in ("Deq", "Cas", "Call"):
            assert not down & set(row["answered"]), row
        checked += len(down)
    assert checked > 100


def down_for_life(run: RunRead, row: dict[str, Any]) -> set[str]:
    """The replicas that the front end of an operation could not have reached at any moment of it."""
    start_s, end_s = row["start_s"], row["start_s"] + row["latency_s"]
    return {
        replica
        for replica in ("r1", "r2", "r3")
        for down in run.of(replica) + run.of(row["front_end"], replica, file="links.csv")
        if down.holds(start_s, end_s)
    }


def test_operations_met_their_deadlines_and_their_quorums(run: RunRead) -> None:
    needed = {
        ("seats", "Call"): 3,
        ("one", "Enq"): 1,
        ("one", "Deq"): 3,
        ("ordered", "Enq"): 2,
        ("ordered", "Deq"): 2,
    }
    for row in run.operations:
        if row["outcome"] == "ok":
            assert len(row["answered"]) >= needed.get((row["choice"], row["operation"]), 1), row
            assert row["event_class"].startswith(row["operation"] + "/")
        else:
            assert row["event_class"] is None
            # What was forwarded may be told as unknown sooner: as soon as the host's answer is lost.
            assert row["latency_s"] > 0.4 or row["outcome"] == "unknown", row


def test_queues_never_ran_empty_and_comparisons_never_failed(run: RunRead) -> None:
    assert {row["event_class"] for row in run.operations} - {None} == {
        "Enq/Ok",
        "Deq/Ok",
        "Write/Ok",
        "Read/Ok",
        "Cas/Ok",
        "Call/Ok",
        "Blind/Ok",
    }


def test_queues_of_different_choices_met_the_same_load_at_the_same_moments(run: RunRead) -> None:
    starts: dict[str, list[tuple[str, str, float]]] = {}
    for row in run.operations:
        starts.setdefault(row["object"], []).append((row["operation"], row["front_end"], row["start_s"]))
    one, ordered = sorted(starts["queue/one"]), sorted(starts["queue/ordered"])
    assert [each[:2] for each in one] == [each[:2] for each in ordered]
    apart = [abs(first[2] - second[2]) for first, second in zip(one, ordered, strict=True)]
    # Latency is taken until the answer is heard of: a busy machine puts something between them. Draws of their own would
    # be apart by seconds: the moments of 70 events wander by the square root of that many times 0.2 s.
    assert sorted(apart)[len(apart) // 2] < 0.5


def test_of_ones_own_type_calls_that_look_were_down_with_one_replica_and_blind_ones_were_not(
    run: RunRead,
) -> None:
    """r1 stood still for half the run, and each call that looks wants all three."""
    outcomes = Counter((row["operation"], row["outcome"]) for row in run.operations if row["adt"] == "seats")
    assert 0 < outcomes["Call", "ok"] <= 14, outcomes
    blind = [row for row in run.operations if (row["operation"], row["outcome"]) == ("Blind", "ok")]
    assert any("r1" in down_for_life(run, row) for row in blind), outcomes


def test_a_queue_with_outboxes_is_told_as_the_eventual_queue_that_it_is(run: RunRead) -> None:
    assert run.told["choices"]["kept"] == {
        "adt": "eventual-queue",
        "ordering": "clock",
        "classes": {"Enq/Ok": [0, 1], "Deq/Ok": [3, 2], "Deq/Empty": [3, 0]},
    }
    rows = [row for row in run.operations if row["choice"] == "kept"]
    assert {row["adt"] for row in rows} == {"eventual-queue"}
    enqueued = [row for row in rows if row["event_class"] == "Enq/Ok"]
    assert any(down_for_life(run, row) for row in enqueued), "which of them answers is all the same"
    assert all(len(row["answered"]) == 1 for row in enqueued)


def test_with_exact_empty_it_is_told_as_a_semiqueue_and_the_report_says_so(
    run: RunRead, tmp_path: Path
) -> None:
    assert run.told["choices"]["sure"] == {
        "adt": "semiqueue",
        "ordering": "clock",
        "classes": {"Enq/Ok": [0, 1], "Deq/Ok": [2, 2], "Deq/Empty": [3, 0]},
    }
    rows = [row for row in run.operations if row["choice"] == "sure"]
    assert {row["adt"] for row in rows} == {"semiqueue"}
    words = ("report", "--input", str(run.folder), "--engine", "python", "--out", str(tmp_path / "out"))
    done = quorate(*words, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert "semiqueue: " in done.stdout
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    found = {row["operation"]: row for row in figures["operations"] if row["choice"] == "sure"}
    assert {(row["adt"], row["needed_votes"]) for row in found.values()} == {
        ("semiqueue", 1),
        ("semiqueue", 2),
    }
    assert found["Enq"]["ok"] == sum(row["event_class"] == "Enq/Ok" for row in rows)
    assert found["Deq"]["attempts"] == 14
    needed = {
        row["event_class"]: row["needed_votes"] for row in figures["classes"] if row["choice"] == "sure"
    }
    assert needed == {"Enq/Ok": 1, "Deq/Ok": 2, "Deq/Empty": 3}


def test_of_eventual_consistency_any_replica_answered_and_what_was_missed_is_counted(
    run: RunRead, tmp_path: Path
) -> None:
    outcomes = Counter(
        (row["operation"], row["outcome"]) for row in run.operations if row["choice"] == "anyone"
    )
    reads = [row for row in run.operations if (row["choice"], row["operation"]) == ("anyone", "Read")]
    answered = [row for row in reads if row["outcome"] == "ok"]
    assert any("r1" in down_for_life(run, row) for row in answered), outcomes
    (note,) = [note for note in run.told["notes"] if note.startswith("register/anyone: ")]
    lines = [json.loads(line) for line in (run.folder / "history.jsonl").read_text().splitlines()]
    weak = [line for line in lines if line.get("weak")]
    assert {line["object"] for line in weak} == {"register/anyone"}
    assert f" of {len(weak)} answers of eventual consistency have no place in the order" in note
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(line) + "\n" for line in lines if line["object"] == "register/anyone"))
    (told,) = json.loads(quorate("check", str(own), "--json").stdout)["weak"]
    assert note.startswith(f"register/anyone: {told['without_place']} of {told['answers']} ")


def test_true_times_are_no_sooner_than_those_of_the_plan(run: RunRead) -> None:
    """How much later they are is up to the machine; it is what they are recorded for."""
    (first,) = run.of("r1")
    assert first.start_s >= run.start_s + 1
    assert first.end_s >= run.start_s + 8
    cut, stopped = run.of("r2")
    assert cut.start_s >= run.start_s + 9
    assert cut.end_s >= run.start_s + 11.5
    assert stopped.start_s >= run.start_s + 13
    assert stopped.end_s >= run.end_s
    (other,) = run.of("r3")
    assert other.start_s >= run.start_s + 9.5
    assert other.end_s >= run.start_s + 12
    for replica in ("r1", "r2"):
        (parted,) = run.of("east", replica, file="links.csv")
        assert parted.start_s >= run.start_s + 6
        assert parted.end_s >= run.start_s + 9.5
    assert not list(run.of("west", "r1", file="links.csv"))
    for way in (("r1", "r3"), ("r3", "r1")):
        (parted,) = run.of(*way, file="replica-links.csv")
        assert parted.start_s >= run.start_s + 2
        assert parted.end_s >= run.start_s + 5
    named = {name for file in ("links.csv", "replica-links.csv") for name, _ in run.downs(file)}
    assert named == {("east", "r1"), ("east", "r2"), ("r1", "r3"), ("r3", "r1")}


def test_intervals_cover_the_window_without_gap_or_overlap(run: RunRead) -> None:
    with (run.folder / "replicas.csv").open(newline="") as file:
        rows = [(row["replica"], float(row["start_s"]), float(row["end_s"])) for row in csv.DictReader(file)]
    for replica in ("r1", "r2", "r3"):
        mine = sorted(each[1:] for each in rows if each[0] == replica)
        assert mine[0][0] <= run.start_s
        assert mine[-1][1] >= run.end_s
        assert all(first[1] == second[0] for first, second in pairwise(mine))


def test_the_prober_saw_what_was_true(run: RunRead) -> None:
    met: Counter[tuple[bool, int]] = Counter()
    for probe in run.probes:
        sent_s, ended_s = probe["time_s"], probe["time_s"] + 0.2
        downs = run.of(probe["replica"])
        if any(down.holds(sent_s, ended_s) for down in downs):
            met[False, probe["up"]] += 1
        elif not any(down.start_s < ended_s and sent_s < down.end_s for down in downs):
            met[True, probe["up"]] += 1
        assert (probe["latency_s"] is None) == (probe["up"] == 0)
    assert met[False, 1] == 0
    assert met[False, 0] > 10
    # Where nothing was down a probe may still be late, on a busy machine: that is what a prober's view is.
    assert met[True, 1] > 10


def test_run_json_says_what_was_run(run: RunRead) -> None:
    told = run.told
    assert told["format"] == 2
    assert told["replicas"]["r2"] == {"votes": 1, "rack": "b"}
    assert told["objects"] == {
        "queue/one": "one",
        "queue/ordered": "ordered",
        "queue/kept": "kept",
        "queue/sure": "sure",
        "register/by-systems": "by-systems",
        "register/anyone": "anyone",
        "seats/seats": "seats",
    }
    assert told["choices"]["seats"]["classes"] == {"Call/Ok": [3, 1], "Blind/Ok": [0, 1]}
    assert told["choices"]["one"]["classes"]["Deq/Ok"] == [3, 1]
    assert told["choices"]["ordered"]["ordering"] == "quorum"
    assert told["choices"]["ordered"]["classes"]["Enq/Ok"] == [2, 2]
    systems = told["choices"]["by-systems"]
    assert set(systems) == {"adt", "ordering", "initials", "finals"}
    assert systems["initials"]["Read"] == "((r1*r2) + r3)"
    assert not is_quorum(parse_system(systems["finals"]["Cas/Ok"]), {"r1", "r2"})
    assert is_quorum(parse_system(systems["finals"]["Cas/Ok"]), {"r2", "r3"})
    assert is_quorum(parse_system(systems["finals"]["Cas/Fail"]), ())
    assert told["choices"]["anyone"]["consistency"] == "eventual"
    assert told["choices"]["anyone"]["classes"]["Read/Ok"] == [1, 0]
    assert told["front_ends"] == ["east", "west"]
    assert run.end_s - run.start_s == pytest.approx(14)
    assert (told["time_scale"], told["prober"], told["plan"]) == (1.0, {"step_s": 0.2}, PLAN)
    assert told["made"]["state"] == "is whole"
