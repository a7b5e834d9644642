"""How much one batch may bring back, and how long it may take, before the rest of it is left to another batch.

Owns these bounds. A batch is handled as far as they go, and at least one of its requests always is: so each batch gets on, and
none holds up the others for long.
"""

import time
from collections.abc import Callable
from typing import Final

from ...api_specs.limits import BATCH_ENTRIES_MAX, BATCH_READS_S_MAX
from ...api_specs.messages import Accept, Append, Changes, Collect, Commit, Reply, Request, Reserve, Scan
from ...api_specs.weights import weight

_READS: Final = frozenset((Collect, Scan, Changes))


class Budget:
    """What is left for one batch: `bytes_max` of replies, the time of reads, also of those that ride along with an accept, and entries that changes bring or
    mark. Entries are counted: on a busy machine little would be done in a time, and what is left is sent again."""

    def __init__(self, bytes_max: int, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._bytes_max: Final = bytes_max
        self.bytes = 0
        """Of the replies so far."""
        self._left_s = BATCH_READS_S_MAX
        self._now_s: Final = now_s
        self._begun_s = now_s()
        self._entries = 0

    def is_spent_by(self, request: Request, reply: Reply) -> bool:
        """Count the request that was handled last; whether the rest of the batch is left to another one."""
        now_s = self._now_s()
        if type(request) is Append:
            self._entries += len(request.entries)
        elif type(request) is Reserve:
            self._entries += len(request.proposals)
        elif type(request) is Commit:
            self._entries += len(request.complete)
        elif type(request) in _READS or (type(request) is Accept and request.then is not None):
            self._left_s -= now_s - self._begun_s
        self._begun_s = now_s
        self.bytes += weight(reply)
        return self.bytes > self._bytes_max or self._left_s < 0 or self._entries > BATCH_ENTRIES_MAX
