"""The recommended choice beside those in force, on the two days of `test_derive_objectives`: r1 and r2 are down together for 864 s."""

from pathlib import Path

from tests.unit.spark_reports.figures.test_derive_objectives import DOWN_S, figures_of, write


def test_the_recommended_choice_comes_first_and_then_those_in_force(tmp_path: Path) -> None:
    rows = figures_of(write(tmp_path / "run")).summary
    assert [(row.operation, row.choice, row.recommended, row.present) for row in rows] == [
        ("Enq", "enq-1", True, True),
        ("Enq", "enq-2", False, True),
        ("Deq", "enq-1", True, True),
        ("Deq", "enq-2", False, True),
    ]
    enq, deq = rows[0], rows[2]
    assert (enq.available, enq.downtime_month_s, enq.outages, enq.longest_s, enq.mttr_s) == (1, 0, 0, 0, None)
    assert (deq.available, deq.outages, deq.longest_s, deq.mttr_s) == (0.995, 1, DOWN_S, DOWN_S)
    assert round(deq.downtime_month_s, 6) == 12_960, "half a hundredth of 30 days"


def test_the_choice_in_force_may_be_named(tmp_path: Path) -> None:
    rows = figures_of(write(tmp_path / "run"), present="enq-2").summary
    assert [(row.choice, row.recommended, row.present) for row in rows[:2]] == [
        ("enq-1", True, False),
        ("enq-2", False, True),
    ]


def test_times_of_a_scaled_run_are_the_plans(tmp_path: Path) -> None:
    deq = figures_of(write(tmp_path / "run", time_scale=60)).summary[2]
    assert (deq.longest_s, deq.mttr_s) == (60 * DOWN_S, 60 * DOWN_S)
