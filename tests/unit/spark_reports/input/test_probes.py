"""How long a sample speaks: the rule, on cases small enough to see."""

import pytest

from quorate.spark_reports.input.probes import Spacing, read_samples, usual_step_us
from quorate.spark_reports.model.errors import ReportError

SPACING = Spacing(step_us=10, lost_max=1)


def spoken(*samples: tuple[int, int]) -> list[tuple[int, int, int]]:
    """The intervals of one replica from samples (time, up)."""
    found = read_samples([("r1", time_us, up) for time_us, up in samples], SPACING)
    return [(row.start_us, row.end_us, row.up) for row in found.intervals]


def test_one_sample_speaks_for_one_step() -> None:
    assert spoken((100, 1)) == [(100, 110, 1)]


def test_a_change_is_dated_by_the_sample_that_shows_it() -> None:
    assert spoken((100, 1), (110, 0), (121, 1)) == [(100, 110, 1), (110, 121, 0), (121, 131, 1)]


def test_jitter_up_to_half_a_step_leaves_no_gap() -> None:
    assert spoken((100, 1), (115, 0)) == [(100, 115, 1), (115, 125, 0)]
    assert spoken((100, 1), (116, 0)) == [(100, 110, 1), (116, 126, 0)]


def test_a_lost_sample_is_bridged_between_equals_only() -> None:
    assert spoken((100, 0), (125, 0)) == [(100, 135, 0)]
    assert spoken((100, 0), (126, 0)) == [(100, 110, 0), (126, 136, 0)]
    assert spoken((100, 0), (125, 1)) == [(100, 110, 0), (125, 135, 1)]


def test_order_and_repetition_make_no_difference() -> None:
    assert spoken((110, 1), (100, 1), (110, 1), (100, 1)) == [(100, 120, 1)]


def test_samples_of_one_moment_that_contradict_each_other_do_not_speak() -> None:
    found = read_samples([("r1", t, 1) for t in (100, 110, 120)] + [("r1", 110, 0), ("r2", 110, 0)], SPACING)
    assert found.contradicted == [("r1", 110)]
    assert [row[:3] for row in found.intervals] == [("r1", 100, 130), ("r2", 110, 120)]


def test_the_usual_step_is_the_median_distance_of_the_earliest_samples() -> None:
    samples = [("r1", t, 1) for t in (0, 10, 20, 20, 500)] + [("r2", t, 0) for t in (3, 14)]
    assert usual_step_us(samples) == 10
    with pytest.raises(ReportError, match="give the step"):
        usual_step_us([("r1", 5, 1), ("r2", 9, 1)])


@pytest.mark.parametrize(("step_us", "lost_max"), [(0, 1), (-5, 1), (86_400_000_001, 1), (1, -1)])
def test_impossible_spacings_are_refused(step_us: int, lost_max: int) -> None:
    with pytest.raises(ReportError, match=r"of at most a day|give 0 or more"):
        Spacing(step_us, lost_max)
