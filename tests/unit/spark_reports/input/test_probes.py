"""How long a sample speaks: the rule, on cases small enough to see, and sample by sample on many."""

import random

import pytest

from quorate.spark_reports.input.probes import (
    Edge,
    Interval,
    Spacing,
    edges_of,
    merged,
    packed,
    read_samples,
    usual_step_us,
)
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


def test_only_ends_and_breaks_are_edges_and_a_moment_that_is_contradicted_is_none() -> None:
    said = [
        packed(time_us, up) for time_us, up in [(100, 1), (110, 1), (120, 1), (130, 0), (140, 0), (200, 0)]
    ]
    found = edges_of([*said, packed(110, 0), said[1]], SPACING)
    assert found.contradicted == [110]
    assert found.edges == [Edge(said[0], None), Edge(said[3], said[2]), Edge(said[5], said[4])]
    assert edges_of([], SPACING) == ([], [])
    assert edges_of(said[:1], SPACING).edges == [Edge(said[0], None)]
    assert edges_of(said[:3], SPACING).edges == [Edge(said[0], None), Edge(said[2], said[1])]


def spoken_one_by_one(clear: dict[int, int], spacing: Spacing) -> list[Interval]:
    """Let each sample of one replica speak by itself, and join what touches and says the same."""
    times = sorted(clear)
    found: list[Interval] = []
    for time_us, next_us in zip(times, [*times[1:], None], strict=True):
        end_us = time_us + spacing.step_us
        if next_us is not None:
            agrees = clear[next_us] == clear[time_us]
            if next_us - time_us <= (spacing.same_us if agrees else spacing.next_us):
                end_us = next_us
        if found and found[-1].end_us == time_us and found[-1].up == clear[time_us]:
            found[-1] = found[-1]._replace(end_us=end_us)
        else:
            found.append(Interval("r1", time_us, end_us, clear[time_us]))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_parts_cut_anywhere_come_to_what_each_sample_says_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    spacing = Spacing(step_us=rng.choice([1, 2, 10]), lost_max=rng.choice([0, 1, 3]))
    time_us, samples = 0, list[tuple[int, int]]()
    for _ in range(rng.randint(1, 120)):
        time_us += rng.choice([0, 1, 1, 1, 2, 3, 5]) * spacing.step_us + rng.choice([0, 0, 1])
        samples += [(time_us, rng.choice([0, 1, 1, 1]))] * rng.choice([1, 1, 2])
    said: dict[int, set[int]] = {}
    for at_us, up in samples:
        said.setdefault(at_us, set()).add(up)
    clear = {at_us: next(iter(ups)) for at_us, ups in said.items() if len(ups) == 1}
    cuts = sorted(rng.randint(0, time_us + 1) for _ in range(rng.randint(0, 9)))
    parts: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for at_us, up in rng.sample(samples, len(samples)):
        parts[sum(cut <= at_us for cut in cuts)].append(packed(at_us, up))
    found = [edges_of(part, spacing) for part in parts]
    edges = [each for part in found for each in part.edges]
    rng.shuffle(edges)
    assert list(merged("r1", edges, spacing)) == spoken_one_by_one(clear, spacing)
    assert [each for part in found for each in part.contradicted] == sorted(said.keys() - clear.keys())


def test_the_usual_step_is_the_median_distance_of_the_earliest_samples() -> None:
    samples = [("r1", t, 1) for t in (0, 10, 20, 20, 500)] + [("r2", t, 0) for t in (3, 14)]
    assert usual_step_us(samples) == 10
    with pytest.raises(ReportError, match="give the step"):
        usual_step_us([("r1", 5, 1), ("r2", 9, 1)])


@pytest.mark.parametrize(("step_us", "lost_max"), [(0, 1), (-5, 1), (86_400_000_001, 1), (1, -1)])
def test_impossible_spacings_are_refused(step_us: int, lost_max: int) -> None:
    with pytest.raises(ReportError, match=r"of at most a day|give 0 or more"):
        Spacing(step_us, lost_max)
