"""Figures worked out by hand on a run small enough to check in the head."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports import reference
from quorate.spark_reports.contract import find_run_files, read_choices
from quorate.spark_reports.derive import derive
from quorate.spark_reports.figures import KEYS, Figures, OperationFigures
from quorate.spark_reports.report import figures_json
from tests.spark_reports import measured_run

START_S = int(measured_run.START_S)


def figures_of(folder: Path) -> Figures:
    files = find_run_files(folder)
    choices = read_choices(files.choices)
    return derive(reference.aggregate(files, choices), choices)


def operation(start_s: float, **changes: Any) -> str:
    return json.dumps({**measured_run.good_enq(), "start_s": START_S + start_s, **changes})


@pytest.fixture
def tiny(tmp_path: Path) -> Figures:
    """Ten seconds, two replicas in one rack down together in the second half, a third always up but for one second.

    Enq under enq-1 needs one vote and is always answered; Deq needs three and fails in the second half.
    """
    folder = measured_run.write_run(tmp_path / "run", operations=0)
    rows = ["replica,start_s,end_s,up"]
    rows += [f"{r},{START_S},{START_S + 5},1\n{r},{START_S + 5},{START_S + 10},0" for r in ("r1", "r2")]
    rows += [f"r3,{START_S},{START_S + 9},1", f"r3,{START_S + 9},{START_S + 10},0"]
    (folder / "replicas.csv").write_text("\n".join(rows))
    lines = [operation(t) for t in range(8)]
    lines += [operation(t, operation="Deq", event_class="Deq/Ok") for t in range(5)]
    lines += [operation(4.9, operation="Deq", event_class="Deq/Empty")]
    failed: dict[str, Any] = {"operation": "Deq", "event_class": None, "latency_s": 1.0, "answered": []}
    lines += [operation(t, outcome="unavailable", **failed) for t in (5, 6, 7)]
    lines += [operation(1.5, outcome="unknown", **failed), operation(10.5, outcome="unavailable", **failed)]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    return figures_of(folder)


def row(figures: Figures, choice: str, operation: str) -> OperationFigures:
    return next(r for r in figures.operations if (r.choice, r.operation) == (choice, operation))


def test_counts_and_measured_availability(tiny: Figures) -> None:
    deq = row(tiny, "enq-1", "Deq")
    assert (deq.attempts, deq.ok, deq.unavailable, deq.unknown) == (11, 6, 4, 1)
    assert deq.measured == 6 / 11
    assert deq.measured_if_unknown_ok == 7 / 11
    assert deq.low <= deq.wilson.low < 6 / 11 < deq.wilson.high <= deq.high
    assert row(tiny, "enq-1", "Enq").measured == 1.0


def test_predictions_from_both_models(tiny: Figures) -> None:
    deq, enq = row(tiny, "enq-1", "Deq"), row(tiny, "enq-1", "Enq")
    assert deq.predicted_joint == 0.5
    assert deq.predicted_independent == pytest.approx(0.5 * 0.5 * 0.9)
    assert enq.predicted_joint == 0.9
    assert enq.predicted_independent == pytest.approx(1 - 0.5 * 0.5 * 0.1)
    assert deq.predicted_at_attempts == 7 / 10
    assert deq.attempts_outside_trace == 1
    assert (deq.ok_while_short, deq.failed_while_enough) == (0, 1)


def test_the_counterfactual_covers_choices_that_were_not_run(tiny: Figures) -> None:
    by_pair = {(c.choice, c.operation): c for c in tiny.choices}
    assert by_pair["enq-1", "Deq"].run
    other = by_pair["enq-2", "Deq"]
    assert not other.run
    assert (other.normal_class, other.needed_votes, other.predicted_joint) == ("Deq/Ok", 2, 0.5)
    assert other.predicted_at_attempts == 7 / 10
    assert (other.shortages, other.longest_shortage_s) == (1, 5.0)
    assert by_pair["majority", "Cas"].predicted_at_attempts is None, "no register was used"


def test_classes_have_quorums_and_answers_of_their_own(tiny: Figures) -> None:
    by_class = {(c.choice, c.event_class): c for c in tiny.classes}
    empty = by_class["enq-3", "Deq/Empty"]
    assert (empty.normal, empty.needed_votes, empty.predicted_joint) == (False, 1, 0.9)
    assert (by_class["enq-1", "Deq/Ok"].ok, by_class["enq-1", "Deq/Empty"].ok) == (5, 1)


def test_replicas_up_sets_and_live_votes(tiny: Figures) -> None:
    r3 = tiny.replicas[2]
    assert (r3.replica, r3.up_share, r3.outages, r3.longest_outage_s) == ("r3", 0.9, 1, 1.0)
    assert [(u.up, u.share) for u in tiny.up_sets] == [(("r1", "r2", "r3"), 0.5), (("r3",), 0.4), ((), 0.1)]
    shares = {r.live_votes: (r.measured_share, r.independent_share) for r in tiny.live_votes}
    assert shares[2] == pytest.approx((0.0, 0.9 * 0.5 + 0.1 * 0.25))
    assert tiny.window.known_s == 10.0
    assert tiny.window.end_s - tiny.window.start_s == 11.5


def test_timeline_and_downtime_add_up(tiny: Figures) -> None:
    deq = next(r for r in tiny.timeline if r.operation == "Deq")
    assert (sum(deq.attempts), sum(deq.failed)) == (11, 5)
    for down, seconds in zip(tiny.downtime, (5.0, 5.0, 1.0), strict=True):
        assert sum(down.down_share) * tiny.window.bin_s == pytest.approx(seconds)


def test_predictions_come_near_the_simple_client(tmp_path: Path) -> None:
    """The made-up client fails exactly when votes are short, so joint predictions must hold; independent ones not."""
    figures = figures_of(measured_run.write_run(tmp_path / "run", operations=6000))
    for found in figures.operations:
        assert found.low <= found.predicted_joint <= found.high
        assert found.ok_while_short == 0
        assert found.failed_while_enough <= found.unknown
    assert any(not r.low <= r.predicted_independent <= r.high for r in figures.operations)
    traded = [c for c in figures.comparisons if (c.operation, c.choice, c.other) == ("Enq", "enq-1", "enq-3")]
    assert traded[0].low > 0


def paths(value: Any, place: str = "") -> Iterator[str]:
    """Give the places of all figures in a document, as `KEYS` writes them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from paths(inner, f"{place}[]")
    else:
        yield place


def test_every_key_of_the_figures_is_explained(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=300)
    measured_run.write_bad_rows(folder)
    document = json.loads(figures_json(figures_of(folder), {"quorate": "1"}))
    assert document.pop("versions") == {"quorate": "1"}
    assert document.pop("keys") == dict(KEYS)
    assert set(paths(document)) | {"versions", "keys"} == set(KEYS)
