"""Which of what a store holds arrived a window ago. Pure: the store and the time come in.

Owns the rule that this goes by the elapsed time of this very process, and by the numbers under which the store has what arrives: no step of any
clock makes anything older. A start begins anew, so that what was there is called old later, never earlier.
"""

from collections import deque
from typing import Final, Protocol

NUMBERS: Final = 32
"""Into how many parts a window is divided: of each it is noted which number the store had come to in the end."""


class Store(Protocol):
    """What is asked of a store."""

    rollbacks: int
    """How many transactions were undone."""

    def arrival(self) -> int:
        """The number of what arrived last."""


class Arrivals:
    """The numbers that one store came to in the latest window of `window_s`."""

    def __init__(self, window_s: float) -> None:
        self._window_s: Final = window_s
        self._noted: Final[deque[tuple[float, int]]] = deque()
        self._rollbacks = 0
        self._number, self._old, self._until_s = -1, -1, 0.0
        """The number that the store had come to when it was asked last, what was old then, and until when that is so if nothing arrives."""

    def old(self, store: Store, mono_s: float) -> int:
        """What has this number, or a lower one, arrived a window ago or before; -1 where that is not known of anything."""
        number = store.arrival()
        if number == self._number and mono_s < self._until_s and store.rollbacks == self._rollbacks:
            return self._old
        if store.rollbacks != self._rollbacks:
            # The numbers of an undone transaction are given again: what has them then is younger.
            self._rollbacks = store.rollbacks
            self._noted.clear()
        self._number, noted = number, self._noted
        if not noted or noted[-1][1] < number:
            if len(noted) > 1 and mono_s < noted[-2][0] + self._window_s / NUMBERS:
                noted.pop()  # What came between is called old so much later.
            noted.append((mono_s, number))
        while len(noted) > 1 and noted[1][0] + self._window_s <= mono_s:
            noted.popleft()
        first_s, first = noted[0]
        if mono_s < first_s + self._window_s:
            self._old, self._until_s = -1, first_s + self._window_s
        else:
            self._old, self._until_s = first, noted[1][0] + self._window_s if len(noted) > 1 else float("inf")
        return self._old
