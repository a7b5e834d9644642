"""Marks become intervals."""

from quorate.measurement.up_times import Interval, UpTimes, were_all_up


def test_intervals_follow_each_other_without_a_gap() -> None:
    up_times = UpTimes(["r1", "r2"], 0.0)
    up_times.mark("r2", 2.0, up=False)
    up_times.mark("r2", 2.5, up=False)
    up_times.mark("r2", 3.0, up=True)
    assert up_times.is_up("r2")
    found = up_times.intervals(5.0)
    assert [each for each in found if each.name == "r1"] == [Interval("r1", 0.0, 5.0, True)]
    assert [each for each in found if each.name == "r2"] == [
        Interval("r2", 0.0, 2.0, True),
        Interval("r2", 2.0, 3.0, False),
        Interval("r2", 3.0, 5.0, True),
    ]


def test_asking_changes_nothing() -> None:
    up_times = UpTimes(["r1"], 0.0)
    up_times.intervals(1.0)
    up_times.mark("r1", 2.0, up=False)
    assert up_times.intervals(3.0) == [Interval("r1", 0.0, 2.0, True), Interval("r1", 2.0, 3.0, False)]


def test_a_time_touches_an_outage_only_if_they_share_a_moment() -> None:
    intervals = [
        Interval("r1", 0.0, 2.0, True),
        Interval("r1", 2.0, 3.0, False),
        Interval("r1", 3.0, 5.0, True),
    ]
    assert were_all_up(intervals, 0.5, 1.9)
    assert not were_all_up(intervals, 1.9, 2.1)
    assert not were_all_up(intervals, 2.2, 2.3)
    assert were_all_up(intervals, 3.0, 4.0)
