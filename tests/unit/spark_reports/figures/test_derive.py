"""Figures worked out by hand on a run small enough to check in the head."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.figures.derive_regimes import Since
from quorate.spark_reports.figures.keys import KEYS
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.figures import Figures, OperationFigures
from quorate.spark_reports.report import Options, make_report
from quorate.spark_reports.text.answer import answers
from tests.unit.spark_reports import measured_run

START_S = int(measured_run.START_S)


def figures_of(folder: Path, **options: Any) -> Figures:
    return make_report(folder, folder / "report", Options(engine="python", **options)).figures


def operation(start_s: float, **changes: Any) -> str:
    return json.dumps({**measured_run.good_enq(), "start_s": START_S + start_s, **changes})


@pytest.fixture
def tiny(tmp_path: Path) -> Figures:
    """Ten seconds, two replicas in one rack down together in the second half, a third always up but for one second.

    Enq under enq-1 needs one vote and is always answered; Deq needs three and fails in the second half.
    """
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=12)
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
    assert deq.joint_agrees
    assert deq.wilson.low > deq.predicted_independent
    assert deq.independent_agrees, "after one outage, hardly anything can be excluded"
    assert enq.trace.outages == 1
    assert (deq.trace.longest_s, deq.trace.mean_s) == (5.0, 5.0)


def test_of_a_semiqueue_an_item_and_its_lack_need_what_they_read(tmp_path: Path) -> None:
    """r1 is down in the second half, and r2 for its last second: two are enough for an item, and only all three for finding none."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=10)
    exact = {"adt": "semiqueue", "classes": {"Enq/Ok": [0, 1], "Deq/Ok": [2, 2], "Deq/Empty": [3, 0]}}
    document = json.loads((folder / "run.json").read_text())
    document |= {"choices": {"exact": exact}, "objects": {"queue/mail": "exact"}}
    (folder / "run.json").write_text(json.dumps(document))
    rows = [f"r3,{START_S},{START_S + 10},1"]
    for name, down_s in (("r1", 5), ("r2", 9)):
        rows += [f"{name},{START_S},{START_S + down_s},1", f"{name},{START_S + down_s},{START_S + 10},0"]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
    of = {"object": "queue/mail", "adt": "semiqueue", "choice": "exact"}
    lines = [operation(t, **of, operation="Deq", event_class="Deq/Ok") for t in range(8)]
    lines += [operation(0.5, **of, operation="Deq", event_class="Deq/Empty"), operation(0.2, **of)]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    figures = figures_of(folder)
    deq = row(figures, "exact", "Deq")
    assert (deq.adt, deq.normal_class, deq.needed_votes, deq.ok) == ("semiqueue", "Deq/Ok", 2, 9)
    assert (deq.predicted_joint, deq.measured) == (0.9, 1.0)
    (empty,) = (each for each in figures.classes if each.event_class == "Deq/Empty")
    assert (empty.initial, empty.needed_votes, empty.ok, empty.predicted_joint) == ("3", 3, 1, 0.5)
    (advice,) = figures.recommendations
    assert (advice.adt, advice.choice, advice.objects) == ("semiqueue", "exact", ())
    (other,) = (each for each in figures.candidates if each.choice == "Enq (0, 1), Deq (3, 1)")
    assert other.dominated_by == "exact"
    assert figures.adaptive == ()


def test_the_causes_add_up_and_each_surprise_counts_once(tiny: Figures) -> None:
    """The lag is one second: the failure at 5.0 s is not one, for there were too few replicas; the one at 1.5 s is far from
    any change; the one at 10.5 s began when nothing was known."""
    deq = row(tiny, "enq-1", "Deq")
    assert deq.surprises.unknown_while_enough == 1
    assert deq.surprises.outside_trace == 1
    assert (deq.surprises.failed_near_change, deq.surprises.ok_near_change, deq.surprises.ok_while_short) == (
        0,
        0,
        0,
    )
    assert deq.cause is not None
    assert deq.cause.correlation == pytest.approx(0.5 - 0.225)
    assert deq.cause.timing == pytest.approx(0.7 - 0.5)
    assert (deq.cause.detection, deq.cause.rest) == (0.0, -0.1)
    assert deq.cause.unknown_state == pytest.approx(6 / 11 - 6 / 10)
    for found in tiny.operations:
        assert found.cause is not None
        parts = (
            getattr(found.cause, name)
            for name in ("correlation", "timing", "detection", "rest", "unknown_state")
        )
        assert sum(parts) == pytest.approx(found.measured - found.predicted_independent, abs=1e-12)


