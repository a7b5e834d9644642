"""Which call is tried first: the one whose argument is shown first.

A search is quick where it seldom has to go back. What a call did shows in later answers: as an item of a list, as a value that was read, as a part of a
text. So what is shown comes in the order in which it is shown. That is a guess, and says only what is tried first: the verdict does not rest on it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from ..plain_class import Json
from .calls import Call

CHARS_MAX: Final = 1_000_000
"""Of answers that are looked through for one argument."""
ANSWER_CHARS: Final = 1_000
"""As many as an answer counts for beside its own."""


class Likely:
    """The order in which calls are tried. Numbers are those of the calls."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def first(self, numbers: Iterable[int]) -> list[int]:
        """These calls, the likeliest first."""
        return sorted(numbers, key=self._places.__getitem__)

    @cached_property
    def _places(self) -> Sequence[int]:
        """Of each call, its place among all. Looked for when a search has a choice for the first time."""
        ranks = [self._rank(call) for call in self._calls]
        places = [0] * len(ranks)
        for place, number in enumerate(sorted(range(len(ranks)), key=ranks.__getitem__)):
            places[number] = place
        return places

    def _rank(self, call: Call) -> tuple[float, int]:
        """When the first answer came that shows the call's last argument, and where it shows it; if none does, when the call returned."""
        return self._shown(call) or (call.returned, 0)

    def _shown(self, call: Call) -> tuple[float, int] | None:
        text = _text(call.invocation.args[-1:])
        if not text:
            return None
        first = bisect_left(self._moments, call.invoked)
        # Of what is put twice, the answer before showed the first one.
        before = self._answers[first - 1][1].count(text) if first else 0
        left = CHARS_MAX
        for number in range(first, len(self._answers)):
            moment, answer = self._answers[number]
            if answer.count(text) > before:
                return moment, answer.rindex(text)
            left -= len(answer) + ANSWER_CHARS
            if left < 0:
                break
        return None

    @cached_property
    def _answers(self) -> Sequence[tuple[float, str]]:
        """What returned with results, in order: when, and these as text."""
        told = ((call.returned, _text(answer.results)) for call in self._calls for answer in call.answers)
        return sorted((moment, text) for moment, text in told if text)

    @cached_property
    def _moments(self) -> Sequence[float]:
        return [moment for moment, _ in self._answers]


def _text(values: Iterable[Any]) -> str:
    """The texts, lists and objects among these, as JSON writes them. Numbers and the like are left out: they are shown by chance."""
    return "\n".join(
        value.text if isinstance(value, Json) else value.replace("\\", "\\\\").replace('"', '\\"')
        for value in values
        if isinstance(value, (str, Json))
    )
