"""The read repair of a replica in a world.

Owns when it asks its embedded front end, as the server's does. It must not know how it is done (`ReadRepair`).
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...adts.log import Entry
from ...client_sdk.protocol.core.values import Done, Outcome, ReadRepair
from ...replica.protocol.undecided import Undecided

if TYPE_CHECKING:
    from .nodes import FrontNode, ReplicaNode

ROUND_MAX: Final = 16
DEADLINE_S: Final = 0.5


class Repairing:
    """What one replica has finished of what vanished clients left; nothing, where no front end is embedded in it."""

    def __init__(self, node: "ReplicaNode") -> None:
        self._node = node
        self._undecided = Undecided()

    def round(self) -> None:
        """Finish decisions of which nobody has told for long that they are made."""
        store: Any = self._node.replica.store
        if self._node.front is not None:
            for name in self._undecided.due(store, self._node.clock.mono_s, ROUND_MAX):
                self._ask(ReadRepair(name))

    def entries(self, name: str, entries: tuple[Entry, ...]) -> None:
        """Find out whether these are complete."""
        self._ask(ReadRepair(name, entries))

    def _ask(self, operation: ReadRepair) -> None:
        if (front := self._node.front) is not None:  # It may crash over the one before.
            front.start(operation, DEADLINE_S, partial(_note, front))


def _note(front: "FrontNode", outcome: Outcome) -> None:
    word = outcome.event_class if isinstance(outcome, Done) else "ReadRepair/failed"
    front.janitor_outcomes[word] = front.janitor_outcomes.get(word, 0) + 1
