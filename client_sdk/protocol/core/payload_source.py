"""Which replica a front end asks for payloads. Pure. It matters to speed only."""

from collections.abc import Iterable
from typing import Final


class PayloadSource:
    """The own replica while it is well, else one that answers, as long as it does."""

    def __init__(self, own: str | None, replicas: Iterable[str]) -> None:
        self._own: Final = own
        self._ill: Final[set[str]] = set()
        self.current = own or next(iter(replicas))

    def note(self, replica: str, *, is_well: bool) -> None:
        """The replica has answered, or has not."""
        if not is_well:
            self._ill.add(replica)
            return
        self._ill.discard(replica)
        if replica == self._own or self.current in self._ill:
            self.current = replica
