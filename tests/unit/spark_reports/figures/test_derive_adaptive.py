"""Standing rules in the figures of a report, worked out by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.quorums.planning import adaptive_search
from quorate.spark_reports.figures import derive_adaptive
from quorate.spark_reports.model.figures import AdaptiveFigures, Figures
from quorate.spark_reports.model.phrases import NO_BREAK, percent
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run

ROOT = Path(__file__).parents[4]
STEPS = (
    (0, 100, "abcde"),
    (100, 200, "abce"),
    (200, 300, "abc"),
    (300, 400, "ab"),
    (400, 500, "abcd"),
    (500, 1000, "abcde"),
)


def report(folder: Path, steps: tuple[tuple[int, int, str], ...] = STEPS, **options: Any) -> Figures:
    trace = folder / "up.csv"
    rows = [f"{start},{end},{'|'.join(up)}" for start, end, up in steps]
    trace.write_text("\n".join(["start_s,end_s,up", *rows]) + "\n")
    mix = {"Enq": 1.0, "Deq": 1.0}
    return make_report(
        trace, folder / "out", Options(engine="python", **{"adt": "queue", "mix": mix} | options)
    ).figures


def only(figures: Figures) -> AdaptiveFigures:
    (row,) = figures.adaptive
    return row


def test_a_rule_that_wins_stands_beside_the_recommended_choice(tmp_path: Path) -> None:
    """d and e fail one after the other, and then c: from 210 on two of a, b and c are enough, until d has been back for 10 s."""
    row = only(report(tmp_path))
    assert (row.fixed, row.normal, row.fallback) == (
        "Enq (0, 3), Deq (3, 3)",
        "Enq (0, 3), Deq (3, 3)",
        "majority of a, b, c",
    )
    assert (row.down, row.live_below, row.after_s) == (("d", "e"), None, 10.0)
    assert (row.served_fixed, row.served, row.wins) == (0.9, 1.0, True)
    assert (row.switches, row.joint_s, row.fallback_s) == (2, 2.0, 199.0)
    assert row.difference == pytest.approx(0.1)
    assert [(each.event_class, each.fixed, each.adaptive) for each in row.classes] == [
        ("Enq/Ok", 0.9, 1.0),
        ("Deq/Ok", 0.9, 1.0),
        ("Deq/Empty", 0.9, 1.0),
    ]
    assert [(each.event_class, each.initial, each.final) for each in row.normal_quorums] == [
        ("Enq/Ok", "0", "3"),
        ("Deq/Ok", "3", "3"),
        ("Deq/Empty", "3", "0"),
    ]
    assert (row.fallback_quorums, row.objects) == ((), ("queue/NAME",))


SCATTERED = (
    *((0, 100, "abcde"), (100, 200, "abc"), (200, 300, "abcde"), (300, 400, "cde"), (400, 420, "abcde")),
    *((420, 500, "abcd"), (500, 600, "ad"), (600, 700, "abcde"), (700, 800, "bcde"), (800, 900, "be")),
    (900, 1000, "abcde"),
)


def test_a_fallback_to_a_fixed_choice_has_its_quorums(tmp_path: Path) -> None:
    """Where two fail at once majorities serve both, and nothing can be switched. Where one fails first, and then two more, Enq has become one of two."""
    row = only(report(tmp_path, SCATTERED))
    assert (row.normal, row.fallback, row.live_below) == (
        "Enq (0, 3), Deq (3, 3)",
        "Enq (0, 2), Deq (4, 2)",
        5,
    )
    assert (row.served_fixed, row.served) == pytest.approx((0.8, 0.9))
    assert [(each.event_class, each.initial, each.final) for each in row.fallback_quorums] == [
        ("Enq/Ok", "0", "2"),
        ("Deq/Ok", "4", "2"),
        ("Deq/Empty", "4", "0"),
    ]


def test_a_rule_that_wins_nothing_is_not_called_one_that_does(tmp_path: Path) -> None:
    """Enq alone is asked for, and one of five always answers."""
    row = only(report(tmp_path, mix={"Enq": 1.0}))
    assert (row.served_fixed, row.wins) == (1.0, False)
    assert row.served <= 1.0
    assert row.objects == ()
    assert [each.event_class for each in row.classes] == ["Enq/Ok"]


def test_without_failures_no_rule_is_tried(tmp_path: Path) -> None:
    assert report(tmp_path, ((0, 60, "abc"),)).adaptive == ()


def test_without_a_majority_no_rule_could_switch(tmp_path: Path) -> None:
    assert report(tmp_path, ((0, 60, "abc"), (60, 120, "a"), (120, 180, "abc"))).adaptive == ()


def measured(
    folder: Path, steps: tuple[tuple[int, int, str], ...], scale: int, cut_off: tuple[str, ...] = ()
) -> AdaptiveFigures:
    """A run whose one queue has majorities, made so many times as fast as its plan; of three front ends these are cut off a."""
    start_s = int(measured_run.START_S)
    length_s = steps[-1][1] / scale
    measured_run.write_run(folder, operations=0, duration_s=length_s, failing=False)
    queue = {"adt": "queue", "classes": {"Enq/Ok": [0, 3], "Deq/Ok": [3, 3], "Deq/Empty": [3, 0]}}
    document = json.loads((folder / "run.json").read_text()) | {
        "replicas": {name: {"votes": 1} for name in "abcde"},
        "choices": {"majority": queue},
        "objects": {"queue/jobs": "majority"},
        "time_scale": scale,
    }
    (folder / "run.json").write_text(json.dumps(document))
    rows = [
        f"{name},{start_s + start / scale},{start_s + end / scale},{int(name in up)}"
        for name in "abcde"
        for start, end, up in steps
    ]
    (folder / "replicas.csv").write_text("\n".join(["replica,start_s,end_s,up", *rows]))
    if cut_off:
        links = [
            f"{front_end},{name},{start_s},{start_s + length_s},{int(name != 'a')}"
            for front_end in cut_off
            for name in "abcde"
        ]
        (folder / "links.csv").write_text("\n".join(["front_end,replica,start_s,end_s,up", *links]))
    line = {**measured_run.good_enq(), "start_s": start_s + 0.1, "object": "queue/jobs", "choice": "majority"}
    (folder / "operations.jsonl").write_text(json.dumps(line))
    options = Options(engine="python", mix={"Enq": 1.0, "Deq": 1.0})
    return only(make_report(folder, folder / "out", options).figures)


@pytest.mark.parametrize(("known_from", "wins"), [(290, False), (289, True)])
def test_a_condition_is_waited_for_anew_after_time_that_is_unknown(
    tmp_path: Path, known_from: int, wins: bool
) -> None:
    """c fails at 300, and then nothing can begin: the ten seconds, and the second of both choices, must have passed by then. Alone Enq (0, 2), Deq (4, 2)
    is best: its Deq is out while three are up, and two."""
    before, after = STEPS[:2], STEPS[3:]
    row = measured(tmp_path / "run", (*before, (known_from, 300, "abc"), *after), 1)
    known = 1000 - known_from + 200
    assert row.fixed == "Enq (0, 2), Deq (4, 2)"
    assert row.served_fixed == pytest.approx(1 - 0.5 * (400 - known_from) / known)
    assert row.wins is wins
    assert row.served == pytest.approx(1.0 if wins else row.served_fixed)


def test_measured_time_that_was_scaled_is_that_of_the_plan(tmp_path: Path) -> None:
    """In a run that was made a hundred times as fast the condition lasts a tenth of a second, and so on."""
    row = measured(tmp_path / "run", STEPS, 100)
    assert (row.fixed, row.fallback, row.down) == ("majority", "majority of a, b, c", ("d", "e"))
    assert (row.served_fixed, row.served, row.switches) == pytest.approx((0.9, 1.0, 2))
    assert (row.after_s, row.joint_s, row.fallback_s) == pytest.approx((10.0, 2.0, 199.0))
    assert row.objects == ("queue/jobs",), "it has the best choice already, and yet may switch"


@pytest.mark.parametrize("cut_off", [("c1",), ("c1", "c2", "c3")])
def test_members_switch_and_callers_reach_what_they_reach(tmp_path: Path, cut_off: tuple[str, ...]) -> None:
    """Who never reaches a has too few of five from 200 to 211, while both choices are asked for too, and one of a, b and c from 300 to 400; d is back
    then, and b, c and d are three. Alone majorities are out for it from 200 to 400, and for the others from 300."""
    row = measured(tmp_path / "run", STEPS, 100, cut_off)
    assert row.switches == 2
    assert row.down == ("d", "e")
    assert row.served == pytest.approx(1 - len(cut_off) * 0.111 / 3)
    assert row.served_fixed == pytest.approx(0.9 - len(cut_off) * 0.1 / 3)


@pytest.mark.parametrize(
    ("mix", "fixed", "served", "sentence"),
    [
        ({"Enq": 1.0, "Deq": 1.0}, "82.6 %", "87.1 %", "down would have served 87.1 % instead of 82.6 %."),
        ({"Enq": 9.0, "Deq": 1.0}, "94.9 %", None, "no rule serves more than the best choice alone."),
    ],
)
def test_the_page_says_what_came_of_the_example(
    tmp_path: Path, mix: dict[str, float], fixed: str, served: str | None, sentence: str
) -> None:
    options = Options(engine="python", adt="queue", mix=mix)
    row = only(make_report(ROOT / "examples" / "up.json", tmp_path / "out", options).figures)
    assert percent(row.served_fixed).replace(NO_BREAK, " ") == fixed
    assert (percent(row.served).replace(NO_BREAK, " ") if row.wins else None) == served
    page = (ROOT / "docs" / "explanation" / "report-figures.md").read_text(encoding="utf-8")
    assert sentence in " ".join(page.split())
    assert f"or not held, for {derive_adaptive.AFTER_S:g} s, and" in page
    assert f"have been up for {derive_adaptive.JOINT_S:g} s." in page
    assert f"the {derive_adaptive.FIXED_MAX} best fixed choices" in page
    assert f"(the {adaptive_search.DOWN_MAX} groups" in page
    assert f"At most {adaptive_search.RULES_MAX} of them" in page
    assert f"at least {adaptive_search.RULES_MIN} rules" in page
    assert adaptive_search.STEPS_MAX == 1_000_000
