"""What distinct items of a queue force: what was surely taken before another was also enqueued before it.

Without it a search tries the orders of all enqueues that overlapped, and hears which was wrong only when the items are
taken, perhaps thousands of calls later. Each rule keeps the verdict; a test holds them against the plain search.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ..own import Computed
from ..specification import Response, SerialSpecification
from .calls import NEVER, Call
from .orders import RealTime


def is_first_in_first_out(specification: SerialSpecification) -> bool:
    """Whether it is the catalogue's queue, and not a type of one's own with that name."""
    return (
        specification.name == "queue"
        and not isinstance(specification, Computed)
        and hasattr(specification, "changes")
    )


def has_distinct_items(calls: Sequence[Call]) -> bool:
    """Whether the rules hold for these calls of a queue: no item was enqueued twice, and each answer is told."""
    items = [call.invocation.args[0] for call in calls if call.invocation.operation == "Enq"]
    return len(set(items)) == len(items) and all(len(call.answers) <= 1 for call in calls)


class FirstIn(RealTime):
    """Linearizable, for one queue with distinct items."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__(_settled(calls))
        taken = _taken(self.calls)
        # Where the outcome of a dequeue is unknown, what nobody is known to have taken is free.
        is_all_known = all(call.is_known for call in self.calls)
        rest: tuple[float, float] = (NEVER, NEVER) if is_all_known else (-NEVER, NEVER)
        self._taken = {
            number: taken.get(call.invocation.args[0], rest)
            for number, call in enumerate(self.calls)
            if call.invocation.operation == "Enq"
        }
        in_time = sorted(self._taken, key=lambda number: self.calls[number].invoked)
        self._invoked = [self.calls[number].invoked for number in in_time]
        self._first_taken: list[float] = [NEVER] * (len(in_time) + 1)
        """Of those from each place of `_invoked` on: when the first was surely taken."""
        for place in range(len(in_time) - 1, -1, -1):
            self._first_taken[place] = min(self._first_taken[place + 1], self._taken[in_time[place]][1])

    def next(self, placed: tuple[int, int, int]) -> list[int]:
        """See Order; without the enqueues that another one must precede."""
        found = super().next(placed)
        enqueues = [number for number in found if number in self._taken]
        if not enqueues:
            return found
        not_yet = bisect_right(self._invoked, self.calls[placed[0]].returned)
        first = min(self._first_taken[not_yet], *(self._taken[number][1] for number in enqueues))
        return [number for number in found if number not in self._taken or self._taken[number][0] <= first]


def _taken(calls: Sequence[Call]) -> Mapping[Any, tuple[float, float]]:
    """When the dequeue of each item was invoked, and when it returned."""
    return {
        call.answers[0].results[0]: (call.invoked, call.returned)
        for call in calls
        if call.invocation.operation == "Deq" and call.answers and call.answers[0].results
    }


def _settled(calls: Sequence[Call]) -> list[Call]:
    """Each unknown Enq resolved. One whose item was seen took effect before the first call that saw it returned. One whose
    item nobody saw is left out, where nobody counted: in an order that has it, it and an unknown Deq of its item can be struck
    out. What a weak answer alone has seen stays unknown: it need have no place."""
    seen: dict[Any, float] = {}
    doubted = set[Any]()
    for call in calls:
        if call.invocation.operation in ("Deq", "Peek") and call.answers and call.answers[0].results:
            item = call.answers[0].results[0]
            if call.is_weak:
                doubted.add(item)
            else:
                seen[item] = min(call.returned, seen.get(item, NEVER))
    is_counted = any(call.invocation.operation == "Size" for call in calls)
    settled = []
    for call in calls:
        if call.is_known or call.invocation.operation != "Enq":
            settled.append(call)
        elif call.invocation.args[0] in seen:
            moment = max(call.invoked, seen[call.invocation.args[0]])
            settled.append(call._replace(returned=moment, answers=(Response("Ok"),)))
        elif is_counted or call.invocation.args[0] in doubted:
            settled.append(call)
    return settled
