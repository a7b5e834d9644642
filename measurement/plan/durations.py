"""Durations as people write them: `90s`, `2h`, `1d12h`. Pure."""

import re
from typing import Final

UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")


class BadDuration(ValueError):
    """A text that is no duration."""


def parse_duration(text: str) -> float:
    """The seconds of `text`, as `1h30m`; zero is a duration. Raises BadDuration."""
    if not _WHOLE.fullmatch(text):
        raise BadDuration(
            f"{text!r} is no duration: write a number and its unit (ms, s, m, h, d or w), as 1h30m"
        )
    return sum(float(number) * UNITS_S[unit] for number, unit in _PART.findall(text))


def duration_text(seconds: float) -> str:
    """A duration for people, by its two largest units: `4m`, `1d12h`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    left, parts = round(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, int(UNITS_S[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])
