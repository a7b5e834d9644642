"""Is there an order of the calls that a serial object could have seen? Exact search (Wing and Gong 1993, Lowe 2017).

Owns the search and the models it searches with. The meaning of operations comes from the serial specifications in
`quorate.adts`; a model only says which state changes agree with what a call returned.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final, Protocol

from msgspec.structs import replace

from ...adts.specification import Invocation
from ...adts.types.catalogue import SPECIFICATIONS
from ..history import NEVER, Call

DEQ: Final = Invocation("Deq")
NODES_MAX: Final = 60_000


class Inconclusive(Exception):
    """The search was given up: the history is neither shown right nor wrong."""


class Model(Protocol):
    """What a state change may look like."""

    def initial(self) -> Hashable:
        """The state of an object that nobody has touched."""

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """The states after `call`, one for each effect that agrees with what it returned.

        For an unknown call: those that differ from `state`; that it may have no effect is the search's affair.
        """

    def earlier(self, call: Call) -> Iterable[Call]:
        """Some calls that come before `call` in every right order: the search then does not try the others."""
        del call
        return ()


class Serial(Model):
    """The data type exactly as its serial specification says."""

    def __init__(self, adt: str, calls: Sequence[Call]) -> None:
        self._specification = SPECIFICATIONS[adt]
        self._returned = returned_by_dequeues(calls)
        enqueued = {call.args[0]: call for call in calls if call.operation == "Enq"}
        self._taken = [
            (enqueued[item], call, place)
            for call in calls
            if call.operation == "Deq"
            for place, item in enumerate(call.results)
            if item in enqueued
        ]

    def initial(self) -> Hashable:
        """See Model."""
        return self._specification.initial()

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """See Model."""
        if call.operation == "Deq":
            return self._after_dequeue(state, call)
        new, response = self._specification.step(state, Invocation(call.operation, call.args))
        if not call.is_known:
            return [] if new == state else [new]
        if call.operation in ("Enq", "Write", "Put", "Delete"):
            return [new]
        conditional = call.operation in ("Cas", "PutIfAbsent")
        return [new] if call.results == ((response.condition,) if conditional else response.results) else []

    def earlier(self, call: Call) -> Iterable[Call]:
        """See Model. First in, first out: what was surely taken before its item was also enqueued before it."""
        return [
            before
            for enqueued, taking, place in self._taken
            if enqueued is call
            for before, others, ahead in self._taken
            if others.returned < taking.invoked or (others is taking and ahead < place)
        ]

    def _after_dequeue(self, state: Any, call: Call) -> Iterable[Hashable]:
        """A dequeue of several takes a run of heads at one moment; a short answer does not claim the rest is empty.

        An unknown one takes nothing that another call returned, for items are distinct.
        """
        states = []
        taken: tuple[Any, ...] = ()
        is_known = call.is_known
        for _ in range(max(1, len(call.results)) if is_known else call.count):
            state, response = self._specification.step(state, DEQ)
            if response.condition == "Empty" or (not is_known and response.results[0] in self._returned):
                break
            taken += response.results
            if is_known and taken != call.results[: len(taken)]:
                return []
            states.append(state)
        if not is_known:
            return states
        return [state] if taken == call.results else []


class Bag(Model):
    """The queue where clocks may be wrong: every item once, in no promised order; Empty still means empty."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._returned = returned_by_dequeues(calls)

    def initial(self) -> Hashable:
        """See Model."""
        return frozenset()

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """See Model."""
        if call.operation == "Enq":
            return [state | {call.args[0]}]
        if not call.is_known:
            free = sorted(state - self._returned)
            sizes = range(1, min(len(free), call.count) + 1)
            return [state.difference(some) for size in sizes for some in combinations(free, size)]
        if not call.results:
            return [] if state else [state]
        if not state.issuperset(call.results):
            return []
        return [state if call.operation == "Peek" else state.difference(call.results)]


class Count(Model):
    """The queue as a mere counter of items: what Size promises beside the other operations."""

    def initial(self) -> Hashable:
        """See Model."""
        return 0

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """See Model. An unknown dequeue takes what no other call returned; which, a count cannot tell."""
        match call.operation:
            case "Enq":
                return [state + 1]
            case "Size":
                return [state] if call.results == (state,) else []
            case "Peek":
                return [state] if len(call.results) <= state else []
        if not call.is_known:
            return [state - taken for taken in range(1, min(state, call.count) + 1)]
        return [state - len(call.results)] if len(call.results) <= state else []


class Cell(Model):
    """One register or key where clocks may be wrong: a blind change may turn out older than another one.

    Then it is as if it had been overwritten at once. It is never older than a decision, nor than "nothing yet".
    The state is the value and whether a blind change made it.
    """

    def initial(self) -> Hashable:
        """See Model."""
        return (None, False)

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """See Model."""
        value, is_blind = state
        match call.operation:
            case "Write" | "Put" | "Delete":
                new = (None if call.operation == "Delete" else call.args[-1], True)
                return [new, state] if is_blind else [new]
            case "Read" | "Get":
                return [state] if call.results == (value,) else []
            case "Cas":
                old, changed = call.args[-2:]
            case _:
                old, changed = None, call.args[-1]
        if call.is_known and (call.results == ("Ok",)) != (value == old):
            return []
        return [(changed, False)] if value == old else [state] if call.is_known else []


