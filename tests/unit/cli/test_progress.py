"""How far something is, in words."""

from quorate.cli.progress import rated


def test_the_rate_and_the_time_left_are_told_once_something_is_done() -> None:
    assert rated(0, 10, 3.0) == "0 of 10"
    assert rated(3, 10, 0.0) == "3 of 10"
    assert rated(250, 1000, 5.0) == "250 of 1000, 50 a second, 0:15 left"
    assert rated(1, 200, 1.0) == "1 of 200, 1 a second, 3:19 left"
