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


class LogCaches:
    """By object. `forget` is told of each object that is forgotten, and may refuse with False."""

    def __init__(self, replicas: Iterable[str], forget: Callable[[str], bool]) -> None:
        self._replicas: Final = tuple(replicas)
        self._forget: Final = forget
        self._recent: Final[OrderedDict[str, LogCache]] = OrderedDict()
        self._held: Final[WeakValueDictionary[str, LogCache]] = WeakValueDictionary()
        """All log caches that somebody holds: an operation under way needs its own, idle or not, and what it learns."""

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

    def clear(self) -> None:
        """Forget all."""
        self._recent.clear()
        self._held.clear()

    def _forget_idle(self) -> None:
        for name in self._recent:
            if self._forget(name):
                del self._recent[name]
                return
