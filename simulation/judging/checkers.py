"""What must hold of a history: linearizable per object, nothing lost, nothing doubled, nothing invented, counts in bounds.

Each check raises Violation with what it saw. Which check may use the order of blind operations is the caller's choice:
`is_exact` says that clocks are good enough for the whole promise, else only what never depends on clocks is checked.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from ...adts.log import Leased
from ...adts.parsing import parsed
from ...adts.plain_class import Json
from ...adts.types.catalogue import adt_of
from ...adts.types.dictionary import is_on_page
from ..history import NEVER, Call
from ..scenarios.leased import is_timed
from ..violation import Violation
from .linearizability import (
    Bag,
    Cell,
    Count,
    Inconclusive,
    Model,
    Serial,
    linearization,
    returned_by_dequeues,
    settled,
    widened,
)


def check_object(name: str, calls: Sequence[Call], *, is_exact: bool) -> int:
    """Check all calls of one object. Returns the number of searches that were given up (0 or 1)."""
    match adt_of(name):
        case "queue":
            check_items(name, calls)
            check_sizes(name, [call for call in calls if call.operation == "Size"], calls)
            order = settled([call for call in calls if call.operation != "Size"])
            given_up = _check_counts(name, calls)
            return given_up | _search(name, Serial("queue", order) if is_exact else Bag(order), order)
        case "register":
            return _search(
                name, *((Serial("register", calls), calls) if is_exact else (Cell(), widened(calls)))
            )
        case _:
            return _check_dictionary(name, calls, is_exact=is_exact)


def check_weak(name: str, weak: Sequence[Call], others: Sequence[Call]) -> None:
    """Weak answers may be old, but nobody invented them: each value was given to a call that began before the answer came,
    be it a compare-and-set that failed in the end. What an object of one's own type lists was given to as many calls."""
    for call in weak:
        given = {
            value
            for other in others
            if other.invoked < call.returned and other.operation in _GIVING
            for value in other.args[-1:]
        }
        match call.operation:
            case "Read" | "Get" | "Peek":
                shown_values = set(call.results) - {None}
            case "Items":
                shown_values = {value for _, value in call.results[0]}
            case _:
                _check_listed(name, call, others)
                continue
        if invented := shown_values - given:
            raise Violation(f"{name}: {call}: nobody gave {sorted(invented)}\n{shown([*weak, *others])}")


def _check_listed(name: str, call: Call, others: Sequence[Call]) -> None:
    """A call that was run twice, or that nobody began."""
    if call.results and isinstance(call.results[-1], Json):
        listed = Counter(parsed(call.results[-1].text.encode()))
        listed.subtract(value for other in others if other.invoked < call.returned for value in other.args)
        if invented := [value for value, count in listed.items() if count > 0]:
            raise Violation(f"{name}: {call}: nobody gave {invented}, or not so often\n{shown(others)}")


_GIVING: Final = frozenset({"Write", "Put", "Cas", "PutIfAbsent", "Enq"})
"""Operations whose last argument is a new value."""


def _check_dictionary(name: str, calls: Sequence[Call], *, is_exact: bool) -> int:
    """Each key alone, a snapshot standing for a Get of it (starred); then all keys with the snapshots."""
    snapshots = [call for call in calls if call.operation == "Items"]
    of_keys = [call for call in calls if call.args and call.operation != "Items"]
    given_up = 0
    for key in sorted({call.args[0] for call in of_keys}):
        own = [call for call in of_keys if call.args[0] == key]
        own += [
            replace(
                call,
                operation="Get",
                args=(key,),
                results=(dict(call.results[0]).get(key),),
                who=f"{call.who}*",
            )
            for call in snapshots
            if call.is_known and is_on_page(key, *call.args)
        ]
        if is_exact:
            given_up |= _search(f"{name}/{key}", Serial("dictionary", own), own)
        else:
            given_up |= _search(f"{name}/{key}", Cell(), widened(own))
    if is_exact and snapshots:
        given_up |= _search(name, Serial("dictionary", calls), calls)
    return given_up


def _search(name: str, model: Model, calls: Sequence[Call]) -> int:
    try:
        if linearization(model, calls) is None:
            raise Violation(f"{name} is not linearizable ({type(model).__name__}):\n{shown(calls)}")
    except Inconclusive:
        return 1
    return 0


def shown(calls: Sequence[Call]) -> str:
    """The calls, one a line, by invocation."""
    return "\n".join(map(str, sorted(calls, key=lambda call: call.invoked)))


