"""The log caches of one front end: which objects it remembers. Pure.

Owns what is forgotten: the objects idle longest, which costs only speed. What somebody holds stays one and the same.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakValueDictionary

from .log_cache import LogCache

OBJECTS_MAX: Final = 10_000
"""Objects that a front end remembers; the one idle longest is forgotten first, which costs only speed."""
BYTES_MAX: Final = 128 * 1024 * 1024
"""Bytes of entries, values and summaries in all log caches, about; of one object alone there may be more."""


class LogCaches:
    """By object. `forget` is told of each object that is forgotten, and may refuse with False."""

    def __init__(self, replicas: Iterable[str], forget: Callable[[str], bool]) -> None:
        self._replicas = tuple(replicas)
        self._forget: Final = forget
        self._recent: Final[OrderedDict[str, LogCache]] = OrderedDict()
        self._held: Final[WeakValueDictionary[str, LogCache]] = WeakValueDictionary()
        """All log caches that somebody holds: an operation under way needs its own, idle or not, and what it learns."""
        self._bytes = 0
        """What came in since all were weighed last counts in full, but that a summary replaces the one before."""

    def follow(self, replicas: Iterable[str]) -> None:
        """These are the replicas from now on. What was shown before is forgotten: it may have been deleted since, and the deletion forgotten, of which new
        members know nothing; and what only those have shown that have left, nobody could tell the rest of."""
        before, self._replicas = self._replicas, tuple(replicas)
        for cache in {id(each): each for each in (*self._recent.values(), *self._held.values())}.values():
            cache.replicas = self._replicas
            if set(self._replicas) != set(before):
                cache.start_over()

    def of(self, name: str) -> LogCache:
        """What is known of the object."""
        cache = self._recent.get(name)
        if cache is not None:
            self._recent.move_to_end(name)
            return cache
        cache = self._held.get(name)
        if cache is None:
            cache = self._held[name] = LogCache(name, self._replicas)
        self._recent[name] = cache
        if len(self._recent) > OBJECTS_MAX:
            self._forget_idle()
        return cache

    def held(self, name: str) -> LogCache | None:
        """The same, if anything is known."""
        return self._recent.get(name) or self._held.get(name)

    def count(self, cache: LogCache) -> None:
        """Entries have come in to this one: where there are too many bytes in all, those idle longest are forgotten."""
        self._bytes = max(0, self._bytes + cache.taken)
        cache.taken = 0
        if self._bytes > BYTES_MAX:
            self._forget_bytes()

    def _forget_bytes(self) -> None:
        """Down to half the bound, so that all need not be weighed again soon; what is in use may stay, and the object used last
        does: a long queue would be read anew each time."""
        weights = {name: cache.weight() for name, cache in self._recent.items()}
        left = sum(weights.values())
        for name, weight in list(weights.items())[:-1]:
            if left <= BYTES_MAX // 2:
                break
            if weight and self._forget(name):
                del self._recent[name]
                left -= weight
        self._bytes = min(left, BYTES_MAX // 2)

    def clear(self) -> None:
        """Forget all."""
        self._bytes = 0
        self._recent.clear()
        self._held.clear()

    def _forget_idle(self) -> None:
        for name in self._recent:
            if self._forget(name):
                del self._recent[name]
                return
