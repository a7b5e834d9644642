"""What comes in at one replica: connections, requests under way, and refusals by their reasons.

Owns the numbers; gate and connections count in it, and the gate goes by two of them. Used on the event loop only.
"""

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
        self.requests = 0
        self.refusals = dict.fromkeys(sorted(KINDS), 0)
        """By the name of the problem. All are there from the start: who watches the rate of a series does not see the step with
        which it begins."""

    def refuse(self, name: str) -> None:
        """One more answer that was a problem."""
        self.refusals[name] += 1