def test_an_attempt_is_near_a_change_within_the_lag_before_and_after(tmp_path: Path) -> None:
    """One replica, down from 10 to 20 s; the lag is one second, the window ends at 30 s, which is no change."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=30, replicas=1)
    rows = [(0, 10, 1), (10, 20, 0), (20, 30, 1)]
    lines = [f"r1,{START_S + start},{START_S + end},{up}" for start, end, up in rows]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *lines]))
    ok = [(10.5, 0.1), (12.0, 0.1), (18.8, 0.3), (18.5, 0.4), (5.0, 0.1)]
    failed = [(20.9, 0.1), (21.1, 0.1), (8.5, 0.6), (8.5001, 0.4), (25.0, 4.9), (9.9, 0.2)]
    add: dict[str, Any] = {"object": "counter/alone", "adt": "counter", "choice": "alone", "operation": "Add"}
    lines = [operation(at, **add, latency_s=latency, event_class="Add/Ok") for at, latency in ok]
    add |= {"outcome": "unavailable", "event_class": None}
    lines += [operation(at, **add, latency_s=latency) for at, latency in failed]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    found = row(figures_of(folder, lag_s=1.0), "alone", "Add")
    told = found.surprises
    assert (told.ok_near_change, told.ok_while_short) == (2, 2)
    assert (told.failed_near_change, told.unavailable_while_enough) == (3, 3)
    assert found.cause is not None
    assert (found.cause.detection, found.cause.rest) == pytest.approx((-1 / 11, -1 / 11))
    strict = row(figures_of(folder, lag_s=0.0), "alone", "Add").surprises
    assert (strict.failed_near_change, strict.ok_near_change) == (1, 0), "the one that the outage caught"


def test_behind_a_cut_link_a_replica_is_down_for_that_front_end(tmp_path: Path) -> None:
    """One replica that never fails; of three front ends c2 is cut off it for the last half, and for a tenth unknown."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=10, replicas=1, failing=False)
    rows = [(0, 4, 1), (5, 10, 0)]
    lines = [f"c2,r1,{START_S + start},{START_S + end},{up}" for start, end, up in rows]
    (folder / "links.csv").write_text("\n".join(["front_end,replica,start_s,end_s,up", *lines]))
    add: dict[str, Any] = {"object": "counter/alone", "adt": "counter", "choice": "alone", "operation": "Add"}
    ok = [
        operation(at, **add, front_end=name, event_class="Add/Ok")
        for at, name in ((7, "c1"), (8, "c3"), (2, "c2"))
    ]
    add |= {"outcome": "unavailable", "event_class": None, "front_end": "c2"}
    failed = [operation(at, **add) for at in (4.5, 7, 8)]
    (folder / "operations.jsonl").write_text("\n".join(ok + failed))
    figures = figures_of(folder)
    found = row(figures, "alone", "Add")
    assert found.predicted_joint == pytest.approx((10 + 10 + 4) / (10 + 10 + 9))
    assert figures.window.known_s == pytest.approx(29 / 3)
    assert figures.replicas[0].up_share == 1.0
    assert figures.replicas[0].up_share_known == found.predicted_joint == found.predicted_independent
    assert found.predicted_at_attempts == 3 / 5
    assert (found.surprises.outside_trace, found.surprises.unavailable_while_enough) == (1, 0)
    assert (found.trace.outages, found.trace.longest_s) == (1, 5.0)
    assert (found.seen.outages, found.seen.total_s) == (1, 2.5), "from 7 s on somebody was answered"
    assert figures.source.links


