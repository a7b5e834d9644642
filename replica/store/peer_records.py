"""What a store remembers of the other replicas' stores: how far each was seen to come, and how far its changes were looked at.

Owns two small tables, at most a row each for every other replica, and for CANDIDATES_MAX that are to become members. Everything is part of the store's transaction at hand.
"""

from collections.abc import Collection, Mapping
from typing import Final

from ...timestamps.timestamp import ZERO, Timestamp
from ..protocol.witness import Witness
from . import statements
from .database import Database
from .records import progress_name, progress_of, progress_text, with_sum, without_sum

CANDIDATES_MAX: Final = 16
_SEEN: Final = "what it saw of other stores"


class AboutOthers:
    """Part of a store. Raises StorageFailed."""

    def __init__(self, opened: Database) -> None:
        self._database: Final = opened
        self.highest = ZERO
        """How far any other replica's store was seen to have come."""

    def load(self) -> None:
        """Read what it keeps in memory again."""
        seen = (without_sum(_SEEN, row) for row in self._database.all(statements.GET_WITNESSES))
        self.highest = max((Timestamp(clock) for _, _, clock, _ in seen), default=ZERO)

    def witness(self, replica: str) -> Witness | None:
        """The other replica's store as it was last seen."""
        return self._witnesses().get(replica)

    def _witnesses(self) -> dict[str, Witness]:
        rows = (without_sum(_SEEN, columns) for columns in self._database.all(statements.GET_WITNESSES))
        return {name: Witness(*seen) for name, *seen in rows}

    def put_witness(self, replica: str, seen: Witness) -> None:
        self._database.write(statements.PUT_WITNESS, with_sum(replica, seen.store, seen.clock, seen.born))
        self.highest = max(self.highest, seen.clock)

    def has_room(self, replica: str, members: Collection[str]) -> bool:
        """Whether this one, which is no member, may be noted."""
        candidates = self._witnesses().keys() - members
        return replica in candidates or len(candidates) < CANDIDATES_MAX

    def keep(self, members: Collection[str], admitted: Mapping[str, str]) -> None:
        """Forget the stores of all but these replicas; of those that have just become members, all but the store that is named."""
        for replica, known in self._witnesses().items():
            if replica not in members or admitted.get(replica, known.store) != known.store:
                self._database.write(statements.DROP_WITNESS, (replica,))

    def progress(self, replica: str) -> tuple[str, int] | None:
        """The other replica's store, and the number of the last change looked at there; None where nothing is kept."""
        return progress_of(replica, dict(self._database.all(statements.GET_META)).get(progress_name(replica)))

    def put_progress(self, replica: str, store: str, since: int) -> None:
        """Keep how far its changes were looked at."""
        text = progress_text(replica, store, since)
        self._database.write(statements.PUT_META, (progress_name(replica), text))
