"""Durations as people write them."""

import pytest

from quorate.measurement.plan.durations import BadDuration, duration_text, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("7d", 604_800),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("0s", 0),
        ("1.5h", 5400),
        ("2w1d", 1_296_000),
    ],
)
def test_parts_add_up(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "s", "1h 30m", "-1s", "1y", "1e3s", "٣s"])
def test_other_texts_are_refused_with_the_form_that_is_meant(text: str) -> None:
    with pytest.raises(BadDuration, match="write a number and its unit"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "250ms"),
        (3, "3s"),
        (5.71, "5.7s"),
        (240, "4m"),
        (129_600, "1d12h"),
        (93_784, "1d2h"),
        (60.4, "1m"),
        (59.6, "1m"),
    ],
)
def test_two_largest_units_are_told(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
