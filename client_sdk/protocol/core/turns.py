"""What callers of a replica share: they take turns, and none has more than is left for others. A caller is a token; where none is
asked for, an address; None is the replica itself, with all that its front end does for REST callers.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

_Each = TypeVar("_Each")


class Turns(Generic[_Each]):
    """What waits, by caller: the next is one of the caller whose last one is longest ago."""

    def __init__(self) -> None:
        self._waiting: Final[OrderedDict[Hashable, deque[_Each]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, caller: Hashable, each: _Each) -> None:
        """It waits behind others of that caller."""
        waiting = self._waiting.get(caller)
        if waiting is None:
            self._waiting[caller] = deque((each,))
        else:
            waiting.append(each)

    def put_back(self, caller: Hashable, each: _Each) -> None:
        """It is the next one, before all others."""
        self._waiting.setdefault(caller, deque()).appendleft(each)
        self._waiting.move_to_end(caller, last=False)

    def pop(self, may_go: Callable[[Hashable], bool] | None = None) -> _Each | None:
        """The next one of a caller that may go, which waits no more; None where there is none."""
        for caller, of_caller in self._waiting.items():
            if may_go is None or may_go(caller):
                each = of_caller.popleft()
                if of_caller:
                    self._waiting.move_to_end(caller)
                else:
                    del self._waiting[caller]
                return each
        return None


class Shares:
    """Room for so much, of which no caller has more than is left then for others (a threshold that moves: Choudhury and Hahne 1998):
    one caller half of it, a second one a quarter."""

    def __init__(self, most: int) -> None:
        self.held = 0
        """By all callers together."""
        self._most: Final = most
        self._held: Final[dict[Hashable, int]] = {}

    def may_take(self, caller: Hashable, size: int = 1) -> bool:
        """Whether there is as much for this caller."""
        return self._held.get(caller, 0) + size <= self._most - self.held

    def fitted(self, size: int) -> int:
        """What that much counts for, where one who has room for one may take more: with a quarter of all, something is left for others."""
        return min(size, max(1, self._most // 4))

    def take(self, caller: Hashable, size: int = 1) -> None:
        """It is this caller's until it is given back."""
        self.held += size
        self._held[caller] = self._held.get(caller, 0) + size

    def give(self, caller: Hashable, size: int = 1) -> None:
        """What this caller took is free again."""
        self.held -= size
        left = self._held.get(caller, 0) - size
        if left:
            self._held[caller] = left
        else:
            self._held.pop(caller, None)