def test_an_outage_that_several_front_ends_meet_counts_once(tmp_path: Path) -> None:
    """One replica, down from 2 to 4 s; c2 is cut off it from 3 to 5 s, and again from 8 to 9 s: two outages, 2-5 and 8-9."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=10, replicas=1, failing=False)
    rows = [(0, 2, 1), (2, 4, 0), (4, 10, 1)]
    lines = [f"r1,{START_S + start},{START_S + end},{up}" for start, end, up in rows]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *lines]))
    links = [(0, 3, 1), (3, 5, 0), (5, 8, 1), (8, 9, 0), (9, 10, 1)]
    lines = [f"c2,r1,{START_S + start},{START_S + end},{up}" for start, end, up in links]
    (folder / "links.csv").write_text("\n".join(["front_end,replica,start_s,end_s,up", *lines]))
    add: dict[str, Any] = {"object": "counter/alone", "adt": "counter", "choice": "alone", "operation": "Add"}
    (folder / "operations.jsonl").write_text(operation(1, **add, event_class="Add/Ok"))
    found = row(figures_of(folder), "alone", "Add").trace
    assert (found.outages, found.total_s, found.longest_s, found.mean_s) == (2, 4.0, 3.0, 2.0)


def test_an_outage_as_operations_saw_it_ends_when_another_front_end_takes_over(tmp_path: Path) -> None:
    """Two front ends in turns of 5 s, a try each second: c1 is never answered, c2 always."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=20, failing=False)
    failed: dict[str, Any] = {"outcome": "unavailable", "event_class": None, "latency_s": 1.0}
    lines = [
        operation(second, front_end="c1", **failed)
        if second // 5 % 2 == 0
        else operation(second, front_end="c2")
        for second in range(20)
    ]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    seen = row(figures_of(folder), "enq-1", "Enq").seen
    assert (seen.outages, seen.total_s, seen.longest_s) == (2, 10.0, 5.0)


def test_outages_as_operations_saw_them(tiny: Figures) -> None:
    """Deq failed at 1.5 s, answered again at 2 s; then failed from 5 s to the end of its last attempt at 11.5 s."""
    seen = row(tiny, "enq-1", "Deq").seen
    assert (seen.outages, seen.longest_s, seen.total_s) == (2, 6.5, 7.0)
    assert row(tiny, "enq-1", "Enq").seen.mean_s is None


def test_the_counterfactual_covers_choices_that_were_not_run(tiny: Figures) -> None:
    by_pair = {(c.choice, c.operation): c for c in tiny.counterfactuals}
    assert by_pair["enq-1", "Deq"].run_as == "enq-1"
    other = by_pair["enq-2", "Deq"]
    assert (other.kind, other.normal_class, other.needed_votes, other.predicted_joint) == (
        "typed",
        "Deq/Ok",
        2,
        0.5,
    )
    assert other.predicted_at_attempts == 7 / 10
    assert (other.trace.outages, other.trace.longest_s) == (1, 5.0)
    assert by_pair["majority", "Cas"].predicted_at_attempts is None, "no register was used"
    new = by_pair["read/write Write (2, 2), Read (2, 0), Cas (2, 2)", "Cas"]
    assert (new.kind, new.run_as, new.predicted_joint) == ("read-write", None, 0.5)


def test_the_front_and_the_recommendation_follow_the_mix(tiny: Figures) -> None:
    """Eight Enq and eleven Deq: enq-1 serves 8/19 of 0.9 and 11/19 of 0.5, the others 0.5 of each."""
    queue = {row.choice: row for row in tiny.candidates if row.adt == "queue"}
    assert [name for name, row in queue.items() if row.on_front] == ["enq-1"]
    assert queue["enq-2"].dominated_by == "enq-1"
    best = next(row for row in tiny.recommendations if row.adt == "queue")
    assert (best.choice, best.mix_from, best.tied) == ("enq-1", "attempts", ())
    assert {row.operation: row.share for row in best.mix} == {"Enq": 8 / 19, "Deq": 11 / 19}
    assert best.served == pytest.approx((8 * 0.9 + 11 * 0.5) / 19)
    against = next(row for row in best.against if row.choice == "read-write")
    assert against.difference == pytest.approx(8 * 0.4 / 19)
    assert "counter" not in {row.adt for row in tiny.candidates if row.choice == "alone"}, (
        "its quorums can miss"
    )


