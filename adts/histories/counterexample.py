"""The part of a history that shows why it has no right order. Pure.

Each step keeps that there is none, for a reason of its own:

* *Earlier end.* What was known at an earlier moment has no right order either, if the whole had one it would show it there:
  the shortest such beginning (linearizable only).
* *Without an object or an item.* A right order stays right without the calls of one of several objects, and, in a queue
  in which nobody counts, without the calls that put in, saw or took one item (each was put in once).
* *Without what changes nothing.* A right order stays right without a call that left the state as it was.

What is left is small, not always smallest: to leave out a write may make a wrong history of a right one.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ..specification import Specification, condition_of, operation_of
from .calls import Call
from .forced import has_distinct_items, is_first_in_first_out
from .orders import Model
from .search import Found, Inconclusive, search

TRIES_MAX: Final = 400
"""Searches for a smaller part, before what there is is shown."""


class Smaller:
    """One history without a right order, made smaller. `found` is what `search` found of the calls that are left."""

    def __init__(
        self,
        specifications: Mapping[str, Specification],
        calls: Sequence[Call],
        model: Model,
        found: Found,
        visits_max: int,
    ) -> None:
        self.calls = list(calls)
        self.found = found
        self._specifications = specifications
        self._model = model
        self._visits_max = min(visits_max, 2 * found.visits + 1_000)
        self._tries = TRIES_MAX
        self._has_items = (
            [is_first_in_first_out(each) for each in specifications.values()] == [True]
            and has_distinct_items(calls)
            and not any(call.invocation.operation == "Size" for call in calls)
        )

    def end_earlier(self) -> None:
        """Keep what was known at the first moment at which there was no right order."""
        if self._model is not Model.LINEARIZABLE:
            return
        moments = sorted({call.returned for call in self.calls if call.is_known})
        least, most = 0, len(moments) - 1  # At `most` there is no right order.
        likely = bisect_left(moments, self.found.until)
        first = [likely, likely - 1]
        while least < most:
            middle = first.pop(0) if first else (least + most) // 2
            if not least <= middle < most:
                continue
            if self._is_wrong(_known_at(self.calls, moments[middle])):
                most = middle
            else:
                least = middle + 1
        self.calls = _known_at(self.calls, moments[most])

    def leave_out(self) -> None:
        """Keep what cannot be left out: see above."""
        for part_of in (self._if_without_effect, self._object_or_item, self._if_without_effect):
            self.calls = self._without(self.calls, part_of)
        with suppress(Inconclusive):
            plain = search(
                self._specifications, self.calls, self._model, self._visits_max, may_be_forced=False
            )
            if not plain.is_right:
                self.found = plain

    def _is_wrong(self, calls: Sequence[Call]) -> bool:
        """Whether these calls have no right order, as far as a short search says; then that is what was found."""
        if self._tries <= 0:
            return False
        self._tries -= 1
        try:
            found = search(self._specifications, calls, self._model, self._visits_max)
        except Inconclusive:
            return False
        if not found.is_right:
            self.found = found
        return not found.is_right

    def _without(self, calls: list[Call], group_of: Callable[[Call], Hashable | None]) -> list[Call]:
        """As few groups of calls as can be; those of no group (None) stay. Halves of what may go are tried first."""
        groups: dict[Hashable, list[Call]] = {}
        for call in calls:
            if (group := group_of(call)) is not None:
                groups.setdefault(group, []).append(call)
        size = len(groups)
        names = list(groups)
        while size and names:
            for start in range(0, len(names), size):
                gone = {id(call) for name in names[start : start + size] for call in groups[name]}
                left = [call for call in calls if id(call) not in gone]
                if gone and self._is_wrong(left):
                    calls, names[start : start + size] = left, [None] * len(names[start : start + size])
            names = [name for name in names if name is not None]
            size = min(size // 2, len(names))
        return calls

    def _if_without_effect(self, call: Call) -> Hashable | None:
        """Each call is a group of its own if no answer that it may have had comes with a change of the state."""
        changes = self._specifications[call.object].changes
        operation = call.invocation.operation
        answers = {answer.condition for answer in call.answers}
        may_change = any(
            operation_of(name) == operation and (not call.is_known or condition_of(name) in answers)
            for name in changes
        )
        return None if may_change else id(call)

    def _object_or_item(self, call: Call) -> Hashable | None:
        if len(self._specifications) > 1:
            return call.object
        return _item_of(call) if self._has_items else None


def _known_at(calls: Sequence[Call], moment: float) -> list[Call]:
    return [call.until(moment) for call in calls if call.invoked <= moment]


def _item_of(call: Call) -> Hashable | None:
    """The item that a call of a queue put in or took; None for one that took or saw none, or counted."""
    if call.invocation.operation == "Enq":
        return call.invocation.args
    if not call.answers or not call.answers[0].results:
        return None
    return call.answers[0].results
