"""How much a replica takes in: objects, entries of one log, bytes of its disk, calls that wait to be run; and what it refuses where a bound is
met. Pure.

Owns the rule: only what makes something new is refused, an object, an entry or a larger value. Other decisions on objects that it has,
their marks and deletions go on, for they are what makes room again. Must not know how use is counted (`quorate.replica.store.usage`).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Protocol

from msgspec import Struct

from ...adts.log import Entry, Summary
from ...adts.types.catalogue import adt_of
from ...api_specs.limits import CAPACITY_ALARM, Capacity
from ...api_specs.messages import (
    Accept,
    Append,
    Changes,
    Collect,
    Commit,
    Refused,
    Request,
    Reserve,
    Row,
    Scan,
)
from ...api_specs.values import payload_work, text_bytes, waiting_weight
from ...gc.collection import ended_at
from ...timestamps.timestamp import ZERO, Timestamp
from .log import ObjectState
from .refusals import Bounds

DECIDED_PERCENT: Final = 10
"""So far beyond the bounds go decisions that make a value larger, and those on objects that the replica lacks, for others may hold their
entries, and these are to be taken out."""
REPAIRED_PERCENT: Final = 25
"""So far goes what others hold: entries that are written back, and decisions that settle what there is. A reader who may do
neither has no answer, and could not even see what to delete."""
FORGOTTEN_PERCENT: Final = 50
"""So far goes what makes room, also where all that has taken it: deletions in objects that it has, decisions by which deletions are to be
forgotten, and the news that an object came to nothing, which all replicas must hold before they forget it."""


class Use(Struct, frozen=True):
    """How much of it is used now."""

    objects: int
    disk_bytes: int
    disk_free: int
    longest: int
    """Entries of the longest log."""


class Holds(Protocol):
    """What the rule asks of a store."""

    def state(self, name: str) -> ObjectState | None:
        """The object's state, or None when the store does not know it."""

    def stored(self, name: str, timestamps: list[Timestamp]) -> set[Timestamp]:
        """Those of `timestamps` that have a row."""

    def length(self, name: str) -> int:
        """Rows of the object's log."""

    def above(self, name: str, after: Timestamp) -> tuple[int, int]:
        """How many rows of the object lie above `after`, and the work of their payloads together."""

    def newest(self, name: str, after: Timestamp, limit: int) -> list[Row]:
        """The newest rows above `after`, at most `limit`."""

    def use(self) -> Use:
        """How much is used."""


def refused(request: Request, store: Holds, capacity: Capacity) -> Refused | None:
    """Why the replica does not do it; None where there is room, or nothing new."""
    if type(request) is Append:
        problem = _refused_append(request, store, capacity)
        if problem is None or (further := _for_append(request, store, capacity)) is capacity:
            return problem
        return _refused_append(request, store, further)
    if type(request) is Scan or type(request) is Changes or not _keeps(request):
        return None
    if type(request) is Reserve:
        return _refused_disk(store.use(), capacity)
    known = store.state(request.object)
    further = beyond(capacity, _percent_beyond(request))
    if type(request) is not Collect and (size := _value_bytes(request.summary)):
        problem = _refused_disk(store.use(), further)
        if problem is not None and size > _bytes_here(request.object, known, store):
            return problem
    if known is not None:
        return None
    use = store.use()
    return _refused_disk(use, further) or _refused_object(request.object, use, further.objects_max)


@lru_cache
def beyond(capacity: Capacity, percent: int) -> Capacity:
    """Bounds that are so many percent wider."""
    return Capacity(
        objects_max=_percent(capacity.objects_max, 100 + percent),
        log_entries_max=_percent(capacity.log_entries_max, 100 + percent),
        disk_bytes_max=_percent(capacity.disk_bytes_max, 100 + percent),
        disk_free_min=_percent(capacity.disk_free_min, 100 - percent),
    )