def test_a_tie_goes_to_the_choice_that_asks_fewest_votes(tmp_path: Path) -> None:
    figures = figures_of(measured_run.write_run(tmp_path / "run", operations=30, failing=False))
    best = next(row for row in figures.recommendations if row.adt == "queue")
    assert best.served == 1.0
    sizes = {row.choice: row.quorum_size for row in figures.candidates if row.adt == "queue"}
    assert sizes[best.choice] == min(size for size in sizes.values() if size is not None)
    assert set(best.tied) == set(sizes) - {best.choice}
    reads = figures_of(tmp_path / "run", mix={"Read": 9.0, "Write": 1.0, "Cas": 1.0})
    register = next(row for row in reads.recommendations if row.adt == "register")
    assert register.choice == "Write (0, 3), Read (1, 0), Cas (1, 3)"


def test_of_equals_the_one_that_bears_more_failures_is_recommended(tmp_path: Path) -> None:
    """Five replicas, each down for a second while all others are up: four votes did as well as three, by luck."""
    rows = ["replica,start_s,end_s,up"]
    for index in range(5):
        down = 10 * (index + 1)
        rows += [f"r{index},0,{down},1", f"r{index},{down},{down + 1},0", f"r{index},{down + 1},100,1"]
    (tmp_path / "up.csv").write_text("\n".join(rows))
    options = Options(engine="python", adt="queue", mix={"Enq": 1.0, "Deq": 1.0})
    figures = make_report(tmp_path / "up.csv", tmp_path / "report", options).figures
    (best,) = figures.recommendations
    assert (best.choice, best.served) == ("Enq (0, 3), Deq (3, 3)", 1.0)
    sizes = {row.choice: row.quorum_size or 0.0 for row in figures.candidates}
    assert best.tied[-2:] == ("Enq (0, 2), Deq (4, 2)", "Enq (0, 4), Deq (2, 4)")
    assert sizes["Enq (0, 2), Deq (4, 2)"] == 4 < sizes[best.choice] == 4.5, (
        "fewest votes alone would choose it"
    )
    (sentence,) = answers(figures)
    assert 'rather than "Enq (0, 2), Deq (4, 2)" or "Enq (0, 4), Deq (2, 4)"' in sentence


def test_a_mix_that_is_given_stands_over_the_attempts(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=300)
    best = figures_of(folder, mix={"Deq": 3.0, "Enq": 1.0}).recommendations[0]
    assert (best.mix_from, {row.operation: row.share for row in best.mix}) == (
        "given",
        {"Enq": 0.25, "Deq": 0.75},
    )
    with pytest.raises(ReportError, match="--mix names Pop, which no type here has together"):
        figures_of(folder, mix={"Pop": 1.0})


def test_the_claim_is_a_measured_line(tmp_path: Path) -> None:
    """Enq of typed quorums against read/write ones, both run: better at Enq, worse at Deq, and measured."""
    folder = measured_run.write_run(
        tmp_path / "run", operations=6000, run_choices={"queue": ("read-write", "enq-1")}
    )
    document = json.loads((folder / "run.json").read_text())
    document["choices"] = {"read-write": document["choices"].pop("read-write"), **document["choices"]}
    (folder / "run.json").write_text(json.dumps(document))
    enq, deq = figures_of(folder).claim
    assert (enq.typed, enq.read_write, enq.operation, enq.blind) == ("enq-1", "read-write", "Enq", True)
    assert enq.certain
    assert 0 < enq.low < enq.difference < enq.high
    assert (deq.operation, deq.blind) == ("Deq", False)
    assert deq.difference < 0
    assert deq.predicted_joint < 0 < enq.predicted_joint


