"""What must hold of leases: no item acknowledged twice, none lost when a holder dies, and each lease goes one right course.

Owns the course of one item as a small automaton, searched like any other object, and what of a leased queue's history is
that of a plain queue: an item's first delivery is its Deq. Whether leases come back too early is for good clocks only.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ...adts.log import Leased
from ...api_specs.limits import DEAD_MAX, Limits
from ...api_specs.values import text_bytes
from ...client_sdk.protocol.core.values import LeaseBook
from ..history import Call
from ..scenarios.leased import is_timed
from ..violation import Violation
from ..world.clocks import WALL_US_START
from .checkers import shown
from .linearizability import Inconclusive, Model, linearization, returned_by_dequeues

TENDING: Final = ("Ack", "Release", "Reject", "Drop", "Renew")
FINAL: Final = ("Ack", "Drop")


def check_leases(
    name: str, calls: Sequence[Call], limits: Limits, *, may_wear: bool, has_good_clocks: bool
) -> int:
    """Check all that was done with leases; the number of searches that were given up. `may_wear`: items that were delivered
    too often become dead letters. After the retry window, a repeat may be told that its lease was lost."""
    items = _items(calls)
    check_acknowledged_once(name, calls, items)
    check_kept(name, calls, limits)
    check_order(name, calls)
    if has_good_clocks:
        check_early(name, calls)
    courses = (Item(entry_id, value, calls, limits, may_wear=may_wear) for entry_id, value in items.items())
    return sum(_check_course(name, item, calls) for item in courses)


def projected(calls: Sequence[Call]) -> list[Call]:
    """The history as that of a plain queue: what is delivered for the first time is dequeued. Without the items that an
    acquire may pass over, and what tells of them."""
    has_timed = any(call.operation == "Enq" and is_timed(call.args[0]) for call in calls)
    return [each for call in calls for each in _projected(call, has_timed=has_timed)]


def _projected(call: Call, *, has_timed: bool) -> Iterator[Call]:
    match call.operation:
        case "Enq":
            yield from [] if is_timed(call.args[0]) else [call]
        case "Acquire":
            first = tuple(each.entry.value for each in call.results if each.deliveries == 1)
            plain = tuple(value for value in first if not is_timed(value))
            if plain or not call.results:
                yield replace(call, operation="Deq", results=plain)
        case "Deq" | "Peek":
            plain = tuple(value for value in call.results if not is_timed(value))
            if plain or not call.results:
                yield replace(call, results=plain)
        case "Size" if not has_timed:
            yield call


def _items(calls: Sequence[Call]) -> dict[str, Any]:
    """The ids of all items that were ever seen under a lease, and their values."""
    items: dict[str, Any] = {}
    for call in calls:
        if call.operation == "Acquire":
            items.update((each.entry.id, each.entry.value) for each in call.results)
        elif call.operation == "Book" and call.results:
            book: LeaseBook = call.results[0]
            items.update((each.entry.id, each.entry.value) for each in book.leases)
            items.update((each.entry.id, each.entry.value) for each in book.dead)
    return items


def _item_of(token: str) -> tuple[int, str]:
    deliveries, _, entry_id = token.partition("/")
    return int(deliveries), entry_id


def check_acknowledged_once(name: str, calls: Sequence[Call], items: dict[str, Any]) -> None:
    """No item was done with under two leases."""
    done: dict[str, str] = {}
    for call in calls:
        if call.operation not in FINAL or not call.is_known or call.args[0] in call.results:
            continue
        (token,) = call.args
        entry_id = _item_of(token)[1]
        if done.setdefault(entry_id, token) != token:
            raise Violation(f"{name}: acknowledged twice: {items.get(entry_id)}\n{shown(calls)}")


def check_kept(name: str, calls: Sequence[Call], limits: Limits) -> None:
    """After everything was drained: each acknowledged item was taken, done with, or is a dead letter; a holder that died is
    no excuse, only a plain dequeue whose outcome is unknown."""
    items = _items(calls)
    accounted = set(returned_by_dequeues(calls))
    for call in calls:
        if call.operation in FINAL and call.args[0] not in call.results:
            accounted.add(items.get(_item_of(call.args[0])[1]))
        if call.operation == "Purge":
            accounted.update(map(items.get, call.args))
    last = max(
        (call for call in calls if call.operation == "Book" and call.is_known), key=lambda call: call.returned
    )
    accounted.update(dead.entry.value for dead in last.results[0].dead)
    known = (call.args[0] for call in calls if call.operation == "Enq" and call.is_known)
    lost = [value for value in known if value not in accounted and not may_be_gone(value, calls, limits)]
    excused = sum(call.count for call in calls if call.operation == "Deq" and not call.is_known)
    if len(lost) > excused:
        raise Violation(f"{name}: lost {lost}, unknown dequeues explain {excused}\n{shown(calls)}")


def may_be_gone(value: Any, calls: Sequence[Call], limits: Limits) -> bool:
    """Whether an item may be gone for its expiry: only where not all items together would find room as dead letters."""
    items = [call.args[0] for call in calls if call.operation == "Enq"]
    has_room = len(items) <= DEAD_MAX and sum(map(text_bytes, items)) <= limits.leases_bytes_max // 2
    return is_timed(value) and not has_room


def check_order(name: str, calls: Sequence[Call]) -> None:
    """Each acquire gives first what was met before, then what was not; both in the order of their timestamps."""
    for call in calls:
        if call.operation == "Acquire":
            order = [
                (each.deliveries == 1 and not is_timed(each.entry.value), each.entry.t)
                for each in call.results
            ]
            if order != sorted(order) and not any(is_timed(each.entry.value) for each in call.results):
                raise Violation(f"{name}: delivered in another order: {call}\n{shown(calls)}")


def check_early(name: str, calls: Sequence[Call]) -> None:
    """Nobody is given an item while another's lease of it runs, unless that one gave it back."""
    released = {call.args[0] for call in calls if call.operation in ("Release", "Reject")}
    until: dict[tuple[str, int], int] = {}
    given = [(each, call) for call in calls if call.operation == "Acquire" for each in call.results]
    for record, _ in given:
        until[record.entry.id, record.deliveries] = record.until_us
    for record, call in given:
        before = (record.entry.id, record.deliveries - 1)
        is_over = until.get(before, 0) <= WALL_US_START + call.returned_us
        if not is_over and f"{before[1]}/{before[0]}" not in released:
            raise Violation(f"{name}: delivered too early: {record}\n{shown(calls)}")


