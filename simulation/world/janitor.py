"""The janitor of a replica in a world.

Owns when it deletes and collects, as the server's does. It must not know what may go (`quorate.gc.pruning` does).
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from ...client_sdk.protocol.core.values import YOUNG, CollectTombstone, Done, Outcome
from ...gc.pruning import AGAIN, SOON, Pruning
from ...gc.tombstones import Tombstones

if TYPE_CHECKING:
    from .nodes import FrontNode, ReplicaNode

BURIED_MAX = 50
ROUNDS_MAX = 1_000
COLLECT_DEADLINE_S = 0.2


class Janitor:
    """What a replica's janitor does in a round (`quorate.replica.upkeep.janitor`), around the shipped waiting list."""

    def __init__(self, node: "ReplicaNode") -> None:
        self._node = node
        self._pruning = Pruning(
            Tombstones(),
            lag_s=node.world.document.limits.payloads_s,
            window_s=node.world.document.memory_s,
            is_kept=node.replica.keeps,
        )

    def round(self) -> None:
        """Delete what is due; the embedded front end, where there is one, collects old deletions."""
        node, mono_s = self._node, self._node.clock.mono_s
        store: Any = node.replica.store
        for _ in range(ROUNDS_MAX):
            is_more = self._pruning.round(store, node.clock.now())
            store.commit()
            if not is_more:
                break
        else:
            raise AssertionError(f"the janitor of {node.id} finds no end")
        due = [] if node.front is None else self._pruning.ended(store, mono_s, BURIED_MAX)
        for name in due:
            if node.front is not None:  # It may crash over the one before.
                node.front.start(
                    CollectTombstone(name), COLLECT_DEADLINE_S, partial(self._tried, name, node.front)
                )

    def _tried(self, name: str, front: "FrontNode", outcome: Outcome) -> None:
        """Note how a burial ended, and when it is tried again."""
        node = self._node
        word = outcome.event_class if isinstance(outcome, Done) else "Collect/failed"
        front.janitor_outcomes[word] = front.janitor_outcomes.get(word, 0) + 1
        store: Any = node.replica.store
        windows = SOON if word == YOUNG else AGAIN
        self._pruning.again(store, name, node.clock.mono_s, windows)
