"""What a loop over a queue holds under leases: what waits for the caller, what the caller has, what the replicas are to be told.

Owns the counting of room, when leases are to be renewed, and what goes back at the end. Pure: times come in as seconds of a
monotonic clock; tasks and calls are `quorate.client_sdk.api.consuming`'s.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...api_specs.limits import SETTLE_TOKENS_MAX
from ..errors import LeaseLost
from ..protocol.core.values import How
from .leases import Lease

PARTS: Final = 3
"""A lease is renewed when one part of so many has passed. Another one is for a call that comes to nothing, the last for clocks."""

LOST: Final = "lost"


class Held(Struct, eq=False):
    """An item under a lease. `since_s`: the lease was given, or renewed, then or later. `end`: what became of it, None while it
    is held."""

    lease: Lease
    since_s: float
    end: How | Literal["lost"] | None = None


class Telling(Struct, frozen=True):
    """What one call tells the replicas: how the leases of these items end. `span_s` is the delay of what is released."""

    how: How
    span_s: float
    items: Sequence[Held]

    @property
    def leases(self) -> list[Lease]:
        """Their leases."""
        return [held.lease for held in self.items]


class Prefetch:
    """The items of one loop: it holds at most `most`, and each lease lasts `lease_s` seconds from when it is given or renewed.

    One call of `to_tell` is under way at a time, until `told` or `tell_again`. While it is, what it tells takes no room: an
    acquire that begins in the same turn of the event loop is decided after it. So the replicas count at most twice `most`.
    """

    def __init__(self, most: int, lease_s: float) -> None:
        self._most: Final = most
        self._part_s: Final = lease_s / PARTS
        self._waiting: Final[deque[Held]] = deque()
        self._held: Final[dict[str, Held]] = {}
        """What waits and what the caller has, by token."""
        self._ended: Final[dict[tuple[How, float], list[Held]]] = {}
        self._told: Telling | None = None
        self.is_closed = False
        """Whether the loop was left: nothing is handed out, and what is taken nevertheless goes back."""

    @property
    def held(self) -> int:
        """How many items wait, or are with the caller."""
        return len(self._held)

    @property
    def untold(self) -> int:
        """Of how many items the replicas do not know yet what became of them."""
        return sum(map(len, self._ended.values())) + (len(self._told.items) if self._told is not None else 0)

    @property
    def has_endings(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._ended)

    def room(self, now_s: float) -> int:
        """How many items to take now. None before half of all places are free, or nothing waits: each call costs the same.

        And none while a renewal is late: who is cut off for longer than a lease would else be the first to be handed its own
        items again.
        """
        free = self._most - len(self._held) - sum(map(len, self._ended.values()))
        is_worth_it = 2 * free >= self._most or not self._waiting
        is_late = any(self._is_stale(held, now_s) for held in self._held.values())
        return max(0, free) if is_worth_it and not is_late and not self.is_closed else 0

    def took(self, leases: Iterable[Lease], asked_s: float) -> None:
        """Items came, by a call that began at `asked_s`."""
        for lease in leases:
            held = self._held[lease.token] = Held(lease, asked_s)
            if self.is_closed:
                self.end(held, "release")
            else:
                self._waiting.append(held)

    def has_next(self, now_s: float) -> bool:
        """Whether an item waits whose lease certainly lasts for a while."""
        return bool(self._waiting) and not self._is_stale(self._waiting[0], now_s)

    def next(self, now_s: float) -> Held | None:
        """Hand out the item that came first. None where there is none, or its lease must be renewed before."""
        return self._waiting.popleft() if self.has_next(now_s) else None

    def end(self, held: Held, how: How, span_s: float = 0.0) -> None:
        """An item is done with. Again in the same way is harmless; LeaseLost when the lease is lost, or was ended in another way."""
        if held.end == how:
            return
        if held.end is not None:
            raise LeaseLost((held.lease.token,))
        held.end = how
        del self._held[held.lease.token]
        self._ended.setdefault((how, span_s), []).append(held)

    def to_tell(self) -> Telling | None:
        """What is to be told now, by one call: the oldest kind of ending, with all that has gathered."""
        if not self._ended:
            return None
        how, span_s = next(iter(self._ended))
        items = self._ended.pop((how, span_s))
        if rest := items[SETTLE_TOKENS_MAX:]:
            self._ended[how, span_s] = rest
        self._told = Telling(how, span_s, items[:SETTLE_TOKENS_MAX])
        return self._told

    def told(self) -> None:
        """The replicas know it."""
        self._told = None

    def tell_again(self) -> None:
        """They may not know it: it is to be told once more, with what came since."""
        if (telling := self._told) is not None:
            since = self._ended.get((telling.how, telling.span_s), [])
            self._ended[telling.how, telling.span_s] = [*telling.items, *since]
            self._told = None

    def renew_at_s(self) -> float | None:
        """When leases are to be renewed next; None while there are none."""
        return min((held.since_s + self._part_s for held in self._held.values()), default=None)

    def to_renew(self, now_s: float) -> list[Held]:
        """Whose leases to renew by one call: of all that is held as soon as one is due, so that the next time comes for all."""
        at_s = self.renew_at_s()
        return list(self._held.values()) if at_s is not None and at_s <= now_s else []

    def renewed(self, items: Iterable[Held], lost: Collection[str], asked_s: float) -> None:
        """Leases were renewed by a call that began at `asked_s`, but for those `lost` (tokens): others may have these items. One that
        waits is not handed out; of one that the caller has, the caller hears when it says that it is done."""
        for held in items:
            held.since_s = asked_s
            if held.lease.token in lost and held.end is None:
                held.end = LOST
                del self._held[held.lease.token]
                if held in self._waiting:
                    self._waiting.remove(held)

    def close(self) -> None:
        """The loop was left: all that is held goes back, also what the caller has and has said nothing of."""
        self.is_closed = True
        self._waiting.clear()
        for held in list(self._held.values()):
            self.end(held, "release")

    def _is_stale(self, held: Held, now_s: float) -> bool:
        """Whether its renewal is late by one part of the lease."""
        return held.since_s + 2 * self._part_s <= now_s
