"""Objects that wait until they are due, and may be put off meanwhile. Pure.

Owns the order. Must not know what is due.
"""

import heapq
from typing import Final


class DueList:
    """Each object is in it once, under a time that is not after its due one."""

    def __init__(self) -> None:
        self._heap: Final[list[tuple[float, str]]] = []
        self._due: Final[dict[str, float]] = {}

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, name: str) -> bool:
        return name in self._due

    def push(self, name: str, due_s: float) -> None:
        """Wait until then. One that waits already is put off, and never brought forward."""
        if name not in self._due:
            heapq.heappush(self._heap, (due_s, name))
        self._due[name] = max(due_s, self._due.get(name, due_s))

    def is_due(self, mono_s: float) -> bool:
        """Whether something may be due."""
        return bool(self._heap) and self._heap[0][0] <= mono_s

    def pop(self, mono_s: float) -> str | None:
        """Something that is due, which waits no more. None where the first one was put off, or nothing is due."""
        if not self.is_due(mono_s):
            return None
        _, name = heapq.heappop(self._heap)
        due_s = self._due[name]
        if due_s <= mono_s:
            del self._due[name]
            return name
        heapq.heappush(self._heap, (due_s, name))
        return None