def check_items(name: str, calls: Sequence[Call]) -> None:
    """No item was taken twice, none was seen that nobody enqueued."""
    taken = Counter(item for call in calls if call.operation == "Deq" for item in call.results)
    if doubled := [item for item, times in taken.items() if times > 1]:
        raise Violation(f"{name}: taken twice: {doubled}\n{shown(calls)}")
    check_invented(name, calls)


def check_invented(name: str, calls: Sequence[Call]) -> None:
    """No item was seen that nobody enqueued."""
    enqueued = {call.args[0] for call in calls if call.operation == "Enq"}
    seen = {item for call in calls if call.operation in ("Deq", "Peek") for item in call.results}
    if invented := seen - enqueued:
        raise Violation(f"{name}: nobody enqueued {sorted(invented)}\n{shown(calls)}")


def check_empty(name: str, calls: Sequence[Call]) -> None:
    """Each empty answer has a moment at which no item certainly waits, as each does from the end of its enqueue until a call begins that takes it, or
    may. Items may come twice; what is due later or expires is left out (a leased queue's are named so)."""
    taking = [call for call in calls if call.operation in _TAKING]
    doubtful = min((call.invoked for call in taking if not call.is_known), default=NEVER)
    taken: dict[Any, int] = {}
    for call in taking:
        for result in call.results:
            item = result.entry.value if isinstance(result, Leased) else result
            taken[item] = min(call.invoked, taken.get(item, doubtful))
    waits = [
        (call.returned, taken.get(call.args[0], doubtful))
        for call in calls
        if call.operation == "Enq" and not is_timed(call.args[0])
    ]
    for call in taking:
        moments = range(call.invoked, call.returned if call.is_known and not call.results else call.invoked)
        if moments and all(any(begin <= each < end for begin, end in waits) for each in moments):
            raise Violation(f"{name}: {call}: it was empty, though an item waited\n{shown(calls)}")


_TAKING: Final = frozenset({"Deq", "Acquire"})


def check_drained(name: str, calls: Sequence[Call]) -> None:
    """After the queue was drained to Empty: each acknowledged item was taken, unless an unknown Deq may have it."""
    taken = returned_by_dequeues(calls)
    lost = [
        call.args[0]
        for call in calls
        if call.operation == "Enq" and call.is_known and call.args[0] not in taken
    ]
    excused = sum(call.count for call in calls if call.operation == "Deq" and not call.is_known)
    if len(lost) > excused:
        raise Violation(f"{name}: lost {lost}, unknown dequeues explain {excused}\n{shown(calls)}")


def check_sizes(name: str, sizes: Sequence[Call], calls: Sequence[Call]) -> None:
    """Size counts enqueues that ended before it began, and no item whose dequeue ended before it began.

    That is the whole promise of Size: it is linearizable as a counter of items, not together with their order.
    """
    for size in sizes:
        if not size.is_known:
            continue
        (count,) = size.results
        least = _enqueued(calls, returned_before=size.invoked) - _dequeued(
            calls, invoked_before=size.returned
        )
        most = _enqueued(calls, invoked_before=size.returned) - _dequeued(calls, returned_before=size.invoked)
        if not max(0, least) <= count <= most:
            raise Violation(f"{name}: {size}: not in {max(0, least)}..{most}\n{shown(calls)}")


def _check_counts(name: str, calls: Sequence[Call]) -> int:
    """The sizes are those of one counter: bounds alone would let a second Size forget what the first one counted."""
    if not any(call.operation == "Size" for call in calls):
        return 0
    # To a counter all enqueues are alike; the search then need not try which unknown one took effect.
    counted = [replace(call, args=(), after=None) for call in calls if call.operation != "Peek"]
    return _search(name, Count(), counted)


def _enqueued(calls: Sequence[Call], **when: int) -> int:
    return sum(call.operation == "Enq" and _is(call, **when) for call in calls)


def _dequeued(calls: Sequence[Call], **when: int) -> int:
    """Items taken; an unknown dequeue may have taken all that it was allowed to."""
    taking = (call for call in calls if call.operation == "Deq" and _is(call, **when))
    return sum(len(call.results) if call.is_known else call.count for call in taking)


def _is(call: Call, returned_before: int | None = None, invoked_before: int | None = None) -> bool:
    if returned_before is not None:
        return call.returned < returned_before
    return invoked_before is not None and call.invoked < invoked_before
