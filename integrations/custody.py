"""What a consumer holds under leases: what waits to be delivered, what is with the caller, what is to be told to the replicas.

Owns the counting of room, the order of queues, and when a lease is to be renewed. Pure: times come in as seconds of a
monotonic clock, threads and replicas are `quorate.integrations.leaseholder`'s.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import count
from typing import Final

from msgspec import Struct

from ..client_sdk import Lease

HELD_MAX: Final = 100
"""What is held at most where the caller sets no bound of its own."""


class Ending(Enum):
    """What becomes of an item in the end."""

    ACK = "ack"
    """It is done with."""

    RELEASE = "release"
    """It is given back to its queue."""

    REJECT = "reject"
    """It goes to the dead letters."""


class Held(Struct, eq=False):
    """An item in custody. `tag` names it to the caller; `renew_at_s` is when its lease should be renewed."""

    tag: str
    queue: str
    lease: Lease
    renew_at_s: float


Endings = Mapping[tuple[str, Ending], Sequence[Held]]
"""What is to be told to the replicas, by queue and ending."""


class Custody:
    """The items that one consumer holds, of any number of queues. A lease lasts three times `renew_after_s`, in seconds."""

    def __init__(self, renew_after_s: float) -> None:
        self._renew_after_s: Final = renew_after_s
        self._tags: Final = count(1)
        self._queues: Final[deque[str]] = deque()
        self._held: Final[dict[str, Held]] = {}
        self._ready: Final[deque[Held]] = deque()
        self._endings: dict[tuple[str, Ending], list[Held]] = {}
        self._untold: Final[dict[str, Held]] = {}
        self._most = HELD_MAX
        self.is_closed = False

    def room(self, now_s: float, queue: str | None = None) -> int:
        """How many more items may be taken, from this queue or from any; 0 when there is nothing to take them from.

        What the caller is done with takes room until the replicas know of it: if this process dies before, it comes again.
        And none is taken of a queue of which a renewal is late, or an ending untold for as long: else this consumer, cut off
        from its replicas for longer than a lease, would be the first to be handed its own items again. A call to take some that begins
        now and ends within another `renew_after_s` comes before any of these leases is over.
        """
        items = (*self._held.values(), *self._untold.values())
        late = {held.queue for held in items if held.renew_at_s + self._renew_after_s <= now_s}
        may_give = [each for each in self._queues if each not in late and queue in (each, None)]
        return max(0, self._most - len(items)) if may_give else 0

    @property
    def held(self) -> int:
        """How many items are with the caller, or wait to be delivered."""
        return len(self._held)

    @property
    def untold(self) -> int:
        """How many items the caller is done with, of which the replicas do not know it yet."""
        return len(self._untold)

    def set_most(self, most: int) -> None:
        """Hold at most so many items; 0 stands for HELD_MAX."""
        self._most = most or HELD_MAX

    def watch(self, queue: str) -> None:
        """Take from this queue too."""
        if queue not in self._queues:
            self._queues.append(queue)

    def unwatch(self, queue: str) -> None:
        """Take from this queue no more; what was not delivered is given back."""
        if queue in self._queues:
            self._queues.remove(queue)
        for held in [held for held in self._ready if held.queue == queue]:
            self._ready.remove(held)
            self.end(held.tag, Ending.RELEASE)

    def next_queues(self) -> list[str]:
        """The queues to look at, in order; each is the first in its turn, so that a full one does not hide another."""
        order = list(self._queues)
        self._queues.rotate(-1)
        return order

    def took(self, queue: str, leases: Iterable[Lease], now_s: float) -> int:
        """Items came from a queue; how many wait to be delivered now. Too late, they are given back."""
        taken = [self.keep(queue, lease, now_s) for lease in leases]
        if self.is_closed or queue not in self._queues:
            for held in taken:
                self.end(held.tag, Ending.RELEASE)
            return 0
        self._ready.extend(taken)
        return len(taken)

    def keep(self, queue: str, lease: Lease, now_s: float) -> Held:
        """Hold one item, which is with the caller already."""
        tag = str(next(self._tags))
        held = self._held[tag] = Held(tag, queue, lease, now_s + self._renew_after_s)
        return held

    def next_ready(self) -> Held | None:
        """The next item to be delivered."""
        return self._ready.popleft() if self._ready else None

    def end(self, tag: str, ending: Ending) -> bool:
        """The caller is done with an item; False for one that is not held (any more)."""
        held = self._held.pop(tag, None)
        if held is not None:
            self._untold[tag] = held
            self._endings.setdefault((held.queue, ending), []).append(held)
        return held is not None

    def release_all(self) -> None:
        """Give back all that is held."""
        self._ready.clear()
        for tag in list(self._held):
            self.end(tag, Ending.RELEASE)

    @property
    def has_endings(self) -> bool:
        """Whether the replicas are to be told something."""
        return bool(self._endings)

    def take_endings(self) -> Endings:
        """What is to be told now."""
        endings, self._endings = self._endings, {}
        return endings

    def told(self, items: Sequence[Held]) -> None:
        """The replicas know how these ended: there is room for others."""
        for held in items:
            del self._untold[held.tag]

    def tell_again(self, queue: str, ending: Ending, items: Sequence[Held]) -> None:
        """The replicas could not be told this: it is to be told once more, before what came since."""
        self._endings[queue, ending] = [*items, *self._endings.get((queue, ending), ())]

    def to_renew(self, now_s: float) -> dict[str, list[Held]]:
        """The items whose leases should be renewed by now, by queue."""
        due: dict[str, list[Held]] = {}
        for held in self._held.values():
            if held.renew_at_s <= now_s:
                due.setdefault(held.queue, []).append(held)
        return due

    def renewed(self, items: Iterable[Held], now_s: float) -> None:
        """Their leases were renewed."""
        for held in items:
            held.renew_at_s = now_s + self._renew_after_s

    def lost(self, items: Iterable[Held]) -> int:
        """Their leases are over, and others may have them: what was not delivered must not be. How many were held still."""
        found = [held for held in items if self._held.pop(held.tag, None) is not None]
        for held in found:
            if held in self._ready:
                self._ready.remove(held)
        return len(found)
