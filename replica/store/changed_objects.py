"""Which objects of a store changed lately, by arrival number, so that who catches up need not look at all. In memory, bounded."""

from collections import OrderedDict
from typing import Final

from .database import Database
from .statements import NUMBERED

CHANGED_MAX: Final = 50_000
"""Objects whose latest change is remembered; older ones are found by a walk over all."""


class ChangedObjects:
    """The latest change of each object that changed after `complete_from`; nothing is known of earlier changes."""

    def __init__(self, complete_from: int, database: Database) -> None:
        self.complete_from = complete_from
        self._database: Final = database
        self._latest: OrderedDict[int, tuple[int, str]] = OrderedDict()

    def note(self, object_number: int, name: str, arrival: int) -> None:
        """The object has changed, as `arrival` number of the store."""
        self._latest[object_number] = (arrival, name)
        self._latest.move_to_end(object_number)
        if len(self._latest) > CHANGED_MAX:
            _, (self.complete_from, _) = self._latest.popitem(last=False)

    def forget(self, object_number: int) -> None:
        """The object is gone."""
        self._latest.pop(object_number, None)

    def since(self, arrival: int, above: int, limit: int) -> list[tuple[int, str]]:
        """Number and name of those changed after `arrival`, numbered above `above`, by number, at most `limit`. Where more may
        have changed than is remembered, of all objects that the database holds."""
        if arrival < self.complete_from:
            return [(number, name) for number, name in self._database.all(NUMBERED, (above, limit))]
        found = []
        for number in reversed(self._latest):
            changed, name = self._latest[number]
            if changed <= arrival:
                break
            if number > above:
                found.append((number, name))
        return sorted(found)[:limit]