class Course(NamedTuple):
    """Where an item is: "none", "queued", "held", "waiting", "dead" or "gone"; how often it was delivered; how leases ended."""

    where: str
    deliveries: int = 0
    endings: tuple[tuple[int, str], ...] = ()

    def moved(self, where: str, deliveries: int | None = None) -> "Course":
        """Elsewhere."""
        return Course(where, self.deliveries if deliveries is None else deliveries, self.endings)


class Item(Model):
    """The course of one item. Some steps nobody hears of: a delivery whose outcome is unknown, being set aside until it is
    due, becoming a dead letter, and being taken back from those."""

    def __init__(
        self, entry_id: str, value: Any, calls: Sequence[Call], limits: Limits, *, may_wear: bool
    ) -> None:
        self.id: Final = entry_id
        self.value: Final = value
        self._may_wear: Final = may_wear
        self._is_timed: Final = is_timed(value)
        self._may_be_gone: Final = may_be_gone(value, calls, limits)
        self._memory_us: Final = int(limits.retry_window_s * 1e6)
        self._first_us: Final[dict[tuple[str, str], int]] = {}
        """When each ending of a lease was first asked for."""
        for call in calls:
            if call.operation in TENDING:
                known_us = self._first_us.get((call.operation, call.args[0]), call.invoked_us)
                self._first_us[call.operation, call.args[0]] = min(known_us, call.invoked_us)
        self._unknown: Final = sum(call.operation == "Acquire" and not call.is_known for call in calls)
        self._may_be_requeued: Final = any(call.operation == "Requeue" for call in calls)
        self._is_purged: Final = any(call.operation == "Purge" and entry_id in call.args for call in calls)
        self._most: Final = sum(each.entry.id == entry_id for each in _given(calls)) + self._unknown

    def initial(self) -> Hashable:
        """See Model."""
        return Course("none")

    def after(self, state: Course, call: Call) -> Iterable[Hashable]:
        """See Model."""
        found = {state}
        todo = [state]
        while todo:
            for silent in self._silent(todo.pop()):
                if silent not in found:
                    found.add(silent)
                    todo.append(silent)
        return [after for each in sorted(found) for after in self._after(each, call)]

    def _silent(self, at: Course) -> Iterator[Course]:
        is_kept = at.where in ("held", "waiting")
        if self._unknown and (is_kept or at.where == "queued") and at.deliveries < self._most:
            yield at.moved("held", at.deliveries + 1)
        if self._is_timed and at.where == "queued":
            yield at.moved("waiting")
        if (is_kept and (self._may_wear or self._is_timed)) or (self._is_timed and at.where == "queued"):
            yield at.moved("dead")
        if self._may_be_requeued and at.where == "dead":
            yield at.moved("waiting")
        if (self._is_purged or self._may_be_gone) and at.where == "dead":
            yield at.moved("gone")

    def _after(self, at: Course, call: Call) -> list[Course]:
        match call.operation:
            case "Enq":
                return [at.moved("queued")] if at.where == "none" else []
            case "Deq":
                return [at.moved("gone")] if at.where == "queued" else []
            case "Deliver":
                is_next = at.where in ("queued", "held", "waiting") and call.count == at.deliveries + 1
                return [at.moved("held", call.count)] if is_next else []
            case "Seen":
                return [at] if call.results == _seen(at) else []
        return self._tended(at, call)

    def _tended(self, at: Course, call: Call) -> list[Course]:
        deliveries, how = _item_of(call.args[0])[0], call.operation
        is_held = at.where == "held" and at.deliveries == deliveries
        is_repeat = (deliveries, how) in at.endings
        if call.results:
            asked_us = call.returned_us - self._first_us[how, call.args[0]]
            return [] if is_held or (is_repeat and asked_us <= self._memory_us) else [at]
        if not is_held:
            return [at] if is_repeat and call.is_known else []
        if how == "Renew":
            return [at] if call.is_known else []
        where = {"Release": "waiting", "Reject": "dead"}.get(how, "gone")
        return [Course(where, deliveries, (*at.endings, (deliveries, how)))]


