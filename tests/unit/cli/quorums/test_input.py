"""What commands of the calculus read and show."""

from fractions import Fraction

import pytest

from quorate.cli.quorums.input import percent


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Fraction(1), "100 %"),
        (1 - 1e-16, "100 %"),
        (1 + 2.3e-16, "100 %"),
        (1 - Fraction(1, 10**16), "100 % - 1.0e-14 %"),
        (0.999702, "99.970 %"),
        (Fraction(99999901, 10**8), "99.999901 %"),
        (0.4845, "48.45 %"),
        (0.0, "0 %"),
    ],
)
def test_a_share_shows_what_is_missing_but_not_what_floats_lose(share: float | Fraction, shown: str) -> None:
    assert percent(share) == shown
