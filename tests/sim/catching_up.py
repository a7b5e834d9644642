"""How replicas of a world bring each other what they missed, and what must be equal once they have.

Owns when they ask and how far they have come. It must not know what may be installed (`quorate.replica.catch_up` does).
"""

import random
from typing import TYPE_CHECKING, Final

from quorate.adts.catalogue import adt_of
from quorate.replica.catch_up import News, consumed_upto, tell
from quorate.replica.ports import ObjectState
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.timestamp import Timestamp
from tests.sim.checkers import Violation
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    from tests.sim.nodes import ReplicaNode
    from tests.sim.world import World

PULL_EVERY_US: Final = 30_000
SETTLED_US: Final = 12_000_000
"""By then all packets of the time before have arrived, and every replica has asked every other one for the rest."""


class CatchingUp:
    """Every replica pulls from every other one, a few changes at a time, over links that may lose the answer."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = random.Random(f"catch-up {world.scenario.seed}")

    def begin(self) -> None:
        """From now on, for ever, where the scenario has it."""
        if self._world.scenario.catches_up:
            self._world.later(PULL_EVERY_US, self._round)

    def _round(self) -> None:
        replicas = list(self._world.replicas.values())
        for puller in replicas:
            for other in replicas:
                if other is not puller:
                    self._ask(puller, other)
        self._world.later(PULL_EVERY_US, self._round)

    def _ask(self, puller: "ReplicaNode", other: "ReplicaNode") -> None:
        if not is_at_rest(puller) or not is_at_rest(other):
            return
        since = puller.replica.store.caught_up.get(other.id, 0)
        upto, changed = other.replica.store.changes(since, self._rng.choice([1, 3, 50]))
        delay_us = self._world.network.delay_us(other.id, puller.id) if upto > since else None
        if delay_us is None:
            return
        news = [tell(name, sorted(timestamps), other.replica.store) for name, timestamps in changed.items()]
        self._world.later(delay_us, self._install, puller, other.id, since, upto, news)

    def _install(self, puller: "ReplicaNode", other: str, since: int, upto: int, news: list[News]) -> None:
        store = puller.replica.store
        if not is_at_rest(puller) or store.caught_up.get(other, 0) != since:
            return
        is_all = True
        for each in news:
            brought, late, is_taken = puller.replica.install(each, puller.wall_us)
            state = store.state(each.name)
            if state is not None and any(t <= state.horizon for t in brought | late):
                raise Violation(f"{puller.id} {each.name}: installed below the decided horizon")
            puller.watch.caught_up(puller.id, each.name, brought | late)
            self._world.note("entries caught up", len(brought))
            self._world.note("entries caught up below a fence", len(late))
            is_all &= is_taken
        if is_all:  # Else the same is asked for again.
            store.caught_up[other] = upto
        store.commit()


def is_at_rest(node: "ReplicaNode") -> bool:
    """Whether the replica runs, and has no transaction open that others must not hear of yet."""
    return node.is_up and not node.is_stopped and not node.uncommitted


def check_caught_up(world: "World") -> None:
    """Nothing that a replica may take from another one is missing there, some time after everything healed."""
    if not world.scenario.catches_up:
        return
    world.pass_time(SETTLED_US)
    stores = {node.id: node.replica.store for node in world.replicas.values()}
    for a, told in stores.items():
        for b, here in stores.items():
            for name in told.objects() if a != b else ():
                _check_object(f"{b} {name}: not caught up with {a}", name, told, here)


def _check_object(what: str, name: str, told: MemoryStore, here: MemoryStore) -> None:
    floor = here.floor()
    state = told.state(name)
    own = here.state(name) or ObjectState(name, fence=floor, floor=floor)
    assert state is not None
    is_known = state.committed != NO_BALLOT and state.committed == state.accepted
    if is_known and state.committed > own.committed and state.summary.horizon > max(own.horizon, own.floor):
        raise Violation(f"{what}: decided {state.committed}, not {own.committed}")
    for row in told.rows(name, max(consumed_upto(state), consumed_upto(own)), 10_000):
        t: Timestamp = row.entry.t
        if (row.complete or t > own.fence) and not here.stored(name, [t]) and not _is_covered(name, t, here):
            raise Violation(f"{what}: the entry {t} is missing")


def _is_covered(name: str, t: Timestamp, here: MemoryStore) -> bool:
    """A cell's older value is of no use where a newer one is complete."""
    return adt_of(name) != "queue" and any(row.complete for row in here.rows(name, t, 10_000))
