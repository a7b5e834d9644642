"""How far a proposer looks into an object's logs: what it asks of each replica, and how much of it is kept in mind. Pure.

Owns sizes of windows. Must not know ballots, nor what is decided: a window too small costs another look, nothing else.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from ....adts.log import Seen, Summary
from ....adts.types.queue import view
from ....api_specs.messages import Window
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.log_cache import LogCache
from .transitions import Command, Plan, entries_wanted, is_short

WINDOW_MIN: Final = 32
"""Entries asked for ahead of those that are taken now."""
ASIDE_MAX: Final = 256
"""Entries looked at, at most, for an acquire that meets only items to be set aside (not due yet, or expired)."""
CACHED_MIN: Final = 128
"""Entries of a queue that the log cache keeps, at least."""
CELL_ROWS: Final = 1000
"""Entries of a cell asked for at once; older than the current value, they go as soon as it is complete."""


class ReadWindows:
    """The windows on one object."""

    def __init__(self, cache: LogCache, *, is_queue: bool) -> None:
        self._cache: Final = cache
        self._is_queue: Final = is_queue
        self._aside = 0

    def note_aside(self, *, is_all: bool) -> None:
        """Whether all that the latest decision met was set aside: then the next one looks at twice as much, else a thousand
        delayed items at the front would cost a thousand decisions."""
        self._aside = min(max(2 * self._aside, WINDOW_MIN // 2), ASIDE_MAX) if is_all else 0

    def wanted(self, commands: Sequence[Command]) -> int:
        """How many entries to look at for these commands."""
        return max(entries_wanted(commands), self._aside)

    def trim(self, wanted: int) -> None:
        """Keep no more of a long log in mind than the next few batches: a decision must not cost its length."""
        self._cache.trim(_kept(wanted) if self._is_queue else CELL_ROWS)

    def front(self, wanted: int) -> tuple[dict[str, Seen], Timestamp]:
        """What is known of a queue's front, by id, and up to where that is all; the same where another operation needs the whole queue
        kept in mind."""
        return self._cache.lowest(_kept(wanted))

    def last_of(self, summary: Summary, wanted: int) -> Timestamp:
        """The last of the first `wanted` entries that wait over `summary`, as far as is known: where to fence a queue."""
        front, _ = self.front(wanted)
        heads = view(summary, front)[:wanted]
        return heads[-1].entry.t if heads else ZERO

    def is_cut_off(self, plan: Plan, commands: list[Command], bound: Timestamp) -> bool:
        """Whether somebody would get fewer items than asked for while further ones wait above `bound`, up to which logs are
        fenced: as where a replica that missed them set its fence at its own last entry. Another look fences all logs there.
        """
        if not is_short(plan, commands):
            return False
        front, _ = self.front(self.wanted(commands))
        left = view(plan.summary, front)
        return bool(left) and left[0].entry.t > bound

    def at(self, replica: str, wanted: int, horizon: Timestamp, source: str) -> Window:
        """Ask for more entries only when few above `horizon` are left of what is known of this replica's log.

        Payloads of a queue come from replica `source` only; a cell's entries are few anyway.
        """
        if not self._is_queue:
            return self._cache.window(replica, CELL_ROWS, payload=True)
        upto = self._cache.known_upto(replica)
        ahead = (timestamp for timestamp in self._cache.seen if horizon < timestamp <= upto)
        enough = wanted + WINDOW_MIN // 2
        limit = max(2 * wanted, WINDOW_MIN) if len(list(islice(ahead, enough))) < enough else 0
        return self._cache.window(replica, limit, payload=replica == source)


def _kept(wanted: int) -> int:
    """How many entries of a queue to keep in mind."""
    return max(2 * wanted, CACHED_MIN)
