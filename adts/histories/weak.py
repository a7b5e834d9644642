"""Answers of eventual consistency: which of them missed changes that had ended before they were asked for. Pure.

An answer is explained when the calls of atomic consistency and it have a right order in real time together, and with the answers that were
explained before it. What is not explained once is not explained among more calls, so that the next one that is not is found by halving.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from .calls import Call

CALLS_MAX: Final = 400_000
"""So many are looked at in all searches of one object, and one search in any case: some tens of seconds."""


class Anomalies(NamedTuple):
    """What was found of the weak answers about one object: `missed` are those that missed changes, of the first `judged`."""

    object: str
    weak: int
    judged: int
    missed: tuple[Call, ...]


def anomalies(
    name: str, weak: Sequence[Call], others: int, is_explained: Callable[[Sequence[Call]], bool | None]
) -> Anomalies:
    """Judge the weak answers about an object in the order in which they came. `is_explained` says whether these of them and all `others` have
    a right order; None where that is not known, which ends the search."""
    rest = sorted((call for call in weak if call.is_known), key=lambda call: call.returned)
    count, explained, missed = len(rest), list[Call](), list[Call]()
    judged = searched = 0
    while rest:
        low, high = 0, len(rest) + 1  # The first `low` are explained, the first `high` are not.
        while high - low > 1:
            middle = len(rest) if high > len(rest) else (low + high) // 2
            right = is_explained([*explained, *rest[:middle]]) if searched < CALLS_MAX else None
            searched += others + len(explained) + middle
            if right is None:
                return Anomalies(name, count, judged + low, tuple(missed))
            low, high = (middle, high) if right else (low, middle)
        explained += rest[:low]
        missed += rest[low : low + 1]
        judged += len(rest[: low + 1])
        rest = rest[low + 1 :]
    return Anomalies(name, count, judged, tuple(missed))