def _percent(number: int, percent: int) -> int:
    return -(-number * percent // 100)


def _for_append(request: Append, store: Holds, capacity: Capacity) -> Capacity:
    if _deletes(request, store):
        return beyond(capacity, FORGOTTEN_PERCENT)
    return beyond(capacity, REPAIRED_PERCENT) if request.attempt == "repair" else capacity


def _deletes(request: Append, store: Holds) -> bool:
    """Whether it only deletes keys that the replica knows."""
    if request.entries and request.entries[0].value is not None:
        return False  # As most of them.
    return all(entry.value is None for entry in request.entries) and store.state(request.object) is not None


def _percent_beyond(request: Accept | Collect | Commit) -> int:
    purpose = "change" if isinstance(request, Commit) else request.purpose
    if purpose == "forget" or _makes_room(request):
        return FORGOTTEN_PERCENT
    return REPAIRED_PERCENT if purpose == "settle" else DECIDED_PERCENT


def _makes_room(request: Accept | Collect | Commit) -> bool:
    """Whether it tells that an object came to nothing: all replicas are to hold that, and then forget the object."""
    if isinstance(request, Collect) or request.summary is None:
        return False
    return ended_at(request.object, request.summary, request.ballot) is not None


def _bytes_here(name: str, known: ObjectState | None, store: Holds) -> int:
    """Of the value that the object has: its summary's, or a newer one in its log."""
    if known is None:
        return 0
    newest = (row.entry.value for row in store.newest(name, ZERO, 1))
    return max([_value_bytes(known.summary), *(len(value) for value in newest if isinstance(value, str))])


def _value_bytes(summary: Summary | None) -> int:
    return 0 if summary is None else len(summary.value or "")


def _keeps(request: Accept | Collect | Commit | Reserve) -> bool:
    """Whether the replica would keep something of the object from now on."""
    if type(request) is Commit:
        return request.summary is not None
    if type(request) is Collect:
        return request.ballot is not None or request.fence > ZERO or bool(request.fence_next)
    return True


def _refused_append(request: Append, store: Holds, capacity: Capacity) -> Refused | None:
    use = store.use()
    problem = _refused_disk(use, capacity)
    if problem is None and use.objects >= capacity.objects_max and store.state(request.object) is None:
        problem = _refused_object(request.object, use, capacity.objects_max)
    length = store.length(request.object)
    if problem is None and length + len(request.entries) <= capacity.log_entries_max:
        return None
    entries = {entry.t for entry in request.entries}
    if problem is None and length + len(entries) > capacity.log_entries_max:
        problem = Refused(
            "log-full",
            f"the log of {request.object} has {length} entries at this replica, of {capacity.log_entries_max} that it may have",
        )
    # A repeat of what is held gets its answer.
    return None if problem is None or store.stored(request.object, list(entries)) == entries else problem


def with_room(request: Append, store: Holds, capacity: Capacity) -> tuple[Entry, ...]:
    """Of entries that are written back or installed, those that there is room for: where the log is full, those that the replica has, and as many others,
    in their order, as the log takes; where the replica is, none."""
    full = refused(request, store, capacity)
    if full is None or full.reason != "log-full":
        return request.entries if full is None else ()
    here = store.stored(request.object, [entry.t for entry in request.entries])
    room = _for_append(request, store, capacity).log_entries_max - store.length(request.object)
    others = iter(range(room))
    return tuple(entry for entry in request.entries if entry.t in here or next(others, None) is not None)


def refused_call(request: Request, store: Holds, bounds: Bounds) -> Refused | None:
    """Why the replica does not store a call of one's own type; None where it may, or where the request is none, or writes back what others hold.

    Stored calls run before anybody is answered, each on the whole state, and one that makes the state larger than a value may be stops the object. So no
    more are stored than make that impossible, and than are run soon. It holds at each replica by what that one knows: between
    a state that some replica knew and any later one, no replica has taken in more than `waiting_bytes_max`.
    """
    if not isinstance(request, Append) or request.attempt == "repair":
        return None
    if adt_of(request.object) not in bounds.own_types:
        return None
    state = store.state(request.object) or ObjectState(request.object)
    here, work = store.above(request.object, state.horizon)
    state_bytes = text_bytes(state.summary.value or "")
    calls, new = here + len(request.entries), payload_work(request.entries)
    weight = waiting_weight(calls, work + new, state.summary.value)
    if weight <= bounds.waiting_bytes_max and state_bytes <= bounds.state_bytes_max:
        return None
    entries = [entry.t for entry in request.entries]
    if store.stored(request.object, entries) == set(entries):
        return None  # A repeat of what is held gets its answer.
    return Refused(
        "log-full",
        f"{here} calls of {request.object} have not run at this replica, and with further ones weigh {weight} bytes, of {bounds.waiting_bytes_max} at most, with "
        f"the work on its state of {state_bytes} bytes, of {bounds.state_bytes_max}: the next decision that finds its quorums runs them",
    )


def _refused_object(name: str, use: Use, objects_max: int) -> Refused | None:
    if use.objects < objects_max:
        return None
    return Refused(
        "too-many-objects",
        f"this replica has {use.objects} objects, of {objects_max} that it may have: it makes no {name}",
    )


def _refused_disk(use: Use, capacity: Capacity) -> Refused | None:
    if use.disk_bytes >= capacity.disk_bytes_max:
        return Refused(
            "disk-full",
            f"this replica's database holds {use.disk_bytes} bytes, of {capacity.disk_bytes_max} that it may hold",
        )
    if use.disk_free < capacity.disk_free_min:
        return Refused(
            "disk-full",
            f"this replica's disk has {use.disk_free} bytes free, of {capacity.disk_free_min} that are to stay free",
        )
    return None


def shares(use: Use, capacity: Capacity) -> dict[str, float]:
    """Which share of each bound is used, by its option's name: 1 or more where it is met."""
    return {
        "objects-max": use.objects / capacity.objects_max,
        "log-entries-max": use.longest / capacity.log_entries_max,
        "disk-bytes-max": use.disk_bytes / capacity.disk_bytes_max,
        "disk-free-min": min(1.0, capacity.disk_free_min / max(1, use.disk_free)),
    }


def alarm(used: Mapping[str, float]) -> str:
    """Which bounds are nearly met, in words; empty when none is."""
    near = [f"{name} ({share:.0%} used)" for name, share in used.items() if share >= CAPACITY_ALARM]
    return f"this replica has nearly as much as it may: {', '.join(near)}" if near else ""
