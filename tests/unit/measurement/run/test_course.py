"""What is said of how a run went."""

from quorate.measurement.run.course import Course


def test_what_lessens_a_measurement_is_told() -> None:
    fine = Course(True, 0, 0.01, 0, ())
    assert fine.notes == []
    poor = Course(False, 7, 2.5, 3, ("r1 ended by itself: x",), {"seats/all": "reserve: KeyError"})
    told = " ".join(poor.notes)
    for expected in (
        "r1 ended by itself: x",
        "ended early",
        "7 operations had no room to begin",
        "began 2.5s after its time",
        "3 outages were over before",
        "on seats/all were refused, and count as unavailable: reserve: KeyError",
    ):
        assert expected in told
