"""Which replica a front end asks first, where one will do: for payloads, and to keep what it relays. Pure. It matters to speed only."""

from collections.abc import Iterable, Sequence
from typing import Final


class PayloadSource:
    """The own replica while it is well, else one that answers, as long as it does."""

    def __init__(self, own: str | None, replicas: Iterable[str]) -> None:
        self._own: Final = own
        self._ill: Final[set[str]] = set()
        self.current = own or next(iter(replicas))

    def follow(self, replicas: Iterable[str]) -> None:
        """These are the replicas from now on."""
        known = tuple(replicas)
        if self.current not in known:
            self.current = known[0]

    def well_first(self, replicas: Sequence[str]) -> Sequence[str]:
        """These, the own one first and those last that have not answered of late, in their order otherwise."""
        return sorted(replicas, key=lambda replica: (replica in self._ill, replica != self._own))

    def note(self, replica: str, *, is_well: bool) -> None:
        """The replica has answered, or has not."""
        if not is_well:
            self._ill.add(replica)
            return
        self._ill.discard(replica)
        if replica == self._own or self.current in self._ill:
            self.current = replica
