"""Mistakes of catch-up: what is installed that must not be, and what is never asked for again."""

from quorate.replica import catch_up
from quorate.replica.catch_up import News
from quorate.replica.ports import Log, ObjectState, PutRow
from quorate.timestamps.timestamp import ZERO, Timestamp
from tests.sim.nodes import ReplicaNode
from tests.sim.planted.plant import Planting, patched


def install_without_a_mark() -> Planting:
    """An entry is installed below a fence although nobody knows it to be complete."""

    def below_the_fence(news: News, state: ObjectState, log: Log) -> list[PutRow]:
        least = catch_up.consumed_upto(state)
        late = [row.entry for row in news.rows if least < row.entry.t <= state.fence]
        here = log.stored(news.name, [entry.t for entry in late])
        return [PutRow(news.name, entry) for entry in late if entry.t not in here]

    return patched(catch_up, below_the_fence=below_the_fence)


def install_below_the_horizon() -> Planting:
    """Entries are told and installed although a decided horizon lies above them."""

    def consumed_upto(state: ObjectState) -> Timestamp:
        del state
        return ZERO

    return patched(catch_up, consumed_upto=consumed_upto)


def forget_how_far_it_was() -> Planting:
    """A replica that restarts takes all that the others have by then for known."""
    right = ReplicaNode.restart

    def restart(self: ReplicaNode) -> None:
        if not self.is_up:
            own = self.replica.store
            for other in self.world.replicas.values():  # type: ignore[attr-defined]
                own.caught_up[other.id] = other.replica.store.changes(0, 1_000_000)[0]
        right(self)

    return patched(ReplicaNode, restart=restart)