def _seen(at: Course) -> tuple[Any, ...]:
    """What a look at the leases shows of an item that is there."""
    return (at.where, at.deliveries) if at.where in ("held", "waiting", "dead") else ()


def _check_course(name: str, item: Item, calls: Sequence[Call]) -> int:
    """All that happened to one item has an order."""
    own = [each for call in calls for each in _of_item(item.id, item.value, call)]
    try:
        if linearization(item, own) is None:
            raise Violation(f"{name}: {item.value} took no right course:\n{shown(own)}")
    except Inconclusive:
        return 1
    return 0


def _given(calls: Sequence[Call]) -> Iterator[Leased]:
    return (each for call in calls if call.operation == "Acquire" for each in call.results)


def _of_item(entry_id: str, value: Any, call: Call) -> Iterator[Call]:
    """What of a call is about the item."""
    match call.operation:
        case "Enq" if call.args[0] == value:
            yield replace(call, after=None)
        case "Deq" if value in call.results:
            yield call
        case "Acquire":
            yield from (_delivered(call, each) for each in call.results if each.entry.id == entry_id)
        case "Book" if call.is_known:
            yield replace(call, operation="Seen", results=_shown_in(entry_id, call.results[0]))
        case operation if operation in TENDING and _item_of(call.args[0])[1] == entry_id:
            yield replace(call, results=tuple(token for token in call.results if token == call.args[0]))


def _delivered(call: Call, record: Leased) -> Call:
    return replace(call, operation="Deliver", results=(), count=record.deliveries)


def _shown_in(entry_id: str, book: LeaseBook) -> tuple[Any, ...]:
    for record in book.leases:
        if record.entry.id == entry_id:
            return ("held" if record.is_held else "waiting", record.deliveries)
    for dead in book.dead:
        if dead.entry.id == entry_id:
            return ("dead", dead.deliveries)
    return ()