def test_few_outages_give_intervals_by_outage_and_leave_every_difference_open(tiny: Figures) -> None:
    """Deq was out once, for 5 of 10 s; Enq under enq-1 once, for 1 s."""
    deq, enq = row(tiny, "enq-1", "Deq"), row(tiny, "enq-1", "Enq")
    assert deq.by_outage == pytest.approx((1 / (1 + 78.497), 39 / 40), abs=1e-5)
    assert enq.by_outage == pytest.approx((9 / (9 + 78.497), 9 * 39 / (9 * 39 + 1)), abs=1e-5)
    assert (deq.low, deq.high) == deq.by_outage
    best = tiny.recommendations[0]
    assert all(not other.certain for other in best.against)
    by_pair = {(c.choice, c.operation): c for c in tiny.counterfactuals}
    assert by_pair["enq-1", "Deq"].by_outage == deq.by_outage
    assert deq.by_outage
    assert enq.by_outage
    served = next(c for c in tiny.candidates if c.choice == "enq-1")
    mix = {each.operation: each.share for each in best.mix}
    assert served.low == pytest.approx(mix["Deq"] * deq.by_outage[0] + mix["Enq"] * enq.by_outage[0])


def test_where_nothing_was_out_the_outages_of_replicas_tell_how_long_one_lasts(tmp_path: Path) -> None:
    """Three replicas are down one after the other, a second each: no two at once, so what needs two votes is never out."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=20, failing=False)
    rows = [
        f"r{n},{START_S + start},{START_S + end},{up}"
        for n in (1, 2, 3)
        for start, end, up in ((0, 5 * n, 1), (5 * n, 5 * n + 1, 0), (5 * n + 1, 20, 1))
    ]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
    (folder / "operations.jsonl").write_text(
        "\n".join(operation(t, choice="enq-2", object="queue/enq-2") for t in range(20))
    )
    made = make_report(folder, folder / "report", Options(engine="python"))
    found = row(made.figures, "enq-2", "Enq")
    assert (found.measured, found.trace.outages) == (1.0, 0)
    # Three repairs of 3 s together: 3 / 20 * (0.025 ** (-1 / 3) - 1).
    assert found.by_outage == pytest.approx((1 / (1 + 0.15 * (0.025 ** (-1 / 3) - 1)), 1.0))
    page = made.html.read_text(encoding="utf-8")
    assert "Hanley and Lippman-Hand 1983" in page
    assert "outages that this run was spared" not in page


def test_classes_have_quorums_and_answers_of_their_own(tiny: Figures) -> None:
    by_class = {(c.choice, c.event_class): c for c in tiny.classes}
    empty, enq = by_class["enq-1", "Deq/Empty"], by_class["enq-1", "Enq/Ok"]
    assert (empty.normal, empty.initial, empty.final, empty.needed_votes) == (False, "3", "0", 3)
    assert (empty.predicted_joint, empty.measured) == (0.5, None)
    assert (enq.predicted_joint, enq.measured) == (0.9, 1.0)
    assert {choice for choice, _ in by_class} == {"enq-1"}, "what was not run stands under counterfactuals"
    assert (by_class["enq-1", "Deq/Ok"].ok, by_class["enq-1", "Deq/Empty"].ok) == (5, 1)


def test_replicas_up_sets_and_live_votes(tiny: Figures) -> None:
    r3 = tiny.replicas[2]
    assert (r3.replica, r3.up_share, r3.outages, r3.longest_outage_s) == ("r3", 0.9, 1, 1.0)
    assert [(u.up, u.share) for u in tiny.up_sets] == [(("r1", "r2", "r3"), 0.5), (("r3",), 0.4), ((), 0.1)]
    shares = {r.live_votes: (r.measured_share, r.independent_share) for r in tiny.live_votes}
    assert shares[2] == pytest.approx((0.0, 0.9 * 0.5 + 0.1 * 0.25))
    assert tiny.window.known_s == 10.0
    assert tiny.window.end_s - tiny.window.start_s == 12
    assert (r3.mttf_s, r3.mttr_s, r3.rack) == (9.0, 1.0, "b")
    racked = tiny.correlation.pairs[0]
    assert (racked.both_down, racked.both_down_independent, racked.phi) == (0.5, 0.25, 1.0)
    apart = tiny.correlation.pairs[1]
    assert (apart.both_down, apart.both_down_independent) == pytest.approx((0.1, 0.05))
    # None, two and three are down for 5, 4 and 1 s: mean 1.1, variance 1.29; alone 0.25 + 0.25 + 0.09.
    assert tiny.correlation.variance_ratio == pytest.approx(1.29 / 0.59)


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
        assert found.joint_agrees
        assert found.surprises.ok_while_short == found.surprises.ok_near_change == 0
        assert found.surprises.unavailable_while_enough == 0
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


def of_regimes(folder: Path) -> dict[str, Any]:
    """The tables that a measured run does not have."""
    (folder / "up.csv").write_text("start_s,end_s,up\n0,60,a|b\n60,90,a\n", encoding="utf-8")
    changes = [Since(30_000_000, "Write (0, 2), Read (1, 0), Cas (1, 2)")]
    options = Options(
        engine="python", adt="register", present="Write (0, 1), Read (2, 0), Cas (2, 1)", changes=changes
    )
    found = json.loads(make_report(folder / "up.csv", folder / "changed", options).json.read_text())
    return {name: found[name] for name in ("regimes", "as_it_was")}


def test_every_key_of_the_figures_is_explained(tmp_path: Path) -> None:
    folder = measured_run.write_run(
        tmp_path / "run", operations=300, run_choices={"queue": ("enq-1", "read-write")}
    )
    measured_run.write_probes(folder)
    measured_run.write_bad_rows(folder)
    made = make_report(folder, tmp_path / "out", Options(engine="python", slo={"Enq": Fraction(99, 100)}))
    document = json.loads(made.json.read_text()) | of_regimes(tmp_path)
    assert set(document.pop("versions")) == {"quorate", "python"}
    assert document.pop("keys") == dict(KEYS)
    assert document["source"].pop("made") == {"quorate": "test"}
    assert set(paths(document)) | {"versions", "keys", "source.made"} == set(KEYS)


def advised(folder: Path, **changes: Any) -> tuple[str, tuple[str, ...]]:
    """The choice recommended for the queue, and the objects to give it to, where `run.json` says other things."""
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")
    found = figures_of(folder).recommendations[0]
    return found.choice, found.objects


def test_the_advice_is_for_the_objects_that_have_another_choice(tmp_path: Path) -> None:
    """Enq is asked for only, so that one vote is best."""
    folder = measured_run.write_run(tmp_path / "run", operations=0, duration_s=100)
    lines = [operation(t, choice="enq-3", object="queue/mail") for t in range(9)]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    queue = measured_run.choices()
    three, one = {"enq-3": queue["enq-3"]}, {"enq-1": queue["enq-1"]}
    objects = {"queue/mail": "enq-3", "queue/jobs": "enq-3"}
    assert advised(folder, choices=three, objects=objects) == ("Enq (0, 1)", ("queue/mail", "queue/jobs"))
    assert advised(folder, choices=three | one, objects=objects | {"queue/eager": "enq-1"}) == (
        "enq-1",
        ("queue/NAME",),
    ), "choices were compared: nobody knows which object is meant"
    lines = [operation(t, object="queue/mail") for t in range(9)]
    (folder / "operations.jsonl").write_text("\n".join(lines))
    assert advised(folder, choices=one, objects={"queue/mail": "enq-1"}) == ("enq-1", ())


def test_the_recommended_quorums_are_those_of_the_choice(tiny: Figures) -> None:
    found = tiny.recommendations[0]
    assert found.choice == "enq-1"
    assert [(row.event_class, row.initial, row.final, row.needed_votes) for row in found.quorums] == [
        ("Enq/Ok", "0", "1", 1),
        ("Deq/Ok", "3", "1", 3),
        ("Deq/Empty", "3", "0", 3),
    ]


def test_where_all_choices_served_alike_there_is_no_advice(tmp_path: Path) -> None:
    (tmp_path / "up.csv").write_text("start_s,end_s,up\n0,60,r1|r2|r3\n")
    options = Options(engine="python", adt="queue")
    found = make_report(tmp_path / "up.csv", tmp_path / "out", options).figures.recommendations[0]
    assert (found.served, found.objects) == (1.0, ())
