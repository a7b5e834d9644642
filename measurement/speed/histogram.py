"""Times as percentiles, and as counts in classes whose bounds grow by a factor, drawn in letters. Pure; no imports of ours (see the package)."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

PERMILLES: Final = (500, 900, 990, 999)
"""Percentiles, in whole numbers."""
_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""Six classes for each power of ten."""
_BOUNDS_MS: Final = tuple(float(f"{step}e{power}") for power in range(-3, 6) for step in _STEPS)
"""From a microsecond to minutes."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


class Class(NamedTuple):
    """So many operations took longer than `above_ms` and no longer than `to_ms`."""

    above_ms: float
    to_ms: float
    operations: int


def percentiles(each_s: Sequence[float]) -> dict[str, float]:
    """In milliseconds, to four digits; one that so few times cannot tell is left out."""
    ordered = sorted(each_s)
    return {
        f"p{permille / 10:g}": rounded(ordered[len(ordered) * permille // 1000] * 1e3)
        for permille in PERMILLES
        if len(ordered) * (1000 - permille) >= 1000
    }


def rounded(number: float) -> float:
    """To four digits."""
    return float(f"{number:.4g}")


def classes(each_s: Sequence[float]) -> list[Class]:
    """From the first class that holds a time to the last one, those between them without any included."""
    places = [min(bisect_left(_BOUNDS_MS, seconds * 1e3), len(_BOUNDS_MS) - 1) for seconds in each_s]
    if not places:
        return []
    first, last = min(places), max(places)
    counts = [0] * (last - first + 1)
    for place in places:
        counts[place - first] += 1
    return [
        Class(_BOUNDS_MS[place - 1] if place else 0.0, _BOUNDS_MS[place], counts[place - first])
        for place in range(first, last + 1)
    ]


def drawn(found: Sequence[Class], columns: int, *, is_ascii: bool) -> list[str]:
    """One line a class, of `columns` characters at most: its bounds, its count, and a bar, which only an empty class lacks."""
    heads = [f"{each.above_ms:g} to {each.to_ms:g} ms" for each in found]
    widest = max(map(len, heads), default=0)
    most = max((each.operations for each in found), default=0)
    digits = len(f"{most:,}")
    room = columns - widest - digits - 3
    return [
        f"{head:>{widest}} {each.operations:>{digits},} |{_bar(each.operations / most * room, is_ascii=is_ascii)}".rstrip()
        for head, each in zip(heads, found, strict=True)
    ]


def _bar(length: float, *, is_ascii: bool) -> str:
    """To an eighth of a character, where these can be shown."""
    if is_ascii:
        return "#" * max(round(length), length > 0)
    eighths = max(round(length * 8), length > 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]