def returned_by_dequeues(calls: Sequence[Call]) -> frozenset[Any]:
    """Items that some dequeue is known to have taken."""
    return frozenset(item for call in calls if call.operation == "Deq" for item in call.results)


def settled(calls: Sequence[Call]) -> list[Call]:
    """A queue's calls with every unknown Enq resolved, without changing the verdict (items are distinct).

    One whose item nobody saw is left out: in an order that has it, it and an unknown Deq of its item can be struck out.
    One whose item was seen took effect before the first call that saw it returned.
    """
    seen: dict[Any, int] = {}
    for call in calls:
        for item in call.results if call.operation in ("Deq", "Peek") else ():
            seen[item] = min(call.returned, seen.get(item, NEVER))
    kept = []
    for call in calls:
        if call.operation != "Enq" or call.is_known:
            kept.append(call)
        elif call.args[0] in seen:
            kept.append(replace(call, returned=seen[call.args[0]]))
    return kept


def widened(calls: Sequence[Call]) -> list[Call]:
    """A cell's calls where clocks may be wrong: a blind change that a read saw may be as old as the read's beginning.

    The read began before a newer change was stored, and missed it; then came this change, with an older timestamp, and
    the read met it. In the order of timestamps both come before the newer one. A change is never older than a decision
    that ended before it began.
    """
    decided = [
        call.returned
        for call in calls
        if call.operation in ("Cas", "PutIfAbsent") and call.results == ("Ok",)
    ]
    seen: dict[Any, list[Call]] = {}
    for call in calls:
        if call.operation in ("Read", "Get") and call.is_known:
            seen.setdefault(call.results[0], []).append(call)

    def wide(call: Call) -> Call:
        readers = seen.get(call.args[-1], []) if call.operation in ("Write", "Put") else []
        # A read that ended before the change began cannot have seen it: then nothing is widened, and the search fails.
        if not readers or min(read.returned for read in readers) < call.invoked:
            return call
        least = max((moment for moment in decided if moment < call.invoked), default=0)
        begun = min(read.invoked for read in readers)
        return replace(call, invoked=max(least, min(begun, call.invoked)))

    return list(map(wide, calls))


def linearization(model: Model, calls: Sequence[Call], nodes_max: int = NODES_MAX) -> list[Call] | None:
    """An order of the calls that `model` explains, or None when there is none; Inconclusive beyond `nodes_max` nodes.

    Depth first over (calls placed, state), each pair visited once. Calls that returned must be placed, before any
    call that was invoked after they returned; unknown ones may be left out.
    """
    search = _Search(model, calls)
    stack = [search.open(0, model.initial())]
    path: list[int] = []
    seen: set[tuple[int, Hashable]] = set()
    while stack:
        branch = next(stack[-1], None)
        if branch is None:
            stack.pop()
            if path:
                path.pop()
            continue
        index, mask, state = branch
        if mask & search.required == search.required:
            return [search.calls[place] for place in [*path, index]]
        if (mask, state) in seen:
            continue
        seen.add((mask, state))
        if len(seen) > nodes_max:
            raise Inconclusive(f"more than {nodes_max} nodes for {len(calls)} calls")
        path.append(index)
        stack.append(search.open(mask, state))
    return None if search.required else []


class _Search:
    """The calls in the order of their invocations, and what may come next."""

    def __init__(self, model: Model, calls: Sequence[Call]) -> None:
        self.model = model
        self.calls = sorted(calls, key=lambda call: call.invoked)
        self.required = sum(1 << place for place, call in enumerate(self.calls) if call.is_known)
        place_of = {id(call): place for place, call in enumerate(self.calls)}
        self._earlier = [_mask((call.after, *model.earlier(call)), place_of) for call in self.calls]
        self._next: dict[int, list[int]] = {}
        self._after: dict[tuple[int, Hashable], list[Hashable]] = {}
        """What may come next, and what the model said of a call in a state: a search that goes back and forth asks the same
        many times."""
        self._alike = [(call.operation, call.args, call.count) for call in self.calls]
        self._times = [(call.invoked, call.returned) for call in self.calls]

    def open(self, mask: int, state: Hashable) -> Any:
        """All (place, mask, state) one call further."""
        places = self._next.get(mask)
        if places is None:
            places = self._next[mask] = self._candidates(mask)
        for place in places:
            states = self._after.get((place, state))
            if states is None:
                states = self._after[place, state] = list(self.model.after(state, self.calls[place]))
            for new in states:
                yield place, mask | 1 << place, new

    def _candidates(self, mask: int) -> list[int]:
        """Calls invoked before any call not yet placed returned; those that returned first come first.

        Of unknown calls that are alike the first invoked stands for all: they can be swapped.
        """
        found: list[tuple[int, int]] = []
        unknown = set()
        bound = NEVER
        start = (~mask & (mask + 1)).bit_length() - 1
        for place in range(start, len(self.calls)):
            if mask >> place & 1:
                continue
            invoked, returned = self._times[place]
            if invoked > bound:
                break
            bound = min(bound, returned)
            if self._earlier[place] & ~mask:
                continue
            if returned >= NEVER:
                if self._alike[place] in unknown:
                    continue
                unknown.add(self._alike[place])
            found.append((returned, place))
        found.sort()
        return [place for _, place in found]


def _mask(calls: Iterable[Call | None], place_of: dict[int, int]) -> int:
    """The places of those of the calls that are searched."""
    return sum({1 << place_of[id(call)] for call in calls if id(call) in place_of})
