"""What a store remembers of objects, so that the usual questions about their newest rows ask no statement."""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from ...adts.log import Entry
from ...api_specs.values import payload_work
from ...timestamps.timestamp import ZERO, Timestamp
from ..protocol.log import ObjectState

RECENT_MAX: Final = 4000
"""Timestamps of its newest rows that a cached object remembers."""
OBJECTS_CACHED_MAX: Final = 20_000
TIMESTAMPS_CACHED_MAX: Final = 500_000
"""Over all cached objects."""
BYTES_CACHED_MAX: Final = 64 * 1024 * 1024
"""Of states, as they are stored, over all cached objects. One that is larger stays while no other is used."""


class CachedObject:
    """What is known about an object without asking the statements.

    `recent` holds the timestamp of every row above `recent_above`, in order, so that the usual questions about the newest
    rows (whether a timestamp has one, which is the next below) need no query, and no walk. `arrived` is at or above the
    arrival number of each row. `size` is what its state takes on disk, in bytes. `counted` says how many rows lie above a
    timestamp and how much work their payloads are, of the timestamp that was asked for last.
    """

    __slots__ = ("arrived", "counted", "number", "recent", "recent_above", "size", "state")

    def __init__(
        self, number: int, state: ObjectState | None, recent_above: Timestamp, arrived: int = 0, size: int = 0
    ) -> None:
        self.number = number
        self.arrived = arrived
        self.state = state
        self.size = size
        self.counted: tuple[Timestamp, int, int] | None = None
        self.recent: list[Timestamp] = []
        self.recent_above = recent_above

    @property
    def newest(self) -> Timestamp:
        """At or above the timestamp of each row."""
        return self.recent[-1] if self.recent else self.recent_above

    def add(self, entries: Iterable[Entry]) -> None:
        """There are rows of these entries, too."""
        for entry in entries:
            if entry.t > self.recent_above:
                insort(self.recent, entry.t)
        if len(self.recent) > RECENT_MAX:
            self.drop(self.recent[-(RECENT_MAX // 2)])
        if self.counted is not None:
            after, rows, work = self.counted
            above = [entry for entry in entries if entry.t > after]
            self.counted = after, rows + len(above), work + payload_work(above)

    def drop(self, upto: Timestamp) -> None:
        """Remember only what lies above `upto`; what is below must be asked for."""
        if upto > self.recent_above:
            del self.recent[: bisect_right(self.recent, upto)]
            self.recent_above = upto

    def has(self, timestamp: Timestamp) -> bool:
        """Whether it is among the recent ones."""
        place = bisect_left(self.recent, timestamp)
        return place < len(self.recent) and self.recent[place] == timestamp


_NONE: Final = CachedObject(0, None, ZERO)


class ObjectCache:
    """The objects that were used last, by name."""

    def __init__(self) -> None:
        self._objects: OrderedDict[str, CachedObject] = OrderedDict()
        self.last_name: str | None = None
        self.last = _NONE
        """The one used last, if one was: a request asks for its object about ten times."""
        self._recent = 0
        self._bytes = 0

    def get(self, name: str) -> CachedObject | None:
        """The object, which is used now."""
        here = self._objects.get(name)
        if here is not None:
            self._objects.move_to_end(name)
            self.last_name, self.last = name, here
        return here

    def put(self, name: str, here: CachedObject) -> CachedObject:
        self._objects[name] = here
        self.last_name, self.last = name, here
        self._recent += len(here.recent)
        self._bytes += here.size
        return here

    def weigh(self, here: CachedObject, size: int) -> None:
        """The object's state takes so many bytes now."""
        self._bytes += size - here.size
        here.size = size

    def add(self, here: CachedObject, entries: Iterable[Entry]) -> None:
        """The object has rows of these entries now."""
        before = len(here.recent)
        here.add(entries)
        self._recent += len(here.recent) - before

    def drop(self, here: CachedObject, upto: Timestamp) -> None:
        """The object's rows up to there are gone."""
        before = len(here.recent)
        if here.counted is not None and upto > here.counted[0]:
            here.counted = None
        here.drop(upto)
        self._recent += len(here.recent) - before

    def pop(self, name: str) -> None:
        self._uncount(self._objects.pop(name))
        self.last_name, self.last = None, _NONE

    def clear(self) -> None:
        self._objects.clear()
        self.last_name, self.last = None, _NONE
        self._recent = self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether some must be forgotten; nothing of the transaction may be known of them alone."""
        return self._exceeds(1)

    def shrink(self) -> None:
        """Forget the objects that were not used for longest, down to half of each bound; the one used last stays."""
        while self._exceeds(2) and len(self._objects) > 1:
            self._uncount(self._objects.popitem(last=False)[1])

    def _exceeds(self, part: int) -> bool:
        """Whether this is more than that part of a bound (1: all of it, 2: half of it)."""
        return (
            len(self._objects) > OBJECTS_CACHED_MAX // part
            or self._recent > TIMESTAMPS_CACHED_MAX // part
            or self._bytes > BYTES_CACHED_MAX // part
        )

    def _uncount(self, here: CachedObject) -> None:
        self._recent -= len(here.recent)
        self._bytes -= here.size
