"""What comes in at one replica: connections, requests under way, and refusals by their reasons.

Owns the numbers; gate and connections count in it, and the gate goes by two of them. Used on the event loop only.
"""

import asyncio
from typing import Final

from ...api_specs.limits import BODIES_BYTES_MAX
from ...api_specs.problems import KINDS
from ...client_sdk.protocol.core.turns import Shares


class Traffic:
    """What one application, and the server in front of it, have met so far and have under way."""

    def __init__(self) -> None:
        self.connections = 0
        """Open now."""
        self.connections_made = 0
        self.under_way = 0
        """Requests."""
        self.bodies = Shares(BODIES_BYTES_MAX)
        """Bytes of the bodies of requests under way."""
        self.coming: Final[set[asyncio.Timeout]] = set()
        """The times of the bodies that are not whole yet."""
        self.is_ending = False
        """Whether no body is waited for any more, for the replica stops."""
        self.requests = 0
        self.refusals = dict.fromkeys(sorted(KINDS), 0)
        """By the name of the problem. All are there from the start: who watches the rate of a series does not see the step with
        which it begins."""

    def end_bodies(self) -> int:
        """Let no body come any more; how many had not come whole."""
        self.is_ending = True
        coming = [each for each in self.coming if not each.expired()]
        for each in coming:
            each.reschedule(0)
        return len(coming)

    def refuse(self, name: str) -> None:
        """One more answer that was a problem."""
        self.refusals[name] += 1
