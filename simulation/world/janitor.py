"""The upkeep of a replica in a world: its janitor, its read repair, and what relays from its outboxes.

Owns when it deletes, collects, repairs and relays, as the server does. It must not know what may go (`quorate.gc.pruning` does), nor how a
repair is done (`ReadRepair`), nor the steps of the relay (`quorate.replica.protocol.relay`).
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...adts.log import Entry
from ...api_specs.messages import Request
from ...api_specs.outboxes import Outbox
from ...client_sdk.protocol.core.values import YOUNG, CollectTombstone, Done, Outcome, ReadRepair
from ...gc.pruning import AGAIN, SOON, Pruning
from ...gc.tombstones import Tombstones
from ...replica.protocol.relay import Open, Steps, relay, step_s
from ...replica.protocol.undecided import Undecided, quorums_of

if TYPE_CHECKING:
    from .nodes import FrontNode, ReplicaNode

BURIED_MAX = 50
ROUNDS_MAX = 1_000
COLLECT_DEADLINE_S = 0.2
REPAIRED_MAX: Final = 16
REPAIR_S: Final = 0.5
OUTBOXES_MAX: Final = 4


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
        due = (
            [] if node.front is None or not node.is_member else self._pruning.ended(store, mono_s, BURIED_MAX)
        )
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


class Repairing:
    """What one replica has finished of what vanished clients left; nothing, where no front end is embedded in it."""

    def __init__(self, node: "ReplicaNode") -> None:
        self._node = node
        self._undecided = Undecided(lambda name: quorums_of(node.replica.document, name))

    def round(self) -> None:
        """Finish decisions of which nobody has told for long that they are made."""
        store: Any = self._node.replica.store
        if self._node.front is not None and self._node.is_member:
            for name in self._undecided.due(store, self._node.clock.mono_s, REPAIRED_MAX):
                self._ask(ReadRepair(name))

    def entries(self, name: str, entries: tuple[Entry, ...]) -> None:
        """Find out whether these are complete."""
        self._ask(ReadRepair(name, entries))

    def _ask(self, operation: ReadRepair) -> None:
        if (front := self._node.front) is not None:  # It may crash over the one before.
            front.start(operation, REPAIR_S, partial(_note, front))


class Relaying:
    """What one replica relays from its outboxes; nothing, where no front end is embedded in it."""

    def __init__(self, node: "ReplicaNode") -> None:
        self._node = node
        self._by: FrontNode | None = None
        """The front end that works on what is open: with it, all that was under way ends."""
        self._open = Open(node.world.document, node.id)
        self._step_s = step_s(node.world.document.limits)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, as far as it knows."""
        return not self._open.is_any

    def note(self, request: Request) -> None:
        """The replica handles a request."""
        self._open.note(request)

    def round(self) -> None:
        """Begin with those outboxes whose time has come."""
        node, front, now_s = self._node, self._node.front, self._node.clock.mono_s
        if front is None or not front.is_alive:
            return
        if self._by is not front:
            self._by, self._open = front, Open(node.world.document, node.id)
            self._open.find(node.replica.store.objects(), now_s)
        for outbox in self._open.due(now_s, OUTBOXES_MAX):
            self._go_on(front, outbox, relay(outbox, node.world.document.limits), None)

    def _go_on(
        self, front: "FrontNode", outbox: Outbox, steps: Steps, outcomes: Sequence[Outcome] | None
    ) -> None:
        try:
            operations = next(steps) if outcomes is None else steps.send(outcomes)
        except StopIteration as stop:
            found, why = stop.value
            front.janitor_outcomes[f"Relay/{found}"] = front.janitor_outcomes.get(f"Relay/{found}", 0) + 1
            if self._by is front:
                self._open.told(outbox, found, why, self._node.clock.mono_s)
            return
        ended: dict[int, Outcome] = {}

        def note(place: int, outcome: Outcome) -> None:
            ended[place] = outcome
            if len(ended) == len(operations):
                self._go_on(front, outbox, steps, [ended[place] for place in range(len(operations))])

        if not operations:
            self._go_on(front, outbox, steps, ())
        for place, operation in enumerate(operations):
            front.start(operation, self._step_s, partial(note, place))


def _note(front: "FrontNode", outcome: Outcome) -> None:
    word = outcome.event_class if isinstance(outcome, Done) else "ReadRepair/failed"
    front.janitor_outcomes[word] = front.janitor_outcomes.get(word, 0) + 1
