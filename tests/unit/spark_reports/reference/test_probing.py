"""A prober's view against the truth, by hand."""

from quorate.spark_reports.input.rows import Interval
from quorate.spark_reports.model.aggregates import Probed
from quorate.spark_reports.reference.probing import Segment, probed, segments


def replica(*states: tuple[int, int, int]) -> list[Interval]:
    return [Interval("", "a", *state) for state in states]


def test_both_are_laid_side_by_side() -> None:
    found = segments(replica((0, 10, 1), (10, 20, 0)), replica((2, 12, 1), (15, 25, 0)))
    assert found == [
        Segment(0, 2, 1, None),
        Segment(2, 10, 1, 1),
        Segment(10, 12, 0, 1),
        Segment(12, 15, 0, None),
        Segment(15, 20, 0, 0),
        Segment(20, 25, None, 0),
    ]


def test_delays_misses_and_false_alarms() -> None:
    """Outages 10-20 (seen 13-24), 30-32 (missed), 50-60 (its start was not watched), and a false alarm 40-42."""
    true = replica((0, 10, 1), (10, 20, 0), (20, 30, 1), (30, 32, 0), (32, 50, 1), (50, 60, 0), (60, 70, 1))
    seen = replica((0, 13, 1), (13, 24, 0), (24, 40, 1), (40, 42, 0), (42, 48, 1), (52, 61, 0), (61, 70, 1))
    (found,) = probed(true, seen)
    assert found == Probed(
        replica="a",
        watched_us=70 - 4,
        agreed_us=66 - 3 - 4 - 2 - 2 - 1,
        outages=2,
        detected=1,
        false_alarms=1,
        detection_us=3,
        detection_max_us=3,
        recoveries=1,
        recovery_us=4,
    )


def test_an_outage_that_never_ends_has_no_recovery() -> None:
    (found,) = probed(replica((0, 10, 1), (10, 20, 0)), replica((0, 10, 1), (10, 20, 0)))
    assert (found.detected, found.detection_us, found.recoveries) == (1, 0, 0)
