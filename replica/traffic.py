"""What comes in at one replica: connections, requests under way, and refusals by their reasons.

Owns the numbers; gate and connections count in it, and the gate goes by two of them. Used on the event loop only.
"""


class Traffic:
    """What one application, and the server in front of it, have met so far and have under way."""

    def __init__(self) -> None:
        self.connections = 0
        """Open now."""
        self.connections_made = 0
        self.under_way = 0
        """Requests."""
        self.body_bytes = 0
        """Of the bodies of requests under way."""
        self.requests = 0
        self.refusals: dict[str, int] = {}
        """By the name of the problem (a key of `quorate.api_specs.problems.KINDS`)."""

    def refuse(self, name: str) -> None:
        """One more answer that was a problem."""
        self.refusals[name] = self.refusals.get(name, 0) + 1
