"""The lecture's two traces (DESIGN section 9), replica by replica and entry by entry, through the shipped machines.

Three replicas; Enq (0,2), Deq/Ok (2,2), Deq/Empty (2,0). Each operation runs at a front end of its own, and its messages
reach only the replicas that the lecture names.
"""

from quorate.adts.log import Value
from quorate.api_specs.values import from_value
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp
from tests.sim.schedules.hand import Hand

CHOICE = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)}
QUEUE = "queue/lecture"
REPLICAS = ("r1", "r2", "r3")


class Trace:
    """The lecture's queue, and what its replicas hold."""

    def __init__(self, *, collect: bool) -> None:
        self.hand = Hand(CHOICE, collect=collect)
        self._number = 0

    def run(self, operation: Enqueue | Dequeue, *replicas: str) -> object:
        """The result of the operation, with all its messages pinned to these replicas, commits included."""
        self._number += 1
        front = f"f{self._number}"
        self.hand.start(front, operation, front)
        self.hand.carry_until(front, front, *replicas)
        self.hand.carry_commits(front, *replicas)
        self.hand.packets = []
        return self.hand.result(front)

    def enqueue(self, item: str, *replicas: str) -> None:
        """Enq(item)."""
        assert self.run(Enqueue(QUEUE, (Value(f'"{item}"'),)), *replicas) is None

    def dequeue(self, *replicas: str) -> tuple[str, ...]:
        """The items that Deq() answers."""
        items = self.run(Dequeue(QUEUE), *replicas)
        assert isinstance(items, tuple)
        return tuple(from_value(entry) for entry in items)

    def log(self, replica: str) -> dict[Timestamp, str]:
        """Timestamps and events of one replica's log. A row at or below the collected horizon is discarded: it is
        shown to no view, and stays in the table for the retry window only."""
        store = self.hand.replicas[replica].store
        state = store.state(QUEUE)
        collected = ZERO if state is None else state.collected
        events = {row.entry.t: f"Enq({row.entry.value});Ok()" for row in store.rows(QUEUE, collected, 100)}
        return {
            t: event.replace('"', "") for t, event in (events | dict(store.events(QUEUE))).items()
        }  # The lecture writes x for the item "x".

    def ranks(self) -> dict[Timestamp, str]:
        """t1, t2, … for the timestamps ever seen in any log, in their order."""
        stores = [self.hand.replicas[replica].store for replica in REPLICAS]
        rows = {row.entry.t for store in stores for row in store.rows(QUEUE, ZERO, 100)}
        events = {t for store in stores for t, _ in store.events(QUEUE)}
        return {t: f"t{rank}" for rank, t in enumerate(sorted(rows | events), 1)}

    def logs(self) -> list[list[str]]:
        """The logs of r1, r2 and r3 as the lecture draws them."""
        ranks = self.ranks()
        return [
            [f"{ranks[t]}:[{event}]" for t, event in sorted(self.log(replica).items())]
            for replica in REPLICAS
        ]

    def horizon(self, replica: str) -> str:
        """The replica's horizon as the lecture names it."""
        state = self.hand.replicas[replica].store.state(QUEUE)
        horizon = ZERO if state is None else state.horizon
        return "0" if horizon == ZERO else self.ranks()[horizon]


def test_full_logs() -> None:
    """Collection is off: a decided event stays in the log under the timestamp of its decision. The lecture sends whole
    views, so that its Deq also copies t1 to R3; here only what is new is sent (DESIGN section 9), with the same answers.
    """
    trace = Trace(collect=False)
    x, y, z = "t1:[Enq(x);Ok()]", "t3:[Enq(y);Ok()]", "t4:[Enq(z);Ok()]"
    takes_x, takes_y = "t2:[Deq();Ok(x)]", "t5:[Deq();Ok(y)]"

    trace.enqueue("x", "r1", "r2")
    assert trace.logs() == [[x], [x], []]
    assert trace.dequeue("r2", "r3") == ("x",)
    assert trace.logs() == [[x], [x, takes_x], [takes_x]]
    trace.enqueue("y", "r1", "r2")
    assert trace.logs() == [[x, y], [x, takes_x, y], [takes_x]]
    trace.enqueue("z", "r1", "r3")
    assert trace.logs() == [[x, y, z], [x, takes_x, y], [takes_x, z]]
    assert trace.dequeue("r1", "r3") == ("y",)
    assert trace.logs() == [[x, y, z, takes_y], [x, takes_x, y], [takes_x, z, takes_y]]

    everything = {t for replica in REPLICAS for t in trace.log(replica)}
    assert len(everything) == 5
    assert all(trace.log(replica).keys() < everything for replica in REPLICAS)


def test_horizon() -> None:
    """Collection is on: a log loses what is at or below the horizon that its replica knows to be decided.

    Here the numbers of timestamps are those of the enqueues alone: a decision leaves a horizon, not an entry.
    """
    trace = Trace(collect=True)
    x, y, z = "t1:[Enq(x);Ok()]", "t2:[Enq(y);Ok()]", "t3:[Enq(z);Ok()]"

    def horizons() -> list[str]:
        return [trace.horizon(replica) for replica in REPLICAS]

    trace.enqueue("x", "r1", "r2")
    assert (horizons(), trace.logs()) == (["0", "0", "0"], [[x], [x], []])
    assert trace.dequeue("r2", "r3") == ("x",)
    assert (horizons(), trace.logs()) == (["0", "t1", "t1"], [[x], [], []])
    trace.enqueue("y", "r1", "r2")
    assert (horizons(), trace.logs()) == (["0", "t1", "t1"], [[x, y], [y], []])
    trace.enqueue("z", "r1", "r3")
    assert (horizons(), trace.logs()) == (["0", "t1", "t1"], [[x, y, z], [y], [z]])
    assert trace.dequeue("r1", "r3") == ("y",)
    assert (horizons(), trace.logs()) == (["t2", "t1", "t2"], [[z], [y], [z]])


def test_the_lecture_s_last_dequeue_froze_the_logs_it_read() -> None:
    """What keeps the trace right when an older entry is still on its way: no log that was read takes one any more."""
    trace = Trace(collect=True)
    trace.enqueue("x", "r1", "r2")
    trace.dequeue("r2", "r3")
    fences = [trace.hand.replicas[replica].store.state(QUEUE) for replica in REPLICAS]
    (t1,) = [t for t, rank in trace.ranks().items() if rank == "t1"]
    assert fences[0] is not None
    assert fences[0].fence == ZERO
    for state in fences[1:]:
        assert state is not None
        assert t1 <= state.fence < INFINITY
