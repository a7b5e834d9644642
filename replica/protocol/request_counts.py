"""What one replica counts of the requests that it handles: which, how they ended, and what they made it promise. Pure.

Owns plain numbers. They are counted as requests are handled, before they are on disk; where a transaction fails, its requests
count again when they come again.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ...api_specs.messages import Accepted, Appended, Collected, Refused, Reply, Request
from .log import Effect, Log, PutRows, PutState

DONE: Final = "done"
BALLOT_REFUSED: Final = "ballot-refused"
"""A higher term had been promised: two front ends met."""


class RequestCounts:
    """What one member has handled since it was opened. One thread counts."""

    def __init__(self) -> None:
        self._requests: Final[defaultdict[tuple[type[Request], str], int]] = defaultdict(int)
        self.fences_raised = 0
        self.entries_stored = 0
        self.entries_fenced = 0
        """Entries that a fence kept out."""

    def note(self, request: Request, reply: Reply, effects: Sequence[Effect], before: Log) -> None:
        """Count one request; `before` is the log without its effects, of which a change of the object's state is the last."""
        outcome = DONE
        if type(reply) is Appended:
            if effects and type(rows := effects[0]) is PutRows:
                self.entries_stored += len(rows.entries)
            if False in reply.stored:
                self.entries_fenced += reply.stored.count(False)
        elif type(reply) is Refused:
            outcome = reply.reason
        elif type(reply) is Collected or type(reply) is Accepted:
            if reply.refused:
                outcome = BALLOT_REFUSED
            elif effects:
                self.fences_raised += _raises_fence(effects[-1], before)
        self._requests[type(request), outcome] += 1

    @property
    def requests(self) -> dict[tuple[str, str], int]:
        """By kind of request, and DONE, BALLOT_REFUSED or the reason of the refusal."""
        return {(kind.__name__, outcome): times for (kind, outcome), times in dict(self._requests).items()}


def _raises_fence(effect: Effect, before: Log) -> bool:
    if type(effect) is not PutState:
        return False
    known = before.state(effect.state.name)
    return effect.state.fence > (before.floor() if known is None else known.fence)
