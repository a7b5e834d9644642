"""Objectives on two days that can be checked in the head: r1 and r2 are down together for a hundredth of the second day."""

import json
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from quorate.spark_reports.model.figures import Figures, ObjectiveFigures
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run

START_S = 1_793_491_200
"""The first of November 2026."""
DAY_S = 86_400
DOWN_S = 864


def write(folder: Path, **changes: Any) -> Path:
    """Under enq-1 Enq needs one vote, and 1 of 100 failed for some other reason; under enq-2 Deq needs two, and was always answered."""
    window = [START_S, START_S + 2 * DAY_S]
    document = measured_run.document(window=window, **{"time_scale": 1, "prober": None, **changes})
    document["choices"] = {name: document["choices"][name] for name in ("enq-1", "enq-2")}
    document["objects"] = {"queue/enq-1": "enq-1", "queue/enq-2": "enq-2"}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    down = START_S + DAY_S + 1000
    rows = ["replica,start_s,end_s,up", f"r3,{START_S},{START_S + 2 * DAY_S},1"]
    for name in ("r1", "r2"):
        rows += [f"{name},{START_S},{down},1", f"{name},{down},{down + DOWN_S},0"]
        rows += [f"{name},{down + DOWN_S},{START_S + 2 * DAY_S},1"]
    (folder / "replicas.csv").write_text("\n".join(rows), encoding="utf-8")
    lines = [attempt(START_S + each, "enq-1", "Enq") for each in range(60)]
    lines += [attempt(START_S + DAY_S + each, "enq-1", "Enq") for each in range(39)]
    lines += [attempt(START_S + DAY_S + 50, "enq-1", "Enq", outcome="unknown", event_class=None)]
    lines += [attempt(START_S + each, "enq-2", "Deq") for each in range(10)]
    (folder / "operations.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder


def attempt(start_s: float, choice: str, operation: str, **changes: Any) -> dict[str, Any]:
    named = {
        "choice": choice,
        "object": f"queue/{choice}",
        "operation": operation,
        "event_class": f"{operation}/Ok",
    }
    return {**measured_run.good_enq(), "start_s": start_s, **named, **changes}


def figures_of(folder: Path, present: str | None = None, **percents: str) -> Figures:
    slo = {name.replace("_", "/"): Fraction(text) / 100 for name, text in percents.items()}
    return make_report(folder, folder / "out", Options(engine="python", slo=slo, present=present)).figures


def row(figures: Figures, objective: str, choice: str) -> ObjectiveFigures:
    return next(each for each in figures.objectives if (each.objective, each.choice) == (objective, choice))


def days(found: ObjectiveFigures) -> list[tuple[str, float, float, float]]:
    return [(each.day, each.total, each.spent, each.burn_rate) for each in found.days]


def test_what_was_run_and_tried_is_measured_by_attempts(tmp_path: Path) -> None:
    enq = row(figures_of(write(tmp_path / "run"), Enq="99"), "Enq", "enq-1")
    assert (enq.unit, enq.present, enq.run_as) == ("attempts", True, "enq-1")
    assert (enq.total, enq.availability, enq.budget, enq.spent, enq.left) == (100, 0.99, 1, 1, 0)
    assert (enq.target, enq.burn_rate, enq.met) == (0.99, 1, True)
    assert days(enq) == [("2026-11-01", 60, 0, 0), ("2026-11-02", 40, 1, 2.5)]


def test_what_was_not_tried_is_predicted_by_time(tmp_path: Path) -> None:
    """Under enq-1 a Deq needs all three, which 864 s of 172,800 lack: half of the budget at 99 %."""
    deq = row(figures_of(write(tmp_path / "run"), Deq="99"), "Deq", "enq-1")
    assert (deq.unit, deq.total, deq.availability) == ("seconds", 2 * DAY_S, 0.995)
    assert (deq.budget, deq.spent, deq.left, deq.burn_rate, deq.met) == (1728, 864, 864, 0.5, True)
    assert days(deq) == [("2026-11-01", DAY_S, 0, 0), ("2026-11-02", DAY_S, DOWN_S, 1)]


def test_time_is_the_mean_over_front_ends(tmp_path: Path) -> None:
    """One of three lacks r3 for twice as long on the first day."""
    folder = write(tmp_path / "run")
    link = f"c2,r3,{START_S},{START_S + 2 * DOWN_S},0\nc2,r3,{START_S + 2 * DOWN_S},{START_S + 2 * DAY_S},1"
    (folder / "links.csv").write_text(f"front_end,replica,start_s,end_s,up\n{link}\n", encoding="utf-8")
    deq = row(figures_of(folder, Deq="99"), "Deq", "enq-1")
    assert (deq.total, deq.spent) == (2 * DAY_S, DOWN_S + 2 * DOWN_S / 3)
    assert [each.spent for each in deq.days] == [2 * DOWN_S / 3, DOWN_S]


def test_an_event_class_has_objectives_of_its_own(tmp_path: Path) -> None:
    """An attempt that failed has no class, so it counts for the only one of its operation, and for none of several."""
    found = figures_of(write(tmp_path / "run"), Enq_Ok="99", Deq_Empty="99", Deq="99")
    assert (row(found, "Enq/Ok", "enq-1").unit, row(found, "Enq/Ok", "enq-1").spent) == ("attempts", 1)
    assert (row(found, "Deq/Empty", "enq-2").unit, row(found, "Deq", "enq-2").unit) == ("seconds", "attempts")


def test_which_choices_meet_all_and_which_are_in_force(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    found = figures_of(folder, Enq="99", Deq="99.9")
    verdicts = {each.choice: (each.present, each.met, each.missed) for each in found.verdicts}
    assert verdicts["enq-1"] == (True, False, ("Deq",))
    assert verdicts["enq-2"] == (True, True, ()), "Enq was not tried: two votes were there for 99.5 %"
    assert verdicts["Enq (0, 3), Deq (1, 3)"][0] is False
    assert [each.choice for each in found.objectives if each.objective == "Enq"][:2] == ["enq-1", "enq-2"]
    named = figures_of(folder, present="enq-2", Enq="99", Deq="99")
    assert [each.choice for each in named.verdicts if each.present] == ["enq-2"]
    assert [each.met for each in named.verdicts if each.choice in ("enq-1", "enq-2")] == [True, True]


def test_a_choice_whose_quorums_miss_each_other_is_judged_and_called_so(tmp_path: Path) -> None:
    choices = deepcopy(measured_run.choices())
    choices["enq-2"]["classes"]["Deq/Ok"] = [1, 1]
    folder = write(tmp_path / "run", choices=choices)
    verdicts = {each.choice: each.valid for each in figures_of(folder, Deq="99").verdicts}
    assert (verdicts["enq-1"], verdicts["enq-2"]) == (True, False)


def test_without_objectives_nothing_is_judged(tmp_path: Path) -> None:
    found = figures_of(write(tmp_path / "run"))
    assert (found.objectives, found.verdicts) == ((), ())


@pytest.mark.parametrize(("scale", "names"), [(1, ["2026-11-01", "2026-11-02"]), (2, ["day 1", "day 3"])])
def test_days_of_a_scaled_run_are_the_plans(tmp_path: Path, scale: float, names: list[str]) -> None:
    enq = row(figures_of(write(tmp_path / "run", time_scale=scale), Enq="99"), "Enq", "enq-1")
    assert [each.day for each in enq.days] == names
