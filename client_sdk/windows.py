"""How far a decider looks into an object's logs: what it asks of each replica, and how much of it is kept in mind. Pure.

Owns sizes of windows. Must not know ballots, nor what is decided: a window too small costs another look, nothing else.
"""

from typing import Final

from quorate.adts.log import Summary
from quorate.adts.queue import view
from quorate.api_specs.messages import Window
from quorate.client_sdk.mirror import Mirror
from quorate.timestamps.timestamp import ZERO, Timestamp

WINDOW_MIN: Final = 32
"""Entries asked for ahead of those that are taken now."""
MIRRORED_MAX: Final = 128
"""Entries of a queue kept in mind, at least."""
CELL_ROWS: Final = 1000
"""Entries of a cell asked for at once; older than the current value, they go as soon as it is complete."""


class Windows:
    """The windows on one object."""

    def __init__(self, mirror: Mirror, *, is_queue: bool) -> None:
        self._mirror: Final = mirror
        self._is_queue: Final = is_queue

    def trim(self, wanted: int) -> None:
        """Keep no more of a long queue in mind than the next few batches: a decision must not cost its length."""
        if self._is_queue:
            self._mirror.trim(max(2 * wanted, MIRRORED_MAX))

    def last_of(self, summary: Summary, wanted: int) -> Timestamp:
        """The last of the first `wanted` entries that wait over `summary`, as far as is known: where to fence a queue."""
        heads = view(summary, self._mirror.by_id())[:wanted]
        return heads[-1].entry.t if heads else ZERO

    def at(self, replica: str, wanted: int, horizon: Timestamp, source: str) -> Window:
        """Ask for more entries only when few above `horizon` are left of what is known of this replica's log.

        Payloads of a queue come from replica `source` only; a cell's entries are few anyway.
        """
        if not self._is_queue:
            return self._mirror.window(replica, CELL_ROWS, payload=True)
        upto = self._mirror.known_upto(replica)
        ahead = sum(horizon < timestamp <= upto for timestamp in self._mirror.seen)
        limit = max(2 * wanted, WINDOW_MIN) if ahead < wanted + WINDOW_MIN // 2 else 0
        return self._mirror.window(replica, limit, payload=replica == source)
